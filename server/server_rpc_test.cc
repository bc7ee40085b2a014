// The whole server in one process with a worker that invents its numbers: upload, optimize, watch,
// download, the second time from the cache, cancel, and a restart with a job in flight.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <thread>

#include "autograph/v1/blobs.grpc.pb.h"
#include "autograph/v1/cache.grpc.pb.h"
#include "autograph/v1/optimizer.grpc.pb.h"
#include "autograph/v1/worker.grpc.pb.h"
#include "base/blobs.h"
#include "base/file.h"
#include "base/testing/eventually.h"
#include "graph/codec.h"
#include "graph/onnx/export/export.h"
#include "graph/onnx/import/import.h"
#include "graph/onnx/imported_model.h"
#include "graph/onnx/origin.h"
#include "graph/text_form.h"
#include "plan/format/plan_codec.h"
#include "plan/format/plan_validate.h"
#include "plan/schedule/makespan.h"
#include "plan/schedule/planner.h"
#include "rules/match/rewrite.h"
#include "rules/match/rule_clean_up.h"
#include "rules/sets/built_in_rules.h"
#include "server/server.h"

namespace ag {
namespace {

namespace v1 = autograph::v1;

std::string SpecText() {
  return *ReadFile(std::string(AG_SOURCE_DIR) + "/deploy/devices/small.spec");
}

// A worker of device "sim:small" on its own stream. Times are rooflines and simulated makespans.
class FakeWorker {
 public:
  using Spoil = std::function<void(const v1::WorkItem&, v1::ItemResult*)>;
  // `spoil` changes what is sent; null: nothing.
  explicit FakeWorker(std::shared_ptr<grpc::Channel> channel, std::string id = "fake",
                      Spoil spoil = nullptr)
      : id_(std::move(id)),
        spoil_(std::move(spoil)),
        spec_(*ParseDeviceSpec(SpecText())),
        stub_(v1::Workers::NewStub(std::move(channel))) {
    thread_ = std::thread([this] { Main(); });
  }
  ~FakeWorker() {
    context_.TryCancel();
    thread_.join();
  }
  std::atomic<bool> hold{false};  // The worker takes work and does nothing.
  std::atomic<int> wrong{0};      // The number of checks that find a difference.
  std::atomic<int> unsteady{0};   // The number of file sets whose second process differs by 10 %.
  std::atomic<int> disturbed_blocks{0};  // Of each file set.
  std::atomic<int> groups{0};            // Groups that were measured.
  std::atomic<int> cold_groups{0};
  std::atomic<int> plan_sets{0}, cold_plan_sets{0}, file_sets{0};

 private:
  void Main() {
    auto stream = stub_->Synchronize(&context_);
    state_.set_worker_id(id_);
    state_.set_device("sim:small");
    state_.set_device_spec(SpecText());
    state_.set_environment("device=small;policy=1");
    state_.set_health(v1::WorkerState::SERVING);
    state_.set_simulated(true);
    stream->Write(state_);
    v1::DesiredState desired;
    while (stream->Read(&desired)) {
      for (const uint64_t sequence : desired.acknowledged()) Forget(sequence);
      state_.set_epoch(desired.epoch());
      blob_dir_ = desired.shared_blob_dir();
      if (desired.has_work() && desired.work().attempt() != done_ && !hold) Do(desired.work());
      stream->Write(state_);
    }
    stream->Finish();
  }

  void Forget(uint64_t sequence) {
    v1::WorkerState kept = state_;
    kept.clear_results();
    for (const v1::ItemResult& r : state_.results()) {
      if (r.sequence() != sequence) *kept.add_results() = r;
    }
    state_ = kept;
  }

  v1::ItemResult* Add(const v1::WorkItem& work, int index) {
    v1::ItemResult* result = state_.add_results();
    result->set_sequence(++sequence_);
    result->set_epoch(state_.epoch());
    result->set_attempt(work.attempt());
    result->set_index(index);
    return result;
  }

  void Do(const v1::WorkItem& work) {
    if (work.has_groups()) DoGroups(work);
    if (work.has_plans()) DoPlans(work);
    if (work.has_check()) DoCheck(work);
    if (work.has_files()) DoFiles(work);
    for (v1::ItemResult& result : *state_.mutable_results()) {
      if (spoil_ && result.attempt() == work.attempt()) spoil_(work, &result);
    }
    Add(work, -1);
    done_ = work.attempt();
  }

  void DoGroups(const v1::WorkItem& work) {
    for (int i = 0; i < work.groups().problems_size(); ++i) {
      const GroupProblem problem = *DecodeGroupProblem(work.groups().problems(i));
      const double ns = 2 * RooflineNs(problem, spec_);
      v1::Measurement* measurement = Add(work, i)->mutable_measurement();
      measurement->mutable_latency()->set_median_ns(ns);
      measurement->mutable_latency()->set_low_ns(ns * 0.99);
      measurement->mutable_latency()->set_high_ns(ns * 1.01);
      measurement->set_samples(9);
      measurement->set_simulated(true);
      ++groups;
      cold_groups += problem.cold_cache ? 1 : 0;
    }
  }

  double PlanNs(const v1::Candidate& candidate) {
    const Graph graph = *DecodeGraph(candidate.graph());
    const Plan plan = *DecodePlan(candidate.plan());
    EXPECT_EQ(ToString(ValidatePlan(graph, plan, spec_)), "OK");
    std::vector<double> ns;
    for (const Group& group : plan.groups) {
      const bool view = group.pattern == kViewPattern;
      ns.push_back(view ? 0 : 2 * RooflineNs(ExtractGroup(graph, group, plan.policy), spec_));
    }
    return MakespanNs(graph, plan, ns, spec_);
  }

  void DoPlans(const v1::WorkItem& work) {
    ++plan_sets;
    cold_plan_sets += ParsePolicy(work.plans().policy())->cold_cache ? 1 : 0;
    const double input_ns = PlanNs(work.plans().candidates(0));
    for (int i = 0; i < work.plans().candidates_size(); ++i) {
      const double ns = PlanNs(work.plans().candidates(i));
      v1::PlanTiming* timing = Add(work, i)->mutable_timing();
      timing->mutable_latency()->set_median_ns(ns);
      timing->mutable_latency()->set_low_ns(ns);
      timing->mutable_latency()->set_high_ns(ns);
      const double speedup = input_ns / ns;
      timing->set_speedup(speedup);
      timing->set_speedup_low(speedup * 0.99);
      timing->set_speedup_high(speedup * 1.01);
      timing->set_verdict(speedup > 1.05   ? v1::PlanTiming::FASTER
                          : speedup < 0.95 ? v1::PlanTiming::SLOWER
                                           : v1::PlanTiming::SAME);
      timing->set_blocks(9);
    }
  }

  void DoCheck(const v1::WorkItem& work) {
    const Graph graph = *DecodeGraph(work.check().candidate().graph());
    const bool is_wrong = wrong > 0 && wrong-- > 0;
    v1::ItemResult* result = Add(work, 0);
    for (const GraphOutput& output : graph.outputs()) {
      v1::OutputError* error = result->add_errors();
      error->set_output(output.name);
      error->set_max_rel(is_wrong ? 0.5 : 1e-6);
    }
  }

  // Returns the time of a session on the file: with the plan that it carries, else with an untuned
  // one.
  double FileNs(const v1::FileToTime& to_time, v1::FileRunner* runner) {
    const auto blobs = *BlobDir::Open(blob_dir_);
    const auto file = *blobs->Get(*ParseDigest(to_time.digest()));
    ImportedModel model = *ImportOnnx(file->bytes(), {}, *blobs);
    if (!to_time.plan().empty()) model.plans = {{"given", to_time.plan()}};
    const Graph cleaned = *CleanUp(model.graph, BuiltInRules());
    v1::Candidate candidate;
    RooflineTimes times(spec_);
    Plan plan = *MakePlan(cleaned, spec_, Policy(), times, {}, 1);
    candidate.set_graph(EncodeGraph(cleaned));
    candidate.set_plan(EncodePlan(plan));
    if (model.plans.empty()) return kUntuned * PlanNs(candidate);
    runner->set_carried_plan(true);
    plan = *DecodePlan(model.plans[0].second);
    candidate.set_plan(model.plans[0].second);
    if (plan.graph != cleaned.digest()) candidate.set_graph(EncodeGraph(model.graph));
    return PlanNs(candidate);
  }

  void DoFiles(const v1::WorkItem& work) {
    v1::FileTimes* times = Add(work, 0)->mutable_file_times();
    std::vector<double> ns;
    for (const v1::FileToTime& file : work.files().files()) {
      ns.push_back(FileNs(file, times->add_runners()));
    }
    // The last file is the output's second process.
    if (unsteady > 0 && unsteady-- > 0) ns.back() *= 1.1;
    for (int block = 0; block < 9; ++block) {
      v1::FileBlock* written = times->add_blocks();
      for (const double time : ns) written->add_ns(time);
      for (size_t i = ns.size(); i-- > 0;) written->add_ns(ns[i]);
    }
    times->set_disturbed(disturbed_blocks);
    file_sets += 1;
  }

  static constexpr double kUntuned = 1.25;
  const std::string id_;
  const Spoil spoil_;
  const DeviceSpec spec_;
  std::string blob_dir_;
  std::unique_ptr<v1::Workers::Stub> stub_;
  grpc::ClientContext context_;
  v1::WorkerState state_;
  std::string done_;
  uint64_t sequence_ = 0;
  std::thread thread_;
};

// (x v) w = x (v w): half of the work, once the weights are folded.
constexpr std::string_view kOnePlace = R"(
    input x f32[64,64]
    v = const f32[64,64] seed 1
    w = const f32[64,64] seed 2
    output y = matmul(matmul(x, v), w)
)";
// Three graphs are faster than this one: one place rewritten, the other place, and both.
constexpr std::string_view kTwoPlaces = R"(
    input x f32[64,64]
    v = const f32[64,64] seed 1
    w = const f32[64,64] seed 2
    output y = matmul(matmul(x, v), w)
    output z = matmul(matmul(x, w), w)
)";

std::string Model(std::string_view text = kOnePlace) {
  MemoryWeights weights;
  const auto graph = ParseGraph(text, &weights);
  AG_CHECK(graph.ok());
  OnnxOrigin origin;
  origin.opsets = {{"", 17}};
  const auto bytes = ExportOnnx(*graph, origin, weights);
  AG_CHECK(bytes.ok());
  return *bytes;
}

struct RpcBench {
  TempDir dir = *TempDir::Make("server-test-");
  std::unique_ptr<Server> server;
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<FakeWorker> worker;
  std::string model = Model();

  RpcBench() { Restart(); }
  ~RpcBench() { Stop(); }
  void Stop() {
    worker.reset();
    channel.reset();
    server.reset();
  }
  void Restart(bool hold = false) {
    Stop();
    ServerOptions options;
    options.data_dir = dir.path() + "/data";
    auto started = Server::Start(options);
    ASSERT_TRUE(started.ok()) << started.status();
    server = *std::move(started);
    channel = server->InProcessChannel();
    worker = std::make_unique<FakeWorker>(channel);
    worker->hold = hold;
    while (Capabilities().devices_size() == 0) RealClock().SleepFor(std::chrono::milliseconds(2));
  }
  v1::Capabilities Capabilities() {
    grpc::ClientContext context;
    v1::Capabilities response;
    v1::Optimizer::NewStub(channel)->GetCapabilities(&context, {}, &response);
    return response;
  }
  std::vector<v1::WorkerSummary> Workers() {
    grpc::ClientContext context;
    v1::ListWorkersResponse response;
    v1::Workers::NewStub(channel)->ListWorkers(&context, {}, &response);
    return {response.workers().begin(), response.workers().end()};
  }
  bool HasOnly(const std::string& worker_id, v1::WorkerState::Health health) {
    const auto workers = Workers();
    return workers.size() == 1 && workers[0].worker_id() == worker_id &&
           workers[0].health() == health;
  }
  grpc::Status Upload(const std::string& bytes, const std::string& digest, int64_t size,
                      bool last = true, int64_t offset = 0) {
    grpc::ClientContext context;
    v1::UploadResponse response;
    auto writer = v1::Blobs::NewStub(channel)->Upload(&context, &response);
    v1::UploadRequest chunk;
    chunk.set_digest(digest);
    chunk.set_size_bytes(size);
    chunk.set_offset(offset);
    chunk.set_data(bytes);
    chunk.set_last(last);
    writer->Write(chunk);
    writer->WritesDone();
    return writer->Finish();
  }
  void UploadModel() {
    const grpc::Status status =
        Upload(model, Sha256(model).Hex(), static_cast<int64_t>(model.size()));
    ASSERT_TRUE(status.ok()) << status.error_message();
  }
  grpc::Status Optimize(const v1::OptimizeRequest& request, v1::Job* job) {
    grpc::ClientContext context;
    return v1::Optimizer::NewStub(channel)->Optimize(&context, request, job);
  }
  v1::OptimizeRequest Request() {
    v1::OptimizeRequest request;
    request.set_model_digest(Sha256(model).Hex());
    request.set_model_name("two matmuls");
    return request;
  }
  v1::Job Start(const v1::OptimizeRequest& request) {
    v1::Job job;
    const grpc::Status status = Optimize(request, &job);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return job;
  }
  v1::Job Get(const std::string& name) {
    grpc::ClientContext context;
    v1::GetJobRequest request;
    request.set_name(name);
    v1::Job job;
    EXPECT_TRUE(v1::Optimizer::NewStub(channel)->GetJob(&context, request, &job).ok());
    return job;
  }
  void Cancel(const std::string& name) {
    grpc::ClientContext context;
    v1::CancelJobRequest request;
    request.set_name(name);
    v1::Job job;
    ASSERT_TRUE(v1::Optimizer::NewStub(channel)->CancelJob(&context, request, &job).ok());
  }
  // Every state that the watch showed; the last is terminal.
  std::vector<v1::Job> Watch(const std::string& name) {
    grpc::ClientContext context;
    v1::WatchJobRequest request;
    request.set_name(name);
    auto reader = v1::Optimizer::NewStub(channel)->WatchJob(&context, request);
    std::vector<v1::Job> seen(1);
    while (reader->Read(&seen.back())) seen.emplace_back();
    seen.pop_back();
    EXPECT_TRUE(reader->Finish().ok());
    return seen;
  }
  std::string Download(const std::string& digest) {
    grpc::ClientContext context;
    v1::DownloadRequest request;
    request.set_digest(digest);
    auto reader = v1::Blobs::NewStub(channel)->Download(&context, request);
    std::string bytes;
    v1::DownloadResponse chunk;
    while (reader->Read(&chunk)) bytes += chunk.data();
    EXPECT_TRUE(reader->Finish().ok());
    return bytes;
  }
};

TEST(Server, OptimizesAModelAndRemembersIt) {
  RpcBench b;
  b.UploadModel();
  const v1::Job job = b.Start(b.Request());
  const std::vector<v1::Job> seen = b.Watch(job.name());
  const v1::Job& last = seen.back();
  ASSERT_EQ(last.state(), v1::Job::SUCCEEDED) << last.error().message();
  const v1::Result& result = last.result();
  EXPECT_EQ(result.verdict(), v1::Result::FASTER) << last.DebugString();
  EXPECT_EQ(result.search(), v1::Result::COMPLETE);
  EXPECT_EQ(result.output(), v1::Result::REWRITTEN);
  EXPECT_EQ(result.baseline(), "AutoGraph, untuned");
  EXPECT_EQ(result.output_runtime(), "AutoGraph");
  EXPECT_GT(result.speedup(), 1.3);
  EXPECT_EQ(result.over_untuned().median(), result.speedup());
  EXPECT_GT(result.over_tuned_input().median(), 1.2);
  EXPECT_LT(result.over_tuned_input().median(), result.speedup());
  EXPECT_FALSE(result.has_over_onnxruntime());
  EXPECT_EQ(result.fresh_session().median(), 1);
  EXPECT_TRUE(result.simulated());
  EXPECT_EQ(result.errors_size(), 1);
  ASSERT_GT(result.rewrites_size(), 0);
  EXPECT_TRUE(result.rewrites(0).has_gain());
  EXPECT_GT(result.search_log().measured_size(), 1);
  EXPECT_GT(result.search_log().history_size(), 0);
  EXPECT_NE(result.output_digest(), Sha256(b.model).Hex());
  const std::string output = b.Download(result.output_digest());
  EXPECT_EQ(Sha256(output).Hex(), result.output_digest());
  EXPECT_NE(output.find("autograph.plan."), std::string::npos);
  EXPECT_NE(b.Download(result.report_digest()).find("\"report_version\": 4"), std::string::npos);

  const int groups = b.worker->groups;
  const v1::Job again = b.Start(b.Request());
  EXPECT_EQ(again.state(), v1::Job::SUCCEEDED);
  EXPECT_TRUE(again.result().cache().model_hit());
  EXPECT_EQ(again.result().output_digest(), result.output_digest());

  v1::OptimizeRequest search_again = b.Request();
  search_again.set_skip_model_cache(true);
  const v1::Job third = b.Watch(b.Start(search_again).name()).back();
  EXPECT_EQ(third.result().output_digest(), result.output_digest()) << "not deterministic";
  EXPECT_GT(third.result().cache().hits(), 0);
  EXPECT_EQ(b.worker->groups, groups) << "a group was measured twice";
}

// Each of these once gave FASTER, or an answer that was remembered.
TEST(Server, AFigureThatCannotBeGetsIntoNoAnswer) {
  const auto in_files = [](double output_ns) {
    return [output_ns](const v1::WorkItem& work, v1::ItemResult* result) {
      if (!work.has_files()) return;
      for (v1::FileBlock& block : *result->mutable_file_times()->mutable_blocks()) {
        for (int f = 1; f + 1 < block.ns_size(); ++f) block.set_ns(f, output_ns);
      }
    };
  };
  const auto in_plans = [](const std::function<void(v1::PlanTiming*)>& change) {
    return [change](const v1::WorkItem& work, v1::ItemResult* result) {
      if (work.has_plans()) change(result->mutable_timing());
    };
  };
  const auto in_checks = [](const std::function<void(v1::OutputError*)>& change) {
    return [change](const v1::WorkItem& work, v1::ItemResult* result) {
      if (work.has_check()) change(result->mutable_errors(0));
    };
  };
  const std::pair<const char*, FakeWorker::Spoil> kCases[] = {
      {"file times: a time of nan ns", in_files(std::nan(""))},
      {"file times: a time of -1 ns", in_files(-1)},
      {"file times: a time of 1e-310 ns", in_files(1e-310)},
      {"timing of a plan: a speedup of nan",
       in_plans([](auto* t) { t->set_speedup(std::nan("")); })},
      {"timing of a plan: a speedup of -3", in_plans([](auto* t) { t->set_speedup_low(-3); })},
      {"timing of a plan: a time of -1 ns",
       in_plans([](auto* t) { t->mutable_latency()->set_low_ns(-1); })},
      {"output y was compared as x", in_checks([](auto* e) { e->set_output("x"); })},
      {"output y: an error of -1", in_checks([](auto* e) { e->set_max_rel(-1); })},
  };
  for (const auto& [message, spoil] : kCases) {
    SCOPED_TRACE(message);
    RpcBench b;
    b.UploadModel();
    b.worker = std::make_unique<FakeWorker>(b.channel, "bad", spoil);
    ASSERT_TRUE(Eventually([&] { return b.HasOnly("bad", v1::WorkerState::SERVING); }));
    const v1::Job job = b.Start(b.Request());
    ASSERT_TRUE(Eventually([&] { return b.HasOnly("bad", v1::WorkerState::DRAINING); }))
        << b.Watch(job.name()).back().DebugString();
    EXPECT_EQ(b.Workers()[0].reason(), "it sent a figure that cannot be: " + std::string(message));
    const FakeWorker good(b.channel, "good");
    const v1::Job last = b.Watch(job.name()).back();
    ASSERT_EQ(last.state(), v1::Job::SUCCEEDED) << last.error().message();
    EXPECT_EQ(last.result().verdict(), v1::Result::FASTER);
    EXPECT_LT(last.result().speedup(), 10);
    EXPECT_EQ(last.result().errors(0).output(), "y");
  }
}

TEST(Server, MeasuresFromEvictedCachesWhereThePolicySaysSo) {
  RpcBench b;
  b.UploadModel();
  v1::OptimizeRequest cold = b.Request();
  cold.mutable_policy()->set_cold_cache(true);
  const v1::Job job = b.Watch(b.Start(cold).name()).back();
  ASSERT_EQ(job.state(), v1::Job::SUCCEEDED) << job.error().message();
  const int groups = b.worker->groups;
  EXPECT_GT(groups, 0);
  EXPECT_EQ(b.worker->cold_groups, groups);
  EXPECT_GT(b.worker->plan_sets, 0);
  EXPECT_EQ(b.worker->cold_plan_sets, b.worker->plan_sets);
  EXPECT_NE(b.Download(job.result().report_digest()).find("\"cold_cache\": true"),
            std::string::npos);
  EXPECT_TRUE(b.Start(cold).result().cache().model_hit());
  // Neither the answer nor a group may come from the rows of the warm policy.
  const v1::Job warm = b.Watch(b.Start(b.Request()).name()).back();
  EXPECT_FALSE(warm.result().cache().model_hit());
  EXPECT_EQ(warm.result().cache().hits(), 0);
  EXPECT_EQ(b.worker->cold_groups, groups);
}

TEST(Server, WhenTheWinnerFailsTheCheckTheNextBestIsPublished) {
  RpcBench b;
  b.model = Model(kTwoPlaces);
  b.UploadModel();
  const v1::Job winner = b.Watch(b.Start(b.Request()).name()).back();
  b.worker->wrong = 1;
  v1::OptimizeRequest request = b.Request();
  request.set_skip_model_cache(true);
  const v1::Job job = b.Watch(b.Start(request).name()).back();
  ASSERT_EQ(job.state(), v1::Job::SUCCEEDED) << job.error().message();
  const v1::Result& result = job.result();
  EXPECT_EQ(result.verdict(), v1::Result::FASTER) << result.DebugString();
  EXPECT_LE(result.speedup(), winner.result().speedup());
  EXPECT_GT(result.rewrites_size(), 0);
  EXPECT_NE(result.output_digest(), Sha256(b.model).Hex());
  EXPECT_NE(result.output_digest(), winner.result().output_digest());
  ASSERT_EQ(result.warnings_size(), 2);
  EXPECT_EQ(result.warnings(0),
            "the winner is not published: output y differs: max|a-b|/max|a| 0.5, tolerance "
            "0.001");
  EXPECT_EQ(result.warnings(1),
            "its rewrites, repeated one by one, give the results of the model: its plan is at "
            "fault, or a kernel in it");
  EXPECT_EQ(result.wrong_rewrites_size(), 0);
}

TEST(Server, AFileWhoseSessionsDisagreeIsTimedOnceMore) {
  for (const int sets : {1, 2}) {
    RpcBench b;
    b.worker->unsteady = sets;
    b.UploadModel();
    const v1::Job job = b.Watch(b.Start(b.Request()).name()).back();
    ASSERT_EQ(job.state(), v1::Job::SUCCEEDED) << job.error().message();
    EXPECT_EQ(job.result().output(), sets == 1 ? v1::Result::REWRITTEN : v1::Result::PLAN_ADDED);
    EXPECT_EQ(job.result().fresh_session().median(), 1);
    ASSERT_EQ(job.result().warnings_size(), sets - 1);
    if (sets == 1) continue;
    EXPECT_EQ(job.result().warnings(0),
              "the winner is not published: another fresh session takes another time: 0.909x "
              "(0.909 to 0.909)");
  }
}

TEST(Server, FilesTimedBesideOthersAreSaid) {
  RpcBench b;
  b.worker->disturbed_blocks = 9;
  b.UploadModel();
  const v1::Job job = b.Watch(b.Start(b.Request()).name()).back();
  ASSERT_EQ(job.state(), v1::Job::SUCCEEDED) << job.error().message();
  ASSERT_EQ(job.result().warnings_size(), 1);
  EXPECT_TRUE(job.result().warnings(0).starts_with("others used the processors while 0 of "))
      << job.result().warnings(0);
}

TEST(Server, WhatFailsTheCheckIsNotPublished) {
  RpcBench b;
  b.worker->wrong = 100;
  b.UploadModel();
  const v1::Job job = b.Watch(b.Start(b.Request()).name()).back();
  ASSERT_EQ(job.state(), v1::Job::SUCCEEDED) << job.error().message();
  EXPECT_EQ(job.result().verdict(), v1::Result::NO_GAIN_FOUND);
  EXPECT_EQ(job.result().output(), v1::Result::INPUT);
  EXPECT_EQ(job.result().speedup(), 1);
  EXPECT_EQ(job.result().output_digest(), Sha256(b.model).Hex());
  EXPECT_EQ(job.result().rewrites_size(), 0);
  ASSERT_EQ(job.result().warnings_size(), 3);
  EXPECT_EQ(job.result().warnings(0),
            "the winner is not published: output y differs: max|a-b|/max|a| 0.5, tolerance 0.001");
  EXPECT_EQ(job.result().warnings(1),
            "the model as it came differs from itself on the device: no rewrite is at fault");
  EXPECT_EQ(job.result().warnings(2),
            "the input with its plan is not published: output y differs: max|a-b|/max|a| 0.5, "
            "tolerance 0.001");
}

// Without a rewrite, the input's bytes are published, with a plan behind them or unchanged.
TEST(Server, WithoutARewriteTheInputGetsItsPlan) {
  RpcBench b;
  b.model = Model("input x f32[64,64]\noutput y = relu(x)\n");
  b.UploadModel();
  const v1::Job job = b.Watch(b.Start(b.Request()).name()).back();
  ASSERT_EQ(job.state(), v1::Job::SUCCEEDED) << job.error().message();
  const v1::Result& result = job.result();
  EXPECT_EQ(result.output(), v1::Result::PLAN_ADDED);
  EXPECT_EQ(result.verdict(), v1::Result::FASTER) << "over an untuned session";
  EXPECT_EQ(result.over_tuned_input().median(), 1);
  EXPECT_EQ(result.clean_up_size(), 0);
  const std::string output = b.Download(result.output_digest());
  EXPECT_TRUE(output.starts_with(b.model));
  EXPECT_GT(output.size(), b.model.size());

  v1::OptimizeRequest keep = b.Request();
  keep.set_keep_bytes(true);
  const v1::Job kept = b.Watch(b.Start(keep).name()).back();
  EXPECT_FALSE(kept.result().cache().model_hit()) << "another answer";
  EXPECT_EQ(kept.result().output(), v1::Result::INPUT);
  EXPECT_EQ(kept.result().output_digest(), Sha256(b.model).Hex());
  EXPECT_EQ(kept.result().verdict(), v1::Result::NO_GAIN_FOUND);
}

TEST(Server, CancelsARunningJob) {
  RpcBench b;
  b.worker->hold = true;
  b.UploadModel();
  const v1::Job job = b.Start(b.Request());
  b.Cancel(job.name());
  EXPECT_EQ(b.Watch(job.name()).back().state(), v1::Job::CANCELLED);
}

// The final comparison calls what was found no faster than the input: its plan is still faster than
// what the user runs today.
TEST(Server, KeepsTheBestOfACancelledJob) {
  RpcBench b;
  b.model = Model(kTwoPlaces);
  b.UploadModel();
  std::atomic<bool> is_cancelled = false;
  int plan_sets = 0;
  b.worker = std::make_unique<FakeWorker>(
      b.channel, "unsure", [&](const v1::WorkItem& work, v1::ItemResult* result) {
        if (!work.has_plans() || !result->has_timing()) return;
        plan_sets += result->index() == 0 ? 1 : 0;
        while (plan_sets == 3 && !is_cancelled) RealClock().SleepFor(std::chrono::milliseconds(2));
        result->mutable_timing()->set_speedup_low(0.9);
        result->mutable_timing()->set_verdict(v1::PlanTiming::SAME);
      });
  ASSERT_TRUE(Eventually([&] { return b.HasOnly("unsure", v1::WorkerState::SERVING); }));
  const v1::Job job = b.Start(b.Request());
  ASSERT_TRUE(Eventually([&] { return b.Get(job.name()).progress().best_speedup() > 1; }));
  b.Cancel(job.name());
  is_cancelled = true;
  const v1::Job last = b.Watch(job.name()).back();
  EXPECT_EQ(last.state(), v1::Job::CANCELLED);
  EXPECT_EQ(last.result().verdict(), v1::Result::FASTER) << last.DebugString();
  EXPECT_FALSE(b.Download(last.result().output_digest()).empty());
}

TEST(Server, ResumesAJobAfterARestart) {
  RpcBench b;
  b.worker->hold = true;
  b.UploadModel();
  const v1::Job job = b.Start(b.Request());
  while (true) {
    grpc::ClientContext context;
    v1::ListWorkersResponse workers;
    v1::Workers::NewStub(b.channel)->ListWorkers(&context, {}, &workers);
    if (workers.workers_size() == 1 && !workers.workers(0).attempt().empty()) break;
    RealClock().SleepFor(std::chrono::milliseconds(2));
  }
  const uint64_t epoch = b.Capabilities().epoch();
  b.Restart();
  EXPECT_EQ(b.Capabilities().epoch(), epoch + 1);
  const v1::Job last = b.Watch(job.name()).back();
  EXPECT_EQ(last.state(), v1::Job::SUCCEEDED) << last.error().message();
  EXPECT_EQ(last.resumed(), 1);
}

TEST(Server, UploadsAreChecked) {
  RpcBench b;
  const std::string digest = Sha256("bytes").Hex();
  EXPECT_EQ(b.Upload("bytes", digest, 5, /*last=*/false).error_message(),
            "upload: cut after 5 of 5 bytes");
  EXPECT_EQ(b.Upload("byte", digest, 5).error_message(), "upload: 4 bytes came, 5 were announced");
  EXPECT_EQ(b.Upload("bytes!", digest, 5).error_message(),
            "upload: more than the 5 bytes announced");
  EXPECT_EQ(b.Upload("bytes", digest, 5, true, 1).error_message(),
            "upload: a chunk at 1, expected at 0");
  EXPECT_EQ(b.Upload("other", digest, 5).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(b.Upload("bytes", "xyz", 5).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(b.Upload("bytes", digest, int64_t{1} << 50).error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_TRUE(b.Upload("bytes", digest, 5).ok());
  EXPECT_EQ(b.Download(digest), "bytes");
}

TEST(Server, RefusesWhatIsOutOfRange) {
  RpcBench b;
  v1::Job job;
  v1::OptimizeRequest request = b.Request();
  EXPECT_EQ(b.Optimize(request, &job).error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  b.UploadModel();
  request.set_beta(0.5);
  EXPECT_EQ(b.Optimize(request, &job).error_message(), "beta: 0.5 is below 1");
  request = b.Request();
  request.add_disabled_rules("no-such-rule");
  EXPECT_EQ(b.Optimize(request, &job).error_message(),
            "disabled_rules: no rule is called no-such-rule");
  request = b.Request();
  request.set_device("cuda:9");
  EXPECT_EQ(b.Optimize(request, &job).error_message(),
            "no worker offers device cuda:9; offered now: sim:small");
  request = b.Request();
  request.set_only_cached(true);
  EXPECT_EQ(b.Optimize(request, &job).error_code(), grpc::StatusCode::NOT_FOUND);
  request.set_skip_model_cache(true);
  EXPECT_EQ(b.Optimize(request, &job).error_message(),
            "only_cached and skip_model_cache exclude each other");
}

TEST(Server, ABrokenModelFailsItsJobOnly) {
  RpcBench b;
  b.model = "this is no model";
  b.UploadModel();
  const v1::Job job = b.Watch(b.Start(b.Request()).name()).back();
  EXPECT_EQ(job.state(), v1::Job::FAILED);
  EXPECT_EQ(job.error().code(), static_cast<int>(grpc::StatusCode::INVALID_ARGUMENT));
}

TEST(Server, ExportsAndImportsTheCache) {
  RpcBench b;
  b.UploadModel();
  b.Watch(b.Start(b.Request()).name());
  std::vector<v1::CacheRecord> records(1);
  {
    grpc::ClientContext context;
    auto reader = v1::Cache::NewStub(b.channel)->Export(&context, {});
    while (reader->Read(&records.back())) records.emplace_back();
    records.pop_back();
  }
  ASSERT_GT(records.size(), 0u);
  RpcBench other;
  const auto import = [&](v1::ImportCacheResponse* response) {
    grpc::ClientContext context;
    auto writer = v1::Cache::NewStub(other.channel)->Import(&context, response);
    for (const v1::CacheRecord& record : records) writer->Write(record);
    writer->WritesDone();
    return writer->Finish();
  };
  v1::ImportCacheResponse response;
  ASSERT_TRUE(import(&response).ok());
  EXPECT_EQ(response.added(), static_cast<int64_t>(records.size()));
  EXPECT_EQ(records[0].worker(), "fake");
  v1::ForgetCacheRequest forget;
  forget.set_import_id(response.import_id());
  v1::ForgetCacheResponse forgotten;
  grpc::ClientContext context;
  ASSERT_TRUE(v1::Cache::NewStub(other.channel)->Forget(&context, forget, &forgotten).ok());
  EXPECT_EQ(forgotten.measurements(), response.added());
  const double measured = records[0].measured_unix_seconds();
  for (const double time : {std::nan(""), -1.0, 1e300}) {
    records[0].set_measured_unix_seconds(time);
    EXPECT_EQ(import(&response).error_code(), grpc::StatusCode::INVALID_ARGUMENT) << time;
  }
  records[0].set_measured_unix_seconds(measured);
  records[0].set_environment("forged");
  EXPECT_EQ(import(&response).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST(Server, RemembersWhatItFindsForRegions) {
  RpcBench b;
  const auto list = [&](const v1::ListRegionsRequest& request, v1::ListRegionsResponse* response) {
    grpc::ClientContext context;
    return v1::Cache::NewStub(b.channel)->ListRegions(&context, request, response);
  };
  v1::ListRegionsResponse response;
  ASSERT_TRUE(list({}, &response).ok());
  EXPECT_EQ(response.regions_size(), 0);
  b.UploadModel();
  b.Watch(b.Start(b.Request()).name());
  ASSERT_TRUE(list({}, &response).ok());
  ASSERT_EQ(response.regions_size(), 1);
  const v1::CachedRegion region = response.regions(0);
  EXPECT_EQ(region.environment(), "device=small;policy=1");
  EXPECT_EQ(region.operators(), 2);
  EXPECT_EQ(region.copies(), 1);
  EXPECT_EQ(region.models(), 1);
  EXPECT_EQ(region.depends_on(), "") << "only with a key";
  ASSERT_GE(region.results_size(), 1);
  EXPECT_LT(region.results(0).estimate_ns(), region.estimate_ns());
  ASSERT_EQ(region.results(0).steps_size(), 1);
  EXPECT_EQ(region.results(0).steps(0).rule(), "matmul-reassociate");
  // Another search starts from it, also after a restart.
  b.Restart();
  v1::OptimizeRequest again = b.Request();
  again.mutable_budget()->set_rounds(2);
  b.Watch(b.Start(again).name());
  v1::ListRegionsRequest request;
  request.set_key(region.key().substr(0, 9));
  ASSERT_TRUE(list(request, &response).ok());
  ASSERT_EQ(response.regions_size(), 1);
  EXPECT_EQ(response.regions(0).key(), region.key());
  EXPECT_EQ(response.regions(0).models(), 2);
  EXPECT_EQ(Sha256(response.regions(0).depends_on()).Hex(), region.key());
  // One that is to search anew does not, and replaces it.
  again.set_skip_model_cache(true);
  b.Watch(b.Start(again).name());
  ASSERT_TRUE(list(request, &response).ok());
  EXPECT_EQ(response.regions(0).models(), 3);
  EXPECT_EQ(response.regions(0).results_size(), region.results_size());
  request.set_environment("device=other");
  ASSERT_TRUE(list(request, &response).ok());
  EXPECT_EQ(response.regions_size(), 0);
  const auto refused = [&](const v1::ListRegionsRequest& bad) {
    const grpc::Status status = list(bad, &response);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    return status.error_message();
  };
  request.set_key("ABC");
  EXPECT_EQ(refused(request), "key: expected up to 64 hexadecimal digits (0-9, a-f), got ABC");
  request.set_key(std::string(65, 'a'));
  EXPECT_EQ(refused(request),
            "key: expected up to 64 hexadecimal digits (0-9, a-f), got " + std::string(65, 'a'));
  request.set_key("");
  request.set_page_token("x");
  EXPECT_NE(refused(request), "");
  request.set_page_token("");
  request.set_page_size(-1);
  EXPECT_NE(refused(request), "");
}

TEST(Server, OneProcessHoldsTheFolder) {
  RpcBench b;
  ServerOptions options;
  options.data_dir = b.dir.path() + "/data";
  const auto second = Server::Start(options);
  EXPECT_EQ(second.status().code(), StatusCode::kUnavailable);
  EXPECT_NE(Message(second.status()).find("autographd, process"), std::string::npos)
      << second.status();
}

TEST(Server, TheStoreIsItsOwners) {
  RpcBench b;
  const auto status = std::filesystem::status(b.dir.path() + "/data");
  EXPECT_EQ(status.permissions(), std::filesystem::perms::owner_all);
}

TEST(Server, APortIsTakenOnce) {
  TempDir dir = *TempDir::Make("server-port-");
  ServerOptions options;
  options.listen = "127.0.0.1:0";
  options.data_dir = dir.path() + "/a";
  const auto first = Server::Start(options);
  ASSERT_TRUE(first.ok()) << first.status();
  options.listen = fmt::format("127.0.0.1:{}", (*first)->port());
  options.data_dir = dir.path() + "/b";
  EXPECT_EQ(Message(Server::Start(options).status()),
            fmt::format("cannot listen on {}: address in use", options.listen));
}

}  // namespace
}  // namespace ag

// Tests of the verbs that call a server, against services that the test plays on the loopback.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "autograph/v1/blobs.grpc.pb.h"
#include "autograph/v1/cache.grpc.pb.h"
#include "autograph/v1/optimizer.grpc.pb.h"
#include "autograph/v1/worker.grpc.pb.h"
#include "base/file.h"
#include "client/cli/testing/testing.h"
#include "client/cli/verbs.h"
#include "plan/fusion/pair_problem.h"
#include "plan/testing/testing.h"

namespace ag {
namespace {

namespace v1 = autograph::v1;
using Lines = std::vector<std::string>;

class FakeOptimizer : public v1::Optimizer::Service {
 public:
  v1::Job job;
  std::string asked;  // The last call and its job.

  grpc::Status Answer(const std::string& call, const std::string& name, v1::Job* answer) {
    asked = call + " " + name;
    if (name != job.name()) return {grpc::StatusCode::NOT_FOUND, "no job " + name};
    *answer = job;
    return grpc::Status::OK;
  }
  grpc::Status GetCapabilities(grpc::ServerContext*, const v1::GetCapabilitiesRequest*,
                               v1::Capabilities*) override {
    return grpc::Status::OK;
  }
  grpc::Status GetJob(grpc::ServerContext*, const v1::GetJobRequest* request,
                      v1::Job* answer) override {
    return Answer("get", request->name(), answer);
  }
  grpc::Status CancelJob(grpc::ServerContext*, const v1::CancelJobRequest* request,
                         v1::Job* answer) override {
    return Answer("cancel", request->name(), answer);
  }
  grpc::Status PublishBest(grpc::ServerContext*, const v1::PublishBestRequest* request,
                           v1::Job* answer) override {
    const grpc::Status status = Answer("best", request->name(), answer);
    job.set_best_version(job.best_version() + 1);
    return status;
  }
  grpc::Status WatchJob(grpc::ServerContext*, const v1::WatchJobRequest* request,
                        grpc::ServerWriter<v1::Job>* writer) override {
    v1::Job answer;
    const grpc::Status status = Answer("watch", request->name(), &answer);
    if (status.ok()) writer->Write(answer);
    return status;
  }
  grpc::Status ListJobs(grpc::ServerContext*, const v1::ListJobsRequest* request,
                        v1::ListJobsResponse* response) override {
    asked = fmt::format("list {}", request->page_size());
    if (!job.name().empty()) *response->add_jobs() = job;
    return grpc::Status::OK;
  }
};

class FakeBlobs : public v1::Blobs::Service {
 public:
  std::vector<std::string> blobs;
  grpc::Status Download(grpc::ServerContext*, const v1::DownloadRequest* request,
                        grpc::ServerWriter<v1::DownloadResponse>* writer) override {
    for (const std::string& blob : blobs) {
      if (Sha256(blob).Hex() != request->digest()) continue;
      v1::DownloadResponse response;
      response.set_size_bytes(static_cast<int64_t>(blob.size()));
      response.set_data(blob);
      writer->Write(response);
      return grpc::Status::OK;
    }
    return {grpc::StatusCode::NOT_FOUND, "no blob " + request->digest()};
  }
};

class FakeCache : public v1::Cache::Service {
 public:
  std::vector<v1::CacheRecord> records;
  v1::ListMeasurementsRequest measurements_asked;
  std::vector<v1::CacheRecord> imported;
  std::vector<v1::CachedGraph> graphs;  // The newest first.
  v1::ListGraphsRequest graphs_asked;
  std::vector<v1::CachedRegion> regions;
  v1::ListRegionsRequest regions_asked;

  grpc::Status GetStats(grpc::ServerContext*, const v1::GetCacheStatsRequest*,
                        v1::CacheStats* stats) override {
    stats->set_measurements(7);
    stats->set_failures(1);
    stats->set_models(2);
    stats->set_regions(3);
    stats->set_hits(30);
    stats->set_misses(4);
    stats->set_answers(9);
    stats->set_bytes(10240);
    v1::EnvironmentCount* count = stats->add_environments();
    count->set_environment("cores=2");
    count->set_measurements(7);
    return grpc::Status::OK;
  }
  grpc::Status ListMeasurements(grpc::ServerContext*, const v1::ListMeasurementsRequest* request,
                                v1::ListMeasurementsResponse* response) override {
    measurements_asked = *request;
    for (const v1::CacheRecord& record : records) *response->add_records() = record;
    return grpc::Status::OK;
  }
  grpc::Status ListGraphs(grpc::ServerContext*, const v1::ListGraphsRequest* request,
                          v1::ListGraphsResponse* response) override {
    graphs_asked = *request;
    for (const v1::CachedGraph& graph : graphs) {
      const bool fits =
          (request->model_digest().empty() || request->model_digest() == graph.model_digest()) &&
          (request->device().empty() || request->device() == graph.device()) &&
          graph.key().starts_with(request->key());
      if (!fits) continue;
      v1::CachedGraph* added = response->add_graphs();
      *added = graph;
      if (!request->key().empty()) added->set_depends_on("all that it depends on");
    }
    return grpc::Status::OK;
  }
  grpc::Status ListRegions(grpc::ServerContext*, const v1::ListRegionsRequest* request,
                           v1::ListRegionsResponse* response) override {
    regions_asked = *request;
    for (const v1::CachedRegion& region : regions) *response->add_regions() = region;
    return grpc::Status::OK;
  }
  grpc::Status Export(grpc::ServerContext*, const v1::ExportCacheRequest*,
                      grpc::ServerWriter<v1::CacheRecord>* writer) override {
    for (const v1::CacheRecord& record : records) writer->Write(record);
    return grpc::Status::OK;
  }
  grpc::Status Import(grpc::ServerContext*, grpc::ServerReader<v1::CacheRecord>* reader,
                      v1::ImportCacheResponse* response) override {
    v1::CacheRecord record;
    while (reader->Read(&record)) imported.push_back(record);
    response->set_added(static_cast<int64_t>(imported.size()));
    response->set_known(5);
    return grpc::Status::OK;
  }
  grpc::Status Forget(grpc::ServerContext*, const v1::ForgetCacheRequest* request,
                      v1::ForgetCacheResponse* response) override {
    forgotten = *request;
    response->set_measurements(3);
    response->set_models(1);
    response->set_regions(2);
    return grpc::Status::OK;
  }
  v1::ForgetCacheRequest forgotten;
};

class FakeWorkers : public v1::Workers::Service {
 public:
  v1::ListWorkersResponse workers;
  grpc::Status ListWorkers(grpc::ServerContext*, const v1::ListWorkersRequest*,
                           v1::ListWorkersResponse* response) override {
    *response = workers;
    return grpc::Status::OK;
  }
  std::string admitted;
  grpc::Status AdmitWorker(grpc::ServerContext*, const v1::AdmitWorkerRequest* request,
                           v1::AdmitWorkerResponse*) override {
    admitted = request->worker_id();
    return grpc::Status::OK;
  }
};

class ServiceVerbsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&optimizer_);
    builder.RegisterService(&blobs_);
    builder.RegisterService(&cache_);
    builder.RegisterService(&workers_);
    server_ = builder.BuildAndStart();
    address_ = fmt::format("127.0.0.1:{}", port);
    optimizer_.job.set_name("jobs/7");
    optimizer_.job.set_state(v1::Job::SEARCHING);
    optimizer_.job.mutable_request()->set_model_name("m.onnx");
    optimizer_.job.mutable_request()->set_device("cpu");
  }
  void TearDown() override { server_->Shutdown(); }

  template <class Verb, class... Flags>
  Ran Call(bool json, Verb verb, const Flags&... flags) {
    Context context({.server = address_, .json = json});
    return Capture([&] { return context.CodeOf(verb(context, flags...)); });
  }

  std::string Path(const std::string& name) const { return folder_.path() + "/" + name; }

  const TempDir folder_ = *TempDir::Make("service-verbs-test");
  FakeOptimizer optimizer_;
  FakeBlobs blobs_;
  FakeCache cache_;
  FakeWorkers workers_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
};

v1::CacheRecord Record(double median_ns, int cores = 0) {
  GroupProblem problem = ReluProblem(4);
  problem.cores = cores;
  v1::CacheRecord record;
  record.set_problem(EncodeGroupProblem(problem));
  record.set_environment("cores=2");
  record.set_key(GroupKey(record.problem(), record.environment()).Hex());
  record.set_summary("chain: Relu f32[4]");
  v1::Measurement& measurement = *record.mutable_measurement();
  measurement.set_kernel("jit");
  v1::KernelTime* other = measurement.add_alternatives();
  other->set_kernel("slow, old");
  other->set_median_ns(3 * median_ns);
  measurement.mutable_latency()->set_median_ns(median_ns);
  measurement.mutable_latency()->set_low_ns(median_ns / 2);
  measurement.mutable_latency()->set_high_ns(median_ns * 2);
  measurement.set_samples(15);
  measurement.set_discarded(1);
  measurement.set_canary_ns(1e5);
  measurement.set_simulated(cores == 1);
  record.set_measured_unix_seconds(1'763'800'000);
  return record;
}

// Returns the group of Record(..., 0) beside that of Record(..., 1).
v1::CacheRecord PairRecord() {
  PairProblem pair;
  for (int i = 0; i < 2; ++i) {
    pair.groups[i] = *DecodeGroupProblem(Record(1, i).problem());
    pair.kernels[i] = "jit";
  }
  v1::CacheRecord record = Record(3);
  record.set_problem(EncodePairProblem(MakePair(pair)));
  record.set_key(GroupKey(record.problem(), record.environment()).Hex());
  record.set_summary(Summary(pair));
  record.mutable_measurement()->clear_kernel();
  record.mutable_measurement()->clear_alternatives();
  return record;
}

// --- Jobs

TEST_F(ServiceVerbsTest, JobsAreListed) {
  const Ran one = Call(false, RunJobsList, JobsFlags{.count = 9});
  EXPECT_EQ(one.code, kExitOk);
  EXPECT_EQ(optimizer_.asked, "list 9");
  EXPECT_EQ(one.out,
            "jobs/7                   1970-01-01T00:00:00Z  m.onnx               cpu        "
            "searching\n");
  EXPECT_EQ(nlohmann::json::parse(Call(true, RunJobsList, JobsFlags()).out)[0]["name"], "jobs/7");
  optimizer_.job.set_state(v1::Job::FAILED);
  optimizer_.job.mutable_error()->set_message("no device");
  EXPECT_NE(Call(false, RunJobsList, JobsFlags()).out.find("failed: no device"), std::string::npos);
  optimizer_.job.Clear();
  EXPECT_EQ(Call(false, RunJobsList, JobsFlags()).err, "no jobs yet\n");
  EXPECT_EQ(Call(false, RunJobsList, JobsFlags{.device = "cpu"}).err, "no such jobs\n");
}

TEST_F(ServiceVerbsTest, AJobIsShownWatchedAndCancelled) {
  const struct {
    const char* call;
    StatusOr<int> (*verb)(Context&, const JobsFlags&);
    v1::Job::State state;
    int code;
    std::string out;
  } kCases[] = {
      {"get", RunJobsShow, v1::Job::SEARCHING, kExitOk, "jobs/7  m.onnx  searching\n"},
      {"get", RunJobsShow, v1::Job::FAILED, kExitFailed,
       "jobs/7  m.onnx  failed\n  error        no device\n"},
      {"watch", RunJobsWatch, v1::Job::CANCELLED, kExitOk, "jobs/7  m.onnx  cancelled\n"},
      {"cancel", RunJobsCancel, v1::Job::CANCELLED, kExitOk, "jobs/7  m.onnx  cancelled\n"},
  };
  optimizer_.job.mutable_error()->set_message("no device");
  for (const auto& c : kCases) {
    optimizer_.job.set_state(c.state);
    for (const char* name : {"7", "jobs/7"}) {
      const Ran ran = Call(false, c.verb, JobsFlags{.name = name});
      EXPECT_EQ(ran.code, c.code) << c.call;
      EXPECT_EQ(ran.out, c.out) << c.call;
      EXPECT_EQ(optimizer_.asked, std::string(c.call) + " jobs/7");
    }
    const Ran none = Call(false, c.verb, JobsFlags{.name = "8"});
    EXPECT_EQ(none.code, kExitInput) << c.call;
    EXPECT_EQ(none.err, "autograph: no job jobs/8\n") << c.call;
  }
}

TEST_F(ServiceVerbsTest, TheBestSoFarOfAJobThatRunsIsFetched) {
  const JobsFlags flags{.name = "7", .output = Path("out.onnx"), .so_far = true};
  blobs_.blobs = {"the model so far", "the model"};
  optimizer_.job.set_state(v1::Job::SEARCHING);
  optimizer_.job.mutable_best_so_far()->set_output_digest(Sha256("the model so far").Hex());
  const Ran ran = Call(false, RunJobsFetch, flags);
  EXPECT_EQ(ran.code, kExitOk) << ran.err;
  EXPECT_EQ(*ReadFile(flags.output), "the model so far");
  optimizer_.job.mutable_best_error()->set_code(14);
  optimizer_.job.mutable_best_error()->set_message("no worker");
  EXPECT_EQ(Call(false, RunJobsFetch, flags).err, "autograph: no worker\n");
  // It ended while its best was waited for.
  optimizer_.job.set_state(v1::Job::SUCCEEDED);
  optimizer_.job.mutable_result()->set_output_digest(Sha256("the model").Hex());
  EXPECT_EQ(Call(false, RunJobsFetch, flags).code, kExitOk);
  EXPECT_EQ(*ReadFile(flags.output), "the model");
}

TEST_F(ServiceVerbsTest, WhatAJobMadeIsFetched) {
  const JobsFlags flags{.name = "7", .output = Path("out.onnx"), .report = Path("report.json")};
  const Ran early = Call(false, RunJobsFetch, flags);
  EXPECT_EQ(early.code, kExitInput);
  EXPECT_EQ(
      early.err,
      "autograph: jobs/7 is searching: autograph jobs watch waits for its end, --so-far fetches "
      "its best so far\n");
  optimizer_.job.set_state(v1::Job::CANCELLED);
  EXPECT_EQ(Call(false, RunJobsFetch, flags).err,
            "autograph: jobs/7 is cancelled: nothing was verified before that\n");
  EXPECT_FALSE(FileExists(flags.output));

  blobs_.blobs = {"the model", "{}"};
  optimizer_.job.set_state(v1::Job::SUCCEEDED);
  optimizer_.job.mutable_result()->set_output_digest(Sha256("the model").Hex());
  optimizer_.job.mutable_result()->set_report_digest(Sha256("{}").Hex());
  const Ran ran = Call(false, RunJobsFetch, flags);
  EXPECT_EQ(ran.code, kExitOk) << ran.err;
  EXPECT_TRUE(ran.out.ends_with("  written      " + flags.output + "\n")) << ran.out;
  EXPECT_EQ(*ReadFile(flags.output), "the model");
  EXPECT_EQ(*ReadFile(flags.report), "{}");
  EXPECT_EQ(Call(true, RunJobsFetch, flags).json()["name"], "jobs/7");

  v1::WrongRewrite* wrong = optimizer_.job.mutable_result()->add_wrong_rewrites();
  wrong->set_rule("conv-x");
  v1::NamedBlob* file = wrong->mutable_counter_example()->add_files();
  file->set_name("test_data_set_0/input_0.pb");
  file->set_digest(Sha256("{}").Hex());
  const std::string folder = flags.output + ".counter-example";
  EXPECT_TRUE(Call(false, RunJobsFetch, flags)
                  .out.ends_with("  to report    " + folder +
                                 "/: shows what is wrong with conv-x; please send it\n"));
  EXPECT_EQ(*ReadFile(folder + "/test_data_set_0/input_0.pb"), "{}");
  file->set_name("../x");
  EXPECT_EQ(Call(false, RunJobsFetch, flags).err,
            "autograph: counter-example: ../x is no name of a file in a folder\n");

  const Ran nowhere = Call(true, RunJobsFetch, JobsFlags{.name = "7", .output = "/none/out"});
  EXPECT_EQ(nowhere.code, kExitInput);
  EXPECT_EQ(nowhere.json()["error"]["message"], "write /none/out: No such file or directory");
  optimizer_.job.clear_result();
  optimizer_.job.set_state(v1::Job::FAILED);
  EXPECT_EQ(Call(false, RunJobsFetch, flags).code, kExitFailed);
}

// --- Cache

TEST_F(ServiceVerbsTest, TheCacheTellsItsSize) {
  EXPECT_EQ(Call(false, RunCacheStats, CacheFlags()).out,
            "7 measurements, 1 remembered failures, 3 regions, 2 whole models, 10 KiB\n"
            "30 hits, 4 misses; 9 whole answers given\n"
            "       7  cores=2\n");
  const auto json = nlohmann::json::parse(Call(true, RunCacheStats, CacheFlags()).out);
  EXPECT_EQ(json["environments"][0]["measurements"], "7");
}

TEST_F(ServiceVerbsTest, MeasurementsAreListed) {
  cache_.records = {Record(12345)};
  EXPECT_EQ(Call(false, RunCacheList, CacheFlags()).out,
            Record(12345).key().substr(0, 12) +
                "         12.3 us  jit                              chain: Relu f32[4]\n");
  const auto json = nlohmann::json::parse(Call(true, RunCacheList, CacheFlags()).out);
  EXPECT_EQ(json[0]["measurement"]["latency"]["median_ns"], 12345.0);
}

TEST_F(ServiceVerbsTest, AKeyIsExplained) {
  cache_.records = {Record(12345)};
  cache_.records[0].set_worker("gpu-7");
  cache_.records[0].set_import_id(3);
  CacheFlags flags;
  flags.key = cache_.records[0].key().substr(0, 8);
  flags.environment = "cores=2";
  flags.group = "Relu";
  const std::string out = Call(false, RunCacheList, flags).out;
  EXPECT_EQ(cache_.measurements_asked.key(), flags.key);
  EXPECT_EQ(cache_.measurements_asked.environment(), flags.environment);
  EXPECT_EQ(cache_.measurements_asked.group(), flags.group);
  for (const std::string& part :
       {cache_.records[0].key() + ", SHA-256 of", std::string("chain: Relu f32[4]"),
        std::string("by gpu-7, import 3"), std::string("relu(")}) {
    EXPECT_NE(out.find(part), std::string::npos) << part << " in " << out;
  }
  cache_.records = {PairRecord()};
  const std::string pair = Call(false, RunCacheList, flags).out;
  EXPECT_NE(pair.find(cache_.records[0].key()), std::string::npos) << pair;
  EXPECT_EQ(pair.find("autograph-measurements"), std::string::npos) << "no text without its groups";
  cache_.records.clear();
  EXPECT_EQ(Call(false, RunCacheList, flags).err, "no measurement is remembered\n");
}

TEST_F(ServiceVerbsTest, RememberedGraphsAreListedAndWritten) {
  const std::string path = Path("model.onnx"), model = Sha256("a model").Hex();
  ASSERT_TRUE(WriteFileAtomically(path, "a model").ok());
  blobs_.blobs = {"the new graph", "the old graph"};
  const auto add = [&](const std::string& key, const std::string& device,
                       const std::string& output) {
    v1::CachedGraph graph;
    graph.set_key(key);
    graph.set_model_digest(model);
    graph.set_device(device);
    graph.set_environment(device + "=x");
    graph.set_made_unix_seconds(1'763'800'000);
    graph.mutable_result()->set_verdict(v1::Result::FASTER);
    graph.mutable_result()->set_speedup(1.25);
    graph.mutable_result()->set_output_digest(Sha256(output).Hex());
    cache_.graphs.push_back(graph);
  };
  const auto get = [&](const CacheFlags& flags) { return Call(false, RunCacheGet, flags); };
  const std::string output = Path("graph.onnx");
  EXPECT_EQ(
      get({.model = path, .output = output}).err,
      fmt::format("autograph: no graph of model {} is remembered\n", Sha256("a model").Short()));
  EXPECT_EQ(Call(false, RunCacheGraphs, CacheFlags()).err, "no graph is remembered\n");

  add("aaaa", "cpu", "the new graph");
  add("bbbb", "cpu", "the old graph");
  const Ran listed = Call(false, RunCacheGraphs, CacheFlags{.model = path});
  EXPECT_EQ(listed.out.substr(0, listed.out.find('\n')),
            fmt::format("aaaa  2025-11-22T08:26:40Z  model {}  cpu        FASTER 1.250x  cpu=x",
                        model.substr(0, 12)));
  EXPECT_NE(Call(false, RunCacheGraphs, CacheFlags{.key = "bb"}).out.find("\nall that it depends"),
            std::string::npos);
  EXPECT_EQ(Call(true, RunCacheGraphs, CacheFlags()).json()[1]["key"], "bbbb");

  const Ran ran = get({.model = path, .output = output});
  EXPECT_EQ(ran.code, kExitOk) << ran.err;
  EXPECT_TRUE(ran.out.ends_with("written      " + output + "\n")) << ran.out;
  EXPECT_EQ(*ReadFile(output), "the new graph");
  EXPECT_EQ(get({.model = model, .key = "bb", .output = output}).code, kExitOk);
  EXPECT_EQ(*ReadFile(output), "the old graph");
  EXPECT_EQ(Call(true, RunCacheGet, CacheFlags{.model = path, .output = output}).json()["key"],
            "aaaa");

  add("cccc", "sim:h200", "the old graph");
  const Ran which = get({.model = path, .output = output});
  EXPECT_EQ(which.code, kExitInput);
  EXPECT_NE(which.err.find("say which with --device or --environment"), std::string::npos);
  EXPECT_EQ(get({.device = "sim:h200", .model = path, .output = output}).code, kExitOk);
}

TEST_F(ServiceVerbsTest, WhatIsExportedIsImported) {
  cache_.records = {Record(1), Record(2, 1), PairRecord()};
  cache_.records[1].mutable_measurement()->set_active_cores(2);
  const CacheFlags flags{.file = Path("cache")};
  EXPECT_EQ(Call(false, RunCacheExport, flags).out,
            "3 measurements written to " + flags.file + "\n");
  const Ran ran = Call(false, RunCacheImport, flags);
  EXPECT_EQ(ran.out, "3 added, 5 known before\n") << ran.err;
  ASSERT_EQ(cache_.imported.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(cache_.imported[i].DebugString(), cache_.records[i].DebugString());
  }
}

TEST_F(ServiceVerbsTest, ForgettingNeedsAFilter) {
  EXPECT_EQ(Call(false, RunCacheForget, CacheFlags()).code, kExitUsage);
  CacheFlags flags;
  flags.worker = "host/cpu";
  flags.import = 2;
  EXPECT_EQ(Call(false, RunCacheForget, flags).out,
            "3 measurements, 1 whole answers and 2 regions forgotten\n");
  EXPECT_EQ(cache_.forgotten.worker(), "host/cpu");
  EXPECT_EQ(cache_.forgotten.import_id(), 2);
  EXPECT_FALSE(cache_.forgotten.all());
}

TEST_F(ServiceVerbsTest, RegionsAreListedAndExplained) {
  EXPECT_EQ(Call(false, RunCacheRegions, CacheFlags()).err, "no region is remembered\n");
  v1::CachedRegion region;
  region.set_key(std::string(64, 'a'));
  region.set_environment("cores=2");
  region.set_operators(14);
  region.set_copies(24);
  region.set_models(2);
  region.set_made_unix_seconds(1'763'800'000);
  region.set_estimate_ns(12'500);
  cache_.regions = {region, region};
  for (const double ns : {9'000, 11'000}) {
    v1::CachedRegionResult* result = cache_.regions[0].add_results();
    result->set_estimate_ns(ns);
    for (const auto& [rule, gain] :
         {std::pair("split", -500.0), std::pair("join", 2'000.0), std::pair("split", 2'000.0)}) {
      v1::CachedRegionStep* step = result->add_steps();
      step->set_rule(rule);
      step->set_gain_ns(gain);
    }
  }
  EXPECT_EQ(Call(false, RunCacheRegions, CacheFlags()).out,
            "aaaaaaaaaaaa   14 operators   24 copies in   2 models       12.5 us  "
            "best 9.0 us: split x2, join\n"
            "aaaaaaaaaaaa   14 operators   24 copies in   2 models       12.5 us  "
            "nothing better\n");
  cache_.regions[0].set_depends_on("form=f\nenvironment=cores=2\n");
  cache_.regions[0].mutable_results()->DeleteSubrange(1, 1);
  cache_.regions.resize(1);
  const CacheFlags flags{.environment = "cores=2", .count = 3, .key = "aa"};
  EXPECT_EQ(Call(false, RunCacheRegions, flags).out,
            "  key          " + region.key() + "\n" +
                "  region       14 operators, 24 copies in 2 models\n"
                "  searched     2025-11-22T08:26:40Z\n"
                "  as it is     12.5 us\n"
                "  result 1     9.0 us\n"
                "               split gains -0.5 us\n"
                "               join gains 2.0 us\n"
                "               split gains 2.0 us\n"
                "form=f\nenvironment=cores=2\n\n");
  EXPECT_EQ(cache_.regions_asked.page_size(), 3);
  EXPECT_EQ(cache_.regions_asked.key(), "aa");
  EXPECT_EQ(cache_.regions_asked.environment(), "cores=2");
  EXPECT_EQ(Call(true, RunCacheRegions, flags).json()[0]["results"][0]["estimate_ns"], 9000);
}

TEST_F(ServiceVerbsTest, ABadLineImportsNothing) {
  cache_.records = {Record(1)};
  const CacheFlags flags{.file = Path("cache")};
  ASSERT_EQ(Call(false, RunCacheExport, flags).code, kExitOk);
  const std::string good = *ReadFile(flags.file);
  const size_t second = good.find('\n', good.find("group ")) + 1;
  ASSERT_EQ(second, good.size());
  const struct {
    const char* name;
    std::string text, message;
  } kCases[] = {
      {"empty", "", ": line 1: expected 'autograph-measurements 4', got ''"},
      {"version", "autograph-measurements 1\n",
       ": line 1: expected 'autograph-measurements 4', got 'autograph-measurements 1'"},
      {"another", good + "bogus\n",
       ": line 4: expected spec, environment, group or pair, got 'bogus'"},
      {"twice", good + good.substr(good.find("group ")), ": line 4: the group of line 3 again"},
  };
  for (const auto& c : kCases) {
    ASSERT_TRUE(WriteFileAtomically(flags.file, c.text).ok());
    const Ran ran = Call(false, RunCacheImport, flags);
    EXPECT_EQ(ran.code, kExitInput) << c.name;
    EXPECT_EQ(ran.err, "autograph: " + flags.file + c.message + "\n") << c.name;
  }
  EXPECT_EQ(Call(false, RunCacheImport, CacheFlags{.file = "/none"}).err,
            "autograph: read /none: No such file or directory\n");
  EXPECT_TRUE(cache_.imported.empty());
  EXPECT_EQ(Call(false, RunCacheExport, CacheFlags{.file = "/dev/null/f"}).code, kExitInput);
}

// --- Workers

TEST_F(ServiceVerbsTest, WorkersAreListed) {
  EXPECT_EQ(Call(false, RunWorkersList).err, "no worker is connected\n");
  v1::WorkerSummary* worker = workers_.workers.add_workers();
  worker->set_worker_id("host/cpu");
  worker->set_device("cpu");
  worker->set_health(v1::WorkerState::NOT_SERVING);
  worker->set_reason("device lost");
  EXPECT_EQ(Call(false, RunWorkersList).out,
            "host/cpu                     cpu          NOT_SERVING  idle device lost\n");
  const auto json = nlohmann::json::parse(Call(true, RunWorkersList).out);
  EXPECT_EQ(json[0]["health"], "NOT_SERVING");
}

TEST_F(ServiceVerbsTest, AWorkerIsAdmitted) {
  EXPECT_EQ(Call(false, RunWorkersAdmit, std::string("host/cpu")).out,
            "worker host/cpu gets work again\n");
  EXPECT_EQ(workers_.admitted, "host/cpu");
}

// Names of others may have what clears a terminal or makes a line of its own.
TEST_F(ServiceVerbsTest, TextsOfOthersDoNotChangeTheTerminal) {
  v1::WorkerSummary* worker = workers_.workers.add_workers();
  worker->set_worker_id("w\x1b[2J");
  worker->set_device("cpu");
  EXPECT_TRUE(Call(false, RunWorkersList).out.starts_with("w\\x1b[2J "));
  optimizer_.job.mutable_request()->set_model_name("m\u202e\r.onnx");
  EXPECT_NE(Call(false, RunJobsList, JobsFlags()).out.find("m\\xe2\\x80\\xae\\x0d.onnx"),
            std::string::npos);
}

TEST_F(ServiceVerbsTest, EveryVerbSaysThatNoServerIsThere) {
  address_ = "127.0.0.1:1";
  const std::string none = "autograph: no server at 127.0.0.1:1: is autographd running?\n";
  ASSERT_TRUE(WriteFileAtomically(Path("cache"), "autograph-measurements 4\n").ok());
  const CacheFlags file{.file = Path("cache")};
  for (const Ran& ran :
       {Call(false, RunJobsList, JobsFlags()), Call(false, RunJobsShow, JobsFlags()),
        Call(false, RunJobsWatch, JobsFlags()), Call(false, RunJobsCancel, JobsFlags()),
        Call(false, RunJobsFetch, JobsFlags{.output = Path("out")}),
        Call(false, RunCacheStats, CacheFlags()), Call(false, RunCacheList, CacheFlags()),
        Call(false, RunCacheExport, file), Call(false, RunCacheImport, file),
        Call(false, RunWorkersList)}) {
    EXPECT_EQ(ran.code, kExitUnavailable);
    EXPECT_EQ(ran.err, none);
  }
}

}  // namespace
}  // namespace ag

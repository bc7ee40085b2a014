// Tests of a whole agent with its executor process against a coordinator that the test plays.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <map>
#include <thread>

#include "autograph/v1/blobs.grpc.pb.h"
#include "autograph/v1/worker.grpc.pb.h"
#include "base/blobs.h"
#include "base/file.h"
#include "base/mutex.h"
#include "device/open_device.h"
#include "wire/candidate_wire.h"
#include "worker/agent.h"
#include "worker/testing/testing.h"

namespace ag {
namespace {

namespace v1 = autograph::v1;
using namespace std::chrono_literals;

// A coordinator that sends what the test desires and keeps the last state and every result.
class FakeWorkers : public v1::Workers::Service {
 public:
  grpc::Status Synchronize(
      grpc::ServerContext*,
      grpc::ServerReaderWriter<v1::DesiredState, v1::WorkerState>* stream) override {
    v1::WorkerState state;
    while (stream->Read(&state)) {
      MutexLock lock(mutex_);
      seen_ = state;
      for (const v1::ItemResult& result : state.results()) {
        results_[result.sequence()] = result;
        if (acknowledges_) desired_.add_acknowledged(result.sequence());
      }
      if (cut_) {
        cut_ = false;
        return {grpc::StatusCode::UNAVAILABLE, "restarting"};
      }
      stream->Write(desired_);
      condition_.NotifyAll();
    }
    return grpc::Status::OK;
  }

  void Desire(const v1::WorkItem& item) {
    MutexLock lock(mutex_);
    *desired_.mutable_work() = item;
  }
  // Acts as a new coordinator whose blobs this host does not see.
  void SetEpoch(uint64_t epoch, const std::string& blob_dir = "/nowhere") {
    MutexLock lock(mutex_);
    results_.clear();  // Sequences begin anew.
    desired_.Clear();
    desired_.set_epoch(epoch);
    desired_.set_shared_blob_dir(blob_dir);
    desired_.set_shared_blob_proof("proof");
  }
  void Acknowledge(bool acknowledges) {
    MutexLock lock(mutex_);
    acknowledges_ = acknowledges;
  }
  void CutOnce() {
    MutexLock lock(mutex_);
    cut_ = true;
  }

  // Waits for a state for which the condition is true; the agent sends one at every tick.
  bool Await(const std::function<bool(const v1::WorkerState&)>& condition) {
    const Nanos begin = RealClock().Now();
    MutexLock lock(mutex_);
    while (!condition(seen_)) {
      if (RealClock().Now() - begin > 30s) return false;
      condition_.WaitFor(mutex_, 100ms);
    }
    return true;
  }

  // Waits for the end of an attempt and returns "index code message" of each result, in order.
  std::vector<std::string> AwaitResults(const std::string& attempt) {
    std::vector<std::string> texts;
    Await([&](const v1::WorkerState&) AG_REQUIRES(mutex_) {
      texts.clear();
      bool ended = false;
      for (const auto& [sequence, r] : results_) {
        if (r.attempt() != attempt) continue;
        texts.push_back(fmt::format("{} {} {}", r.index(), r.code(), r.message()));
        ended |= r.index() < 0 || r.executor_died();
      }
      return ended;
    });
    return texts;
  }

 private:
  Mutex mutex_;
  CondVar condition_;
  v1::DesiredState desired_ AG_GUARDED_BY(mutex_);
  v1::WorkerState seen_ AG_GUARDED_BY(mutex_);
  std::map<uint64_t, v1::ItemResult> results_ AG_GUARDED_BY(mutex_);
  bool cut_ AG_GUARDED_BY(mutex_) = false;
  bool acknowledges_ AG_GUARDED_BY(mutex_) = true;
};

class FakeBlobs : public v1::Blobs::Service {
 public:
  grpc::Status Download(grpc::ServerContext* context, const v1::DownloadRequest* request,
                        grpc::ServerWriter<v1::DownloadResponse>* writer) override {
    asked = true;
    while (hangs && !context->IsCancelled()) RealClock().SleepFor(1ms);
    const std::string bytes(weights.bytes());
    if (request->digest() != Sha256(bytes).Hex()) return {grpc::StatusCode::NOT_FOUND, "no blob"};
    v1::DownloadResponse chunk;
    chunk.set_size_bytes(static_cast<int64_t>(bytes.size()));
    chunk.set_data(bytes);
    writer->Write(chunk);
    return grpc::Status::OK;
  }
  Tensor weights = SyntheticTensor({DType::kFloat32, {16, 16}}, 1);  // kLayer's.
  std::atomic<bool> hangs{false};
  std::atomic<bool> asked{false};
};

class AgentTest : public ::testing::Test {
 protected:
  void SetUp() override {
    grpc::ServerBuilder builder;
    builder.RegisterService(&workers_);
    builder.RegisterService(&blobs_);
    server_ = builder.BuildAndStart();
    workers_.SetEpoch(1);
  }
  void TearDown() override {
    agent_.reset();
    server_->Shutdown();
  }

  void Start(std::string_view fault, int64_t blob_cache_bytes_max = 1 << 20) {
    AgentOptions options;
    options.worker_id = "w";
    options.device = testing::SimDevice(folder_.path(), fault);
    options.blob_cache_dir = folder_.path() + "/cache";
    options.blob_cache_bytes_max = blob_cache_bytes_max;
    options.tick = 5ms;
    options.in_process = true;
    options.reconnect = 1ms;
    options.reopen = 1ms;
    options.acknowledge_max = acknowledge_max_;
    agent_ = std::make_unique<Agent>(server_->InProcessChannel({}), options, RealClock());
  }

  bool AwaitServing() {
    return workers_.Await(
        [](const v1::WorkerState& s) { return s.health() == v1::WorkerState::SERVING; });
  }

  static v1::WorkItem Groups(const std::string& attempt,
                             const std::vector<std::string_view>& graphs) {
    static const auto device = *OpenDevice("sim:small");
    v1::WorkItem item;
    item.set_attempt(attempt);
    item.set_time_max_seconds(2);
    for (const std::string_view text : graphs) {
      item.mutable_groups()->add_problems(testing::Problem(text, device->spec()));
    }
    return item;
  }

  static v1::WorkItem Plans(const std::string& attempt) {
    static const auto device = *OpenDevice("sim:small");
    v1::WorkItem item;
    item.set_attempt(attempt);
    ToProto(testing::Planned(testing::kLayer, device->spec()),
            item.mutable_plans()->add_candidates());
    return item;
  }

  const TempDir folder_ = *TempDir::Make("agent-test");
  FakeWorkers workers_;
  FakeBlobs blobs_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<Agent> agent_;
  Nanos acknowledge_max_ = 30s;
};

using Lines = std::vector<std::string>;

TEST_F(AgentTest, OffersItsDeviceAndMeasures) {
  Start("");
  ASSERT_TRUE(AwaitServing());
  EXPECT_EQ(ToString(agent_->health()), "OK");
  workers_.Desire(Groups("e1.1", {testing::kRelu, testing::kSoftmax}));
  EXPECT_EQ(workers_.AwaitResults("e1.1"), (Lines{"0 0 ", "1 0 ", "-1 0 "}));
  ASSERT_TRUE(workers_.Await([](const v1::WorkerState& s) {
    return s.attempt().empty() && s.results().empty();
  })) << "acknowledged results are forgotten";
}

TEST_F(AgentTest, FetchesWeightsOfACoordinatorAfar) {
  Start("");
  workers_.Desire(Plans("e1.1"));
  EXPECT_EQ(workers_.AwaitResults("e1.1"), (Lines{"0 0 ", "-1 0 "}));
  const auto cache = *BlobDir::Open(folder_.path() + "/cache");
  EXPECT_EQ(*cache->List(), std::vector<Digest>{blobs_.weights.Name()});
}

// Two containers whose folders have one name.
TEST_F(AgentTest, FetchesWeightsThoughItsFolderIsCalledLikeTheCoordinators) {
  workers_.SetEpoch(1, folder_.path() + "/cache");
  Start("");
  workers_.Desire(Plans("e1.1"));
  EXPECT_EQ(workers_.AwaitResults("e1.1"), (Lines{"0 0 ", "-1 0 "}));
  const auto cache = *BlobDir::Open(folder_.path() + "/cache");
  EXPECT_EQ(*cache->List(), std::vector<Digest>{blobs_.weights.Name()});
}

TEST_F(AgentTest, WeightsThatDoNotFitAreSaid) {
  Start("", /*blob_cache_bytes_max=*/1023);
  workers_.Desire(Plans("e1.1"));
  EXPECT_EQ(workers_.AwaitResults("e1.1"),
            Lines{"-1 8 fetch weight " + blobs_.weights.Name().Short() + ": blob cache " +
                  folder_.path() +
                  "/cache: 1024 bytes do not fit beside 0 bytes in use; the limit is 1023"});
}

TEST_F(AgentTest, StopsInTheMiddleOfAFetch) {
  blobs_.hangs = true;
  Start("");
  workers_.Desire(Plans("e1.1"));
  ASSERT_TRUE(workers_.Await([this](const v1::WorkerState&) { return blobs_.asked.load(); }));
  agent_->Stop();  // Without the stop it waits for ever.
}

// After an entry killed its executor, another executor serves.
TEST_F(AgentTest, NamesTheEntryAndGoesOnWithAnotherExecutor) {
  const struct {
    const char* fault;
    const char* message;
  } kCases[] = {
      {"fault crash Softmax", "killed by SIGABRT"},
      {"fault hang Softmax", "no progress for 2.0 s"},
      {"fault sticky Softmax", "1 14 device lost: small: sticky error, open the device anew"},
  };
  uint64_t epoch = 1;
  for (const auto& c : kCases) {
    workers_.SetEpoch(++epoch);
    const std::string first = fmt::format("e{}.1", epoch), second = fmt::format("e{}.2", epoch);
    Start(c.fault);
    workers_.Desire(Groups(first, {testing::kRelu, testing::kSoftmax, testing::kRelu}));
    const Lines lines = workers_.AwaitResults(first);
    ASSERT_EQ(lines.size(), 2u) << c.fault;
    EXPECT_EQ(lines[0], "0 0 ");
    EXPECT_TRUE(lines[1].starts_with("1 ") && lines[1].ends_with(c.message)) << lines[1];
    workers_.Desire(Groups(second, {testing::kRelu}));
    EXPECT_EQ(workers_.AwaitResults(second), (Lines{"0 0 ", "-1 0 "})) << c.fault;
    EXPECT_TRUE(workers_.Await([](const v1::WorkerState& s) { return s.executor_restarts() == 1; }))
        << c.fault;
    agent_.reset();
  }
}

TEST_F(AgentTest, ADeviceThatDoesNotQualifyDoesNotServe) {
  Start("fault wrong conv");
  ASSERT_TRUE(workers_.Await([](const v1::WorkerState& s) {
    return s.health() == v1::WorkerState::NOT_SERVING &&
           s.reason().starts_with("qualify: device small failed its qualification: ");
  }));
  EXPECT_EQ(agent_->health().code(), StatusCode::kUnavailable);
}

TEST_F(AgentTest, ComesBackToACoordinatorThatRestarted) {
  Start("");
  ASSERT_TRUE(AwaitServing());
  workers_.CutOnce();
  workers_.SetEpoch(2);
  workers_.Desire(Groups("e2.1", {testing::kRelu}));
  EXPECT_EQ(workers_.AwaitResults("e2.1"), (Lines{"0 0 ", "-1 0 "}));
  EXPECT_TRUE(workers_.Await([](const v1::WorkerState& s) { return s.epoch() == 2; }));
}

TEST_F(AgentTest, DrainsBeforeItLeaves) {
  Start("");
  ASSERT_TRUE(AwaitServing());
  agent_->Stop(/*drain=*/true);
  EXPECT_EQ(ToString(agent_->health()), "UNAVAILABLE: stopping");
}

TEST_F(AgentTest, StaysUntilItsResultsAreAcknowledged) {
  Start("");
  workers_.Acknowledge(false);
  workers_.Desire(Groups("e1.1", {testing::kRelu}));
  ASSERT_EQ(workers_.AwaitResults("e1.1"), (Lines{"0 0 ", "-1 0 "}));
  std::atomic<bool> stopped{false};
  std::thread stop([&] {
    agent_->Stop(/*drain=*/true);
    stopped = true;
  });
  ASSERT_TRUE(workers_.Await([](const v1::WorkerState& s) {
    return s.health() == v1::WorkerState::DRAINING && s.attempt().empty();
  }));
  RealClock().SleepFor(500ms);
  EXPECT_FALSE(stopped) << "it left with results that nobody has taken";
  workers_.Acknowledge(true);
  const Nanos begin = RealClock().Now();
  stop.join();
  EXPECT_LT(RealClock().Now() - begin, acknowledge_max_ / 2);
}

TEST_F(AgentTest, LeavesACoordinatorThatNeverAcknowledges) {
  acknowledge_max_ = 50ms;
  Start("");
  workers_.Acknowledge(false);
  workers_.Desire(Groups("e1.1", {testing::kRelu}));
  ASSERT_EQ(workers_.AwaitResults("e1.1"), (Lines{"0 0 ", "-1 0 "}));
  agent_->Stop(/*drain=*/true);  // Without the bound it waits for 30 s.
  EXPECT_EQ(ToString(agent_->health()), "UNAVAILABLE: stopping");
}

}  // namespace
}  // namespace ag

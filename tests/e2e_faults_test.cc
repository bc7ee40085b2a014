// Processes that die, devices that lie or hang: no acknowledged job is lost, each ends with a
// result or a reason, and no wrong model is published.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <nlohmann/json.hpp>

#include "client/cpp/client.h"
#include "graph/onnx/testing/onnx_testing.h"
#include "graph/onnx/wire.h"
#include "graph/weights.h"
#include "tests/cluster.h"

namespace ag {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
namespace v1 = autograph::v1;

// Two products with constants: merging them is a sure gain, found at once.
std::string Products(std::string_view activation = "Relu") {
  return testing::ModelFromText(fmt::format(R"(
    g (float[4,4] x) => (float[4,4] y)
      <float[4,4] v = {{1,0,2,0, 0,1,0,3, 1,1,0,0, 0,2,0,1}},
       float[4,4] w = {{0,1,0,2, 1,0,1,0, 3,0,1,0, 0,1,0,1}}> {{
      p = MatMul(x, v)
      q = MatMul(p, w)
      y = {}(q)
    }})",
                                            activation));
}

std::string WriteProducts(const Cluster& cluster) {
  const std::string file = cluster.path("products.onnx");
  EXPECT_TRUE(WriteFileAtomically(file, Products()).ok());
  return file;
}

// What a run without any fault gives.
const std::string& UndisturbedDigest() {
  static const std::string digest = [] {
    Cluster cluster;
    const json result = Optimized(cluster, WriteProducts(cluster), cluster.path("out.onnx"));
    EXPECT_EQ(result["verdict"], "FASTER");
    return result["output_digest"].get<std::string>();
  }();
  return digest;
}

void RestartCoordinator(Cluster& cluster) {
  cluster.StartCoordinator();
  ASSERT_TRUE(Eventually([&] {
    return cluster.Cli({"jobs", "list"}).code == 0;
  })) << cluster.Logs();
}

void ExpectUndisturbedEnd(Cluster& cluster, const std::string& job) {
  const json ended = cluster.Watch(job);
  EXPECT_EQ(ended["state"], "SUCCEEDED") << ended.dump(2) << cluster.Logs();
  EXPECT_EQ(ended["result"]["output_digest"], UndisturbedDigest()) << ended.dump(2);
}

TEST(Faults, AKilledExecutorCostsOneCandidate) {
  Cluster cluster;
  const auto signal_executors = [&](int signal) {
    const std::vector<pid_t> pids = ChildrenOf(cluster.worker().pid(), "--child=executor");
    for (const pid_t pid : pids) kill(pid, signal);
    return !pids.empty();
  };
  // It stands still until the job waits for it: a worker whose executor died takes no new job.
  ASSERT_TRUE(Eventually([&] { return signal_executors(SIGSTOP); }));
  const std::string job =
      cluster.Submit(cluster.Zoo("tiny_nasnet"), {"--graphs", "20", "--rounds", "1"});
  ASSERT_TRUE(Eventually([&] { return cluster.StateOf(job) == "SEARCHING"; })) << cluster.Logs();
  ASSERT_TRUE(signal_executors(SIGKILL));
  const json ended = cluster.Watch(job);
  EXPECT_EQ(ended["state"], "SUCCEEDED") << ended.dump(2) << cluster.Logs();
}

TEST(Faults, AKilledWorkerIsWaitedFor) {
  Cluster cluster;
  cluster.worker().Signal(SIGSTOP);  // The job comes as far as its first measurement.
  const std::string job = cluster.Submit(WriteProducts(cluster));
  ASSERT_TRUE(Eventually([&] { return cluster.StateOf(job) == "SEARCHING"; })) << cluster.Logs();
  cluster.KillWorker();
  EXPECT_EQ(cluster.StateOf(job), "SEARCHING");
  cluster.StartWorker();
  ExpectUndisturbedEnd(cluster, job);
}

TEST(Faults, WithoutAnyWorkerAJobFailsWithAReason) {
  Cluster cluster({.coordinator_flags = {"--no-worker", "0.5", "--reconnect", "0.2"}});
  cluster.worker().Signal(SIGSTOP);
  const std::string job = cluster.Submit(WriteProducts(cluster));
  ASSERT_TRUE(Eventually([&] { return cluster.StateOf(job) == "SEARCHING"; })) << cluster.Logs();
  cluster.KillWorker();
  const CommandResult watched = cluster.Cli({"jobs", "watch", job, "--json"});
  EXPECT_EQ(watched.code, 1);
  const json ended = json::parse(watched.out, nullptr, false);
  EXPECT_EQ(ended["state"], "FAILED") << watched.out;
  EXPECT_THAT(ended["error"]["message"].dump(), HasSubstr("no worker offers device sim:small"));
}

TEST(Faults, ACoordinatorKilledAfterTheAcknowledgement) {
  Cluster cluster;
  const std::string job = cluster.Submit(WriteProducts(cluster));
  cluster.KillCoordinator();
  RestartCoordinator(cluster);
  ExpectUndisturbedEnd(cluster, job);
}

TEST(Faults, ACoordinatorKilledWithJobsQueuedAndImporting) {
  Cluster cluster;
  std::string importing, queued;
  {
    // Import takes a turn of the machine, which is not to be had while we hold the lock.
    const auto lock = FileLock::Wait(cluster.measuring_lock(), FileLock::Mode::kExclusive);
    ASSERT_TRUE(lock.ok());
    const std::string model = WriteProducts(cluster);
    importing = cluster.Submit(model);
    ASSERT_TRUE(Eventually([&] { return cluster.StateOf(importing) == "IMPORTING"; }));
    queued = cluster.Submit(model, {"--rounds", "3"});
    EXPECT_EQ(cluster.StateOf(queued), "QUEUED");
    cluster.KillCoordinator();
  }
  RestartCoordinator(cluster);
  ExpectUndisturbedEnd(cluster, importing);
  EXPECT_EQ(cluster.Watch(queued)["state"], "SUCCEEDED");
}

// gRPC's own listener never accepts again after this.
TEST(Faults, IdleConnectionsDoNotCloseTheDoor) {
  const Alone place;
  const int port = FreePort();
  const std::string address = fmt::format("127.0.0.1:{}", port);
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, 4096);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  if (limit.rlim_cur < 1300) GTEST_SKIP() << "this process may not open 1,100 sockets";
  const Background daemon({"/bin/bash", "-c",
                           fmt::format("ulimit -n 1024; exec {} --listen {} --data {}",
                                       Program("autographd"), address, place.path("data"))},
                          place.path("log"), place.variables);
  const auto serves = [&] { return place.Cli({"workers", "list", "--server", address}).code == 0; };
  ASSERT_TRUE(Eventually(serves)) << daemon.Log();
  {
    std::vector<Fd> idle;
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons(static_cast<uint16_t>(port));
    for (int i = 0; i < 1100; ++i) {
      idle.emplace_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      ASSERT_EQ(connect(idle.back().get(), reinterpret_cast<sockaddr*>(&to), sizeof(to)), 0) << i;
    }
    EXPECT_FALSE(Eventually([] { return false; }, 1));  // They stand for a second.
  }
  EXPECT_TRUE(Eventually(serves, 2)) << daemon.Log();
}

TEST(Faults, AMeasuringLockThatAFlagNamesIsWaitedFor) {
  const Alone place;
  const std::string lock = place.path("shared/measuring.lock");
  ASSERT_TRUE(MakeDirs(place.path("shared")).ok());
  Cluster cluster({.coordinator_flags = {"--measuring-lock", lock},
                   .worker_flags = {"--measuring-lock", lock}});
  std::string job;
  {
    const auto held = FileLock::Wait(lock, FileLock::Mode::kExclusive);
    ASSERT_TRUE(held.ok());
    job = cluster.Submit(WriteProducts(cluster));
    ASSERT_TRUE(Eventually([&] {
      return cluster.Show(job)["progress"].value("waits_for", "").starts_with("the measuring lock");
    })) << cluster.Show(job).dump(2);
  }
  EXPECT_EQ(cluster.Watch(job)["state"], "SUCCEEDED");
  for (const char* program : {"autographd", "autograph-worker"}) {
    const CommandResult wrong = RunCommand(
        {Program(program), "--measuring-lock", place.path("no/folder/lock")}, place.variables);
    EXPECT_EQ(wrong.code, 2);
    EXPECT_THAT(wrong.err, HasSubstr(std::string(program) + ": --measuring-lock: "));
  }
}

TEST(Faults, AMeasuringLockIsNotWaitedForBeyondTheBudget) {
  Cluster cluster;
  const auto held = FileLock::Wait(cluster.measuring_lock(), FileLock::Mode::kExclusive);
  ASSERT_TRUE(held.ok());
  const json job = cluster.Watch(cluster.Submit(WriteProducts(cluster), {"--budget", "1s"}));
  EXPECT_EQ(job["state"], "FAILED");
  EXPECT_THAT(job["error"].dump(),
              HasSubstr(fmt::format("waited for the measuring lock, held by process {} until the "
                                    "budget of 1.0 s was over",
                                    ::getpid())));
}

TEST(Faults, ACoordinatorKilledWhileAJobSearches) {
  Cluster cluster;
  cluster.worker().Signal(SIGSTOP);
  const std::string job = cluster.Submit(WriteProducts(cluster));
  ASSERT_TRUE(Eventually([&] { return cluster.StateOf(job) == "SEARCHING"; })) << cluster.Logs();
  cluster.KillCoordinator();
  cluster.worker().Signal(SIGCONT);
  RestartCoordinator(cluster);
  ExpectUndisturbedEnd(cluster, job);
}

TEST(Faults, ACoordinatorKilledWhileAJobConfirms) {
  Cluster cluster;
  const std::string job = cluster.Submit(WriteProducts(cluster));
  bool confirming = false;
  (void)(*Client::Connect(cluster.address(), {}))->Watch(job, [&](const v1::Job& seen) {
    confirming = seen.state() == v1::Job::CONFIRMING;
    if (confirming) cluster.KillCoordinator();
    return !confirming;
  });
  ASSERT_TRUE(confirming) << "the watch did not see this state";
  RestartCoordinator(cluster);
  ExpectUndisturbedEnd(cluster, job);
}

TEST(Faults, AClientThatWatchesLivesThroughARestart) {
  Cluster cluster;
  cluster.worker().Signal(SIGSTOP);
  const std::string out = cluster.path("out.onnx");
  Background cli = cluster.CliInBackground(
      {"optimize", WriteProducts(cluster), "-o", out, "--device", "sim:small"}, "cli.log");
  ASSERT_TRUE(Eventually([&] { return cli.Log().find("searching") != std::string::npos; }))
      << cli.Log();
  cluster.KillCoordinator();
  cluster.worker().Signal(SIGCONT);
  cluster.StartCoordinator();
  EXPECT_EQ(cli.Wait(), 0) << cli.Log() << cluster.Logs();
  EXPECT_EQ(DigestOfFile(out), UndisturbedDigest());
}

// One more pattern that matches what `dense` and `chain` do together: only plans that use it meet
// the fault.
constexpr char kExtraPattern[] = "pattern extra = MatMul Sigmoid layouts plain\n";

// Its product and activation fit the extra pattern alone.
std::string ProductThenSigmoid() { return Products("Sigmoid"); }

struct FaultyDevice {
  const char* name;
  const char* fault;
  const char* reason;  // In the coordinator's log.
};

TEST(Faults, ADeviceThatHangsOrDiesCostsCandidatesOnly) {
  const FaultyDevice cases[] = {
      {"hangs", "fault hang extra\n", "no progress for 0.5 s"},
      {"dies", "fault crash extra\n", "quarantined after 2 crashed executors"},
      {"sticks", "fault sticky extra\n", "quarantined after 2 crashed executors"},
  };
  for (const FaultyDevice& c : cases) {
    const Alone place;
    const std::string device = place.SimSmallWith(std::string(kExtraPattern) + c.fault);
    Cluster cluster({.device = device, .coordinator_flags = {"--hang-time", "0.5"}});
    const std::string model = place.Write("m.onnx", ProductThenSigmoid());
    const std::string out = cluster.path("out.onnx");
    const json result = Optimized(cluster, model, out, {}, device);
    ASSERT_FALSE(result.empty()) << c.name;
    EXPECT_GT(result["groups_failed"], 0) << c.name << result.dump(2);
    EXPECT_THAT(cluster.Logs(), HasSubstr(c.reason)) << c.name;
    const CommandResult same =
        cluster.Cli({"verify", model, "--against", out, "--device", "sim:small"});
    EXPECT_EQ(same.code, 0) << c.name << same.out << same.err;
  }
}

// A lie that shows in a small group is caught there, before any plan uses it.
TEST(Faults, WrongGroupsAreNotUsed) {
  const Alone place;
  const std::string device = place.SimSmallWith("fault wrong dense\n");
  Cluster cluster(device);
  const std::string model = WriteProducts(cluster), out = cluster.path("out.onnx");
  const json result = Optimized(cluster, model, out, {}, device);
  ASSERT_FALSE(result.empty());
  EXPECT_NE(result["verdict"], "FASTER");
  EXPECT_EQ(result["speedup"], 1.0);
  EXPECT_GT(result["groups_failed"], 0);
  EXPECT_EQ(DigestOfFile(out), DigestOfFile(model));
  // Asked again it searches again: an answer after failures is none to remember.
  const json again = Optimized(cluster, model, out, {}, device);
  EXPECT_EQ(again["cache"]["model_hit"], false);
}

// Two products whose groups, merged or not, have more operations than the executor checks.
std::string LargeProducts() {
  OnnxModel model;
  model.origin.opsets = {{"", 17}};
  model.inputs = {{.name = "x", .data_type = 1, .has_shape = true, .dims = {{512}, {256}}}};
  model.outputs = {{.name = "y", .data_type = 1, .has_shape = true, .dims = {{512}, {256}}}};
  model.nodes = {{.op_type = "MatMul", .inputs = {"x", "v"}, .outputs = {"p"}},
                 {.op_type = "MatMul", .inputs = {"p", "w"}, .outputs = {"y"}}};
  const Tensor v = RandomTensor({DType::kFloat32, {256, 256}}, 1);
  const Tensor w = RandomTensor({DType::kFloat32, {256, 256}}, 2);
  model.initializers = {FromTensor("v", v), FromTensor("w", w)};
  return *SerializeModel(model);
}

// One that only large groups show passes them unchecked, and the gate on the whole model stops it.
TEST(Faults, WrongModelsAreNotPublished) {
  const Alone place;
  const std::string device = place.SimSmallWith("fault wrong dense\n");
  Cluster cluster(device);
  const std::string model = place.Write("large.onnx", LargeProducts());
  const std::string out = cluster.path("out.onnx");
  const json result = Optimized(cluster, model, out, {}, device);
  ASSERT_FALSE(result.empty());
  EXPECT_NE(result["verdict"], "FASTER");
  EXPECT_EQ(result["speedup"], 1.0);
  EXPECT_THAT(result["warnings"].dump(),
              HasSubstr("the winner is not published: output y differs"));
  EXPECT_EQ(DigestOfFile(out), DigestOfFile(model));
  const json again = Optimized(cluster, model, out, {}, device);
  EXPECT_EQ(again["cache"]["model_hit"], false);
}

}  // namespace
}  // namespace ag

// SIGINT and SIGTERM with real processes: the first ends what is in hand, the second ends at once,
// and no child is left behind. A child that is stopped (SIGSTOP) is what a program waits for here.
#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/file.h"
#include "base/signals.h"
#include "tests/processes.h"

namespace ag {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

// Searches for minutes unless it is stopped.
const std::vector<std::string> kLongSearch = {"--device",     "sim:small", "--rounds", "1000",
                                              "--expansions", "100000",    "--graphs", "1000000",
                                              "--budget",     "10m"};

// Whether there is no such process, or only its exit status.
bool IsGone(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string stat;
  std::getline(file, stat, '\0');
  const size_t close = stat.rfind(')');
  return close == std::string::npos || std::string("ZX").find(stat.at(close + 2)) != stat.npos;
}

// Processor time that the process has used, in clock ticks; -1: no such process.
long TicksOf(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string stat, word;
  std::getline(file, stat, '\0');
  const size_t close = stat.rfind(')');
  if (close == std::string::npos) return -1;
  std::istringstream words(stat.substr(close + 1));
  long user = 0, system = 0;
  for (int i = 0; i < 11; ++i) words >> word;
  return words >> user >> system ? user + system : -1;
}

// True when the process computed nothing for 200 ms: it waits for a child that was stopped. One
// that was stopped between two work items is waited for only once the next is handed to it.
bool OnlyWaits(pid_t pid) {
  const long before = TicksOf(pid);
  return before >= 0 && !Eventually([&] { return TicksOf(pid) != before; }, 0.2);
}

// The states that grpc.health.v1 streams for the server as a whole: '\1' SERVING, '\2' NOT_SERVING.
class HealthWatch {
 public:
  explicit HealthWatch(const std::string& address)
      : stub_(grpc::CreateChannel(address, grpc::InsecureChannelCredentials())),
        call_(stub_.PrepareCall(&context_, "/grpc.health.v1.Health/Watch", &queue_)) {
    call_->StartCall(nullptr);
    Next();
    const grpc::Slice no_service;
    call_->WriteLast(grpc::ByteBuffer(&no_service, 1), grpc::WriteOptions(), nullptr);
    Next();
  }
  ~HealthWatch() {
    context_.TryCancel();
    grpc::Status status;
    call_->Finish(&status, nullptr);
    Next();
    queue_.Shutdown();
    while (Next()) {
    }
  }
  // Waits for the next state; -1: the stream has ended.
  int Read() {
    grpc::ByteBuffer bytes;
    call_->Read(&bytes, nullptr);
    if (!Next()) return -1;
    grpc::Slice slice;
    EXPECT_TRUE(bytes.TrySingleSlice(&slice).ok());
    return slice.size() == 2 ? slice.begin()[1] : 0;  // Field 1, a varint; 0 is left out.
  }

 private:
  bool Next() {
    void* tag = nullptr;
    bool ok = false;
    return queue_.Next(&tag, &ok) && ok;
  }
  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  grpc::GenericStub stub_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
};

class ShutdownTest : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }

  Background Start(const std::string& program, const std::vector<std::string>& words) {
    std::vector<std::string> argv = {Program(program)};
    argv.insert(argv.end(), words.begin(), words.end());
    return Background(argv, path(program + ".log"), variables_);
  }
  Background StartCoordinator(const std::vector<std::string>& more = {}) {
    std::vector<std::string> words = {"--listen", address_, "--data", path("data")};
    words.insert(words.end(), more.begin(), more.end());
    return Start("autographd", words);
  }
  Background StartWorker() {
    return Start("autograph-worker", {"--server", address_, "--device", "sim:small"});
  }
  Background StartOptimize(const std::vector<std::string>& more) {
    const std::string model = path("m.onnx");
    EXPECT_EQ(Cli({"zoo", model_, "-o", model}).code, 0);
    std::vector<std::string> words = {"optimize", model, "-o", path("out.onnx")};
    words.insert(words.end(), kLongSearch.begin(), kLongSearch.end());
    words.insert(words.end(), more.begin(), more.end());
    return Start("autograph", words);
  }
  CommandResult Cli(std::vector<std::string> words) {
    words.insert(words.begin(), Program("autograph"));
    return RunCommand(words, variables_);
  }
  // The worker as the coordinator sees it; null: it sees none.
  json WorkerSeen() {
    const CommandResult list = Cli({"workers", "list", "--json", "--server", address_});
    const json workers = json::parse(list.out, nullptr, false);
    return list.code == 0 && workers.is_array() && !workers.empty() ? workers[0] : json();
  }
  bool WorkerServes() {
    const json worker = WorkerSeen();
    return worker.is_object() && worker["health"] == "SERVING";
  }
  // The children of this role, of the process and of its jobs.
  static std::vector<pid_t> Descendants(pid_t parent, const std::string& role) {
    std::vector<pid_t> found = ChildrenOf(parent, "--child=" + role);
    for (const pid_t job : ChildrenOf(parent, "--child=job")) {
      for (const pid_t pid : ChildrenOf(job, "--child=" + role)) found.push_back(pid);
    }
    return found;
  }
  // Stops the first child of this role that appears.
  pid_t StopChild(const Background& parent, const std::string& role) {
    pid_t stopped = -1;
    EXPECT_TRUE(Eventually([&] {
      for (int look = 0; look < 20 && stopped < 0; ++look) {  // A sandbox lives for an instant.
        const std::vector<pid_t> children = Descendants(parent.pid(), role);
        if (!children.empty() && kill(children[0], SIGSTOP) == 0) stopped = children[0];
      }
      return stopped > 0;
    })) << parent.Log();
    return stopped;
  }
  // The work item that the worker has in hand; empty: none.
  std::string WorkInHand() {
    const json worker = WorkerSeen();
    return worker.is_object() ? worker.value("attempt", "") : "";
  }
  // True when the same work item was in hand three times in a row: it will not end.
  bool WorkIsStuck() {
    const std::string before = WorkInHand();
    return !before.empty() && WorkInHand() == before && WorkInHand() == before;
  }
  // The first signal is taken, the program waits; the second ends it and `child`.
  void ExpectTheSecondEnds(Background& program, int signal, const std::string& said, pid_t child) {
    program.Signal(signal);
    ASSERT_TRUE(Eventually([&] { return program.Log().find(said) != std::string::npos; }))
        << program.Log();
    EXPECT_FALSE(Eventually([&] { return !program.Running(); }, 0.3)) << program.Log();
    EXPECT_FALSE(IsGone(child));
    program.Signal(signal);
    EXPECT_TRUE(Eventually([&] { return !program.Running(); }, 5));
    EXPECT_EQ(program.Wait(), kStoppedExitCode);
    EXPECT_TRUE(Eventually([&] { return IsGone(child); }, 5));
  }

  const TempDir folder_ = *TempDir::Make("autograph-shutdown");
  const Variables variables_ = {{"HOME", folder_.path()},
                                {"AUTOGRAPH_DATA", path("embedded")},
                                {"AUTOGRAPH_MEASURING_LOCK", path("measuring.lock")}};
  const std::string address_ = "127.0.0.1:" + std::to_string(FreePort());
  std::string model_ = "tiny_nasnet";
};

TEST_F(ShutdownTest, OneSignalEndsWhatIsIdle) {
  Background coordinator = StartCoordinator(), worker = StartWorker();
  ASSERT_TRUE(Eventually([&] { return WorkerServes(); })) << coordinator.Log() << worker.Log();
  const std::vector<pid_t> executors = ChildrenOf(worker.pid(), "--child=executor");
  ASSERT_EQ(executors.size(), 1u);
  worker.Signal(SIGTERM);
  EXPECT_EQ(worker.Wait(), 0) << worker.Log();
  EXPECT_TRUE(IsGone(executors[0]));
  coordinator.Signal(SIGINT);
  EXPECT_EQ(coordinator.Wait(), 0) << coordinator.Log();
}

TEST_F(ShutdownTest, ACoordinatorIsGoneWithinItsGraceWhateverRuns) {
  using std::chrono::steady_clock;
  model_ = "inception_v3";  // Big enough to be caught in the sandbox.
  Background coordinator =
      Start("autographd", {"--listen", address_, "--data", path("data"), "--grace", "3"});
  Background worker = StartWorker();
  ASSERT_TRUE(Eventually([&] { return WorkerServes(); })) << coordinator.Log() << worker.Log();
  Background cli = StartOptimize({"--server", address_});
  const pid_t sandbox = StopChild(coordinator, "sandbox");
  ASSERT_GT(sandbox, 0);
  HealthWatch health(address_);
  ASSERT_EQ(health.Read(), 1);
  const auto begin = steady_clock::now();
  coordinator.Signal(SIGTERM);
  EXPECT_EQ(health.Read(), 2);
  EXPECT_LT(steady_clock::now() - begin, std::chrono::milliseconds(200));
  EXPECT_TRUE(Eventually(
      [&] {
        return RunCommand({"/bin/bash", "-c",
                           "echo > /dev/tcp/127.0.0.1/" + address_.substr(address_.find(':') + 1)})
                   .code != 0;
      },
      0.5))
      << "connections are still taken";
  EXPECT_EQ(coordinator.Wait(), 0) << coordinator.Log();
  EXPECT_LT(steady_clock::now() - begin, std::chrono::milliseconds(3500));
  EXPECT_TRUE(Eventually([&] { return IsGone(sandbox); }, 5));
}

TEST_F(ShutdownTest, ASecondSignalEndsAWorkerThatDrains) {
  Background coordinator = StartCoordinator(), worker = StartWorker();
  ASSERT_TRUE(Eventually([&] { return WorkerServes(); })) << coordinator.Log() << worker.Log();
  Background cli = StartOptimize({"--server", address_});
  ASSERT_TRUE(Eventually([&] { return cli.Log().find("searching") != std::string::npos; }))
      << cli.Log();
  const pid_t executor = StopChild(worker, "executor");
  ASSERT_GT(executor, 0);
  ASSERT_TRUE(Eventually([&] { return WorkIsStuck(); }));
  ExpectTheSecondEnds(worker, SIGTERM, "finishing what is in hand", executor);
}

TEST_F(ShutdownTest, ASecondSignalEndsACoordinatorThatWaits) {
  model_ = "inception_v3";  // Big enough to be caught in the sandbox.
  Background coordinator = StartCoordinator({"--cancel-time", "60"}), worker = StartWorker();
  ASSERT_TRUE(Eventually([&] { return WorkerServes(); })) << coordinator.Log() << worker.Log();
  Background cli = StartOptimize({"--server", address_});
  const pid_t sandbox = StopChild(coordinator, "sandbox");
  ASSERT_GT(sandbox, 0);
  ExpectTheSecondEnds(coordinator, SIGTERM, "shutting down", sandbox);
}

TEST_F(ShutdownTest, ASecondCtrlCEndsTheCommandLine) {
  Background cli = StartOptimize({});
  ASSERT_TRUE(Eventually([&] { return cli.Log().find("searching") != std::string::npos; }))
      << cli.Log();
  const pid_t executor = StopChild(cli, "executor");
  ASSERT_GT(executor, 0);
  ASSERT_TRUE(Eventually([&] { return OnlyWaits(cli.pid()); }));
  ExpectTheSecondEnds(cli, SIGINT, "stopping; the best found so far is kept", executor);
}

}  // namespace
}  // namespace ag

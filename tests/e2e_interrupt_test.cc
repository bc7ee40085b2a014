// Stopping in the middle: Ctrl-C, twice, or by another client. What was found so far is kept.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "tests/cluster.h"

namespace ag {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

// A search that would go on for minutes, in rounds short enough that a first gain shows soon.
std::vector<std::string> LongSearch(const std::string& model, const std::string& out) {
  return {"optimize", model,      "-o",      out,        "--device", "sim:small",    "--rounds",
          "100000",   "--graphs", "1000000", "--budget", "10m",      "--expansions", "100000"};
}

// Waits for the text as long as a stage may take beside other work.
bool Says(const Background& process, const std::string& text) {
  constexpr double kSeconds = 60;
  return Eventually([&] { return process.Log().find(text) != std::string::npos; }, kSeconds);
}

// The best so far was written, and it is equal to the model.
void ExpectKept(const std::string& log, const std::string& model, const std::string& out) {
  EXPECT_THAT(log, HasSubstr("the best found so far was written"));
  EXPECT_THAT(log, HasSubstr("FASTER"));
  const CommandResult same = RunCommand({Program("autograph"), "verify", model, "--against", out,
                                         "--device", "sim:small", "--seeds", "1"});
  EXPECT_EQ(same.code, 0) << same.out << same.err;
}

TEST(Interrupt, CtrlCAgainstAServer) {
  Cluster cluster;
  const std::string model = cluster.Zoo("tiny_nasnet"), out = cluster.path("out.onnx");
  Background cli = cluster.CliInBackground(LongSearch(model, out), "cli.log");
  ASSERT_TRUE(Says(cli, "best 2.")) << cli.Log();
  cli.Signal(SIGINT);
  EXPECT_EQ(cli.Wait(), 130);
  EXPECT_THAT(cli.Log(), HasSubstr("stopping; the best found so far is kept"));
  ExpectKept(cli.Log(), model, out);
  EXPECT_EQ(cluster.StateOf("jobs/1"), "CANCELLED");
}

TEST(Interrupt, CtrlCEmbedded) {
  const Alone place;
  const std::string model = place.Zoo("tiny_nasnet"), out = place.path("out.onnx");
  Background cli = place.CliInBackground(LongSearch(model, out), "cli.log");
  ASSERT_TRUE(Says(cli, "best 2.")) << cli.Log();
  cli.Signal(SIGINT);
  EXPECT_EQ(cli.Wait(), 130);
  EXPECT_THAT(cli.Log(), HasSubstr("stopping; the best found so far is kept"));
  ExpectKept(cli.Log(), model, out);
}

// The search is not disturbed: its best is fetched twice while it goes on.
TEST(Interrupt, TheBestSoFarIsFetchedAndTheJobGoesOn) {
  Cluster cluster;
  const std::string model = cluster.Zoo("tiny_nasnet"), out = cluster.path("out.onnx");
  Background cli = cluster.CliInBackground(LongSearch(model, cluster.path("end.onnx")), "cli.log");
  ASSERT_TRUE(Says(cli, "best 2.")) << cli.Log();
  for (const char* fetch : {"first", "second"}) {
    const CommandResult fetched = cluster.Cli({"jobs", "fetch", "1", "--so-far", "-o", out});
    EXPECT_EQ(fetched.code, 0) << fetch << fetched.out << fetched.err;
    EXPECT_THAT(fetched.out, HasSubstr("FASTER")) << fetch;
    EXPECT_THAT(fetched.out, HasSubstr("it goes on, this is its best so far")) << fetch;
    EXPECT_EQ(cluster.StateOf("jobs/1"), "SEARCHING") << fetch;
  }
  const CommandResult same = RunCommand({Program("autograph"), "verify", model, "--against", out,
                                         "--device", "sim:small", "--seeds", "1"});
  EXPECT_EQ(same.code, 0) << same.out << same.err;
  cli.Signal(SIGINT);
  EXPECT_EQ(cli.Wait(), 130);
  ExpectKept(cli.Log(), model, cluster.path("end.onnx"));
}

// Processes that were started for this place: its folder stands in their environment.
std::vector<std::string> ProcessesOf(const Alone& place) {
  std::vector<std::string> found;
  const std::vector<std::string> pids = *ListDir("/proc");
  for (const std::string& pid : pids) {
    if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
    const auto environment = ReadFile("/proc/" + pid + "/environ");
    if (environment.ok() && environment->find(place.folder.path()) != std::string::npos) {
      found.push_back(pid);
    }
  }
  return found;
}

// Whatever it is at: it ends, no process is left, and no file that is not whole.
TEST(Interrupt, CtrlCInEachStage) {
  for (const char* stage : {"importing", "searching: measuring groups", "rewriting",
                            "searching, round 1: measuring plans", "confirming"}) {
    const Alone place;
    const std::string model = place.Zoo("tiny_nasnet"), out = place.path("out/out.onnx");
    ASSERT_TRUE(MakeDirs(place.path("out")).ok());
    Background cli = place.CliInBackground(
        {"optimize", model, "-o", out, "--device", "sim:small", "--rounds", "1", "--graphs", "500"},
        "cli.log");
    ASSERT_TRUE(Says(cli, stage)) << stage << "\n" << cli.Log();
    cli.Signal(SIGINT);
    const int code = cli.Wait();
    EXPECT_TRUE(code == 130 || (code == 0 && stage == std::string("confirming"))) << cli.Log();
    EXPECT_EQ(ProcessesOf(place), std::vector<std::string>()) << stage;
    const bool written = cli.Log().find("written ") != std::string::npos;
    EXPECT_EQ(*ListDir(place.path("out")),
              written ? std::vector<std::string>{"out.onnx"} : std::vector<std::string>())
        << stage << "\n"
        << cli.Log();
  }
}

// What it waits for is said, and it is not waited for any longer.
TEST(Interrupt, CtrlCWhileSomebodyElseMeasures) {
  for (const FileLock::Mode mode : {FileLock::Mode::kExclusive, FileLock::Mode::kShared}) {
    const Alone place;
    const std::string model = place.Zoo("tiny_cnn"), out = place.path("out.onnx");
    const FileLock held = *FileLock::Wait(place.variables.at("AUTOGRAPH_MEASURING_LOCK"), mode);
    Background cli =
        place.CliInBackground({"optimize", model, "-o", out, "--device", "cpu"}, "cli.log");
    ASSERT_TRUE(
        Says(cli, fmt::format("waits for the measuring lock, held by process {}", ::getpid())))
        << cli.Log();
    cli.Signal(SIGINT);
    EXPECT_TRUE(Eventually([&] { return !cli.Running(); }, 5)) << cli.Log();
    EXPECT_EQ(cli.Wait(), 130);
    EXPECT_THAT(cli.Log(), HasSubstr("interrupted; nothing was verified yet"));
    EXPECT_FALSE(FileExists(out));
    EXPECT_EQ(ProcessesOf(place), std::vector<std::string>());
  }
}

TEST(Interrupt, CtrlCBeforeAnythingWasMeasured) {
  Cluster cluster;
  const std::string model = cluster.Zoo("tiny_cnn"), out = cluster.path("out.onnx");
  cluster.worker().Signal(SIGSTOP);
  Background cli = cluster.CliInBackground(LongSearch(model, out), "cli.log");
  ASSERT_TRUE(Says(cli, "searching: measuring groups")) << cli.Log();
  cli.Signal(SIGINT);
  EXPECT_EQ(cli.Wait(), 130);
  EXPECT_THAT(cli.Log(), HasSubstr("interrupted; nothing was verified yet, nothing was written"));
  EXPECT_FALSE(FileExists(out));
  EXPECT_EQ(cluster.StateOf("jobs/1"), "CANCELLED");
}

TEST(Interrupt, ASecondCtrlCEndsAtOnce) {
  Cluster cluster;
  const std::string model = cluster.Zoo("tiny_nasnet"), out = cluster.path("out.onnx");
  Background cli = cluster.CliInBackground(LongSearch(model, out), "cli.log");
  ASSERT_TRUE(Says(cli, "searching")) << cli.Log();
  cluster.coordinator().Signal(SIGSTOP);  // It will not answer the first one.
  cli.Signal(SIGINT);
  ASSERT_TRUE(Says(cli, "Ctrl-C again to leave at once")) << cli.Log();
  EXPECT_TRUE(cli.Running());
  cli.Signal(SIGINT);
  EXPECT_EQ(cli.Wait(), 130);
  EXPECT_FALSE(FileExists(out));
}

bool EndsSoon(Background& process) {
  return Eventually([&] { return !process.Running(); }, 2);
}

// A rule may take hours.
TEST(Interrupt, CtrlCInsideARule) {
  const Alone place;
  const std::string file = place.Write("a.rules", "r [exact]: relu(relu(x)) => relu(x)\n");
  Background cli = place.CliInBackground(
      {"rules", "verify", file, "--instances", "1000000000", "--no-cache"}, "cli.log");
  ASSERT_FALSE(EndsSoon(cli)) << cli.Log();
  cli.Signal(SIGINT);
  EXPECT_TRUE(EndsSoon(cli)) << cli.Log();
  EXPECT_EQ(cli.Wait(), 130);
  EXPECT_EQ(cli.Log(), "autograph: interrupted\n");
}

// The error as a document, wherever the end comes.
void ExpectToldAsJson(Background& cli) {
  EXPECT_EQ(cli.Wait(), 130);
  const std::string log = cli.Log();  // Of standard error, then of standard output.
  const std::string line = "autograph: interrupted\n";
  ASSERT_THAT(log, ::testing::StartsWith(line));
  EXPECT_EQ(json::parse(log.substr(line.size())),
            json({{"error", {{"code", 1}, {"message", "interrupted"}, {"reason", "CANCELLED"}}}}));
}

TEST(Interrupt, CtrlCIsADocumentWithJson) {
  Cluster cluster;
  const std::string model = cluster.Zoo("tiny_nasnet"), out = cluster.path("out.onnx");
  cluster.worker().Signal(SIGSTOP);
  const std::string job = cluster.Submit(model, {"--graphs", "300"});
  Background watch = cluster.CliInBackground({"jobs", "watch", job, "--json"}, "watch.log");
  ASSERT_FALSE(EndsSoon(watch)) << watch.Log();
  watch.Signal(SIGINT);
  ExpectToldAsJson(watch);
  cluster.worker().Signal(SIGCONT);
  EXPECT_EQ(cluster.Watch(job)["state"], "SUCCEEDED");

  std::vector<std::string> words = LongSearch(model, out);
  words.push_back("--json");
  Background optimize = cluster.CliInBackground(words, "optimize.log");
  ASSERT_TRUE(Eventually([&] { return cluster.StateOf("jobs/2") == "SEARCHING"; }));
  cluster.coordinator().Signal(SIGSTOP);  // It will not answer the first one.
  optimize.Signal(SIGINT);
  EXPECT_FALSE(Eventually([&] { return !optimize.Running(); }, 0.5)) << optimize.Log();
  optimize.Signal(SIGINT);
  ExpectToldAsJson(optimize);
}

// Its folder and its children end with it.
TEST(Interrupt, CtrlCEndsTheDoctor) {
  Alone place;
  ASSERT_TRUE(MakeDirs(place.path("tmp")).ok());
  place.variables["TMPDIR"] = place.path("tmp");
  FakePython(place.variables, place.path("python"), "sleep 60");
  Background cli = place.CliInBackground({"doctor", "--device", "cpu:1"}, "cli.log");
  ASSERT_TRUE(Eventually([&] { return ProcessesOf(place).size() > 2; })) << cli.Log();
  cli.Signal(SIGINT);
  EXPECT_TRUE(Eventually([&] { return !cli.Running(); }, 15)) << cli.Log();
  EXPECT_EQ(cli.Wait(), 130);
  EXPECT_EQ(cli.Log(), "autograph: interrupted\n");
  EXPECT_EQ(*ListDir(place.path("tmp")), std::vector<std::string>());
}

TEST(Interrupt, ASecondCtrlCEmbeddedLeavesNoChild) {
  const Alone place;
  const std::string model = place.Zoo("tiny_nasnet"), out = place.path("out.onnx");
  Background cli = place.CliInBackground(LongSearch(model, out), "cli.log");
  ASSERT_TRUE(Says(cli, "searching")) << cli.Log();
  const std::vector<pid_t> executors = ChildrenOf(cli.pid(), "--child=executor");
  ASSERT_EQ(executors.size(), 1u);
  cli.Signal(SIGINT);
  ASSERT_TRUE(Says(cli, "Ctrl-C again to leave at once")) << cli.Log();
  cli.Signal(SIGINT);
  EXPECT_EQ(cli.Wait(), 130);
  EXPECT_TRUE(Eventually([&] { return kill(executors[0], 0) != 0; }));
}

TEST(Interrupt, AnotherClientCancels) {
  Cluster cluster;
  const std::string model = cluster.Zoo("tiny_nasnet"), out = cluster.path("out.onnx");
  Background cli = cluster.CliInBackground(LongSearch(model, out), "cli.log");
  ASSERT_TRUE(Says(cli, "best 2.")) << cli.Log();
  const CommandResult cancelled = cluster.Cli({"jobs", "cancel", "jobs/1"});
  EXPECT_EQ(cancelled.code, 0) << cancelled.err;
  EXPECT_EQ(cli.Wait(), 130);
  EXPECT_THAT(cli.Log(), HasSubstr("cancelled by another client; "));
  ExpectKept(cli.Log(), model, out);
  EXPECT_EQ(cluster.StateOf("jobs/1"), "CANCELLED");
  // Again: it has ended, and nothing changes.
  EXPECT_EQ(cluster.Cli({"jobs", "cancel", "jobs/1"}).code, 0);
}

// Two clients that ask for the same share one job; the first to leave does not take it away.
TEST(Interrupt, AnotherWaiterKeepsTheJob) {
  Cluster cluster;
  const std::string model = cluster.Zoo("tiny_nasnet"), out = cluster.path("out.onnx");
  Background first =
      cluster.CliInBackground(LongSearch(model, cluster.path("other.onnx")), "first.log");
  ASSERT_TRUE(Says(first, "best 2.")) << first.Log();
  Background second = cluster.CliInBackground(LongSearch(model, out), "second.log");
  ASSERT_TRUE(Says(second, "best 2.")) << second.Log();
  first.Signal(SIGINT);
  EXPECT_EQ(first.Wait(), 130);
  EXPECT_THAT(first.Log(), HasSubstr("interrupted; jobs/1 goes on, others wait for it"));
  EXPECT_FALSE(FileExists(cluster.path("other.onnx")));
  EXPECT_TRUE(second.Running());
  EXPECT_EQ(cluster.StateOf("jobs/1"), "SEARCHING");
  second.Signal(SIGINT);
  EXPECT_EQ(second.Wait(), 130);
  ExpectKept(second.Log(), model, out);
}

// Watching keeps nothing: Ctrl-C leaves at once, though nothing happens that could be shown.
TEST(Interrupt, AWatchIsLeftAtOnce) {
  Cluster cluster;
  cluster.worker().Signal(SIGSTOP);
  const std::string job = cluster.Submit(cluster.Zoo("tiny_cnn"));
  Background cli = cluster.CliInBackground({"jobs", "watch", job}, "watch.log");
  ASSERT_TRUE(Says(cli, "searching")) << cli.Log();
  cli.Signal(SIGINT);
  EXPECT_TRUE(Eventually([&] { return !cli.Running(); }, 2));
  EXPECT_EQ(cli.Wait(), 130);
  EXPECT_EQ(cluster.StateOf(job), "SEARCHING");
}

// A job that waits is taken off the queue at once.
TEST(Interrupt, AQueuedJobIsCancelled) {
  Cluster cluster;
  cluster.worker().Signal(SIGSTOP);
  const std::string model = cluster.Zoo("tiny_cnn");
  const std::string first = cluster.Submit(model);
  const std::string second = cluster.Submit(model, {"--rounds", "3"});
  EXPECT_EQ(cluster.StateOf(second), "QUEUED");
  EXPECT_EQ(cluster.Cli({"jobs", "cancel", second}).code, 0);
  EXPECT_EQ(cluster.StateOf(second), "CANCELLED");
  cluster.worker().Signal(SIGCONT);
  EXPECT_EQ(cluster.Watch(first)["state"], "SUCCEEDED");
}

}  // namespace
}  // namespace ag

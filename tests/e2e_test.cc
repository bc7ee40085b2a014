// The whole way with real processes: coordinator, worker, executor, jail and command line over real
// sockets, on the small simulated device (and the CPU where a test says so). No GPU, no network
// beyond loopback.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "base/digest.h"
#include "base/file.h"
#include "tests/processes.h"

namespace ag {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

// A coordinator and workers in a folder of their own.
class Cluster {
 public:
  explicit Cluster(const std::string& device, const std::vector<std::string>& worker_flags = {})
      : folder_(*TempDir::Make("autograph-e2e")),
        variables_{{"AUTOGRAPH_MEASURING_LOCK", folder_.path() + "/measuring.lock"},
                   {"HOME", folder_.path()}},
        device_(device),
        port_(FreePort()) {
    StartCoordinator();
    StartWorker(worker_flags);
  }

  void StartCoordinator() {
    coordinator_ = std::make_unique<Background>(
        std::vector<std::string>{Program("autographd"), "--listen", address(), "--data",
                                 folder_.path() + "/data"},
        path("coordinator.log"), variables_);
  }
  void StartWorker(const std::vector<std::string>& flags = {}) {
    std::vector<std::string> argv = {Program("autograph-worker"), "--server", address(), "--device",
                                     device_};
    argv.insert(argv.end(), flags.begin(), flags.end());
    worker_ = std::make_unique<Background>(argv, path("worker.log"), variables_);
    ASSERT_TRUE(Eventually([&] { return WorkerServes(); })) << Logs();
  }
  void KillCoordinator() { coordinator_.reset(); }

  bool WorkerServes() {
    const CommandResult list = Cli({"workers", "list", "--json"});
    return list.code == 0 && list.out.find("\"SERVING\"") != std::string::npos;
  }

  CommandResult Cli(std::vector<std::string> words) {
    words.insert(words.begin(), Program("autograph"));
    words.insert(words.end(), {"--server", address()});
    return RunCommand(words, variables_);
  }
  Background CliInBackground(std::vector<std::string> words, const std::string& log) {
    words.insert(words.begin(), Program("autograph"));
    words.insert(words.end(), {"--server", address()});
    return Background(words, path(log), variables_);
  }

  std::string Zoo(const std::string& name) {
    const std::string file = path(name + ".onnx");
    const CommandResult made =
        RunCommand({Program("autograph"), "zoo", name, "-o", file}, variables_);
    EXPECT_EQ(made.code, 0) << made.err;
    return file;
  }
  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  std::string Logs() const { return coordinator_->Log() + (worker_ ? worker_->Log() : ""); }
  Background& worker() { return *worker_; }
  const Variables& variables() const { return variables_; }

 private:
  TempDir folder_;
  Variables variables_;
  std::string device_;
  int port_;
  std::unique_ptr<Background> coordinator_, worker_;
};

json Optimized(Cluster& cluster, const std::string& model, const std::string& output,
               std::vector<std::string> more = {}, const std::string& device = "sim:small") {
  std::vector<std::string> words = {"optimize", model, "-o", output, "--device", device, "--json"};
  words.insert(words.end(), more.begin(), more.end());
  const CommandResult result = cluster.Cli(words);
  EXPECT_EQ(result.code, 0) << result.err << cluster.Logs();
  return json::parse(result.out, nullptr, false);
}

TEST(EndToEnd, OptimizesAndAnswersAgainFromTheCache) {
  Cluster cluster("sim:small");
  const std::string model = cluster.Zoo("tiny_inception"), out = cluster.path("out.onnx");
  const json first = Optimized(cluster, model, out);
  ASSERT_TRUE(first.is_object());
  for (const char* field :
       {"job", "verdict", "device", "input_latency_ms", "output_latency_ms", "eager_latency_ms",
        "speedup", "max_abs_error", "max_rel_error", "rewrites", "groups", "streams", "stop_reason",
        "seconds", "cache", "output_sha256"}) {
    EXPECT_TRUE(first.contains(field)) << field;
  }
  EXPECT_FALSE(first["cache"]["model_hit"]);
  EXPECT_LE(first["max_rel_error"], 1e-3);
  EXPECT_EQ(Sha256(*ReadFile(out)).Hex(), first["output_sha256"]);

  const json again = Optimized(cluster, model, cluster.path("again.onnx"));
  EXPECT_TRUE(again["cache"]["model_hit"]);
  EXPECT_EQ(again["output_sha256"], first["output_sha256"]);
  const CommandResult verified = cluster.Cli({"verify", model, "--against", out});
  EXPECT_EQ(verified.code, 0) << verified.out << verified.err;
}

TEST(EndToEnd, OneSeedGivesTheSameBytesTwice) {
  std::string digests[2];
  for (std::string& digest : digests) {
    Cluster cluster("sim:small");
    digest = Optimized(cluster, cluster.Zoo("tiny_inception"),
                       cluster.path("out.onnx"))["output_sha256"];
  }
  EXPECT_EQ(digests[0], digests[1]);
}

TEST(EndToEnd, NotFasterMeansTheInputsOwnBytes) {
  Cluster cluster("sim:small");
  const std::string model = cluster.Zoo("tiny_cnn"), out = cluster.path("out.onnx");
  // One candidate with no rewrites and one stream is the input again: it cannot win.
  std::vector<std::string> flags = {"--streams", "1"};
  const CommandResult rules = cluster.Cli({"rules", "list", "--json"});
  for (const json& rule : json::parse(rules.out)) {
    if (!rule["clean_up"])
      flags.insert(flags.end(), {"--without", rule["name"].get<std::string>()});
  }
  const json result = Optimized(cluster, model, out, flags);
  EXPECT_NE(result["verdict"], "FASTER");
  EXPECT_EQ(result["speedup"], 1.0);
  EXPECT_EQ(*ReadFile(out), *ReadFile(model));
}

TEST(EndToEnd, AKilledExecutorCostsOneCandidate) {
  Cluster cluster("sim:small");
  const std::string model = cluster.Zoo("tiny_nasnet");
  Background cli =
      cluster.CliInBackground({"optimize", model, "-o", cluster.path("out.onnx"), "--device",
                               "sim:small", "--graphs", "200", "--rounds", "1"},
                              "cli.log");
  int killed = 0;
  Eventually([&] {
    for (const pid_t pid : ChildrenOf(cluster.worker().pid(), "--child=executor")) {
      kill(pid, SIGKILL);
      ++killed;
    }
    return killed > 0 || !cli.Running();
  });
  EXPECT_EQ(cli.Wait(), 0) << cli.Log() << cluster.Logs();
  EXPECT_GT(killed, 0);
}

TEST(EndToEnd, AKilledCoordinatorLosesNoJob) {
  Cluster cluster("sim:small");
  const std::string model = cluster.Zoo("tiny_nasnet");
  const CommandResult submitted =
      cluster.Cli({"optimize", model, "-o", cluster.path("out.onnx"), "--device", "sim:small",
                   "--graphs", "200", "--rounds", "1", "--detach"});
  ASSERT_EQ(submitted.code, 0) << submitted.err << cluster.Logs();
  const std::string job = submitted.out.substr(0, submitted.out.find('\n'));
  cluster.KillCoordinator();
  cluster.StartCoordinator();
  ASSERT_TRUE(Eventually([&] { return cluster.Cli({"jobs", "list"}).code == 0; }));
  const CommandResult watched = cluster.Cli({"jobs", "watch", job, "--json"});
  EXPECT_EQ(watched.code, 0) << watched.err << cluster.Logs();
  EXPECT_EQ(json::parse(watched.out)["state"], "succeeded");
}

TEST(EndToEnd, CtrlCKeepsTheBestSoFar) {
  Cluster cluster("sim:small");
  const std::string model = cluster.Zoo("tiny_nasnet");
  Background cli = cluster.CliInBackground(
      {"optimize", model, "-o", cluster.path("out.onnx"), "--device", "sim:small", "--rounds",
       "1000", "--expansions", "100000", "--graphs", "1000000", "--budget", "10m"},
      "cli.log");
  ASSERT_TRUE(Eventually([&] { return cli.Log().find("searching") != std::string::npos; }))
      << cli.Log();
  cli.Signal(SIGINT);
  EXPECT_EQ(cli.Wait(), 130);
  EXPECT_THAT(cli.Log(), HasSubstr("interrupted"));
}

TEST(EndToEnd, APortInUseIsSaid) {
  Cluster cluster("sim:small");
  const CommandResult second = RunCommand(
      {Program("autographd"), "--listen", cluster.address(), "--data", cluster.path("other")},
      cluster.variables());
  EXPECT_NE(second.code, 0);
  EXPECT_THAT(second.out + second.err, HasSubstr(cluster.address()));
  EXPECT_THAT(second.out + second.err, HasSubstr("in use"));
}

TEST(EndToEnd, EmbeddedRunsSideBySide) {
  const TempDir folder = *TempDir::Make("autograph-e2e");
  const Variables variables = {{"HOME", folder.path()},
                               {"AUTOGRAPH_DATA", folder.path() + "/data"},
                               {"AUTOGRAPH_MEASURING_LOCK", folder.path() + "/lock"}};
  const std::string model = folder.path() + "/m.onnx";
  ASSERT_EQ(
      RunCommand({Program("autograph"), "zoo", "tiny_inception", "-o", model}, variables).code, 0);
  const auto argv = [&](const std::string& out) {
    return std::vector<std::string>{Program("autograph"), "optimize", model,      "-o",
                                    folder.path() + out,  "--device", "sim:small"};
  };
  Background first(argv("/a.onnx"), folder.path() + "/a.log", variables);
  Background second(argv("/b.onnx"), folder.path() + "/b.log", variables);
  EXPECT_EQ(first.Wait(), 0) << first.Log();
  EXPECT_EQ(second.Wait(), 0) << second.Log();
  EXPECT_THAT(first.Log() + second.Log(), HasSubstr("temporary store"));
}

struct BadCommand {
  const char* name;
  std::vector<std::string> words;
  int code;
  const char* message;  // Part of standard error.
};

TEST(EndToEnd, BadCommandsSayWhatIsWrong) {
  const TempDir folder = *TempDir::Make("autograph-e2e");
  const Variables variables = {{"HOME", folder.path()}};
  const std::string text_file = folder.path() + "/text.onnx";
  ASSERT_TRUE(WriteFileAtomically(text_file, "this is not a model").ok());
  const BadCommand cases[] = {
      {"no verb", {}, 2, "subcommand"},
      {"verb with a typo", {"optimise", "x.onnx"}, 2, "unknown verb \"optimise\""},
      {"verb with a typo, suggestion", {"optimise", "x.onnx"}, 2, "optimize"},
      {"flag with a typo", {"optimize", text_file, "-o", "y", "--devise", "cpu"}, 2, "--device"},
      {"missing output", {"optimize", text_file}, 2, "--output"},
      {"no such file", {"run", "/nowhere/x.onnx"}, 3, "/nowhere/x.onnx"},
      {"not a model", {"run", text_file}, 3, "not ONNX"},
      {"no such device", {"bench", text_file, "--device", "gpu"}, 3, "gpu"},
      {"no such zoo model", {"zoo", "resnet51", "-o", "x"}, 3, "resnet50"},
      {"no server", {"jobs", "list", "--server", "127.0.0.1:1"}, 4, "no server at 127.0.0.1:1"},
      {"bad shape", {"run", text_file, "--shape", "x=1xtwo"}, 3, "\"two\" is not a size"},
      {"precision that no device has",
       {"optimize", text_file, "-o", "y", "--device", "sim:small", "--precision", "fp16"},
       3,
       "fp32 works"},
      {"bad budget", {"optimize", text_file, "-o", "y", "--budget", "soon"}, 2, "not a duration"},
  };
  for (const BadCommand& c : cases) {
    std::vector<std::string> argv = c.words;
    argv.insert(argv.begin(), Program("autograph"));
    const CommandResult result = RunCommand(argv, variables);
    EXPECT_EQ(result.code, c.code) << c.name << ": " << result.err;
    EXPECT_THAT(result.err, HasSubstr(c.message)) << c.name;
  }
}

}  // namespace
}  // namespace ag

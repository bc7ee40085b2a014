// The command line on wrong words, wrong values and a world that does not play along.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/cluster.h"

namespace ag {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

struct BadCommand {
  const char* name;
  std::vector<std::string> words;
  int code;
  const char* message;  // Part of standard error.
};

void ExpectRefused(const Alone& place, const BadCommand& c) {
  const CommandResult result = place.Cli(c.words);
  EXPECT_EQ(result.code, c.code) << c.name << ": " << result.err;
  EXPECT_THAT(result.err, HasSubstr(c.message)) << c.name;
  EXPECT_EQ(result.out, "") << c.name;
}

TEST(CommandLine, WrongWords) {
  const Alone place;
  const std::string file = place.Write("text.onnx", "this is not a model");
  const BadCommand cases[] = {
      {"no verb", {}, 2, "a verb is missing: optimize, run, verify"},
      {"verb with a typo",
       {"optimise", "x.onnx"},
       2,
       "unknown verb \"optimise\"; did you mean 'optimize'?"},
      {"verb like no other", {"frobnicate"}, 2, "unknown verb \"frobnicate\"\n"},
      {"verb of jobs with a typo",
       {"jobs", "lst"},
       2,
       "unknown verb \"lst\"; did you mean 'list'?"},
      {"jobs alone", {"jobs"}, 2, "a verb is missing: list, show, watch, cancel, fetch"},
      {"flag with a typo",
       {"optimize", file, "-o", "y", "--devise", "cpu"},
       2,
       "unknown flag --devise; did you mean '--device'?"},
      {"short flag", {"optimize", file, "-q"}, 2, "unknown flag -q"},
      {"one word too many", {"run", file, "more"}, 2, "more"},
      {"missing output", {"optimize", file}, 2, "--output"},
      {"missing output after a flag's value",
       {"--server", "127.0.0.1:1", "optimize", file},
       2,
       "--output"},
      {"missing model", {"run"}, 2, "model"},
      {"missing value", {"run", file, "--device"}, 2, "--device"},
      {"missing job", {"jobs", "show"}, 2, "job"},
      {"zoo without a file", {"zoo", "tiny_cnn"}, 2, "-o FILE"},
      {"no such zoo model",
       {"zoo", "resnet51", "-o", place.path("x")},
       3,
       "did you mean 'resnet50'?"},
  };
  for (const BadCommand& c : cases) ExpectRefused(place, c);
}

TEST(CommandLine, WrongValues) {
  const Alone place;
  const std::string file = place.Write("text.onnx", "this is not a model");
  const std::string fixed = place.SimSmallWith("cold_cache no\n");
  const auto optimize = [&](const std::string& flag, const std::string& value) {
    return std::vector<std::string>{"optimize", file,        "-o", place.path("y"),
                                    "--device", "sim:small", flag, value};
  };
  const BadCommand cases[] = {
      {"shape without a name",
       {"run", file, "--shape", "=1x2"},
       2,
       "--shape: =1x2: expected NAME=1x3x224x224"},
      {"shape without sizes",
       {"run", file, "--shape", "x"},
       2,
       "--shape: x: expected NAME=1x3x224x224"},
      {"shape in words", {"run", file, "--shape", "x=1xtwo"}, 2, "\"two\" is not a size"},
      {"shape below zero", {"run", file, "--shape", "x=1x-2"}, 2, "\"-2\" is not a size"},
      {"shape beyond numbers",
       {"run", file, "--shape", "x=99999999999999999999"},
       2,
       "\"99999999999999999999\" is not a size"},
      {"shape of optimize", optimize("--shape", "x=1xtwo"), 2, "\"two\" is not a size"},
      {"budget in words", optimize("--budget", "soon"), 2,
       "\"soon\" is not a duration; try 60s, 2m or 1h"},
      {"budget without a unit", optimize("--budget", "5"), 2,
       "\"5\" has no unit; try 5s, 5m or 5h"},
      {"budget of nothing", optimize("--budget", "0s"), 2, "\"0s\" is not a duration"},
      {"budget below zero", optimize("--budget", "-5s"), 2, "\"-5s\" is not a duration"},
      {"budget without end", optimize("--budget", "inf"), 2, "\"inf\" is not a duration"},
      {"streams in words", optimize("--streams", "many"), 2, "--streams"},
      {"no streams", optimize("--streams", "0"), 2, "--streams: \"0\" is not a number above 0"},
      {"streams below zero", optimize("--streams", "-1"), 2,
       "--streams: \"-1\" is not a number above 0"},
      {"too many streams", optimize("--streams", "1000000"), 2,
       "--streams: 1000000 is not in 0..1024"},
      {"budget of ages", optimize("--budget", "1e99h"), 2, "--budget, in seconds: "},
      {"too many rounds", optimize("--rounds", "1000001"), 2,
       "--rounds: 1000001 is not in 0..1000000"},
      {"priority above all", optimize("--priority", "101"), 2,
       "--priority 101: expected -100 to 100"},
      {"tolerance of everything", optimize("--tolerance", "2"), 2, "--tolerance: 2 is not in 0..1"},
      {"precision that is none", optimize("--precision", "fp61"), 2, "did you mean 'fp16'?"},
      {"seed below zero", optimize("--seed", "-1"), 2,
       "--seed: \"-1\" is not a number of 0 or more"},
      {"seed of made inputs below zero",
       {"run", file, "--seed", "-1"},
       2,
       "--seed: \"-1\" is not a number of 0 or more"},
      {"server that is no address", optimize("--server", "foo"), 2,
       "--server: foo: expected HOST:PORT or unix:PATH"},
      {"tolerance below zero", optimize("--tolerance", "-0.1"), 2,
       "\"-0.1\" is not a number above 0"},
      {"rule that is none", optimize("--without", "no-such-rule"), 2,
       "--without: no rule is called no-such-rule"},
      {"rule that is misspelt", optimize("--without", "relu-idempotant"), 2,
       "--without: no rule is called relu-idempotant; did you mean 'relu-idempotent'?"},
      {"precision that the device lacks", optimize("--precision", "fp16"), 3, "it offers fp32"},
      {"caches that cannot be evicted",
       {"optimize", file, "-o", place.path("y"), "--device", fixed, "--cold-cache"},
       3,
       "policy: small: cold_cache: its caches cannot be evicted"},
      {"no such device", {"bench", file, "--device", "gpu"}, 2, "device \"gpu\": expected one of"},
      {"no cores", {"bench", file, "--device", "cpu:0"}, 2, "expected a number >= 1 after ':'"},
      {"no such simulated device",
       {"bench", file, "--device", "sim:smal"},
       4,
       "did you mean 'small'?"},
      {"no such GPU", {"run", file, "--device", "cuda:99"}, 4, "cuda:99: "},
      {"no such device of optimize",
       {"optimize", file, "-o", place.path("y"), "--device", "sim:smal"},
       4,
       "did you mean 'small'?"},
      {"input without a file",
       {"run", file, "--input", "x", "--device", "sim:small"},
       3,
       "text.onnx"},
  };
  for (const BadCommand& c : cases) ExpectRefused(place, c);
}

TEST(CommandLine, NobodyListens) {
  const Alone place;
  const std::string file = place.Zoo("tiny_cnn");
  const std::vector<std::string> verbs[] = {{"optimize", file, "-o", place.path("o.onnx")},
                                            {"jobs", "list"},
                                            {"jobs", "watch", "jobs/1"},
                                            {"cache", "stats"},
                                            {"workers", "list"}};
  for (std::vector<std::string> words : verbs) {
    words.insert(words.end(), {"--server", "127.0.0.1:1"});
    const CommandResult result = place.Cli(words);
    EXPECT_EQ(result.code, 4) << words[0];
    EXPECT_EQ(result.err, "autograph: no server at 127.0.0.1:1: is autographd running?\n");
  }
}

TEST(CommandLine, APortInUseIsSaid) {
  Cluster cluster;
  const CommandResult second = RunCommand(
      {Program("autographd"), "--listen", cluster.address(), "--data", cluster.path("other")},
      cluster.variables());
  EXPECT_EQ(second.code, 1);
  EXPECT_THAT(second.err,
              HasSubstr("autographd: cannot listen on " + cluster.address() + ": address in use"));
  const CommandResult metrics =
      RunCommand({Program("autographd"), "--listen", "127.0.0.1:0", "--data",
                  cluster.path("metrics"), "--metrics", cluster.address()},
                 cluster.variables());
  EXPECT_EQ(metrics.code, 1);
  EXPECT_THAT(metrics.err, HasSubstr("autographd: metrics: cannot listen on " + cluster.address() +
                                     ": address in use"));
  // The same folder: the message names who holds it.
  const CommandResult same =
      RunCommand({Program("autographd"), "--listen", "127.0.0.1:0", "--data", cluster.path("data")},
                 cluster.variables());
  EXPECT_EQ(same.code, 1);
  EXPECT_THAT(same.err, HasSubstr(fmt::format("held by autographd, process {}, listening on {}",
                                              cluster.coordinator().pid(), cluster.address())));
}

TEST(CommandLine, ADoctorWritesOnlyInAFolderOfItsOwn) {
  const Alone place;
  Variables variables = place.variables;
  variables["TMPDIR"] = place.path("tmp");
  ASSERT_TRUE(MakeDirs(place.path("tmp")).ok());
  const auto entries = [&] {
    std::set<std::string> found;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(place.folder.path())) {
      found.insert(entry.path().string());
    }
    return found;
  };
  const auto before = entries();
  const CommandResult doctor =
      RunCommand({Program("autograph"), "doctor", "--device", "sim:small"}, variables);
  EXPECT_EQ(doctor.code, 0) << doctor.out << doctor.err;
  EXPECT_THAT(doctor.out, HasSubstr("embedded service and executor"));
  EXPECT_THAT(doctor.out, HasSubstr("not made yet"));
  EXPECT_EQ(entries(), before);
}

TEST(CommandLine, AFreePortIsPrinted) {
  const Alone place;
  Background daemon(
      {Program("autographd"), "--listen", "127.0.0.1:0", "--data", place.path("data")},
      place.path("log"), place.variables);
  ASSERT_TRUE(Eventually([&] { return daemon.Log().find("listens on") != std::string::npos; }))
      << daemon.Log();
  const std::string log = daemon.Log();
  const size_t begin = log.find("listens on ") + 11;
  const std::string address = log.substr(begin, log.find(' ', begin) - begin);
  EXPECT_FALSE(address.ends_with(":0")) << log;
  EXPECT_EQ(place.Cli({"workers", "list", "--server", address}).code, 0) << address;
}

// The daemons say what the command line does.
TEST(CommandLine, WrongWordsForTheDaemons) {
  const Alone place;
  const struct {
    std::string program;
    std::vector<std::string> words;
    std::string message;
  } cases[] = {
      {"autographd", {"--lisen", "x"}, "unknown flag --lisen; did you mean '--listen'?"},
      {"autographd",
       {"--log-level", "warning"},
       "--log-level: \"warning\" is none of info, warn, error, off"},
      {"autographd", {"--tick", "-1"}, "--tick: \"-1\" is not a number of 0 or more"},
      {"autographd", {"--listen", "foo"}, "--listen: foo: expected HOST:PORT or unix:PATH"},
      {"autographd",
       {"--listen", "127.0.0.1:99999"},
       "--listen: 127.0.0.1:99999: expected HOST:PORT or unix:PATH"},
      {"autographd", {"--metrics", "1"}, "--metrics: 1: expected HOST:PORT or unix:PATH"},
      {"autograph-worker", {"--server", "host"}, "--server: host: expected HOST:PORT or unix:PATH"},
      {"autograph-worker", {"--devise", "cpu"}, "unknown flag --devise; did you mean '--device'?"},
      {"autograph-worker",
       {"--device", "gpu"},
       "--device: device \"gpu\": expected one of cpu, cpu:<cores>, cuda:<ordinal>, sim:<spec>"},
      {"autograph-worker", {"--tick", "soon"}, "--tick: \"soon\" is not a number above 0"},
  };
  for (const auto& c : cases) {
    std::vector<std::string> argv = {Program(c.program)};
    argv.insert(argv.end(), c.words.begin(), c.words.end());
    const CommandResult result = RunCommand(argv, place.variables);
    EXPECT_EQ(result.code, 2) << c.message;
    EXPECT_EQ(result.err, fmt::format("{0}: {1}\nTry {0} --help.\n", c.program, c.message));
    EXPECT_EQ(result.out, "");
  }
  for (const char* program : {"autographd", "autograph-worker"}) {
    EXPECT_EQ(RunCommand({Program(program), "--help"}, place.variables).code, 0);
  }
}

// It would never come: the worker does not wait for a server that could hear of it.
TEST(CommandLine, AWorkerWithoutItsDeviceEnds) {
  const Alone place;
  const struct {
    const char *device, *message;
  } kCases[] = {
      {"sim:smal", "sim:smal: no such device spec; did you mean 'small'?"},
      {"sim:/none/x.spec", "/none/x.spec: No such file or directory"},
      {"cpu:9999", "cpu: 9999 cores asked for"},
      {"cuda:99", "cuda:99: "},
  };
  for (const auto& c : kCases) {
    const CommandResult worker =
        RunCommand({Program("autograph-worker"), "--server", "127.0.0.1:1", "--device", c.device},
                   place.variables);
    EXPECT_EQ(worker.code, 1) << worker.err;
    EXPECT_THAT(worker.err, HasSubstr(fmt::format("autograph-worker: --device {}: ", c.device)));
    EXPECT_THAT(worker.err, HasSubstr(c.message));
  }
}

// Whatever it is that gets no memory, or no thread: it is said, and no process aborts.
TEST(CommandLine, WantOfMemoryIsSaid) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers reserve terabytes";
#endif
  const Alone place;
  const std::string model = place.Zoo("tiny_cnn"), out = place.path("o.onnx");
  const std::string file = place.Write("a.rules", "r [exact]: relu(relu(x)) => relu(x)\n");
  const std::string commands[] = {
      fmt::format("{} rules verify {} --no-cache --json", Program("autograph"), file),
      fmt::format("{} optimize {} -o {} --device sim:small --json --rounds 1", Program("autograph"),
                  model, out),
      fmt::format("{} --listen 127.0.0.1:0 --data {}", Program("autographd"), place.path("d")),
  };
  int wanted = 0;
  for (const std::string& command : commands) {
    for (const int kib : {100'000, 200'000}) {  // With less, libraries find none before main.
      // Beside other load a daemon may say it when its time is over, and its own code counts.
      // Without --foreground `timeout` signals its child, then its group: the child may see two.
      const bool is_daemon = command.find("autographd") != std::string::npos;
      const CommandResult result =
          RunCommand({"/bin/bash", "-c",
                      fmt::format("ulimit -v {}; exec timeout {} -s TERM 2 {}", kib,
                                  is_daemon ? "--preserve-status --foreground" : "", command)},
                     place.variables);
      const std::string what = fmt::format("{} KiB: {}\n{}", kib, command, result.err);
      EXPECT_LT(result.code, 128) << what;
      if (result.err.find("no memory is left") == std::string::npos) continue;
      ++wanted;
      EXPECT_EQ(result.code, is_daemon ? 1 : 4) << what;
      if (is_daemon) continue;
      EXPECT_EQ(json::parse(result.out)["error"]["code"], 8) << what;
    }
  }
  EXPECT_GT(wanted, 0);
}

TEST(CommandLine, APlaceWithoutPermissionIsSaid) {
  const Alone place;
  ASSERT_TRUE(MakeDirs(place.path("closed")).ok());
  ASSERT_TRUE(MakeDirs(place.path("open")).ok());
  ASSERT_EQ(chmod(place.folder.path().c_str(), 0755), 0);
  ASSERT_EQ(chmod(place.path("closed").c_str(), 0555), 0);
  ASSERT_EQ(chmod(place.path("open").c_str(), 0777), 0);
  std::vector<std::pair<std::string, std::string>> places = {
      {"unix:" + place.path("closed") + "/socket", "permission denied"}};
  // Where every port is everybody's (as in containers) there is none to be refused.
  if (*ReadFile("/proc/sys/net/ipv4/ip_unprivileged_port_start") != "0\n") {
    places.push_back(
        {"127.0.0.1:80", "permission denied (ports below 1024 are the administrator's)"});
  }
  Variables variables = place.variables;
  variables["AUTOGRAPH_MEASURING_LOCK"] = place.path("open") + "/measuring.lock";
  for (const auto& [address, reason] : places) {
    const CommandResult daemon = RunCommand(WithoutRoot({Program("autographd"), "--listen", address,
                                                         "--data", place.path("open") + "/data"}),
                                            variables);
    if (daemon.code == 127) GTEST_SKIP() << "the programs cannot be run as another user here";
    EXPECT_EQ(daemon.code, 1);
    EXPECT_THAT(daemon.err,
                HasSubstr("autographd: cannot listen on " + address + ": " + reason + "\n"));
  }
}

// With --json whatever fails prints a document as well.
TEST(CommandLine, EveryErrorIsADocument) {
  const Alone place;
  const std::string file = place.Write("text.onnx", "this is not a model"),
                    gone = place.path("none/o.onnx");
  const struct {
    std::vector<std::string> words;
    int exit, code;
  } cases[] = {
      {{"optimise"}, 2, 3},
      {{"optimize", file}, 2, 3},
      {{"optimize", file, "-o", file}, 2, 3},
      {{"optimize", file, "-o", gone}, 3, 9},
      {{"optimize", file, "-o", place.path("o"), "--device", "sim:small"}, 3, 3},
      {{"optimize", file, "-o", place.path("o"), "--device", "sim:smal"}, 4, 14},
      {{"optimize", file, "-o", place.path("o"), "--server", "127.0.0.1:1"}, 4, 14},
      {{"run", file, "--device", "sim:small"}, 3, 3},
      {{"run", place.path("none"), "--device", "sim:small"}, 3, 5},
      {{"verify", file, "--against", file, "--device", "sim:small"}, 3, 3},
      {{"bench", file, "--device", "sim:small"}, 3, 3},
      {{"bench", "--compare", file, file, "--device", "sim:small"}, 3, 3},
      {{"plan", "show", file, "--device", "sim:small"}, 3, 3},
      {{"plan", "show", "jobs/7"}, 3, 5},
      {{"zoo", "resnet51", "-o", place.path("o")}, 3, 5},
      {{"zoo", "tiny_cnn", "-o", gone}, 3, 9},
      {{"jobs", "list", "--server", "127.0.0.1:1"}, 4, 14},
      {{"jobs", "show", "7"}, 3, 5},
      {{"jobs", "fetch", "7", "-o", place.path("o")}, 3, 5},
      {{"cache", "import", gone}, 3, 5},
      {{"cache", "export", gone}, 3, 9},
      {{"workers", "list", "--server", "127.0.0.1:1"}, 4, 14},
      {{"rules", "list", gone}, 3, 5},
      {{"rules", "verify", file}, 3, 3},
  };
  for (const auto& c : cases) {
    std::vector<std::string> words = c.words;
    words.push_back("--json");
    const CommandResult result = place.Cli(words);
    const std::string noun = fmt::format("{}", fmt::join(c.words, " "));
    EXPECT_EQ(result.code, c.exit) << noun << ": " << result.err;
    const json document = json::parse(result.out, nullptr, false);
    ASSERT_TRUE(document.is_object()) << noun << ": " << result.out;
    EXPECT_EQ(document["error"]["code"], c.code) << noun;
    const std::string message = document["error"]["message"];
    EXPECT_THAT(result.err, HasSubstr(message)) << noun;
  }
}

// A job that was left to itself is taken by its name.
TEST(CommandLine, ADetachedJobIsFetched) {
  Cluster cluster;
  const std::string model = cluster.Zoo("tiny_nasnet"), out = cluster.path("fetched.onnx");
  const CommandResult detached =
      cluster.Cli({"optimize", model, "--detach", "--device", "sim:small", "--graphs", "300"});
  ASSERT_EQ(detached.code, 0) << detached.err;
  EXPECT_EQ(detached.out, "jobs/1\n");
  EXPECT_EQ(detached.err, "when it is done: autograph jobs fetch jobs/1 -o FILE\n");
  EXPECT_EQ(cluster.Watch("jobs/1")["state"], "SUCCEEDED");
  const CommandResult fetched = cluster.Cli({"jobs", "fetch", "1", "-o", out, "--json"});
  EXPECT_EQ(fetched.code, 0) << fetched.err;
  EXPECT_EQ(ResultIn(fetched.out)["output_digest"], DigestOfFile(out));
}

TEST(CommandLine, TheModelIsReplacedWhenThatIsForced) {
  const Alone place;
  const std::string model = place.Zoo("tiny_nasnet"), before = DigestOfFile(model);
  const std::vector<std::string> words = {"optimize", model,       "-o",       model,
                                          "--device", "sim:small", "--graphs", "300"};
  EXPECT_EQ(place.Cli(words).code, 2);
  EXPECT_EQ(DigestOfFile(model), before);
  std::vector<std::string> forced = words;
  forced.insert(forced.end(), {"--force", "--json"});
  const CommandResult result = place.Cli(forced);
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(json::parse(result.out)["request"]["model_name"], "tiny_nasnet.onnx");
  EXPECT_EQ(ResultIn(result.out)["output_digest"], DigestOfFile(model));
  EXPECT_NE(DigestOfFile(model), before);
}

// ulimit -t: what is lower already stays as it is.
TEST(CommandLine, ALowerLimitOfProcessorTime) {
  const Alone place;
  const std::string script =
      fmt::format("ulimit -t 60; exec {} optimize {} -o {} --device sim:small",
                  Program("autograph"), place.Zoo("tiny_cnn"), place.path("o.onnx"));
  const CommandResult result = RunCommand({"/bin/bash", "-c", script}, place.variables);
  EXPECT_EQ(result.code, 0) << result.err;
}

TEST(CommandLine, JobsThatAreNot) {
  Cluster cluster;
  for (const char* verb : {"show", "watch", "cancel"}) {
    for (const char* job : {"jobs/999", "999"}) {
      const CommandResult result = cluster.Cli({"jobs", verb, job});
      EXPECT_EQ(result.code, 3) << verb;
      EXPECT_EQ(result.err, "autograph: no job jobs/999\n") << verb;
    }
    const CommandResult result = cluster.Cli({"jobs", verb, "jobs/-1"});
    EXPECT_EQ(result.code, 3) << verb;
    EXPECT_EQ(result.err, "autograph: no job jobs/-1\n") << verb;
  }
  const CommandResult none = cluster.Cli(
      {"optimize", cluster.Zoo("tiny_cnn"), "-o", cluster.path("o.onnx"), "--device", "sim:h200"});
  EXPECT_EQ(none.code, 4) << none.err;
  EXPECT_THAT(none.err, HasSubstr("sim:h200"));
}

// What cannot be written at the end is said at the beginning, before any work.
TEST(CommandLine, OutputsAreCheckedFirst) {
  const Alone place;
  const std::string model = place.Zoo("tiny_cnn");
  ASSERT_TRUE(MakeDirs(place.path("folder")).ok());
  const struct {
    std::string path, message;
  } cases[] = {
      {"/nowhere/o.onnx", "write /nowhere/o.onnx: No such file or directory"},
      {place.path("folder"), "write " + place.path("folder") + ": Is a directory"},
      {model + "/o.onnx", "write " + model + "/o.onnx: Not a directory"},
  };
  for (const auto& c : cases) {
    const CommandResult result =
        place.Cli({"optimize", model, "-o", c.path, "--device", "sim:small"});
    EXPECT_EQ(result.code, 3) << c.path;
    EXPECT_EQ(result.err, "autograph: " + c.message + "\n");
    const CommandResult report = place.Cli({"optimize", model, "-o", place.path("o.onnx"),
                                            "--report", c.path, "--device", "sim:small"});
    EXPECT_EQ(report.code, 3) << c.path;
    EXPECT_EQ(report.err, result.err);
  }
  EXPECT_FALSE(FileExists(place.path("data")));  // No store was opened, no job begun.

  const CommandResult run = place.Cli({"run", model, "--device", "sim:small", "--output", model});
  EXPECT_EQ(run.code, 3);
  EXPECT_EQ(run.err, "autograph: make folder " + model + ": File exists\n");
  EXPECT_EQ(run.out, "");
}

TEST(CommandLine, AReadOnlyDataFolder) {
  const Alone place;
  const std::string data = place.path("readonly"), model = place.Zoo("tiny_cnn");
  ASSERT_TRUE(MakeDirs(data).ok());
  ASSERT_TRUE(MakeDirs(place.path("out")).ok());
  ASSERT_EQ(chmod(place.folder.path().c_str(), 0755), 0);
  ASSERT_EQ(chmod(data.c_str(), 0555), 0);
  ASSERT_EQ(chmod(place.path("out").c_str(), 0777), 0);
  Variables variables = place.variables;
  variables["AUTOGRAPH_MEASURING_LOCK"] = place.path("out") + "/measuring.lock";
  const CommandResult daemon = RunCommand(
      WithoutRoot({Program("autographd"), "--listen", "127.0.0.1:0", "--data", data}), variables);
  if (daemon.code == 127) GTEST_SKIP() << "the programs cannot be run as another user here";
  EXPECT_EQ(daemon.code, 1);
  EXPECT_EQ(daemon.err, "autographd: data folder " + data + " (another one: --data): write " +
                            data + "/lock: Permission denied\n");
  const CommandResult embedded =
      RunCommand(WithoutRoot({Program("autograph"), "optimize", model, "-o",
                              place.path("out/o.onnx"), "--device", "sim:small", "--data", data}),
                 variables);
  EXPECT_EQ(embedded.code, 3);
  EXPECT_EQ(embedded.err, "autograph: data folder " + data + " (another one: --data): write " +
                              data + "/lock: Permission denied\n");
  // A folder for the output is asked before any work, and before the store is opened.
  const CommandResult output =
      RunCommand(WithoutRoot({Program("autograph"), "optimize", model, "-o", data + "/o.onnx",
                              "--device", "sim:small", "--data", place.path("out/store")}),
                 variables);
  EXPECT_EQ(output.code, 3);
  EXPECT_EQ(output.err, "autograph: write " + data + "/o.onnx: Permission denied\n");
  EXPECT_FALSE(FileExists(place.path("out/store")));
}

TEST(CommandLine, EmbeddedRunsSideBySide) {
  const Alone place;
  const std::string model = place.Zoo("tiny_inception");
  const auto words = [&](const std::string& out) {
    return std::vector<std::string>{"optimize",      model,      "-o",
                                    place.path(out), "--device", "sim:small"};
  };
  Background first = place.CliInBackground(words("a.onnx"), "a.log");
  Background second = place.CliInBackground(words("b.onnx"), "b.log");
  EXPECT_EQ(first.Wait(), 0) << first.Log();
  EXPECT_EQ(second.Wait(), 0) << second.Log();
  EXPECT_THAT(first.Log() + second.Log(), HasSubstr("temporary store"));
  EXPECT_EQ(DigestOfFile(place.path("a.onnx")), DigestOfFile(place.path("b.onnx")));
}

// A reader that leaves early ends the command by SIGPIPE, as any other program, without a word.
TEST(CommandLine, AReaderThatLeaves) {
  const Alone place;
  for (const char* verb : {"rules list", "zoo --list", "rules list --json"}) {
    const std::string script = fmt::format("{} {} | head -n 1 >/dev/null; exit ${{PIPESTATUS[0]}}",
                                           Program("autograph"), verb);
    const CommandResult result = RunCommand({"/bin/bash", "-c", script}, place.variables);
    // Short output may fit into the pipe before the reader goes.
    EXPECT_TRUE(result.code == 128 + SIGPIPE || result.code == 0) << verb << " " << result.code;
    EXPECT_EQ(result.err, "") << verb;
  }
}

// Standard output that takes nothing is an error that is said, not success.
TEST(CommandLine, AFullStandardOutput) {
  const Alone place;
  const std::string script = Program("autograph") + " rules list >/dev/full";
  const CommandResult result = RunCommand({"/bin/bash", "-c", script}, place.variables);
  EXPECT_EQ(result.code, 3);
  EXPECT_EQ(result.err, "autograph: standard output did not take everything\n");
}

}  // namespace
}  // namespace ag

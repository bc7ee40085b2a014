#include "tests/cluster.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/digest.h"
#include "runtime/timing/testing/testing.h"

namespace ag {
namespace {

using nlohmann::json;

// The test chooses its ONNX Runtime; an installed one changes no answer.
constexpr char kNoPython[] = "/none/python";

template <class Container>
void Append(std::vector<std::string>& words, const Container& more) {
  words.insert(words.end(), more.begin(), more.end());
}

std::vector<std::string> CliArgv(std::vector<std::string> words) {
  words.insert(words.begin(), Program("autograph"));
  return words;
}

std::string WriteZooModel(const std::string& name, const std::string& file,
                          const Variables& variables) {
  const CommandResult made = RunCommand(CliArgv({"zoo", name, "-o", file}), variables);
  EXPECT_EQ(made.code, 0) << made.err;
  return file;
}

}  // namespace

Cluster::Cluster(ClusterOptions options)
    : folder_(*TempDir::Make("autograph-e2e")),
      variables_{{"AUTOGRAPH_MEASURING_LOCK", measuring_lock()},
                 {"AUTOGRAPH_PYTHON", kNoPython},
                 {"HOME", folder_.path()}},
      options_(std::move(options)),
      port_(FreePort()) {
  variables_.insert(options_.variables.begin(), options_.variables.end());
  StartCoordinator();
  StartWorker();
}

void Cluster::StartCoordinator() {
  std::vector<std::string> argv = {Program("autographd"), "--listen", address(), "--data",
                                   path("data")};
  Append(argv, options_.coordinator_flags);
  coordinator_ = std::make_unique<Background>(argv, path("coordinator.log"), variables_);
}

void Cluster::StartWorker() {
  std::vector<std::string> argv = {Program("autograph-worker"), "--server", address(), "--device",
                                   options_.device};
  Append(argv, options_.worker_flags);
  Variables variables = options_.worker_variables;
  variables.insert(variables_.begin(), variables_.end());
  worker_ = std::make_unique<Background>(argv, path("worker.log"), variables);
  EXPECT_TRUE(Eventually([&] { return WorkerServes(); })) << Logs();
}

void Cluster::KillCoordinator() { coordinator_.reset(); }
void Cluster::KillWorker() { worker_.reset(); }

bool Cluster::WorkerServes() {
  const CommandResult list = Cli({"workers", "list", "--json"});
  return list.code == 0 && list.out.find("\"SERVING\"") != std::string::npos;
}

CommandResult Cluster::Cli(std::vector<std::string> words) {
  words = CliArgv(std::move(words));
  words.insert(words.end(), {"--server", address()});
  return RunCommand(words, variables_);
}

Background Cluster::CliInBackground(std::vector<std::string> words, const std::string& log) {
  words = CliArgv(std::move(words));
  words.insert(words.end(), {"--server", address()});
  return Background(words, path(log), variables_);
}

std::string Cluster::Submit(const std::string& model, const std::vector<std::string>& flags) {
  std::vector<std::string> words = {"optimize", model,           "-o",      path("detached.onnx"),
                                    "--device", options_.device, "--detach"};
  Append(words, flags);
  const CommandResult submitted = Cli(words);
  EXPECT_EQ(submitted.code, 0) << submitted.err << Logs();
  return submitted.out.substr(0, submitted.out.find('\n'));
}

json Cluster::Show(const std::string& job) {
  const CommandResult shown = Cli({"jobs", "show", job, "--json"});
  const json document = json::parse(shown.out, nullptr, false);
  return document.is_object() ? document : json::object();
}

std::string Cluster::StateOf(const std::string& job) { return Show(job).value("state", ""); }

json Cluster::Watch(const std::string& job) {
  // `jobs watch` would wait for ever for a lost job.
  const bool ended = Eventually(
      [&] {
        const std::string state = StateOf(job);
        return state == "SUCCEEDED" || state == "FAILED" || state == "CANCELLED";
      },
      30);
  EXPECT_TRUE(ended) << job << " is " << StateOf(job) << "\n" << Logs();
  if (!ended) return json::object();
  const CommandResult watched = Cli({"jobs", "watch", job, "--json"});
  const json document = json::parse(watched.out, nullptr, false);
  EXPECT_TRUE(document.is_object()) << watched.err << Logs();
  return document.is_object() ? document : json::object();
}

std::string Cluster::Zoo(const std::string& name) {
  return WriteZooModel(name, path(name + ".onnx"), variables_);
}

std::string Cluster::Logs() const {
  return (coordinator_ ? coordinator_->Log() : "") + (worker_ ? worker_->Log() : "");
}

json ResultIn(const std::string& document) {
  const json job = json::parse(document, nullptr, false);
  return job.is_object() ? job.value("result", json::object()) : json::object();
}

json Optimized(Cluster& cluster, const std::string& model, const std::string& output,
               const std::vector<std::string>& more, const std::string& device) {
  std::vector<std::string> words = {"optimize", model, "-o", output, "--device", device, "--json"};
  Append(words, more);
  const CommandResult result = cluster.Cli(words);
  EXPECT_EQ(result.code, 0) << result.err << cluster.Logs();
  return ResultIn(result.out);
}

Alone::Alone()
    : folder(*TempDir::Make("autograph-e2e")),
      variables{{"HOME", folder.path()},
                {"AUTOGRAPH_DATA", folder.path() + "/data"},
                {"AUTOGRAPH_PYTHON", kNoPython},
                {"AUTOGRAPH_MEASURING_LOCK", folder.path() + "/lock"}} {}

CommandResult Alone::Cli(std::vector<std::string> words) const {
  return RunCommand(CliArgv(std::move(words)), variables);
}

Background Alone::CliInBackground(std::vector<std::string> words, const std::string& log) const {
  return Background(CliArgv(std::move(words)), path(log), variables);
}

std::string Alone::Zoo(const std::string& name) const {
  return WriteZooModel(name, path(name + ".onnx"), variables);
}

std::string Alone::Write(const std::string& name, const std::string& bytes) const {
  const Status written = WriteFileAtomically(path(name), bytes);
  EXPECT_TRUE(written.ok()) << ToString(written);
  return path(name);
}

std::string Alone::SimSmallWith(const std::string& lines, const std::string& name) const {
  const std::string small = *ReadFile(AG_SOURCE_DIR "/deploy/devices/small.spec");
  return "sim:" + Write(name, small + lines);
}

void FakePython(Variables& variables, const std::string& path, const std::string& script) {
  testing::WriteFakePython(path, script);
  variables["AUTOGRAPH_PYTHON"] = path;
}

void FakeOnnxRuntime(Variables& variables, const std::string& path, const std::string& input,
                     const std::string& other, const std::string& output) {
  const std::string same = R"([{"output":")" + output +
                           R"(","max_abs":0,"max_rel":0,"max_elementwise":0,)"
                           R"("nonfinite_differs":false}])";
  // A blob's path is the first two digits of its digest, then the digest.
  FakePython(variables, path,
             "case $3 in *compare*) echo '" + same + "' >&3; exit;; *" +
                 DigestOfFile(input).substr(2) + "*) t=100;; *) t=" + other + ";; esac; " +
                 testing::FakeAnswers("$t", "9.9"));
}

std::string DigestOfFile(const std::string& path) {
  const StatusOr<std::string> bytes = ReadFile(path);
  return bytes.ok() ? Sha256(*bytes).Hex() : "";
}

std::vector<std::string> WithoutRoot(std::vector<std::string> argv) {
  if (geteuid() != 0) return argv;
  std::vector<std::string> whole = {"/usr/bin/setpriv", "--reuid=65534", "--regid=65534",
                                    "--clear-groups"};
  Append(whole, argv);
  return whole;
}

}  // namespace ag

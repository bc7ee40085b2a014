// A whole service of real processes for end-to-end tests: a coordinator, a worker and the command
// line, in one folder that is removed at the end. A process that does not start fails the running
// test with the logs. One thread at a time.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/file.h"
#include "tests/processes.h"

namespace ag {

struct ClusterOptions {
  std::string device = "sim:small";
  std::vector<std::string> coordinator_flags = {};
  std::vector<std::string> worker_flags = {};
  Variables variables = {};         // Added to the cluster's.
  Variables worker_variables = {};  // Added for the worker, before these.
};

// A coordinator and a worker.
class Cluster {
 public:
  explicit Cluster(ClusterOptions options = {});
  explicit Cluster(const std::string& device) : Cluster(ClusterOptions{.device = device}) {}

  void StartCoordinator();
  void StartWorker();      // Waits until it serves.
  void KillCoordinator();  // SIGKILL.
  void KillWorker();       // SIGKILL.
  bool WorkerServes();

  // Runs the command line against this coordinator, to its end or in the background.
  CommandResult Cli(std::vector<std::string> words);
  Background CliInBackground(std::vector<std::string> words, const std::string& log);

  // Submits with --detach and these further flags; returns the job's name.
  std::string Submit(const std::string& model, const std::vector<std::string>& flags = {});
  // Returns the job as `jobs show --json` prints it.
  nlohmann::json Show(const std::string& job);
  std::string StateOf(const std::string& job);  // "SEARCHING"; "" when nothing answers.
  // Waits half a minute at most for the job's end; returns the document of `jobs watch --json`.
  nlohmann::json Watch(const std::string& job);

  std::string Zoo(const std::string& name);  // Returns the path of the model, written anew.
  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  std::string Logs() const;
  Background& coordinator() { return *coordinator_; }
  Background& worker() { return *worker_; }
  const Variables& variables() const { return variables_; }
  // Returns the file that keeps searches and measurements apart; its holder stops both.
  std::string measuring_lock() const { return path("measuring.lock"); }

 private:
  TempDir folder_;
  Variables variables_;
  ClusterOptions options_;
  int port_;
  std::unique_ptr<Background> coordinator_, worker_;
};

// Returns the result in the document that `--json` prints; an empty one when there is none.
nlohmann::json ResultIn(const std::string& document);

// Optimizes through the cluster and returns the result. The command must succeed.
nlohmann::json Optimized(Cluster& cluster, const std::string& model, const std::string& output,
                         const std::vector<std::string>& more = {},
                         const std::string& device = "sim:small");

// A folder for commands that run without a coordinator: home, store, measuring lock.
struct Alone {
  Alone();
  std::string path(const std::string& name) const { return folder.path() + "/" + name; }
  CommandResult Cli(std::vector<std::string> words) const;
  Background CliInBackground(std::vector<std::string> words, const std::string& log) const;
  std::string Zoo(const std::string& name) const;
  std::string Write(const std::string& name, const std::string& bytes) const;  // Returns its path.
  // Returns the device "sim:small" with these lines behind its spec's, which is written as `name`.
  std::string SimSmallWith(const std::string& lines, const std::string& name = "own.spec") const;

  TempDir folder;
  Variables variables;
};

// Makes `path` an interpreter that stands for a Python with ONNX Runtime 9.9, and names it in
// `variables`. In it the model file `input` takes 100 ns, every other file `other` ns, and outputs
// do not differ; `output` is the model's.
void FakeOnnxRuntime(Variables& variables, const std::string& path, const std::string& input,
                     const std::string& other, const std::string& output = "y");
// Does the same with a shell script that answers on descriptor 3; $3 is the request.
void FakePython(Variables& variables, const std::string& path, const std::string& script);

// Returns the file's SHA-256 in hex, so that a failure shows it and not the bytes; "" when it
// cannot be read.
std::string DigestOfFile(const std::string& path);

// Returns the command that runs `argv` so that file permissions hold: for root, under another user
// id.
std::vector<std::string> WithoutRoot(std::vector<std::string> argv);

}  // namespace ag

// A whole service of real processes for end-to-end tests: a coordinator, a worker and the command
// line, in a folder of their own that goes at the end.
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
  Variables worker_variables = {};  // Added to the cluster's.
};

// Not thread-safe. What does not come up fails the running test with the logs.
class Cluster {
 public:
  explicit Cluster(ClusterOptions options = {});
  explicit Cluster(const std::string& device) : Cluster(ClusterOptions{.device = device}) {}

  void StartCoordinator();
  void StartWorker();      // Waits until it serves.
  void KillCoordinator();  // SIGKILL.
  void KillWorker();       // SIGKILL.
  bool WorkerServes();

  // The command line against this coordinator, to its end or in the background.
  CommandResult Cli(std::vector<std::string> words);
  Background CliInBackground(std::vector<std::string> words, const std::string& log);

  // Submits with --detach and these further flags; the job's name.
  std::string Submit(const std::string& model, const std::vector<std::string>& flags = {});
  // The job as `jobs show --json` prints it.
  nlohmann::json Show(const std::string& job);
  std::string StateOf(const std::string& job);  // "searching"; "" when nobody answers.
  // Waits for the job's end, half a minute at most: the document that `jobs watch --json` prints.
  nlohmann::json Watch(const std::string& job);

  std::string Zoo(const std::string& name);  // The path of the model, written anew.
  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  std::string Logs() const;
  Background& coordinator() { return *coordinator_; }
  Background& worker() { return *worker_; }
  const Variables& variables() const { return variables_; }
  // The file that keeps searches and measurements apart; who holds it stops both.
  std::string measuring_lock() const { return path("measuring.lock"); }

 private:
  TempDir folder_;
  Variables variables_;
  ClusterOptions options_;
  int port_;
  std::unique_ptr<Background> coordinator_, worker_;
};

// Optimizes through the cluster and gives the document of --json; the command must end well.
nlohmann::json Optimized(Cluster& cluster, const std::string& model, const std::string& output,
                         const std::vector<std::string>& more = {},
                         const std::string& device = "sim:small");

// A folder of its own for commands that run without a coordinator: home, store, measuring lock.
struct Alone {
  Alone();
  std::string path(const std::string& name) const { return folder.path() + "/" + name; }
  CommandResult Cli(std::vector<std::string> words) const;
  Background CliInBackground(std::vector<std::string> words, const std::string& log) const;
  std::string Zoo(const std::string& name) const;
  std::string Write(const std::string& name, const std::string& bytes) const;  // Its path.

  TempDir folder;
  Variables variables;
};

// Makes `path` an interpreter that stands for a Python with ONNX Runtime 9.9, and names it in
// `variables`. In it the model file `input` takes 100 ns, every other file `other` ns, and outputs
// do not differ.
void FakeOnnxRuntime(Variables& variables, const std::string& path, const std::string& input,
                     const std::string& other);
// The same with a shell script that answers on descriptor 3; $3 is the request.
void FakePython(Variables& variables, const std::string& path, const std::string& script);

// SHA-256 of the file, in hex; a failure shows this and not the bytes. "" when it cannot be read.
std::string DigestOfFile(const std::string& path);

// `argv` as it is to be run so that file permissions hold: under another user id when we are root.
std::vector<std::string> WithoutRoot(std::vector<std::string> argv);

}  // namespace ag

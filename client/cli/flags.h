// The flags of each verb of the command line; commands.cc fills them, the verbs read them. Plain
// data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "autograph/v1/optimizer.pb.h"
#include "base/signals.h"
#include "net/channel.h"

namespace ag {

// Exit codes, documented in --help and docs/cli.md.
enum ExitCode : int {
  kExitOk = 0,
  kExitFailed = 1,       // It ran and the result is negative: not equivalent, job failed.
  kExitUsage = 2,        // The command line is wrong.
  kExitInput = 3,        // A file or model is wrong or missing.
  kExitUnavailable = 4,  // No server, no device, no permission, or a lock held by another process.
  kExitInternal = 5,
  kExitSlower = 6,  // bench --compare: the new model is slower than the old one.
  kExitInterrupted = kStoppedExitCode,  // 130.
};

struct CommonFlags {
  std::string program = "autograph";  // Its name, before messages.
  std::string server;                 // HOST:PORT; empty: embedded.
  ChannelOptions channel;             // How to reach it.
  std::string data_dir;               // Of the embedded service.
  bool json = false;
  bool verbose = false;
};

struct ModelFlags {
  std::string model;
  std::string device = "cpu";
  std::vector<std::string> shapes;  // NAME=1x3x299x299
  std::string inputs;               // Folder of the user's own inputs; empty: made ones.
  bool tune = false;                // Plans made here come from measurements.
  std::string tuned_plans;          // Their folder; empty: the user's own, "none": none.
};

// Times in ONNX Runtime beside our own.
struct OrtFlags {
  std::string mode = "auto";  // auto | off | require
  double seconds = 5;         // Sampling time, at most.
};

struct OptimizeFlags {
  ModelFlags model;
  OrtFlags ort;
  std::vector<std::string> shape_sets;  // "x=8x3x48x320 m=8x128"
  std::string target = "device";        // device | portable
  std::string objective = "latency";    // latency | throughput
  std::string search = "ours";          // ours | paper | paper-without-dp | no-rewrites
  std::string output;
  std::string report;  // File for the report of docs/report.md; empty: not written.
  std::string budget;  // "60s", "2m"
  std::string precision = "fp32";
  double tolerance = 0;  // 0: by precision (plan/spec/policy.h).
  uint64_t seed = 1;
  std::vector<std::string> without;  // Rules to leave out.
  bool detach = false;
  bool force = false;  // The output may be the model itself.
  // Flags that are a field of the request are written into it.
  autograph::v1::OptimizeRequest request;
};

struct RunFlags {
  ModelFlags model;
  std::vector<std::string> inputs;  // NAME=FILE.npy|.pb
  std::string output_dir;
  uint64_t seed = 1;
};

struct VerifyFlags {
  ModelFlags model;  // Model, or a folder in ONNX test-data layout.
  std::string against;
  double tolerance = 1e-3;
  int seeds = 3;
};

struct BenchFlags {
  ModelFlags model;
  OrtFlags ort;
  int streams = 0;
  double seconds = 0;  // 0: the form's default.
  bool cold_cache = false;
  // Two models compared: `compare` is the old one, `model` the new one.
  std::string compare;
  double tolerance = 1e-3;
  bool no_verify = false;
  bool fail_ambiguous = false;
  // Several clients at once.
  int clients = 0;
  int cores_each = 0;  // 0: the device's cores divided by the clients.
  int runs = 0;        // Of each client; 0: by time.
};

struct PlanShowFlags {
  ModelFlags model;  // A file, or jobs/ID.
};

struct ZooFlags {
  std::string name;
  std::string output;
  bool list = false;
  int64_t batch = 1;
  uint64_t seed = 1;
};

struct JobsFlags {
  std::string name;
  std::string state;  // list: "FAILED"; empty: any.
  int count = 50;
  std::string output;    // fetch: the file for the model.
  std::string report;    // fetch: the file for the report; empty: not written.
  bool for_all = false;  // cancel: whoever waits.
  bool so_far = false;   // fetch: the best of a job that runs.
  std::string model;     // delete, list: a file or its SHA-256; list: empty: any.
  std::string device;    // list: empty: any.
  std::string since;     // list: "2h"; empty: at any time.
};

struct CacheFlags {
  std::string file;
  std::string environment;
  std::string device;
  int count = 50;
  std::string worker;  // forget:
  int64_t import = 0;
  std::string kernel;
  bool all = false;
  std::string model;  // graphs, get: a file or its SHA-256; graphs: empty: of all models.
  std::string key;
  std::string group;   // list: part of the group's line.
  std::string output;  // get: the file for the model.
  std::string report;  // get: the file for the report; empty: not written.
};

struct StoreFlags {
  std::string folder;  // The backup; verify: or a store.
  std::string target;  // restore: the new store.
};

struct TokenFlags {
  std::string name;
  std::string roles = "submit,read";
  std::string tokens;  // The coordinator's file.
  std::string output;  // Where the token goes; empty: standard output.
  double quota = -1;   // Device seconds of a day; below 0: the coordinator's default.
};

struct RulesFlags {
  std::string file;  // Empty: the built-in rules.
  int instances = 200;
  uint64_t seed = 1;
  int jobs = 0;           // Threads; 0: one for each core.
  bool no_cache = false;  // Verdicts are neither looked up nor stored.
};

}  // namespace ag

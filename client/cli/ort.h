// The times of models in ONNX Runtime, for `bench` (runtime/timing/time_files.h does the timing).
// Thread-safe.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/clock.h"
#include "client/cli/flags.h"
#include "graph/inputs/input_set.h"
#include "plan/measurement.h"

namespace ag {

struct OrtRequest {
  std::vector<std::string> models;  // One or two paths; two are timed in blocks A B B A.
  int threads = 1;
  double seconds = 5;               // Sampling time, at most.
  std::vector<std::string> shapes;  // In the form of --shape.
  InputSet inputs = {};             // What all runs get; what it lacks is random.
  Nanos start_max{
      60'000'000'000};  // For Python to start and models to load, and for any other answer.
};

struct OrtTimes {
  std::string version;
  int threads = 0;
  Latency first;      // Of models[0].
  PlanTiming second;  // Of models[1], against models[0]; of a single model: the same as `first`.
};

// Times the models under the host-wide measuring lock. AUTOGRAPH_PYTHON names the interpreter, else
// python3. kNotFound: there is no interpreter or it has no onnxruntime; kCancelled: a stop signal
// came; kDeadlineExceeded: no answer in time; kInvalidArgument: ONNX Runtime refuses a model;
// kInternal: the script broke.
StatusOr<OrtTimes> TimeInOrt(const OrtRequest& request);

// Returns the number of threads that makes ONNX Runtime comparable with `device`: the cores of a
// `cpu` device, else all cores that this process may use.
int OrtThreads(const std::string& device);

// True when --ort asks for times of models that ran on `device`. `auto` asks for `cpu` devices
// only; times on this machine's cores mean nothing beside another device.
bool WantsOrt(const OrtFlags& flags, const std::string& device);

// Returns kUnavailable with advice for `require` without ONNX Runtime. Call it before any work.
Status CheckOrt(const OrtFlags& flags);

// Returns one line that says why there are no times; dim on a terminal, since most users do not
// need it.
std::string OrtAbsence(const Status& status, bool dim);

// Returns {version, threads, FIRST_latency{median_ns, low_ns, high_ns}, SECOND_latency, speedup,
// speedup_low, speedup_high, verdict, blocks} with the names given (no `second` for a single
// model); for an error {"error": message}.
nlohmann::ordered_json OrtJson(const StatusOr<OrtTimes>& times, const char* first,
                               const char* second = nullptr);

// Returns text for people: "input 12.1 ms, output 11 ms: 1.1x (1.08 to 1.12) FASTER  [1.23.2, 2
// threads]".
std::string OrtText(const OrtTimes& times, const char* first, const char* second = nullptr);

}  // namespace ag

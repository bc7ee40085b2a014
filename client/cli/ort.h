// How long models take in ONNX Runtime, for `bench` (runtime/timing/time_files.h does the timing).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/clock.h"
#include "client/cli/flags.h"
#include "plan/measurement.h"

namespace ag {

struct OrtRequest {
  std::vector<std::string> models;  // Paths, one or two; two are timed in blocks A B B A.
  int threads = 1;
  double seconds = 5;               // Of sampling, at most.
  std::vector<std::string> shapes;  // As --shape takes them.
  Nanos start_max{
      60'000'000'000};  // For Python to start and models to load, and for any other answer.
};

struct OrtTimes {
  std::string version;
  int threads = 0;
  Latency first;      // Of models[0].
  PlanTiming second;  // Of models[1], against models[0]. Of a single model: the same as `first`.
};

// Holds the host-wide measuring lock while it times. AUTOGRAPH_PYTHON names the interpreter,
// python3 otherwise. kNotFound: there is no interpreter or it has no onnxruntime; kCancelled: a
// stop signal came; kDeadlineExceeded: no answer in time; kInvalidArgument: ONNX Runtime refuses a
// model; kInternal: the script broke.
StatusOr<OrtTimes> TimeInOrt(const OrtRequest& request);

// Threads that make ONNX Runtime comparable with `device`: the cores of a `cpu` device, for others
// all that this process may use.
int OrtThreads(const std::string& device);

// True when --ort asks for times of models that ran on `device`: `auto` does for `cpu` devices
// only, beside which times on this machine's cores say something.
bool WantsOrt(const OrtFlags& flags, const std::string& device);

// `require` without ONNX Runtime: kUnavailable, which says what to do. To be asked before any work.
Status CheckOrt(const OrtFlags& flags);

// Why there are no times, as one line; dim on a terminal, for most have no use for it.
std::string OrtAbsence(const Status& status, bool dim);

// {version, threads, FIRST_latency_ms{median, low, high}, SECOND_latency_ms, speedup, speedup_low,
// speedup_high, verdict, blocks} with the names given (no `second`: of a single model); a status is
// {"error": message}.
nlohmann::ordered_json OrtJson(const StatusOr<OrtTimes>& times, const char* first,
                               const char* second = nullptr);

// For people: "input 12.1 ms, output 11 ms: 1.1x (1.08 to 1.12) FASTER  [1.23.2, 2 threads]".
std::string OrtText(const OrtTimes& times, const char* first, const char* second = nullptr);

}  // namespace ag

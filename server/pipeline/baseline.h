// What the user runs today against what we return (docs/words.md, "baseline"): both files, each in
// a fresh process, interleaved on the worker's machine; and the verdict that follows.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "server/jobs/job.h"
#include "server/pipeline/pool_measurer.h"

namespace ag {

// What output_runtime says of our own.
inline constexpr std::string_view kOurRuntime = "AutoGraph";

struct BaselineRequest {
  Digest input;   // The file as it came.
  Digest output;  // What may be published; equal to `input`: its own bytes.
  // Whether the output's graph is another than the input's: then ONNX Runtime runs it as well.
  bool rewritten = false;
  bool carries_plan = false;  // Of `output`: our session must run it with that plan.
  bool runs_here = true;    // False: an operator has no kernel here, only ONNX Runtime can run it.
  std::string onnxruntime;  // Its version beside the worker; empty: it is left out.
  BoundShapes shapes;
  std::string inputs;   // Digest of the set of inputs that the files run on; empty: random ones.
  double seconds = 10;  // Of sampling, at most.
  // May be null. A second set of files is left out when less is left than the first one took.
  std::function<Nanos()> time_left;
};

struct BaselineResult {
  v1::Result::Verdict verdict = v1::Result::NOT_MEASURED;
  std::string baseline;        // What `input_latency` was taken in; empty: NOT_MEASURED.
  std::string output_runtime;  // What `output_latency` was taken in: where the output is fastest.
  bool output_in_onnxruntime = false;  // It is ONNX Runtime.
  Latency input_latency;
  Latency output_latency;
  Ratio speedup;
  std::optional<Ratio> over_onnxruntime;  // Of the output in output_runtime.
  std::optional<Ratio> over_untuned;      // Of our session on the output.
  std::optional<Ratio> fresh_session;     // Of a second process on the output over the first.
  bool is_time_over = false;              // NOT_MEASURED for no other reason.
  // What was not timed and why: a runtime does not run a file, or the time was over.
  std::vector<std::string> notes;
};

// Errors are of the world: no worker, cancelled.
StatusOr<BaselineResult> CompareWithBaseline(const BaselineRequest& request,
                                             PoolMeasurer& measurer);

// What follows for the input's own bytes from timing another output: they run as before.
BaselineResult UnchangedInput(const BaselineResult& measured);

// True when a second fresh process agrees with the latency that would be reported: the interval of
// their ratio includes 1 or lies within 3 %. Without a ratio there is nothing to contradict.
bool AgreesWithFreshSession(const BaselineResult& result);

// Two files in one runtime, timed beside each other.
struct FilePair {
  Digest before, after;
  bool in_onnxruntime = false;  // Else in our sessions.
  BoundShapes shapes;
  double seconds = 10;           // Of sampling, at most.
  std::string plan_before = {};  // The plan that runs `before`; empty: the one that it carries.
  std::string inputs = {};       // As BaselineRequest's.
};
// How many times faster `after` is. The error of a file that does not run; kDeadlineExceeded: as
// PoolMeasurer::TimeFiles; else of the world.
StatusOr<Ratio> CompareFiles(const FilePair& pair, PoolMeasurer& measurer);

}  // namespace ag

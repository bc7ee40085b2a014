// The comparison of a candidate with its reference on made and on the user's own inputs. One thread
// at a time.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "device/api/device.h"
#include "graph/inputs/input_set.h"
#include "graph/inputs/make_inputs.h"
#include "graph/weights.h"
#include "plan/measurement.h"

namespace ag {

// The data of one comparison.
struct CheckInputs {
  InputKind kind = InputKind::kUsual;
  uint64_t seed = 1;
  std::optional<InputSet> set = {};  // The user's own, instead of both.
  std::string name = {};             // Of that set.
  bool reference_kernels = false;    // Compare with the reference kernels as well.
  bool optional = false;             // Left out when there is no time.
};

// Returns the tensors for these inputs of a graph. kInvalidArgument: the user's own do not fit.
StatusOr<std::vector<Tensor>> DataOf(const CheckInputs& inputs,
                                     const std::vector<InputSpec>& specs);

struct CheckResult {
  std::vector<OutputError> errors;       // By output: the largest of what counts.
  std::vector<ComparedInputs> compared;  // In the order of the request.
};

struct OutputsToCheck {
  const Graph& graph;  // The reference's: it says what the inputs may be.
  Executable& reference;
  const Graph& candidate_graph;
  Executable& candidate;
  const WeightSource& weights;
  std::vector<CheckInputs> inputs;
  double tolerance = 0;
  // Optional inputs, and reference kernels but the first time, are left out from then on.
  Nanos optional_max = Nanos::max();
  std::function<void()> on_progress;
};

// Runs both on all inputs. Edge values count only where the reference's outputs are finite and
// where a change of the inputs by one rounding does not move them as far as the candidate is away:
// what is left says something of the candidate. kDataLoss: the candidate has another number of
// outputs. kInvalidArgument: the user's data do not fit the graph. The errors of both runs.
StatusOr<CheckResult> CheckOutputs(const OutputsToCheck& request, Clock& clock);

}  // namespace ag

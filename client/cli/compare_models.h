// A comparison of two models that should compute the same: their inputs and outputs by name and
// type, and the outputs' values. One thread at a time for one session.
#pragma once

#include <vector>

#include "client/cli/input_folder.h"
#include "plan/equivalence.h"
#include "runtime/session.h"

namespace ag {

// Returns the position in `b` of each of `a`'s tensors, by name. kInvalidArgument lists both sides
// when a name or type differs; `what` is "inputs" or "outputs", `name_a` and `name_b` name the
// models.
StatusOr<std::vector<size_t>> MatchTensors(const std::vector<TensorInfo>& a,
                                           const std::vector<TensorInfo>& b, const char* what,
                                           const std::string& name_a, const std::string& name_b);

// The positions of two models' tensors, matched by name.
struct ModelMatch {
  std::vector<size_t> inputs;   // inputs[i]: the position in b of a's i-th input.
  std::vector<size_t> outputs;  // outputs[i]: the position in b of a's i-th output.
};
StatusOr<ModelMatch> MatchModels(const Session& a, const Session& b, const std::string& name_a,
                                 const std::string& name_b);
// Returns the match of equal positions, whatever the names. REQUIRES: b has as many tensors as a.
ModelMatch MatchByPosition(const Session& a);

// Returns a's tensors or values in b's order.
template <class T>
std::vector<T> Reordered(const std::vector<T>& values, const std::vector<size_t>& positions) {
  std::vector<T> reordered(values.size());
  for (size_t i = 0; i < values.size(); ++i) reordered[positions[i]] = values[i];
  return reordered;
}

// Runs both on the user's own inputs, then on `seeds` (at least 1) sets of usual, full and short
// data by turns, and returns the largest error of each of a's outputs.
StatusOr<std::vector<OutputError>> CompareOutputs(Session& a, Session& b, const ModelMatch& match,
                                                  const std::vector<NamedSet>& own, int seeds);

}  // namespace ag

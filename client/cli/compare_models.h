// Two models that should compute the same: are they alike from outside, and are their outputs?
#pragma once

#include <vector>

#include "plan/equivalence.h"
#include "runtime/session.h"

namespace ag {

// The position in `b` of each of `a`'s tensors, by name. kInvalidArgument lists both sides when a
// name or type differs; `what` is "inputs" or "outputs", `name_a` and `name_b` name the models.
StatusOr<std::vector<size_t>> MatchTensors(const std::vector<TensorInfo>& a,
                                           const std::vector<TensorInfo>& b, const char* what,
                                           const std::string& name_a, const std::string& name_b);

// The two models' tensors matched by name.
struct ModelMatch {
  std::vector<size_t> inputs;   // inputs[i]: where b takes a's i-th input.
  std::vector<size_t> outputs;  // outputs[i]: where b has a's i-th output.
};
StatusOr<ModelMatch> MatchModels(const Session& a, const Session& b, const std::string& name_a,
                                 const std::string& name_b);
// Each with the one that stands where it does, whatever the names. REQUIRES: b has as many.
ModelMatch MatchByPosition(const Session& a);

// a's tensors in the order that b takes them.
std::vector<Tensor> Reordered(const std::vector<Tensor>& tensors,
                              const std::vector<size_t>& positions);

// Runs both on `seeds` (at least 1) sets of random inputs; the largest error of each of a's
// outputs.
StatusOr<std::vector<OutputError>> CompareOutputs(Session& a, Session& b, const ModelMatch& match,
                                                  int seeds);

}  // namespace ag

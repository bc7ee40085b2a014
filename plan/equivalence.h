// How far two runs of one model differ, output by output (DESIGN section 8).
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "graph/graph.h"
#include "graph/tensor.h"
#include "plan/measurement.h"

namespace ag {

// Differences of `actual` from `expected`. Integer and boolean tensors must be equal: any
// difference counts as max_rel = 1. Where both are the same Inf, or both NaN, there is no
// difference; where only one is, nonfinite_differs is set. A difference of shapes or dtypes is
// nonfinite_differs as well.
OutputError CompareTensors(const std::string& name, const Tensor& expected, const Tensor& actual);

// As CompareTensors; where the graph computes the output by a softmax, its logarithm is compared
// too (which is the softmax's operand up to a shift) and the larger max_rel counts: a flat softmax
// would hide differences of the logits.
OutputError CompareOutput(const Graph& graph, size_t output, const Tensor& expected,
                          const Tensor& actual);

// The element-wise largest of both, for several seeds.
OutputError Larger(const OutputError& a, const OutputError& b);

bool IsEquivalent(const OutputError& error, double tolerance);

// How far one kernel may be off the reference, over the largest value, when it computes in
// `precision` (Policy::precision). In fp32 sums of a few hundred products stay well below;
// Winograd's transforms lose the most. The others are a few roundings of operands and results.
double KernelTolerance(std::string_view precision);

}  // namespace ag

// The difference between two runs of one model, output by output (docs/design.md, Measuring). Pure
// functions.
#pragma once

#include <string>
#include <string_view>

#include "graph/graph.h"
#include "graph/tensor.h"
#include "plan/measurement.h"

namespace ag {

// Returns the differences of `actual` from `expected`. Integer and bool tensors must be equal; any
// difference gives max_rel = 1. Two equal Infs or two NaNs do not differ; a single Inf or NaN sets
// nonfinite_differs, and so do different shapes or dtypes.
OutputError CompareTensors(const std::string& name, const Tensor& expected, const Tensor& actual);

// Compares as CompareTensors. When a softmax computes the output, it also compares the logarithms
// (the softmax's operand up to a shift) and returns the larger max_rel: a flat softmax would hide
// differences of the logits.
OutputError CompareOutput(const Graph& graph, size_t output, const Tensor& expected,
                          const Tensor& actual);

// Returns the larger value of each field, for runs with several seeds.
OutputError Larger(const OutputError& a, const OutputError& b);

// Returns true when max_rel is at most `tolerance` and no nonfinite value differs.
bool IsEquivalent(const OutputError& error, double tolerance);

// Returns the largest allowed error of one kernel, relative to the largest value, when it computes
// in `precision` (Policy::precision). In fp32, sums of a few hundred products stay well below it;
// Winograd's transforms lose the most. The other precisions allow a few roundings of operands and
// results.
double KernelTolerance(std::string_view precision);

}  // namespace ag

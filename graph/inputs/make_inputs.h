// Data for the inputs of a model, by their roles: what is made for the check of equivalence, for
// timings and for the command line. Pure functions; equal seeds give equal data.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/inputs/describe.h"
#include "graph/tensor.h"

namespace ag {

// The numbers are part of what is sent to workers and never change.
enum class InputKind : uint8_t {
  kUsual = 0,     // Standard normal floats, tokens of the whole table, masks with an end.
  kFull = 1,      // Masks without an end, the longest lengths, pictures from 0 to 1.
  kShort = 2,     // Masks and lengths of a quarter at most.
  kZeros = 3,     // What follows is of edge values; masks are full.
  kConstant = 4,  // One value everywhere: 0.5, the last token, true.
  kNegative = 5,
  kLarge = 6,  // A hundred times the usual; f16: ten times.
  kTiny = 7,
};
inline constexpr int kInputKinds = 8;

std::string_view InputKindName(InputKind kind);  // "usual", "full", ...
std::optional<InputKind> ParseInputKind(std::string_view name);
bool IsEdgeKind(InputKind kind);

// Returns the kinds of data that differ for these inputs: usual, full and short, then edge values.
std::vector<InputKind> KindsFor(const std::vector<InputSpec>& inputs);

// Returns one tensor per input. A mask has at least one 1 in each row.
std::vector<Tensor> MakeInputs(const std::vector<InputSpec>& inputs, InputKind kind, uint64_t seed);

// Returns usual data for every input of the graph.
std::vector<Tensor> UsualInputs(const Graph& graph, uint64_t seed);

// Returns the tensors with floats that differ from these by about one rounding of f32, or of their
// own type where that is coarser. What a model makes of the difference is its own sensitivity.
std::vector<Tensor> Nudged(const std::vector<Tensor>& inputs, uint64_t seed);

}  // namespace ag

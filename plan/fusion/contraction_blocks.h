// How a device that deals blocks out (DeviceSpec::block_outputs) computes a contraction: in square
// blocks, each on one core, whose operands that core loads. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "plan/spec/device_spec.h"

namespace ag {

// Independent products [rows, depth] x [depth, columns]. A convolution is one product for each of
// its groups, with a row for each pixel and a depth of the weights that one output reads.
struct Contraction {
  int64_t products = 1;
  int64_t rows = 1;
  int64_t columns = 1;
  int64_t depth = 1;
  int64_t element_bytes = 4;  // Of an operand as it is stored.
  bool operator==(const Contraction&) const = default;
};

// Whether a convolution has one filter for each channel: no library computes it as a product.
bool IsDepthwise(const Graph& graph, const Node& conv);

// Returns the contraction of a group's graph: the MatMul or Conv (but not a depthwise one) with the
// most multiplications. Nothing: the group has none, or its result is empty.
std::optional<Contraction> FindContraction(const Graph& graph, std::string_view precision);

// The blocks of a contraction's kernel.
struct ContractionBlocks {
  int64_t blocks = 1;
  double load_bytes = 0;  // Operands that all blocks load together.
};

inline constexpr int64_t kBlockSideMax = 256;
inline constexpr int64_t kSplitMax = 32;

// Returns the blocks: squares of spec.block_outputs elements, with sides that double, up to
// kBlockSideMax, while there remain as many blocks as `cores`: larger blocks load less.
// REQUIRES: spec.block_outputs > 0.
ContractionBlocks BlocksOf(const Contraction& contraction, const DeviceSpec& spec, int cores);

}  // namespace ag

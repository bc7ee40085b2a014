// The geometry of an element-wise pass: the elements that it visits and the strides of its
// operands. Pure functions.
#pragma once

#include "device/cpu/chain_pass.h"

namespace ag::cpu {

Space SpaceOf(const TensorType& type, Layout layout);

// Returns the strides of a row-major tensor of `shape` (broadcast, right-aligned) over the axes of
// a plain space.
std::vector<int64_t> PlainStrides(const Shape& shape, size_t rank);

// Returns the strides over the axes N, H, W, C of a channels-last space. REQUIRES: the tensor has
// rank 4 at most. kUnimplemented: it is blocked; channels-last and plain tensors work.
StatusOr<std::vector<int64_t>> ChannelsLastStrides(const Shape& shape, Layout layout);

// Returns the strides over the axes N, C/block, H, W, block of a blocked space. REQUIRES: the
// tensor has rank 4 at most and is blocked or plain. kUnimplemented: plain channels that do not
// fill their blocks.
StatusOr<std::vector<int64_t>> BlockedStrides(const Shape& shape, Layout layout, int64_t block);

// Removes axes of size 1 and joins neighbouring axes that every input steps over evenly.
void Collapse(Space* space, std::vector<PassInput>* inputs);

// Sets the input's form and, for that form, repeat. Only what `lies_so`, elements as registers hold
// them, can repeat.
void SetForm(const Space& space, bool lies_so, PassInput* input);

// Returns a constant of `shape` (broadcast, right-aligned) in a blocked layout.
Tensor PaddedConstant(const Tensor& value, const Shape& shape, int64_t block);

}  // namespace ag::cpu

// The geometry of an element-wise pass: the elements it walks over and how its operands step
// through memory beside them.
#pragma once

#include "device/cpu/chain_pass.h"

namespace ag::cpu {

Space SpaceOf(const TensorType& type, Layout layout);

// Strides of a row-major tensor of `shape` (broadcast, right-aligned) over the axes of a plain
// space.
std::vector<int64_t> PlainStrides(const Shape& shape, size_t rank);

// Strides over the axes N, H, W, C of a channels-last space, of a tensor of rank 4 at most that
// lies channels last itself or plain. kUnimplemented: it is blocked.
StatusOr<std::vector<int64_t>> ChannelsLastStrides(const Shape& shape, Layout layout);

// Strides over the axes N, C/block, H, W, block of a blocked space, of a tensor of rank 4 at most
// that lies blocked itself or plain. kUnimplemented: plain channels that do not fill their blocks.
StatusOr<std::vector<int64_t>> BlockedStrides(const Shape& shape, Layout layout, int64_t block);

// Removes axes of size 1 and joins neighbours that every input steps over evenly.
void Collapse(Space* space, std::vector<PassInput>* inputs);

// Sets form and, for that form, repeat. Only elements of type `own` are seen as repeating.
void SetForm(const Space& space, DType own, PassInput* input);

// A constant of `shape` (broadcast, right-aligned) as it would lie in a blocked layout.
Tensor PaddedConstant(const Tensor& value, const Shape& shape, int64_t block);

}  // namespace ag::cpu

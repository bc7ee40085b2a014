// Conversions of tensors between the caller's form (plain, the graph's type) and the device's (a
// layout, the stored type). They run on the host, outside of all timing. Pure functions.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "device/cuda/codegen/group_context.h"
#include "graph/tensor.h"

namespace ag::cuda {

// Returns true when a tensor of the type has the same bytes in both forms.
bool HasHostForm(const TensorType& type, Layout layout, Precision precision);

// Returns the tensor's bytes in the device's form, padding zero. REQUIRES: BlockOf(layout) == 1,
// CanHave.
std::vector<std::byte> ToDeviceForm(const Tensor& tensor, Layout layout, Precision precision);

// Does the inverse into `tensor`, which has the wanted type; ignores padding. REQUIRES: as many
// bytes as the type has in device form.
void FromDeviceForm(std::span<const std::byte> bytes, Layout layout, Precision precision,
                    Tensor* tensor);

// Returns true when all padding of a tensor in device form is zero, as plan/spec/layout.h promises.
// For tests.
bool HasZeroPadding(std::span<const std::byte> bytes, const TensorType& stored, Layout layout);

// Returns a constant's bytes in the element type `stored`. Its axes are ordered in memory so that
// axis order[i] is the i-th from outside (empty: as they are), with zeros where `padded` has longer
// axes (empty: none). REQUIRES: `stored` is the tensor's type, or a 16-bit float where that is f32;
// `order` is a permutation of its axes; `padded` has no shorter one.
std::vector<std::byte> PackTensor(const Tensor& tensor, DType stored, std::span<const int> order,
                                  std::span<const int64_t> padded = {});

}  // namespace ag::cuda

// Data for the inputs of a model by name, and the bytes in which they travel: a blob between
// programs, a file between processes (docs/protocol.md, "Inputs"). Thread-safe.
//
//   autograph-inputs 1
//   1 f32 2x3 24          // Bytes of the name, element type, sizes ("-": a scalar), bytes of data.
//   x................     // The name and the data, without anything between them and the next
//   line.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/inputs/describe.h"
#include "graph/tensor.h"

namespace ag {

using InputSet = std::map<std::string, Tensor>;

inline constexpr int64_t kInputSetBytesMax = int64_t{1} << 30;

// Returns the bytes; equal sets have equal bytes.
std::string EncodeInputSet(const InputSet& set);

// Returns the set, whose tensors point into `bytes`, which `owner` keeps alive. kInvalidArgument:
// these are no such bytes, or more than kInputSetBytesMax.
StatusOr<InputSet> DecodeInputSet(std::string_view bytes, std::shared_ptr<const void> owner);
StatusOr<InputSet> ReadInputSet(const std::string& path);  // Of a file.

// Whether the set is one for these inputs of a model. kInvalidArgument: it lacks one, has another
// one, has one of another type, or a value is not finite.
Status CheckInputSet(const InputSet& set, const std::vector<InputSpec>& inputs);

// Replaces each of `tensors`, which are for `inputs`, by the set's where it has one.
// kInvalidArgument: that has another type.
Status TakeFromSet(const InputSet& set, std::span<const InputSpec> inputs,
                   std::vector<Tensor>* tensors);

// Returns the set of these tensors, one for each input.
InputSet ToInputSet(const std::vector<InputSpec>& inputs, const std::vector<Tensor>& tensors);

}  // namespace ag

// CUDA C++ for one group: the input is a group, the output is source text. Compiles, loads and runs
// nothing; neither this code nor the text includes a CUDA header. Pure functions.
//
// The text computes in f32 (f64 and integers in their own type), reads and writes stored types (f16
// and bf16 are 16-bit words, converted in registers), has every shape, stride and attribute as a
// number, and takes pointers only. It never accesses elements beyond a tensor's end. Everything
// that is not plain C++ is a word of prelude.h, so that the same text can be compiled for a GPU
// and, in tests, for the host.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "device/cuda/codegen/group_context.h"

namespace ag::cuda {

// The tensor that a pointer argument of a generated kernel points to.
struct GeneratedArgument {
  enum class Kind : uint8_t { kInput, kOutput, kConstant, kWorkspace };
  Kind kind = Kind::kInput;
  int index = 0;  // Input or output port of the group, or index in GeneratedGroup::constants.
  int64_t offset_bytes = 0;  // kWorkspace only.
};

struct GeneratedKernel {
  std::string function;  // Name of the entry in the source (extern "C").
  std::array<uint32_t, 3> grid{1, 1, 1};
  std::array<uint32_t, 3> block{1, 1, 1};
  uint32_t shared_bytes = 0;  // Dynamic; static shared memory is in the source.
  std::vector<GeneratedArgument> arguments;
};

// A constant operand in the form in which the kernels read it from memory.
struct GeneratedConstant {
  Edge edge;
  DType stored = DType::kFloat32;
  // The order of its axes in memory: axis order[i] of the constant is the i-th from outside. Empty:
  // as they are. (A convolution's weights have channels last.) One edge may occur in several forms.
  std::vector<int> order;
  // The length of its axes in memory, with zeros behind its own elements; empty: as they are.
  Shape padded;
  bool operator==(const GeneratedConstant&) const = default;
};

struct GeneratedGroup {
  // One translation unit, without the prelude; its first line is a comment that says what it
  // computes.
  std::string source;
  // Launched in this order. None for a group whose outputs have no elements.
  std::vector<GeneratedKernel> kernels;
  std::vector<GeneratedConstant> constants;
  int64_t workspace_bytes = 0;
  bool can_begin_early = false;  // Each kernel calls ag_wait() before any access.
};

// Returns the ways to generate the group, best guess first ("v4/128", "rows/32", "mma/64x64/4",
// ...). Never empty on success. kUnimplemented names what is missing (operator, dtype, layout).
StatusOr<std::vector<std::string>> GeneratedVariants(const GroupContext& context);

// Returns the text of the group by one variant. kInvalidArgument: the group has no such variant.
StatusOr<GeneratedGroup> GenerateGroup(const GroupContext& context, const std::string& variant);

}  // namespace ag::cuda

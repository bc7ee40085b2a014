// CUDA C++ for one group: a group in, source text out. Pure text work: nothing here compiles, loads
// or runs anything, and no CUDA header is included here or by what is generated.
//
// What is generated computes in f32 (f64 and integers in their own type), reads and writes stored
// types (f16 and bf16 are 16-bit words, converted in registers), has every shape, stride and
// attribute baked in as a number, and takes pointers only. Elements beyond a tensor's end are never
// touched. It uses the words of prelude.h alone for what is not plain C++, so that the same text
// can be compiled for a GPU and, for tests, for the host.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "device/cuda/codegen/group_context.h"

namespace ag::cuda {

// What a pointer argument of a generated kernel points to.
struct GeneratedArgument {
  enum class Kind : uint8_t { kInput, kOutput, kConstant, kWorkspace };
  Kind kind = Kind::kInput;
  int index = 0;             // Input or output port of the group, or of GeneratedGroup::constants.
  int64_t offset_bytes = 0;  // kWorkspace only.
};

struct GeneratedKernel {
  std::string function;  // Name of the entry in the source (extern "C").
  std::array<uint32_t, 3> grid{1, 1, 1};
  std::array<uint32_t, 3> block{1, 1, 1};
  uint32_t shared_bytes = 0;  // Dynamic; static shared memory is in the source.
  std::vector<GeneratedArgument> arguments;
};

// A constant operand that the kernels read from memory, as it must lie there.
struct GeneratedConstant {
  Edge edge;
  DType stored = DType::kFloat32;
  // How its axes are ordered in memory: axis order[i] of the constant is the i-th from outside.
  // Empty: as they are. (A convolution's weights are wanted with channels last.) One edge may be
  // wanted in several forms.
  std::vector<int> order;
  // How long its axes are in memory, zeros behind its own elements; empty: as they are.
  Shape padded;
  bool operator==(const GeneratedConstant&) const = default;
};

struct GeneratedGroup {
  // One translation unit, the prelude not included; its first line is a comment that says what it
  // computes.
  std::string source;
  // Launched one after the other. None for a group whose outputs have no elements.
  std::vector<GeneratedKernel> kernels;
  std::vector<GeneratedConstant> constants;
  int64_t workspace_bytes = 0;
  bool can_begin_early = false;  // Each kernel waits (ag_wait()) before any access.
};

// Ways to generate the group, best guess first ("v4/128", "rows/32", "mma/64x64/4", ...). Never
// empty on success. kUnimplemented names what is missing (operator, dtype, layout).
StatusOr<std::vector<std::string>> GeneratedVariants(const GroupContext& context);

// kInvalidArgument: no such variant for this group.
StatusOr<GeneratedGroup> GenerateGroup(const GroupContext& context, const std::string& variant);

}  // namespace ag::cuda

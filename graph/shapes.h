// Shape rules: the output types of every operator, from its operands' types and its attributes.
// graph/ops.def names the rule of each row; rules are pure functions and thread-safe. Every rule
// returns kInvalidArgument with both values ("expected 64 input channels, got 32") for what is
// ill-typed, and never overflows on hostile attributes.
#pragma once

#include <span>

#include "absl/container/inlined_vector.h"
#include "graph/attributes.h"
#include "graph/op_kind.h"
#include "graph/types.h"

namespace ag {

using TensorTypes = absl::InlinedVector<TensorType, 1>;

// What a rule sees. The arity is checked and all attributes are present with their kinds.
struct ShapeCall {
  OpKind op;
  const Attributes& attributes;
  std::span<const TensorType> inputs;
};

using ShapeRule = StatusOr<TensorTypes> (*)(const ShapeCall& call);

// Fills in defaults and brings attributes into the form that built nodes have: axes of reductions
// increasing, a -1 of reshape's shape resolved, resize as graph/resize.h says. kInvalidArgument:
// wrong arity, unknown or missing attribute, wrong kind; the message begins with the operator's
// name.
Status CompleteAttributes(OpKind op, std::span<const TensorType> inputs, Attributes* attributes);

// The output types. REQUIRES: CompleteAttributes went well and the inputs are checked types
// (CheckType). kInvalidArgument: ill-typed; the message begins with the operator's name.
StatusOr<TensorTypes> InferTypes(OpKind op, std::span<const TensorType> inputs,
                                 const Attributes& attributes);

// The numpy broadcast of two shapes, sizes aligned at the last axis.
StatusOr<Shape> BroadcastShapes(std::span<const int64_t> a, std::span<const int64_t> b);

// A window's view of one spatial axis, for conv and pooling.
struct Window {
  int64_t in = 0;
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t dilation = 1;
  int64_t pad_begin = 0;
  int64_t pad_end = 0;
  bool ceil_mode = false;
};

// The number of positions a window takes: floor or ceil((in + pads - extent) / stride) + 1; windows
// that would start in the end padding are left out.
StatusOr<int64_t> WindowOutput(const Window& window);

// One axis of a slice with starts and ends as ONNX has them (negative count from the end, both
// clamped): `count` elements from `start`, `step` apart.
struct SliceRange {
  int64_t start = 0;
  int64_t step = 1;
  int64_t count = 0;
};
SliceRange ResolveSlice(int64_t size, int64_t start, int64_t end, int64_t step);

namespace internal {  // The rules, by the names that graph/ops.def uses.
#define OP(name, onnx_name, arity_min, arity_max, traits, attributes, shape_rule, kernel) \
  StatusOr<TensorTypes> shape_rule(const ShapeCall& call);
#include "graph/ops.def"
#undef OP
}  // namespace internal

}  // namespace ag

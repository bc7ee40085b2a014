// Shape rules: the output types of every operator, from its operands' types and attributes.
// graph/ops.def names the rule of each operator. A rule returns kInvalidArgument with both values
// ("expected 64 input channels, got 32") for an ill-typed node, and never overflows on hostile
// attributes. Pure functions.
#pragma once

#include <span>

#include "graph/attributes.h"
#include "graph/op_kind.h"
#include "graph/types.h"

namespace ag {

// The arguments of a rule. The arity is checked, and all attributes are present with their kinds.
struct ShapeCall {
  OpKind op;
  const Attributes& attributes;
  std::span<const TensorType> inputs;
};

using ShapeRule = StatusOr<TensorTypes> (*)(const ShapeCall& call);

// Fills in defaults and brings attributes into the form of built nodes: axes of reductions
// increase, the -1 of reshape's shape is resolved, resize is as graph/resize.h says.
// kInvalidArgument: wrong arity, unknown or missing attribute, or wrong kind; the message begins
// with the operator's name.
Status CompleteAttributes(OpKind op, std::span<const TensorType> inputs, Attributes* attributes);

// Returns the output types. kInvalidArgument: ill-typed; the message begins with the operator's
// name. REQUIRES: CompleteAttributes returned OK, and CheckType is OK for each input.
StatusOr<TensorTypes> InferTypes(OpKind op, std::span<const TensorType> inputs,
                                 const Attributes& attributes);

// Returns the numpy broadcast of two shapes, aligned at the last axis. kInvalidArgument: there is
// none.
StatusOr<Shape> BroadcastShapes(std::span<const int64_t> a, std::span<const int64_t> b);

// kInvalidArgument: the axis is not in [0, rank).
Status CheckAxis(int64_t axis, size_t rank);

// A window along one spatial axis, for conv and pooling.
struct Window {
  int64_t in = 0;
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t dilation = 1;
  int64_t pad_begin = 0;
  int64_t pad_end = 0;
  bool ceil_mode = false;
};

// Returns the number of positions of a window: floor or ceil((in + pads - extent) / stride) + 1,
// without windows that would start in the end padding.
StatusOr<int64_t> WindowOutput(const Window& window);

// One axis of a slice: `count` elements from `start`, `step` apart.
struct SliceRange {
  int64_t start = 0;
  int64_t step = 1;
  int64_t count = 0;
};
// Returns the range for a start and an end as ONNX defines them: negative values count from the
// end, and both are clamped.
SliceRange ResolveSlice(int64_t size, int64_t start, int64_t end, int64_t step);

namespace internal {  // The rules, with the names of graph/ops.def.
#define OP(name, onnx, arity_min, arity_max, traits, attributes, shape_rule, kernel) \
  StatusOr<TensorTypes> shape_rule(const ShapeCall& call);
#include "graph/ops.def"
#undef OP
}  // namespace internal

}  // namespace ag

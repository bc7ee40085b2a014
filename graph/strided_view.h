// Tensors that lie in another tensor's memory by strides: what transposes, reshapes, slices,
// splits, expands and gathers of one place make of it without a copy. Plain data and pure
// functions.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "graph/graph.h"

namespace ag {

// `size` places, `stride` elements from one to the next. Stride 0 repeats, a negative one walks
// backwards.
struct StridedPart {
  int64_t size = 1;
  int64_t stride = 0;
  bool operator==(const StridedPart&) const = default;
};

// The parts of an axis, the first one outermost; their sizes multiply to the axis's. An axis of one
// place has none. Where several heads read one, an axis of 8 heads has the parts {2, n} {4, 0}.
using StridedAxis = absl::InlinedVector<StridedPart, 2>;

struct StridedView {
  std::vector<StridedAxis> axes;
  int64_t offset = 0;  // Of the first element, in elements.

  Shape shape() const;
  bool operator==(const StridedView&) const = default;
};

// Returns a tensor of the shape in its own memory, row-major.
StridedView DenseView(const Shape& shape);

// Returns the view with as few parts as possible in each axis.
StridedView SimplifiedView(StridedView view);

// Returns the axis's stride (0 for one place), nothing where it has several.
std::optional<int64_t> StrideOf(const StridedAxis& axis);

// Returns where `result`, an output of a movement operator, lies when the operator's first operand
// lies as `operand` says. Nothing: not by strides, or the operator is another one, or a size is 0.
std::optional<StridedView> ViewOfResult(const Graph& graph, Edge result,
                                        const StridedView& operand);

// A tensor, and how it lies behind movements.
struct StridedOperand {
  Edge edge;
  StridedView view;
};

// Returns the view with axes in front, and along axes of one place, repeated so that it has the
// shape. Nothing: it does not broadcast to it.
std::optional<StridedView> BroadcastView(const StridedView& view, const Shape& shape);

// Returns how `edge` lies behind the movements `path`, outputs of operators from the last one back
// to the first, which reads `edge`, repeated so that it has the shape. Nothing: not by strides.
std::optional<StridedView> ViewBehind(const Graph& graph, Edge edge, std::span<const Edge> path,
                                      const Shape& shape);

}  // namespace ag

#include "graph/strided_view.h"

#include <cstring>

#include "graph/shapes.h"

namespace ag {
namespace {

int64_t SizeOf(const StridedAxis& axis) {
  int64_t size = 1;
  for (const StridedPart& part : axis) size *= part.size;
  return size;
}

StridedAxis AxisOf(int64_t size, int64_t stride) {
  return size == 1 ? StridedAxis() : StridedAxis{{size, stride}};
}

// Takes parts of `size` places together from the front of parts[*next ...]; cuts one in two where
// its inner places belong to the next axis. Nothing: its places do not divide so.
std::optional<StridedAxis> TakeAxis(int64_t size, std::vector<StridedPart>* parts, size_t* next) {
  StridedAxis axis;
  while (size > 1) {
    if (*next == parts->size()) return std::nullopt;
    StridedPart& part = (*parts)[*next];
    if (part.size <= size) {
      if (size % part.size != 0) return std::nullopt;
      axis.push_back(part);
      size /= part.size;
      ++*next;
      continue;
    }
    if (part.size % size != 0) return std::nullopt;
    const int64_t inner = part.size / size;
    axis.push_back({size, part.stride * inner});
    part.size = inner;
    size = 1;
  }
  return axis;
}

std::optional<StridedView> Reshaped(const StridedView& view, const Shape& shape) {
  std::vector<StridedPart> parts;
  for (const StridedAxis& axis : view.axes) parts.insert(parts.end(), axis.begin(), axis.end());
  StridedView result{{}, view.offset};
  size_t next = 0;
  for (const int64_t size : shape) {
    std::optional<StridedAxis> axis = TakeAxis(size, &parts, &next);
    if (!axis) return std::nullopt;
    result.axes.push_back(*std::move(axis));
  }
  return result;
}

// Keeps the places of a range. False: they have no single stride.
bool Cut(const SliceRange& range, size_t axis, StridedView* view) {
  StridedAxis& parts = view->axes[axis];
  if (range.count == SizeOf(parts) && range.step == 1) return true;
  const std::optional<int64_t> stride = StrideOf(parts);
  if (!stride) return false;
  view->offset += range.start * *stride;
  parts = AxisOf(range.count, *stride * range.step);
  return true;
}

// Returns the one index of a gather. Nothing: there are others, or it is not known here.
std::optional<int64_t> IndexOf(const Graph& graph, Edge indices, int64_t size) {
  const Node& node = graph.node(indices.node);
  const TensorType& type = graph.type(indices);
  if (node.op != OpKind::kConstant || type.NumElements() != 1) return std::nullopt;
  int64_t index = 0;
  if (type.dtype == DType::kInt64) {
    std::memcpy(&index, node.constant->inline_bytes.data(), sizeof(index));
  } else if (type.dtype == DType::kInt32) {
    int32_t narrow = 0;
    std::memcpy(&narrow, node.constant->inline_bytes.data(), sizeof(narrow));
    index = narrow;
  } else {
    return std::nullopt;
  }
  if (index < 0) index += size;
  return index < 0 || index >= size ? std::nullopt : std::optional(index);
}

// Picks one place of an axis, which has one place afterwards.
void Pick(int64_t place, size_t axis, StridedView* view) {
  StridedAxis& parts = view->axes[axis];
  for (size_t i = parts.size(); i-- > 0; place /= parts[i].size) {
    view->offset += place % parts[i].size * parts[i].stride;
  }
  parts.clear();
}

std::optional<StridedView> Gathered(const Graph& graph, const Node& node, StridedView view) {
  const auto axis = static_cast<size_t>(node.Int("axis"));
  const auto place = IndexOf(graph, node.inputs[1], SizeOf(view.axes[axis]));
  if (!place) return std::nullopt;
  Pick(*place, axis, &view);
  const auto at = view.axes.begin() + static_cast<std::ptrdiff_t>(axis);
  const size_t rank = graph.type(node.inputs[1]).shape.size();
  view.axes.insert(view.axes.erase(at), rank, StridedAxis());
  return view;
}

std::optional<StridedView> Sliced(const Node& node, StridedView view) {
  const Ints& axes = node.IntList("axes");
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(axes[i]);
    const SliceRange range = ResolveSlice(SizeOf(view.axes[axis]), node.IntList("starts")[i],
                                          node.IntList("ends")[i], node.IntList("steps")[i]);
    if (!Cut(range, axis, &view)) return std::nullopt;
  }
  return view;
}

std::optional<StridedView> PartOfSplit(const Node& node, int32_t output, StridedView view) {
  const Ints& sizes = node.IntList("sizes");
  SliceRange range{0, 1, sizes[output]};
  for (int32_t i = 0; i < output; ++i) range.start += sizes[i];
  if (!Cut(range, static_cast<size_t>(node.Int("axis")), &view)) return std::nullopt;
  return view;
}

}  // namespace

Shape StridedView::shape() const {
  Shape shape;
  for (const StridedAxis& axis : axes) shape.push_back(SizeOf(axis));
  return shape;
}

StridedView DenseView(const Shape& shape) {
  StridedView view{std::vector<StridedAxis>(shape.size())};
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0; stride *= shape[i]) {
    view.axes[i] = AxisOf(shape[i], stride);
  }
  return view;
}

StridedView SimplifiedView(StridedView view) {
  for (StridedAxis& axis : view.axes) {
    StridedAxis joined;
    for (const StridedPart& part : axis) {
      if (!joined.empty() && joined.back().stride == part.stride * part.size) {
        joined.back() = {joined.back().size * part.size, part.stride};
      } else {
        joined.push_back(part);
      }
    }
    axis = std::move(joined);
  }
  return view;
}

std::optional<int64_t> StrideOf(const StridedAxis& axis) {
  if (axis.size() > 1) return std::nullopt;
  return axis.empty() ? 0 : axis[0].stride;
}

std::optional<StridedView> ViewOfResult(const Graph& graph, Edge result,
                                        const StridedView& operand) {
  const Node& node = graph.node(result.node);
  const Shape& shape = graph.type(result).shape;
  if (NumElements(shape) == 0 || NumElements(operand.shape()) == 0) return std::nullopt;
  std::optional<StridedView> view;
  switch (node.op) {
    case OpKind::kTranspose: {
      view = StridedView{{}, operand.offset};
      for (const int64_t axis : node.IntList("perm")) view->axes.push_back(operand.axes[axis]);
      break;
    }
    case OpKind::kReshape:
      view = Reshaped(operand, shape);
      break;
    case OpKind::kExpand:
      view = BroadcastView(operand, shape);
      break;
    case OpKind::kSlice:
      view = Sliced(node, operand);
      break;
    case OpKind::kSplit:
      view = PartOfSplit(node, result.output, operand);
      break;
    case OpKind::kGather:
      view = Gathered(graph, node, operand);
      break;
    default:
      break;
  }
  if (view) view = SimplifiedView(*std::move(view));
  return view;
}

std::optional<StridedView> BroadcastView(const StridedView& view, const Shape& shape) {
  const Shape own = view.shape();
  if (own.size() > shape.size()) return std::nullopt;
  const size_t missing = shape.size() - own.size();
  StridedView result{std::vector<StridedAxis>(missing), view.offset};
  result.axes.insert(result.axes.end(), view.axes.begin(), view.axes.end());
  for (size_t i = 0; i < shape.size(); ++i) {
    const int64_t size = i < missing ? 1 : own[i - missing];
    if (size == shape[i]) continue;
    if (size != 1) return std::nullopt;
    result.axes[i] = AxisOf(shape[i], 0);
  }
  return result;
}

std::optional<StridedView> ViewBehind(const Graph& graph, Edge edge, std::span<const Edge> path,
                                      const Shape& shape) {
  std::optional<StridedView> view = DenseView(graph.type(edge).shape);
  for (auto moved = path.rbegin(); view && moved != path.rend(); ++moved) {
    view = ViewOfResult(graph, *moved, *view);
  }
  return view ? BroadcastView(*view, shape) : std::nullopt;
}

}  // namespace ag

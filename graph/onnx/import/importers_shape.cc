// Importers of operators that move elements. Their constant operands become attributes.
#include <algorithm>

#include "graph/onnx/import/node_import.h"
#include "graph/shapes.h"

namespace ag {
namespace {

int64_t Product(std::span<const int64_t> sizes) { return NumElements(sizes); }

// Returns the axes of a node; since opset 13 they are input 1, before that an attribute.
StatusOr<std::optional<Ints>> AxesOf(NodeImport& node) {
  if (node.opset() < 13) return node.IntList("axes");
  if (!node.Has(1)) return std::optional<Ints>();
  AG_LET(Ints axes, node.KnownInts(1));
  return std::optional<Ints>(std::move(axes));
}

// Before opset 5 the shape was an attribute.
Status ImportReshape(NodeImport& node) {
  Ints shape = node.opset() < 5 ? node.IntList("shape").value_or(Ints{}) : Ints{};
  AG_TRY(node.opset() < 5 ? node.CheckInputs(1, 1) : node.CheckInputs(2, 2));
  if (node.opset() >= 5) {
    AG_LET(shape, node.KnownInts(1));
  }
  const bool zero_copies = node.Int("allowzero", 0) == 0;
  const Shape& from = node.ShapeOf(node.In(0));
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] != 0 || !zero_copies) continue;
    if (i >= from.size()) {
      return Err(StatusCode::kInvalidArgument, "size {} of the shape copies from {}", i,
                 ShapeToString(from));
    }
    shape[i] = from[i];
  }
  const auto unknown = std::find(shape.begin(), shape.end(), -1);
  if (unknown != shape.end()) {
    *unknown = 1;
    const int64_t rest = Product(shape);
    const int64_t all = Product(from);
    if (rest <= 0 || all % rest != 0) {
      *unknown = -1;
      return Err(StatusCode::kInvalidArgument, "{} does not reshape to {}", ShapeToString(from),
                 ShapeToString(shape));
    }
    *unknown = all / rest;
  }
  return node.Out(node.Reshape(node.In(0), shape));
}

Status ImportFlatten(NodeImport& node) {
  const Shape& from = node.ShapeOf(node.In(0));
  const int64_t rank = node.Rank(node.In(0));
  int64_t axis = node.Int("axis", 1);
  if (axis < -rank || axis > rank) {
    return Err(StatusCode::kInvalidArgument, "axis {} is outside [{}, {}]", axis, -rank, rank);
  }
  if (axis < 0) axis += rank;
  const Ints shape = {Product({from.data(), static_cast<size_t>(axis)}),
                      Product({from.data() + axis, static_cast<size_t>(rank - axis)})};
  return node.Out(node.Reshape(node.In(0), shape));
}

Status ImportSqueeze(NodeImport& node) {
  const Shape& from = node.ShapeOf(node.In(0));
  AG_LET(std::optional<Ints> axes, AxesOf(node));
  std::vector<bool> drop(from.size());
  for (size_t i = 0; i < from.size(); ++i) drop[i] = !axes.has_value() && from[i] == 1;
  if (axes.has_value()) {
    AG_LET(const Ints resolved, ResolveAxes(*axes, node.Rank(node.In(0))));
    for (const int64_t axis : resolved) {
      if (from[axis] != 1) {
        return Err(StatusCode::kInvalidArgument, "axis {} of {} is not 1", axis,
                   ShapeToString(from));
      }
      drop[axis] = true;
    }
  }
  Ints shape;
  for (size_t i = 0; i < from.size(); ++i) {
    if (!drop[i]) shape.push_back(from[i]);
  }
  return node.Out(node.Reshape(node.In(0), shape));
}

Status ImportUnsqueeze(NodeImport& node) {
  AG_LET(const std::optional<Ints> axes, AxesOf(node));
  if (!axes.has_value()) return Err(StatusCode::kInvalidArgument, "axes are missing");
  const Shape& from = node.ShapeOf(node.In(0));
  const auto rank = static_cast<int64_t>(from.size() + axes->size());
  AG_LET(const Ints resolved, ResolveAxes(*axes, rank));
  std::vector<bool> added(rank);
  for (const int64_t axis : resolved) {
    if (added[axis]) {
      return Err(StatusCode::kInvalidArgument, "axis {} is given twice", axis);
    }
    added[axis] = true;
  }
  Ints shape;
  for (size_t i = 0, next = 0; i < added.size(); ++i) shape.push_back(added[i] ? 1 : from[next++]);
  return node.Out(node.Reshape(node.In(0), shape));
}

Status ImportExpand(NodeImport& node) {
  AG_LET(const Ints wanted, node.KnownInts(1));
  AG_LET(const Shape shape, BroadcastShapes(node.ShapeOf(node.In(0)), wanted));
  if (Product(shape) > kElementsMax) {
    return Err(StatusCode::kResourceExhausted, "{} has more than 2^40 elements",
               ShapeToString(shape));
  }
  if (shape == node.ShapeOf(node.In(0))) {
    return node.Out(node.In(0));
  }
  return node.Out(
      node.Emit(OpKind::kExpand, {node.In(0)}, {{"shape", Ints(shape.begin(), shape.end())}}));
}

// Imports Tile as an expand between two reshapes: [a,b] -> [1,a,1,b] -> [r,a,s,b] -> [r*a,s*b].
Status ImportTile(NodeImport& node) {
  AG_LET(const Ints repeats, node.KnownInts(1));
  const Shape from = node.ShapeOf(node.In(0));
  if (repeats.size() != from.size()) {
    return Err(StatusCode::kInvalidArgument, "expected {} repeats, got {}", from.size(),
               repeats.size());
  }
  Ints split, expanded, merged;
  for (size_t i = 0; i < from.size(); ++i) {
    if (repeats[i] < 0 || repeats[i] > kElementsMax) {
      return Err(StatusCode::kInvalidArgument, "repeat {} of axis {}", repeats[i], i);
    }
    split.insert(split.end(), {1, from[i]});
    expanded.insert(expanded.end(), {repeats[i], from[i]});
    merged.push_back(Product(Ints{repeats[i], from[i]}));
  }
  AG_LET(ValueId value, node.Reshape(node.In(0), split));
  if (expanded != split) {
    AG_LET(value, node.Emit(OpKind::kExpand, {value}, {{"shape", expanded}}));
  }
  return node.Out(node.Reshape(value, merged));
}

Status ImportTranspose(NodeImport& node) {
  Ints reversed;
  for (int64_t i = node.Rank(node.In(0)); i > 0; --i) reversed.push_back(i - 1);
  return node.Out(node.Emit(OpKind::kTranspose, {node.In(0)},
                            {{"perm", node.IntList("perm").value_or(reversed)}}));
}

Status ImportSplit(NodeImport& node) {
  AG_TRY(node.CheckInputs(1, node.opset() < 13 ? 1 : 2));
  AG_LET(const int64_t axis, ResolveAxis(node.Int("axis", 0), node.Rank(node.In(0))));
  const auto parts = static_cast<int64_t>(node.node().outputs.size());
  const int64_t size = node.ShapeOf(node.In(0))[axis];
  std::optional<Ints> sizes;
  if (node.opset() < 13) sizes = node.IntList("split");
  if (node.Has(1)) {
    AG_LET(sizes, node.KnownInts(1));
  }
  const int64_t count = node.opset() < 18 ? parts : node.Int("num_outputs", parts);
  if (count != parts) {
    return Err(StatusCode::kInvalidArgument, "num_outputs is {}, the node has {} outputs", count,
               parts);
  }
  if (!sizes.has_value()) {
    // From opset 18 on the last part may be smaller.
    const int64_t part = (size + parts - 1) / parts;
    if (part * (parts - 1) > size || (node.opset() < 18 && size % parts != 0)) {
      return Err(StatusCode::kInvalidArgument, "{} does not split into {} equal parts", size,
                 parts);
    }
    sizes = Ints(parts, part);
    sizes->back() = size - part * (parts - 1);
  }
  AG_LET(const std::vector<ValueId> values, node.EmitAll(OpKind::kSplit, std::vector{node.In(0)},
                                                         {{"axis", axis}, {"sizes", *sizes}}));
  return node.OutAll(values);
}

struct SliceLists {
  Ints axes, starts, ends, steps;
};

// Before opset 10 the lists were attributes.
StatusOr<SliceLists> SliceListsOf(NodeImport& node) {
  SliceLists lists;
  if (node.opset() < 10) {
    AG_TRY(node.CheckInputs(1, 1));
    lists.starts = node.IntList("starts").value_or(Ints{});
    lists.ends = node.IntList("ends").value_or(Ints{});
  } else {
    AG_TRY(node.CheckInputs(3, 5));
    AG_LET(lists.starts, node.KnownInts(1));
    AG_LET(lists.ends, node.KnownInts(2));
  }
  const size_t count = lists.starts.size();
  for (size_t i = 0; i < count; ++i) lists.axes.push_back(static_cast<int64_t>(i));
  if (node.opset() < 10) lists.axes = node.IntList("axes").value_or(lists.axes);
  if (node.Has(3)) {
    AG_LET(lists.axes, node.KnownInts(3));
  }
  AG_LET(lists.axes, ResolveAxes(lists.axes, node.Rank(node.In(0))));
  lists.steps = Ints(count, 1);
  if (node.Has(4)) {
    AG_LET(lists.steps, node.KnownInts(4));
  }
  if (lists.ends.size() != count || lists.axes.size() != count || lists.steps.size() != count) {
    return Err(StatusCode::kInvalidArgument, "starts, ends, axes, steps: {}, {}, {}, {} values",
               count, lists.ends.size(), lists.axes.size(), lists.steps.size());
  }
  return lists;
}

// Gives each slice one form: axes increase, whole axes are left out, bounds are inside the tensor.
Status ImportSlice(NodeImport& node) {
  AG_LET(const SliceLists given, SliceListsOf(node));
  const Shape from = node.ShapeOf(node.In(0));
  SliceLists slices;
  for (int64_t axis = 0; axis < static_cast<int64_t>(from.size()); ++axis) {
    const auto found = std::find(given.axes.begin(), given.axes.end(), axis);
    if (found == given.axes.end()) continue;
    const size_t i = found - given.axes.begin();
    if (std::count(given.axes.begin(), given.axes.end(), axis) > 1 || given.steps[i] == 0) {
      return Err(StatusCode::kInvalidArgument, "axis {} is given twice or has step 0", axis);
    }
    const SliceRange range =
        ResolveSlice(from[axis], given.starts[i], given.ends[i], given.steps[i]);
    if (range.count == from[axis] && (range.step == 1 || range.count <= 1)) continue;
    int64_t start = 0, end = 0;
    if (range.count > 0) {
      start = range.start;
      const int64_t last = start + (range.count - 1) * range.step;
      end = range.step > 0 ? last + 1 : last - 1;
      if (end < 0) end = -from[axis] - 1;  // One before the first element, for a negative step.
    }
    slices.axes.push_back(axis);
    slices.starts.push_back(start);
    slices.ends.push_back(end);
    slices.steps.push_back(range.count <= 1 && range.step > 0 ? 1 : range.step);
  }
  if (slices.axes.empty()) {
    return node.Out(node.In(0));
  }
  return node.Out(node.Emit(OpKind::kSlice, {node.In(0)},
                            {{"axes", slices.axes},
                             {"starts", slices.starts},
                             {"ends", slices.ends},
                             {"steps", slices.steps}}));
}

// Returns the pads, begin and end of each axis. Before opset 11 they were an attribute; from opset
// 18 on they may be of some axes only.
StatusOr<Ints> PadsOf(NodeImport& node) {
  if (node.opset() < 11) return node.IntList("pads").value_or(Ints{});
  AG_LET(const Ints given, node.KnownInts(1));
  if (!node.Has(3)) return given;
  AG_LET(Ints axes, node.KnownInts(3));
  const int64_t rank = node.Rank(node.In(0));
  AG_LET(axes, ResolveAxes(axes, rank));
  if (given.size() != 2 * axes.size()) {
    return Err(StatusCode::kInvalidArgument, "{} pads for {} axes", given.size(), axes.size());
  }
  Ints pads(2 * rank, 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    pads[axes[i]] = given[i];
    pads[rank + axes[i]] = given[axes.size() + i];
  }
  return pads;
}

Status ImportPad(NodeImport& node) {
  AG_LET(const Ints pads, PadsOf(node));
  double fill = node.opset() < 11 ? node.Float("value", 0) : 0;
  if (node.Has(2)) {
    AG_LET(fill, node.KnownScalar(2));
  }
  const std::string mode = node.String("mode", "constant");
  if (std::all_of(pads.begin(), pads.end(), [](int64_t pad) { return pad == 0; }) &&
      static_cast<int64_t>(pads.size()) == 2 * node.Rank(node.In(0))) {
    return node.Out(node.In(0));
  }
  return node.Out(
      node.Emit(OpKind::kPad, {node.In(0)},
                {{"pads", pads}, {"mode", mode}, {"value", mode == "constant" ? fill : 0.0}}));
}

Status ImportIdentity(NodeImport& node) { return node.Out(node.In(0)); }

// In inference a dropout returns its input.
Status ImportDropout(NodeImport& node) {
  double ratio = node.Float("ratio", 0.5);
  node.Ignore("seed");
  if (node.Has(1)) {
    AG_LET(ratio, node.KnownScalar(1));
  }
  if (node.Has(2) && ratio != 0) {
    AG_LET(const double training, node.KnownScalar(2));
    if (training != 0) return Err(StatusCode::kUnimplemented, "training mode is not supported");
  }
  if (node.Wants(1)) {  // Which elements were kept: all. Before opset 10 the mask was of x's type.
    TensorType mask = node.Type(node.In(0));
    if (node.opset() >= 10) mask.dtype = DType::kBool;
    AG_LET(const ValueId kept, node.Filled(mask, 1));
    node.Out(1, kept);
  }
  return node.Out(node.In(0));
}

// Moves blocks of `size` x `size` positions to channels or back: reshape, transpose, reshape.
Status MoveBlocks(NodeImport& node, const Ints& split, const Ints& perm, const Ints& merged) {
  AG_LET(ValueId value, node.Reshape(node.In(0), split));
  AG_LET(value, node.Emit(OpKind::kTranspose, {value}, {{"perm", perm}}));
  return node.Out(node.Reshape(value, merged));
}

Status ImportDepthToSpace(NodeImport& node) {
  const Shape& x = node.ShapeOf(node.In(0));
  const int64_t b = node.Int("blocksize", 0);
  if (x.size() != 4 || b < 1 || b > 4096 || x[1] % (b * b) != 0) {
    return Err(StatusCode::kInvalidArgument, "blocksize {} does not fit {}", b, ShapeToString(x));
  }
  const int64_t c = x[1] / (b * b);
  const Ints merged = {x[0], c, x[2] * b, x[3] * b};
  if (node.String("mode", "DCR") == "CRD") {
    return MoveBlocks(node, {x[0], c, b, b, x[2], x[3]}, {0, 1, 4, 2, 5, 3}, merged);
  }
  return MoveBlocks(node, {x[0], b, b, c, x[2], x[3]}, {0, 3, 4, 1, 5, 2}, merged);
}

Status ImportSpaceToDepth(NodeImport& node) {
  const Shape& x = node.ShapeOf(node.In(0));
  const int64_t b = node.Int("blocksize", 0);
  if (x.size() != 4 || b < 1 || b > 4096 || x[2] % b != 0 || x[3] % b != 0) {
    return Err(StatusCode::kInvalidArgument, "blocksize {} does not fit {}", b, ShapeToString(x));
  }
  const std::string mode = node.String("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") {
    return Err(StatusCode::kInvalidArgument, "mode {} is not known", Quoted(mode));
  }
  const Ints order = mode == "DCR" ? Ints{0, 3, 5, 1, 2, 4} : Ints{0, 1, 3, 5, 2, 4};
  return MoveBlocks(node, {x[0], x[1], x[2] / b, b, x[3] / b, b}, order,
                    {x[0], x[1] * b * b, x[2] / b, x[3] / b});
}

}  // namespace

std::span<const NodeImporterRow> ShapeImporters() {
  static constexpr NodeImporterRow kRows[] = {
      {"Reshape", ImportReshape, 1, 2},
      {"Flatten", ImportFlatten, 1, 1},
      {"Squeeze", ImportSqueeze, 1, 2},
      {"Unsqueeze", ImportUnsqueeze, 1, 2},
      {"Expand", ImportExpand, 2, 2},
      {"Tile", ImportTile, 2, 2},
      {"Transpose", ImportTranspose, 1, 1},
      {"Split", ImportSplit, 1, 2},
      {"Slice", ImportSlice, 1, 5},
      {"Pad", ImportPad, 1, 4},
      {"Identity", ImportIdentity, 1, 1, true},
      {"Dropout", ImportDropout, 1, 3},
      {"DepthToSpace", ImportDepthToSpace, 1, 1},
      {"SpaceToDepth", ImportSpaceToDepth, 1, 1},
  };
  return kRows;
}

}  // namespace ag

// Importers of sequences and optionals. The graph has neither: a sequence is the list of its
// tensors, so what makes, changes and reads one leaves no node where the positions are known.
#include <algorithm>

#include "graph/onnx/import/node_import.h"

namespace ag {
namespace {

using Items = std::vector<ValueId>;

// Parts of one split: in the graph each is an edge.
constexpr int64_t kPartsMax = 1 << 12, kComputedPartsMax = 1 << 20;

StatusOr<Items> ItemsAt(const NodeImport& node, size_t i) {
  if (!node.Has(i)) return Err(StatusCode::kInvalidArgument, "input {} is missing", i);
  const OnnxKind kind = node.importer().kind(node.In(i));
  if (kind == OnnxKind::kSequence) return node.importer().items(node.In(i));
  return Err(StatusCode::kInvalidArgument, "input {} is {}, not a sequence", i, KindName(kind));
}

// Returns the place that operand `i` names in a sequence of `count` items; a negative one counts
// from its end.
StatusOr<int64_t> PlaceAt(const NodeImport& node, size_t i, size_t count) {
  if (!node.IsTensor(node.In(i))) {
    return Err(StatusCode::kInvalidArgument, "input {} is not a position", i);
  }
  AG_LET(const int64_t place, node.KnownInt(i));
  const auto end = static_cast<int64_t>(count);
  if (place < -end || place > end) {
    return Err(StatusCode::kInvalidArgument, "position {} is outside a sequence of {}", place, end);
  }
  return place < 0 ? place + end : place;
}

Status ImportSequenceEmpty(NodeImport& node) {
  node.Ignore("dtype");
  return node.Out(node.Sequence({}));
}

Status ImportSequenceConstruct(NodeImport& node) {
  AG_TRY(node.CheckInputs(std::max<size_t>(node.size(), 1), node.size()));
  return node.Out(node.Sequence(node.inputs()));
}

Status ImportSequenceLength(NodeImport& node) {
  AG_LET(const Items items, ItemsAt(node, 0));
  const auto count = static_cast<int64_t>(items.size());
  return node.Out(node.Constant(Tensor::FromInts({}, {&count, 1})));
}

// Returns the place of an item; an omitted operand names the last one.
StatusOr<int64_t> ItemPlace(const NodeImport& node, const Items& items) {
  if (items.empty()) return Err(StatusCode::kInvalidArgument, "the sequence is empty");
  if (!node.Has(1)) return static_cast<int64_t>(items.size()) - 1;
  AG_LET(const int64_t place, PlaceAt(node, 1, items.size()));
  if (place < static_cast<int64_t>(items.size())) return place;
  return Err(StatusCode::kInvalidArgument, "position {} is outside a sequence of {}", place,
             items.size());
}

Status ImportSequenceAt(NodeImport& node) {
  AG_LET(const Items items, ItemsAt(node, 0));
  if (!node.Has(1)) return Err(StatusCode::kInvalidArgument, "input 1 is missing");
  AG_LET(const int64_t place, ItemPlace(node, items));
  return node.Out(items[place]);
}

Status ImportSequenceErase(NodeImport& node) {
  AG_LET(Items items, ItemsAt(node, 0));
  AG_LET(const int64_t place, ItemPlace(node, items));
  items.erase(items.begin() + place);
  return node.Out(node.Sequence(std::move(items)));
}

Status ImportSequenceInsert(NodeImport& node) {
  AG_LET(Items items, ItemsAt(node, 0));
  if (!node.Has(1)) return Err(StatusCode::kInvalidArgument, "input 1 is missing");
  auto place = static_cast<int64_t>(items.size());
  if (node.Has(2)) {
    AG_LET(place, PlaceAt(node, 2, items.size()));
  }
  items.insert(items.begin() + place, node.In(1));
  return node.Out(node.Sequence(std::move(items)));
}

// Returns the sizes of the parts of an axis: of one each without operand 1, equal ones for a
// scalar, the last one smaller, else as it says.
StatusOr<Ints> PartSizes(const NodeImport& node, int64_t size) {
  if (!node.Has(1)) return Ints(static_cast<size_t>(size), 1);
  AG_LET(Ints sizes, node.KnownInts(1));
  if (node.Rank(node.In(1)) == 0 && sizes[0] > 0) {
    const int64_t each = std::min(sizes[0], std::max<int64_t>(size, 1));
    const int64_t whole = size / each;
    sizes.assign(static_cast<size_t>(whole), each);
    if (size % each > 0) sizes.push_back(size % each);
  }
  int64_t sum = 0;
  for (const int64_t part : sizes) {
    if (part < 0 || __builtin_add_overflow(sum, part, &sum)) sum = -1;
    if (sum < 0) break;
  }
  if (sum == size) return sizes;
  return Err(StatusCode::kInvalidArgument, "the parts do not make up the {} places of the axis",
             size);
}

Status CheckParts(const NodeImport& node, int64_t size) {
  int64_t count = size;
  if (node.Has(1)) {
    AG_LET(const Ints sizes, node.KnownInts(1));
    const bool is_scalar = node.Rank(node.In(1)) == 0 && sizes[0] > 0;
    count = is_scalar ? size / sizes[0] : static_cast<int64_t>(sizes.size());
  }
  const bool computes = node.importer().computes_all();
  const int64_t most = computes ? kComputedPartsMax : kPartsMax;
  if (count <= most) return OkStatus();
  return Err(computes ? StatusCode::kResourceExhausted : StatusCode::kUnimplemented,
             "{} parts are more than {}", count, most);
}

// Splits are IR operators; keepdims = 0 drops the axis of the parts where operand 1 is absent.
Status ImportSplitToSequence(NodeImport& node) {
  const ValueId x = node.In(0);
  if (!node.IsTensor(x)) return Err(StatusCode::kInvalidArgument, "input 0 is not a tensor");
  AG_LET(const int64_t axis, ResolveAxis(node.Int("axis", 0), node.Rank(x)));
  const bool keeps = node.Int("keepdims", 1) != 0 || node.Has(1);
  AG_TRY(CheckParts(node, node.ShapeOf(x)[axis]));
  AG_LET(const Ints sizes, PartSizes(node, node.ShapeOf(x)[axis]));
  Items items;
  if (!sizes.empty()) {
    AG_LET(items, node.EmitAll(OpKind::kSplit, {&x, 1}, {{"axis", axis}, {"sizes", sizes}}));
  }
  for (ValueId& item : items) {
    if (keeps) break;
    Shape shape = node.ShapeOf(item);
    shape.erase(shape.begin() + axis);
    AG_LET(item, node.Reshape(item, shape));
  }
  return node.Out(node.Sequence(std::move(items)));
}

Status ImportConcatFromSequence(NodeImport& node) {
  AG_LET(Items items, ItemsAt(node, 0));
  if (items.empty()) return Err(StatusCode::kInvalidArgument, "the sequence is empty");
  const bool is_new = node.Int("new_axis", 0) != 0;
  const int64_t rank = node.Rank(items[0]) + (is_new ? 1 : 0);
  AG_LET(const int64_t axis, ResolveAxis(node.Int("axis", 0), rank));
  for (ValueId& item : items) {
    if (!is_new) break;
    Shape shape = node.ShapeOf(item);
    if (static_cast<int64_t>(shape.size()) + 1 != rank) {
      return Err(StatusCode::kInvalidArgument, "the items have different ranks");
    }
    shape.insert(shape.begin() + axis, 1);
    AG_LET(item, node.Reshape(item, shape));
  }
  AG_LET(const Items joined, node.EmitAll(OpKind::kConcat, items, {{"axis", axis}}));
  return node.Out(joined[0]);
}

Status ImportOptional(NodeImport& node) {
  node.Ignore("type");
  const bool has = node.Has(0);
  if (has && node.importer().kind(node.In(0)) == OnnxKind::kOptional) {
    return Err(StatusCode::kInvalidArgument, "an optional of an optional");
  }
  return node.Out(node.importer().AddItems(OnnxKind::kOptional, has ? Items{node.In(0)} : Items()));
}

bool HasElement(const NodeImport& node) {
  if (!node.Has(0)) return false;
  const ValueId value = node.In(0);
  return node.importer().kind(value) != OnnxKind::kOptional ||
         !node.importer().items(value).empty();
}

Status ImportOptionalHasElement(NodeImport& node) {
  return node.Out(node.Filled({DType::kBool, {}}, HasElement(node) ? 1 : 0));
}

Status ImportOptionalGetElement(NodeImport& node) {
  if (!HasElement(node)) return Err(StatusCode::kInvalidArgument, "the optional is empty");
  const ValueId value = node.In(0);
  const bool is_optional = node.importer().kind(value) == OnnxKind::kOptional;
  return node.Out(is_optional ? node.importer().items(value)[0] : value);
}

}  // namespace

std::span<const NodeImporterRow> SequenceImporters() {
  static constexpr NodeImporterRow kRows[] = {
      {"SequenceEmpty", ImportSequenceEmpty, 0, 0},
      {"SequenceConstruct", ImportSequenceConstruct},
      {"SequenceLength", ImportSequenceLength, 1, 1, true},
      {"SequenceAt", ImportSequenceAt, 2, 2, true},
      {"SequenceErase", ImportSequenceErase, 1, 2, true},
      {"SequenceInsert", ImportSequenceInsert, 2, 3, true},
      {"SplitToSequence", ImportSplitToSequence, 1, 2},
      {"ConcatFromSequence", ImportConcatFromSequence, 1, 1, true},
      {"Optional", ImportOptional, 0, 1, true},
      {"OptionalHasElement", ImportOptionalHasElement, 0, 1, true},
      {"OptionalGetElement", ImportOptionalGetElement, 1, 1, true},
  };
  return kRows;
}

}  // namespace ag

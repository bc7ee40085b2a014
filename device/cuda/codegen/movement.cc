// Copies, reorders, and operators that only move elements by strides: concat, split, slice,
// transpose, reshape, expand.
#include <algorithm>

#include "device/cuda/codegen/families.h"
#include "device/cuda/codegen/move.h"
#include "graph/shapes.h"

namespace ag::cuda {
namespace {

// Returns the move of a whole tensor, over the common axes of both shapes.
Move WholeMove(const TensorArgument& from, const TensorArgument& to) {
  return {.from = from,
          .to = to,
          .sizes = Sizes(to.shape.begin(), to.shape.end()),
          .from_strides = from.strides,
          .to_strides = to.strides};
}

// The moves of one node.
class NodeMoves {
 public:
  explicit NodeMoves(GroupText* group)
      : group_(*group), context_(group->context()), node_(context_.node(0)) {}

  StatusOr<std::vector<Move>> Make() {
    if (node_.op == OpKind::kConcat) {
      AG_TRY(Concat());
    } else if (node_.op == OpKind::kSplit) {
      AG_TRY(Split());
    } else if (node_.op == OpKind::kSlice) {
      AG_TRY(Slice());
    } else {
      AG_TRY(WholeTensor());
    }
    return std::move(moves_);
  }

 private:
  StatusOr<TensorArgument> In(size_t index) {
    const Edge edge = node_.inputs[index];
    const DType dtype = context_.graph.type(edge).dtype;
    return group_.Source(edge, {.stored = StoredDType(dtype, context_.precision)});
  }

  Status Concat() {
    AG_LET(const TensorArgument to, group_.Target(0));
    const size_t axis = node_.Int("axis");
    int64_t begin = 0;
    for (size_t i = 0; i < node_.inputs.size(); ++i) {
      const Shape& shape = context_.graph.type(node_.inputs[i]).shape;
      if (NumElements(shape) == 0) continue;
      AG_LET(const TensorArgument from, In(i));
      Move move = WholeMove(from, to);
      move.sizes.assign(shape.begin(), shape.end());
      move.to_offset = begin * to.strides[axis];
      begin += shape[axis];
      moves_.push_back(std::move(move));
    }
    return OkStatus();
  }

  Status Split() {
    AG_LET(const TensorArgument from, In(0));
    const size_t axis = node_.Int("axis");
    int64_t begin = 0;
    for (size_t i = 0; i < node_.outputs.size(); ++i) {
      const Edge edge{context_.group.nodes[0], static_cast<int32_t>(i)};
      const auto port = std::ranges::find(context_.group.outputs, edge, &Port::edge);
      if (port != context_.group.outputs.end() && node_.outputs[i].NumElements() > 0) {
        AG_LET(const TensorArgument to, group_.Target(port - context_.group.outputs.begin()));
        moves_.push_back(WholeMove(from, to));
        moves_.back().from_offset = begin * from.strides[axis];
      }
      begin += node_.outputs[i].shape[axis];
    }
    return OkStatus();
  }

  Status Slice() {
    AG_LET(const TensorArgument from, In(0));
    AG_LET(const TensorArgument to, group_.Target(0));
    Move move = WholeMove(from, to);
    const Ints& axes = node_.IntList("axes");
    for (size_t i = 0; i < axes.size(); ++i) {
      const size_t axis = axes[i];
      const SliceRange range = ResolveSlice(from.shape[axis], node_.IntList("starts")[i],
                                            node_.IntList("ends")[i], node_.IntList("steps")[i]);
      move.from_offset += range.start * from.strides[axis];
      move.from_strides[axis] *= range.count <= 1 ? 0 : range.step;
    }
    moves_.push_back(std::move(move));
    return OkStatus();
  }

  Status WholeTensor() {
    AG_LET(const TensorArgument from, In(0));
    AG_LET(const TensorArgument to, group_.Target(0));
    Move move = WholeMove(from, to);
    if (node_.op == OpKind::kTranspose) {
      move.from_strides.clear();
      for (const int64_t axis : node_.IntList("perm")) {
        move.from_strides.push_back(from.strides[axis]);
      }
    } else if (node_.op == OpKind::kExpand) {
      move.from_strides = from.StridesAs(to.shape);
    } else if (node_.op == OpKind::kReshape) {
      AG_TRY(CheckPlain());
      move.sizes = {NumElements(to.shape)};
      move.from_strides = move.to_strides = {1};
    } else {
      return Err(StatusCode::kUnimplemented, "is no movement by strides");
    }
    moves_.push_back(std::move(move));
    return OkStatus();
  }

  // A reshape is one run only where neighbours in memory are neighbours in the shape.
  Status CheckPlain() const {
    for (const auto* ports : {&context_.group.inputs, &context_.group.outputs}) {
      for (const Port& port : *ports) {
        if (port.layout == Layout::kPlain) continue;
        return Err(StatusCode::kUnimplemented, "layout {}", LayoutName(port.layout));
      }
    }
    return OkStatus();
  }

  GroupText& group_;
  const GroupContext& context_;
  const Node& node_;
  std::vector<Move> moves_;
};

StatusOr<std::vector<std::string>> MovementVariants(const GroupContext& context) {
  GroupText group(context);
  group.BeginKernel("move");
  AG_LET(const std::vector<Move> moves, MovesOf(&group));
  std::vector<std::string> names = MoveVariants(moves);
  if (moves.size() == 1 && IsTransposing(moves[0])) names.insert(names.begin(), "tile32");
  return names;
}

StatusOr<GeneratedGroup> GenerateMovement(const GroupContext& context, const std::string& variant) {
  GroupText group(context);
  group.BeginKernel("move");
  AG_LET(const std::vector<Move> moves, MovesOf(&group));
  if (variant.starts_with("tile")) {
    AG_TRY(MoveByTiles(&group, moves[0]));
  } else {
    AG_TRY(MoveByLanes(&group, moves, variant));
  }
  return group.Take();
}

}  // namespace

StatusOr<std::vector<Move>> MovesOf(GroupText* group) {
  const GroupContext& context = group->context();
  if (!context.group.nodes.empty()) return NodeMoves(group).Make();
  // A reorder or a copy: one tensor to each output; a constant where there is no input.
  const Edge edge = context.group.outputs[0].edge;
  const DType stored = StoredDType(context.graph.type(edge).dtype, context.precision);
  AG_LET(const TensorArgument from, group->Source(edge, {.stored = stored}));
  std::vector<Move> moves;
  for (size_t i = 0; i < context.group.outputs.size(); ++i) {
    AG_LET(const TensorArgument to, group->Target(i));
    moves.push_back(WholeMove(from, to));
    moves.back().padding = to.padding;
  }
  return moves;
}

const Family kMovementFamily = {MovementVariants, GenerateMovement};

}  // namespace ag::cuda

#include "graph/passes/constants.h"

#include "base/bytes.h"
#include "graph/reference/evaluate.h"
#include "graph/structure_hash.h"

namespace ag {

StatusOr<Tensor> Constants::Get(Edge edge) {
  {
    const MutexLock lock(mutex_);
    if (const auto found = known_.find(edge); found != known_.end()) return found->second;
  }
  if (!graph_.is_constant(edge.node)) {
    return Err(StatusCode::kInvalidArgument, "operand {}:{} is neither a port nor constant",
               edge.node, edge.output);
  }
  AG_LET(Tensor value, Materialize(graph_, edge, weights_));
  // Keeps computed values only: a kept copy of a model's weights would double their memory.
  if (graph_.node(edge.node).op == OpKind::kConstant) return value;
  const MutexLock lock(mutex_);
  return known_.emplace(edge, std::move(value)).first->second;
}

std::optional<Digest> Constants::Name(Edge edge) {
  if (!weights_.names_content()) return std::nullopt;
  const MutexLock lock(mutex_);
  return NameOf(edge);
}

Digest Constants::NameOf(Edge edge) {
  if (const auto found = names_.find(edge); found != names_.end()) return found->second;
  const Node& node = graph_.node(edge.node);
  const StructureHash alone = HashOfNodeAlone(node);
  ByteWriter recipe;
  recipe.U64(alone.a);
  recipe.U64(alone.b);
  recipe.U32(static_cast<uint32_t>(edge.output));
  if (node.op == OpKind::kConstant) {
    recipe.String(node.constant->inline_bytes);
    recipe.String(node.constant->digest.Hex());
  }
  for (const Edge& input : node.inputs) recipe.String(NameOf(input).Hex());
  return names_[edge] = Sha256(recipe.bytes());
}

}  // namespace ag

#include "graph/passes/constants.h"

#include "base/bytes.h"
#include "graph/reference/evaluate.h"
#include "graph/structure_hash.h"

namespace ag {

namespace {

constexpr size_t kKeptBytesMax = 64 << 10;

}  // namespace

std::optional<Tensor> Constants::Known(Edge edge) const {
  if (const auto found = kept_.find(edge); found != kept_.end()) return found->second;
  const auto found = shared_.find(edge);
  const auto value = found == shared_.end() ? nullptr : found->second.lock();
  if (value == nullptr) return std::nullopt;
  return Tensor::View(value->type(), value->bytes(), value);
}

StatusOr<Tensor> Constants::Get(Edge edge) {
  {
    const MutexLock lock(mutex_);
    if (const auto known = Known(edge); known.has_value()) return *known;
  }
  if (!graph_.is_constant(edge.node)) {
    return Err(StatusCode::kInvalidArgument, "operand {}:{} is neither a port nor constant",
               edge.node, edge.output);
  }
  AG_LET(Tensor value, Materialize(graph_, edge, weights_));
  // Keeps computed values only: a kept copy of a model's weights would double their memory.
  if (graph_.node(edge.node).op == OpKind::kConstant) return value;
  const MutexLock lock(mutex_);
  if (const auto known = Known(edge); known.has_value()) return *known;  // Of another thread.
  if (value.bytes().size() <= kKeptBytesMax) {
    return kept_.emplace(edge, std::move(value)).first->second;
  }
  const auto shared = std::make_shared<const Tensor>(std::move(value));
  shared_[edge] = shared;
  return Tensor::View(shared->type(), shared->bytes(), shared);
}

std::optional<Digest> Constants::Name(Edge edge) {
  if (!weights_.names_content()) return std::nullopt;
  const MutexLock lock(mutex_);
  return NameOf(edge);
}

Digest Constants::NameOf(Edge edge) {
  if (const auto found = names_.find(edge); found != names_.end()) return found->second;
  const Node& node = graph_.node(edge.node);
  const StructureHash alone = node.hash;
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

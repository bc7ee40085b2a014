#include "graph/constants.h"

#include "graph/evaluate.h"

namespace ag {

StatusOr<Tensor> Constants::Get(Edge edge) {
  if (const auto found = known_.find(edge); found != known_.end()) return found->second;
  if (!graph_.is_constant(edge.node)) {
    return Err(StatusCode::kInvalidArgument, "operand {}:{} is neither a port nor constant",
               edge.node, edge.output);
  }
  AG_LET(Tensor value, Materialize(graph_, edge, weights_));
  // Only what was computed is worth keeping: a model's weights would stand in memory twice.
  if (graph_.node(edge.node).op != OpKind::kConstant) known_[edge] = value;
  return value;
}

}  // namespace ag

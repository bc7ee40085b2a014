#include "graph/passes/fold_constants.h"

#include <algorithm>

#include "graph/passes/rebuild.h"
#include "graph/reference/evaluate.h"

namespace ag {
namespace {

// Results are evaluated in batches of about this size: recipes in a batch share common parts, and
// memory stays bounded.
constexpr int64_t kBatchBytes = int64_t{64} << 20;

class Folder {
 public:
  Folder(const Graph& graph, const WeightSource& weights, MemoryWeights* sink, int64_t bytes_max)
      : graph_(graph), weights_(weights), sink_(sink), rebuild_(graph) {
    foldable_.resize(static_cast<size_t>(graph.size()));
    for (NodeId id = 0; id < graph.size(); ++id) foldable_[id] = IsFoldable(id, bytes_max) ? 1 : 0;
  }

  StatusOr<Graph> Run() {
    AG_TRY(FoldEdges());
    for (NodeId id = 0; id < graph_.size(); ++id) {
      if (graph_.node(id).op == OpKind::kInput || foldable_[id] != 0) continue;
      AG_TRY(rebuild_.Copy(id));
    }
    return rebuild_.Finish();
  }

 private:
  bool IsFoldable(NodeId id, int64_t bytes_max) const {
    const Node& node = graph_.node(id);
    if (!graph_.is_constant(id) || node.op == OpKind::kConstant) return false;
    int64_t operand_bytes = 0, result_bytes = 0;
    for (const Edge& e : node.inputs) {
      if (graph_.node(e.node).op != OpKind::kConstant && foldable_[e.node] == 0) return false;
      operand_bytes += graph_.type(e).Bytes();
    }
    for (const TensorType& type : node.outputs) result_bytes += type.Bytes();
    return result_bytes <= std::max(bytes_max, operand_bytes);
  }

  // Whether the edge is folded and an unfolded node or an output reads it.
  bool IsFrontier(Edge e) const {
    if (graph_.is_output(e)) return true;
    for (const Use& use : graph_.uses(e)) {
      if (foldable_[use.node] == 0) return true;
    }
    return false;
  }

  Status FoldEdges() {
    std::vector<Edge> batch;
    int64_t bytes = 0;
    for (NodeId id = 0; id < graph_.size(); ++id) {
      if (foldable_[id] == 0) continue;
      const auto outputs = static_cast<int32_t>(graph_.node(id).outputs.size());
      for (int32_t i = 0; i < outputs; ++i) {
        if (!IsFrontier({id, i})) continue;
        batch.push_back({id, i});
        bytes += graph_.type({id, i}).Bytes();
        if (bytes < kBatchBytes) continue;
        AG_TRY(FoldBatch(batch));
        batch.clear();
        bytes = 0;
      }
    }
    return FoldBatch(batch);
  }

  Status FoldBatch(const std::vector<Edge>& batch) {
    if (batch.empty()) return OkStatus();
    AG_LET(const std::vector<Tensor> tensors, EvaluateEdges(graph_, batch, {}, weights_));
    for (size_t i = 0; i < batch.size(); ++i) {
      const Digest digest = sink_->Put(tensors[i]);
      rebuild_.Map(batch[i],
                   rebuild_.builder().Constant(tensors[i].type(), digest, tensors[i].bytes()));
    }
    return OkStatus();
  }

  const Graph& graph_;
  const WeightSource& weights_;
  MemoryWeights* sink_;
  Rebuild rebuild_;
  std::vector<uint8_t> foldable_;
};

}  // namespace

StatusOr<Graph> FoldConstants(const Graph& graph, const WeightSource& weights, MemoryWeights* sink,
                              int64_t folded_bytes_max) {
  AG_CHECK(sink != nullptr);
  return Folder(graph, weights, sink, folded_bytes_max).Run();
}

}  // namespace ag

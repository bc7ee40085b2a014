#include "search/cells.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/index_set.h"
#include "plan/fusion/group_problem.h"
#include "search/edge_names.h"
#include "search/partition.h"
#include "search/repeats.h"

namespace ag {
namespace {

// Cuts behind nodes: at one side is a node with all that it depends on. Always: the pieces before
// one are closed under operands.
class Cutter {
 public:
  Cutter(const Graph& graph, const CellOptions& options) : graph_(graph), options_(options) {
    above_.reserve(static_cast<size_t>(graph.size()));
    for (NodeId id = 0; id < graph.size(); ++id) {
      IndexSet& above = above_.emplace_back(graph.size());
      if (graph.is_constant(id)) continue;
      above.Add(id);
      for (const Edge& e : graph.node(id).inputs) above.Unite(above_[e.node]);
      if (!Has(graph.node(id).op, kLeaf)) all_.push_back(id);
    }
  }

  std::vector<Piece> Run() {
    std::vector<Piece> pieces;
    Split(IndexSet(graph_.size()), all_, 1, &pieces);
    return pieces;
  }

 private:
  // Splits `piece`, which stands behind `before`, by cuts that up to `tensors` tensors pass.
  void Split(IndexSet before, const Piece& piece, int tensors, std::vector<Piece>* pieces) {
    std::vector<NodeId> ends = LongestChain(before, piece, tensors);
    ends.push_back(-1);  // The rest.
    std::vector<bool> taken(piece.size());
    for (const NodeId end : ends) {
      Piece part;
      for (size_t i = 0; i < piece.size(); ++i) {
        if (taken[i] || (end >= 0 && !above_[end].Has(piece[i]))) continue;
        taken[i] = true;
        part.push_back(piece[i]);
      }
      if (part.empty()) continue;
      const bool is_large = static_cast<int>(part.size()) > options_.nodes_max;
      if (is_large && tensors < options_.tensors_max) {
        Split(before, part, tensors + 1, pieces);
      } else {
        pieces->push_back(part);
      }
      if (end >= 0) before.Unite(above_[end]);
    }
  }

  // Returns the longest sequence of nodes of the piece such that each depends on the one before it
  // and few tensors pass behind each.
  std::vector<NodeId> LongestChain(const IndexSet& before, const Piece& piece, int tensors) const {
    std::vector<NodeId> nodes;
    for (const NodeId id : piece) {
      IndexSet side = before;
      side.Unite(above_[id]);
      if (TensorsBehind(side, tensors) <= tensors) nodes.push_back(id);
    }
    std::vector<int> length(nodes.size(), 1), previous(nodes.size(), -1);
    for (size_t i = 0; i < nodes.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        if (length[j] + 1 <= length[i] || !above_[nodes[i]].Has(nodes[j])) continue;
        length[i] = length[j] + 1;
        previous[i] = static_cast<int>(j);
      }
    }
    std::vector<NodeId> chain;
    if (nodes.empty()) return chain;
    int at = static_cast<int>(std::ranges::max_element(length) - length.begin());
    for (; at >= 0; at = previous[at]) chain.push_back(nodes[at]);
    std::ranges::reverse(chain);
    return chain;
  }

  // Returns the number of tensors of `side` that are read outside; stops counting above `max`.
  int TensorsBehind(const IndexSet& side, int max) const {
    int count = 0;
    for (NodeId id = 0; id < graph_.size() && count <= max; ++id) {
      if (!side.Has(id)) continue;
      const auto outputs = static_cast<int32_t>(graph_.node(id).outputs.size());
      for (int32_t output = 0; output < outputs; ++output) {
        const auto is_outside = [&](const Use& use) { return !side.Has(use.node); };
        if (std::ranges::any_of(graph_.uses({id, output}), is_outside)) ++count;
      }
    }
    return count;
  }

  const Graph& graph_;
  const CellOptions& options_;
  std::vector<IndexSet> above_;  // By node: itself and what it depends on, without constants.
  Piece all_;
};

// Joins each run of single operators with the piece behind it, or, where that repeats, before it.
std::vector<Piece> Join(const std::vector<JoinedPiece>& pieces, int nodes_max) {
  std::vector<Piece> joined;
  // The last one takes more, and what is joined takes nothing.
  bool is_open = false, is_whole = true;
  const auto fits = [&](const Piece& piece) {
    return !is_whole && static_cast<int>(joined.back().size() + piece.size()) <= nodes_max;
  };
  for (size_t i = 0; i < pieces.size(); ++i) {
    const Piece& piece = pieces[i].nodes;
    const bool is_single = piece.size() == 1 && !pieces[i].is_joined;
    const bool ends_range = i + 1 < pieces.size() && pieces[i + 1].is_joined;
    const bool takes = is_open || (is_single && ends_range);
    if (pieces[i].is_joined || !takes || !fits(piece)) joined.emplace_back();
    joined.back().insert(joined.back().end(), piece.begin(), piece.end());
    std::ranges::sort(joined.back());
    is_open = is_single;
    is_whole = pieces[i].is_joined;
  }
  return joined;
}

// Copies a piece into a graph of its own. Its order does not depend on the values of weights:
// outputs and commutative operands stand by their blind names, and the rest follows from these.
class Extraction {
 public:
  Extraction(const Graph& graph, const Piece& piece, bool with_values)
      : graph_(graph),
        piece_(piece),
        with_values_(with_values),
        blind_(graph, [this](Edge edge) { return BlindLeaf(edge); }) {}

  Graph Run() {
    std::vector<std::pair<StructureHash, Edge>> outputs;
    for (const NodeId id : piece_) {
      const auto count = static_cast<int32_t>(graph_.node(id).outputs.size());
      for (int32_t output = 0; output < count; ++output) {
        const Edge edge{id, output};
        if (IsReadOutside(edge)) outputs.emplace_back(blind_.Of(edge), edge);
      }
    }
    std::ranges::sort(outputs);
    for (size_t i = 0; i < outputs.size(); ++i) {
      builder_.Output(Copy(outputs[i].second), fmt::format("y{}", i));
    }
    StatusOr<Graph> graph = builder_.Build();
    AG_CHECK(graph.ok());  // Its nodes stand in a graph.
    return *std::move(graph);
  }

  const std::vector<Edge>& inputs() const { return inputs_; }  // In the whole graph.

 private:
  bool IsInside(NodeId id) const { return std::ranges::binary_search(piece_, id); }

  bool IsReadOutside(Edge edge) const {
    const auto is_outside = [&](const Use& use) { return !IsInside(use.node); };
    return graph_.is_output(edge) || std::ranges::any_of(graph_.uses(edge), is_outside);
  }

  bool IsInput(NodeId id) const { return !IsInside(id) && !graph_.is_constant(id); }

  // Names weights without their values, and what the piece reads by its type.
  std::optional<StructureHash> BlindLeaf(Edge edge) const {
    const Node& node = graph_.node(edge.node);
    if (node.op == OpKind::kConstant) return WeightName(node);
    if (!IsInput(edge.node)) return std::nullopt;
    return InputName(graph_.type(edge));
  }

  Edge Copy(Edge edge) {
    if (const auto it = made_.find(edge); it != made_.end()) return it->second;
    const Node& node = graph_.node(edge.node);
    if (node.op == OpKind::kConstant) return made_[edge] = Constant(node);
    if (IsInput(edge.node)) {
      inputs_.push_back(edge);
      const std::string name = fmt::format("x{}", inputs_.size() - 1);
      return made_[edge] = builder_.Input(name, graph_.type(edge));
    }
    absl::InlinedVector<Edge, 3> operands = node.inputs;
    if (Has(node.op, kCommutative)) {
      std::ranges::stable_sort(operands, {}, [&](const Edge& e) { return blind_.Of(e); });
    }
    std::vector<Edge> copies;
    for (const Edge& e : operands) copies.push_back(Copy(e));
    const StatusOr<NodeId> copy = builder_.AddCopy(node, copies);
    AG_CHECK(copy.ok());
    for (int32_t i = 0; i < static_cast<int32_t>(node.outputs.size()); ++i) {
      made_[{edge.node, i}] = {*copy, i};
    }
    return made_.at(edge);
  }

  Edge Constant(const Node& node) {
    const TensorType& type = node.outputs[0];
    if (with_values_ || !WeightName(node)) {
      return builder_.Constant(type, node.constant->digest, node.constant->inline_bytes);
    }
    const auto [it, is_new] =
        constants_.try_emplace(node.constant->digest, static_cast<int>(constants_.size()));
    return builder_.Constant(type, SyntheticConstant(it->second, type));
  }

  const Graph& graph_;
  const Piece& piece_;
  const bool with_values_;
  GraphBuilder builder_;
  EdgeNames blind_;
  std::map<Edge, Edge> made_;
  std::map<Digest, int> constants_;  // To their places.
  std::vector<Edge> inputs_;
};

Digest FormOf(const Graph& graph, const Piece& piece) {
  return Extraction(graph, piece, /*with_values=*/false).Run().digest();
}

size_t CountForms(const Graph& graph, const std::vector<Piece>& pieces) {
  std::set<Digest> forms;
  for (const Piece& piece : pieces) forms.insert(FormOf(graph, piece));
  return forms.size();
}

// Cuts what is too large where the fewest operators pass.
std::vector<Piece> SplitLarge(const Graph& graph, const std::vector<Piece>& pieces, int nodes_max) {
  const std::vector<int64_t> costs(static_cast<size_t>(graph.size()), 1);
  std::vector<Piece> split;
  for (const Piece& piece : pieces) {
    if (static_cast<int>(piece.size()) <= nodes_max) {
      split.push_back(piece);
      continue;
    }
    for (Piece& part : PartitionPiece(graph, piece, costs, {.piece_nodes_max = nodes_max})) {
      split.push_back(std::move(part));
    }
  }
  return split;
}

// Returns the pieces joined into cells: by what repeats where that leaves fewer forms.
std::vector<Piece> JoinPieces(const Graph& graph, const std::vector<Piece>& pieces, int nodes_max) {
  std::vector<JoinedPiece> apart;
  for (const Piece& piece : pieces) apart.push_back({piece, false});
  std::vector<Piece> plain = Join(apart, nodes_max);
  const auto form = [&](const Piece& piece) { return FormOf(graph, piece); };
  const auto repeats = JoinRepeats(graph, pieces, form, {.nodes_max = nodes_max});
  if (std::ranges::none_of(repeats, &JoinedPiece::is_joined)) return plain;
  std::vector<Piece> repeating = Join(repeats, nodes_max);
  return CountForms(graph, repeating) < CountForms(graph, plain) ? repeating : plain;
}

}  // namespace

std::vector<Cell> CutIntoCells(const Graph& graph, const CellOptions& options) {
  if (graph.size() > kCellGraphMax) return {};
  const std::vector<Piece> pieces =
      SplitLarge(graph, Cutter(graph, options).Run(), options.nodes_max);
  return CellsOf(graph, JoinPieces(graph, pieces, options.nodes_max));
}

std::vector<Cell> CellsOf(const Graph& graph, std::span<const std::vector<NodeId>> parts) {
  EdgeNames names = EdgeNames::Exact(graph);
  std::vector<Cell> cells;
  for (const Piece& piece : parts) {
    Extraction extraction(graph, piece, /*with_values=*/true);
    Cell cell{.nodes = piece, .graph = extraction.Run()};
    for (const Edge& e : extraction.inputs()) cell.inputs.push_back(names.Of(e));
    cell.form = FormOf(graph, piece);
    cells.push_back(std::move(cell));
  }
  return cells;
}

}  // namespace ag

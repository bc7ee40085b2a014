#include "search/partition.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "search/vertex_cut.h"

namespace ag {
namespace {

// Returns the cut problem of a piece. NodeIds are in topological order, and so are a piece's
// positions.
CutProblem CutProblemOf(const Graph& graph, const Piece& piece,
                        const std::vector<int64_t>& capacity) {
  absl::flat_hash_map<NodeId, int> place;
  CutProblem problem;
  problem.successors.resize(piece.size());
  for (size_t i = 0; i < piece.size(); ++i) {
    place[piece[i]] = static_cast<int>(i);
    problem.capacity.push_back(capacity[piece[i]]);
    for (const Edge& input : graph.node(piece[i]).inputs) {
      const auto it = place.find(input.node);
      if (it == place.end()) continue;
      std::vector<int>& successors = problem.successors[it->second];
      if (!std::ranges::count(successors, static_cast<int>(i))) {
        successors.push_back(static_cast<int>(i));
      }
    }
  }
  return problem;
}

}  // namespace

std::vector<Piece> PartitionGraph(const Graph& graph, const std::vector<int64_t>& capacity,
                                  const PartitionOptions& options) {
  Piece all;
  for (NodeId id = 0; id < graph.size(); ++id) {
    if (!Has(graph.node(id).op, kLeaf) && !graph.is_constant(id)) all.push_back(id);
  }
  return PartitionPiece(graph, std::move(all), capacity, options);
}

// Splits pieces at balanced cuts until each is small enough. Always: the pieces done, then those on
// the stack from its top down, are the whole piece in an order in which no piece reads from a later
// one. It ends because each cut leaves at least one node on either side.
std::vector<Piece> PartitionPiece(const Graph& graph, Piece all,
                                  const std::vector<int64_t>& capacity,
                                  const PartitionOptions& options) {
  AG_CHECK(static_cast<int>(capacity.size()) == graph.size());
  const size_t nodes_max = std::max(options.piece_nodes_max, 1);
  std::vector<Piece> stack = {std::move(all)};  // The top is the first in the graph.
  std::vector<Piece> pieces;
  while (!stack.empty()) {
    Piece piece = std::move(stack.back());
    stack.pop_back();
    if (piece.size() <= nodes_max) {
      if (!piece.empty()) pieces.push_back(std::move(piece));
      continue;
    }
    const VertexCut cut = BalancedVertexCut(CutProblemOf(graph, piece, capacity));
    Piece before;
    Piece behind;
    for (size_t i = 0; i < piece.size(); ++i) (cut.before[i] ? before : behind).push_back(piece[i]);
    stack.push_back(std::move(behind));
    stack.push_back(std::move(before));
  }
  return pieces;
}

std::vector<Region> RegionsOf(const std::vector<Piece>& pieces, const PartitionOptions& options) {
  const int count = static_cast<int>(pieces.size());
  std::vector<Region> regions;
  for (int first = 0; first < count; ++first) {
    size_t nodes = 0;
    for (int end = first + 1; end <= count; ++end) {
      nodes += pieces[end - 1].size();
      if (end > first + 1 && static_cast<int>(nodes) > options.region_nodes_max) break;
      regions.push_back({first, end});
    }
  }
  return regions;
}

}  // namespace ag

// Cuts a graph into pieces and pieces into regions (AutoGraph's flow-based partition): minimum
// vertex cuts until every piece is small, then every run of adjacent pieces that is not too large.
// What backtracking explores region by region where a whole graph is too large for it.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/graph.h"

namespace ag {

struct PartitionOptions {
  int piece_nodes_max = 40;    // The paper's Size_L.
  int region_nodes_max = 120;  // The paper's Size_U.
};

// Operator nodes that run (no inputs, constants or constant recipes), ascending.
using Piece = std::vector<NodeId>;

// Every operator node that runs in exactly one piece; no piece reads from a later one; each has at
// most piece_nodes_max nodes. `capacity[id]` says how much it hurts to cut at a node, e.g. 1 + the
// number of rewrite sites that touch it. Same graph, same pieces. REQUIRES: one capacity >= 0 per
// node of the graph.
std::vector<Piece> PartitionGraph(const Graph& graph, const std::vector<int64_t>& capacity,
                                  const PartitionOptions& options = {});

// Pieces first to end - 1 together.
struct Region {
  int first = 0;
  int end = 0;
  bool operator==(const Region&) const = default;
};

// Every run of adjacent pieces with at most region_nodes_max nodes, by first piece, then by length;
// a single piece is always a region.
std::vector<Region> RegionsOf(const std::vector<Piece>& pieces,
                              const PartitionOptions& options = {});

}  // namespace ag

// Cuts a graph into pieces, and pieces into regions (AutoGraph's flow-based partition): minimum
// vertex cuts until every piece is small, then every run of adjacent pieces that is not too large.
// Meant for a search region by region where the whole graph is too large. Pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/graph.h"

namespace ag {

struct PartitionOptions {
  int piece_nodes_max = 40;    // The paper's Size_L.
  int region_nodes_max = 120;  // The paper's Size_U.
};

// The nodes of operators that run (no inputs, constants or constant recipes), ascending.
using Piece = std::vector<NodeId>;

// Returns pieces with every operator node that runs in exactly one of them. No piece reads from a
// later one, and each has at most piece_nodes_max nodes. capacity[id] is the cost of a cut at a
// node, for example 1 + the number of rewrite sites that touch it. Deterministic. REQUIRES: one
// capacity >= 0 for each node of the graph.
std::vector<Piece> PartitionGraph(const Graph& graph, const std::vector<int64_t>& capacity,
                                  const PartitionOptions& options = {});

// Does the same with one piece: ascending nodes of operators that run.
std::vector<Piece> PartitionPiece(const Graph& graph, Piece piece,
                                  const std::vector<int64_t>& capacity,
                                  const PartitionOptions& options = {});

// The pieces `first` to `end` - 1 together.
struct Region {
  int first = 0;
  int end = 0;
  bool operator==(const Region&) const = default;
};

// Returns every run of adjacent pieces with at most region_nodes_max nodes, by first piece, then by
// length. A single piece is always a region.
std::vector<Region> RegionsOf(const std::vector<Piece>& pieces,
                              const PartitionOptions& options = {});

}  // namespace ag

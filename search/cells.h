// Cuts a graph into cells: parts that few tensors pass between, such as the modules that a network
// repeats. A cell is small enough to be searched by itself. Cells of one form differ in nothing but
// the values of their weights, so what is found for one can be taken at all (cell_replay.h). Pure
// functions.
#pragma once

#include <span>
#include <vector>

#include "graph/graph.h"
#include "graph/structure_hash.h"

namespace ag {

struct CellOptions {
  int tensors_max = 2;  // The most tensors that pass a cut.
  int nodes_max = 120;  // The most operators of a cell (the paper's Size_U).
};

struct Cell {
  std::vector<NodeId> nodes;  // The operators that run, in the whole graph; ascending.
  // The cell by itself: what it reads from elsewhere are its inputs, what is read elsewhere are its
  // outputs. Constants and constant recipes are its own.
  Graph graph;
  // The exact names, in the whole graph, of what it reads (edge_names.h).
  std::vector<StructureHash> inputs;
  // The digest of `graph` without the values of its weights (which stay where a rule may look at
  // them: single numbers and integers). Equal weights stay equal ones.
  Digest form;
};

// Returns cells in an order in which none reads from a later one. Cuts where the fewest tensors
// pass come first; more tensors are allowed only inside what has more than nodes_max operators, and
// minimum cuts (partition.h) only inside what is still larger. Pieces between cuts are joined where
// the graph repeats them and that leaves fewer forms (repeats.h). A run of single operators belongs
// to the cell behind it, or, where that one repeats, before it. Every operator that runs is in a
// cell; a graph of more than kCellGraphMax operators has none. Deterministic.
inline constexpr int kCellGraphMax = 10'000;
std::vector<Cell> CutIntoCells(const Graph& graph, const CellOptions& options = {});

// Returns a cell of each part: operators that run, ascending.
std::vector<Cell> CellsOf(const Graph& graph, std::span<const std::vector<NodeId>> parts);

}  // namespace ag

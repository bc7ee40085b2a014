// Names of edges: hashes of what they compute, whatever the order of commutative operands. With
// them a place of one graph is found again in another. One thread at a time.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "graph/graph.h"
#include "graph/structure_hash.h"

namespace ag {

class EdgeNames {
 public:
  // Returns the name of an edge whose operands do not count; nothing: its name is made of theirs.
  using Leaf = std::function<std::optional<StructureHash>(Edge)>;

  // `graph` must outlive it. Inputs must be leaves.
  EdgeNames(const Graph& graph, Leaf leaf);

  // Names every edge by what it computes from the graph's inputs. `inputs` are the names of the
  // inputs; empty: their places.
  static EdgeNames Exact(const Graph& graph, std::span<const StructureHash> inputs = {});
  // The same without the values of weights: edges of two cells of one form that have the same
  // place have the same name. Others may have it too: equal branches with other weights.
  static EdgeNames Blind(const Graph& graph);

  StructureHash Of(Edge edge);
  // Returns the names of the edges, ascending.
  std::vector<StructureHash> Of(std::span<const Edge> edges);

 private:
  void NameAll();

  const Graph* graph_;
  Leaf leaf_;
  std::vector<std::optional<StructureHash>> nodes_;  // By node, without leaves.
};

// Returns the name of a constant without its value. Nothing: a rule may look at the value, so that
// belongs to the name. Single numbers and integers are such.
std::optional<StructureHash> WeightName(const Node& constant);
// Returns the name of an input of which only the type counts.
StructureHash InputName(const TensorType& type);

}  // namespace ag

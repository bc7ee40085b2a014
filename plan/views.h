// Tensors that lie inside other tensors: what makes a concat, a split, a slice or a reshape free. A
// forest over ports: each port has at most one home and an offset there; the roots of the trees are
// what gets memory of its own.
//   concat                    its operands lie inside its result
//   split, slice              their results lie inside their operand
//   reshape and whatever keeps the order of all elements, and reorders that change no byte:
//                             the result lies in the operand, or else the operand in the result
// Nothing may hold a graph input (the caller's memory) or a graph output in plain layout (which
// lies in the caller's buffer); a second home is refused, so a tensor lies inside one concat at
// most.
#pragma once

#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "plan/plan.h"

namespace ag {

class ViewForest {
 public:
  // `precision`: what the tensors are kept in (StoredType).
  ViewForest(const Graph& graph, int64_t alignment_bytes, std::string_view precision)
      : graph_(graph), alignment_(alignment_bytes), precision_(precision) {}

  // Puts the ports of `group`, one movement operator or a reorder, into one another. False, and
  // nothing is changed, when layouts, homes or the alignment do not let it.
  bool TryAdd(const Group& group);

  // Where the port lies in the end: a root (itself when it has no home) and the offset in it.
  struct Location {
    Port root;
    int64_t offset_bytes = 0;
  };
  Location Find(const Port& port) const;

 private:
  struct Home {
    Port inner;
    Port outer;
    int64_t offset_bytes = 0;
  };
  bool IsFree(const Port& port) const;
  bool CanLieInside(const Port& port) const;
  bool AddConcat(const Group& group);
  bool AddCut(const Group& group);
  bool AddDense(const Port& in, const Port& out);
  bool AddAll(std::span<const Home> homes);

  TensorType StoredTypeOf(Edge edge) const { return StoredType(graph_.type(edge), precision_); }

  const Graph& graph_;
  int64_t alignment_;
  std::string precision_;
  absl::flat_hash_map<uint64_t, Home> homes_;  // By the inner port; never iterated.
};

// The order in which views are added, the same wherever a forest is built: concats, splits and
// slices by size (a tensor that two concats hold saves most in the larger), then the rest from the
// graph's end, so that a chain of reshapes can lie in the graph's output. Returns positions in
// `groups`.
std::vector<int> ViewOrder(const Graph& graph, const std::vector<Group>& groups);

}  // namespace ag

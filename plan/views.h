// Views: tensors that lie inside other tensors, so that a concat, split, slice or reshape costs
// nothing. A forest over ports: each port has at most one home and an offset in it; the roots of
// the trees get memory of their own.
//   concat                    its operands lie inside its result
//   split, slice              their results lie inside their operand
//   reshape, other operators that keep the order of all elements (as a transpose of an image that
//   lies with its channels last), and reorders that change no byte:
//                             the result lies in the operand, or else the operand in the result
// A graph input (the caller's memory) and a graph output in plain layout (the caller's buffer) lie
// inside nothing. A port never gets a second home, so a tensor lies inside at most one concat. One
// thread at a time.
// most.
#pragma once

#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "plan/plan.h"

namespace ag {

class ViewForest {
 public:
  // `precision` is that of the stored tensors (StoredType). `graph` must outlive this.
  ViewForest(const Graph& graph, int64_t alignment_bytes, std::string_view precision)
      : graph_(graph), alignment_(alignment_bytes), precision_(precision) {}

  // Adds the homes for `group`, one movement operator or a reorder. Returns false, and changes
  // nothing, when layouts, homes or the alignment do not allow it.
  bool TryAdd(const Group& group);

  // The final location of a port: a root (the port itself when it has no home) and the offset in
  // it.
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

// Returns the positions in `groups` in the order in which every forest adds views: concats, splits
// and slices by size, largest first (a tensor in two concats saves most in the larger one), then
// the others from the graph's end on, so that a chain of reshapes can lie in the graph's output.
std::vector<int> ViewOrder(const Graph& graph, const std::vector<Group>& groups);

}  // namespace ag

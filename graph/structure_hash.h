// A 128-bit name of what a graph computes, for searches: equal for graphs that differ only in the
// order of commutative operands, in nodes that stand twice, in dead nodes and in names. The same on
// every machine; not for stored keys (those are Graph::digest()).
#pragma once

#include <compare>
#include <cstdint>

#include "graph/graph.h"
#include "graph/hash.h"

namespace ag {

struct StructureHash {
  uint64_t a = 0;
  uint64_t b = 0;
  auto operator<=>(const StructureHash&) const = default;
  template <class H>
  friend H AbslHashValue(H h, const StructureHash& hash) {
    return H::combine(std::move(h), hash.a);
  }
};

// Both halves mix the same values from different starts.
inline StructureHash MixIn(StructureHash hash, StructureHash v) {
  return {MixIn(hash.a, v.a), MixIn(hash.b, v.b)};
}

// The node without its operands: operator, attributes, and of leaves their type and bytes. Inputs
// of one type hash alike: their declared place is the caller's to mix in.
StructureHash HashOfNodeAlone(const Node& node);

// Linear in nodes, edges and attributes.
StructureHash HashOfStructure(const Graph& graph);

}  // namespace ag

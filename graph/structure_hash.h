// A 128-bit hash of what a graph computes, for searches. Graphs that differ only in the order of
// commutative operands, in duplicate or dead nodes, or in names have the same hash. The same on
// every machine, but not for stored keys (those use Graph::digest()). Pure functions.
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

// Mixes `v` into `hash`; both halves mix the same values from different starts.
inline StructureHash MixIn(StructureHash hash, StructureHash v) {
  return {MixIn(hash.a, v.a), MixIn(hash.b, v.b)};
}

// Returns the hash of a node without its operands: operator and attributes, and for leaves their
// type and bytes. Inputs of one type hash alike; the caller mixes in their declared place.
StructureHash HashOfNodeAlone(const Node& node);

// Returns the hash of the graph. Linear in nodes, edges and attributes.
StructureHash HashOfStructure(const Graph& graph);

}  // namespace ag

// A 128-bit hash of what a graph computes, for searches. Graphs that differ only in the order of
// commutative operands, in duplicate or dead nodes, or in names have the same hash. The same on
// every machine, but not for stored keys (those use Graph::digest()). Pure functions.
#pragma once

#include <cstdint>

#include "graph/graph.h"
#include "graph/hash.h"

namespace ag {

// Computes Node::hash: of operator and attributes, and for leaves of their type and bytes. Inputs
// of one type hash alike; the caller mixes in their declared place.
StructureHash HashOfNodeAlone(const Node& node);

// Computes Node::order_hash, which decides the order of commutative operands (graph/passes).
uint64_t OrderHashOfNode(const Node& node);

// Returns the hash of the graph. Linear in nodes, edges and attributes.
StructureHash HashOfStructure(const Graph& graph);

}  // namespace ag

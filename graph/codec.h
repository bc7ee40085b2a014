// The canonical bytes of a graph, and back (docs/graph-bytes.md). Equal graphs have equal bytes;
// names of inputs and outputs, and the bytes of small constants, are in a separate trailer that the
// digest leaves out. The decoder is ours and fuzzed: hostile bytes give kDataLoss or
// kInvalidArgument, never a crash or an unbounded allocation; it re-infers every type and refuses
// bytes that are not canonical.
#pragma once

#include <string>
#include <string_view>

#include "graph/graph.h"

namespace ag {

inline constexpr uint32_t kGraphBytesVersion = 1;

// Everything but names and inline bytes: what Graph::digest() hashes. Equal exactly when two graphs
// are equal.
std::string CanonicalBytes(const Graph& graph);

// The canonical bytes and the trailer.
std::string EncodeGraph(const Graph& graph);
StatusOr<Graph> DecodeGraph(std::string_view bytes);

}  // namespace ag

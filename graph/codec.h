// The canonical bytes of a graph (docs/graph-bytes.md). Equal graphs have equal bytes. A separate
// trailer, which the digest leaves out, holds the names of inputs and outputs and the bytes of
// small constants. The decoder accepts hostile bytes: it infers every type again, and it returns an
// error, never a crash or an unbounded allocation. Pure functions.
#pragma once

#include <string>
#include <string_view>

#include "base/bytes.h"
#include "graph/graph.h"

namespace ag {

inline constexpr uint32_t kGraphBytesVersion = 1;

// Writes and reads a type. kDataLoss: no such element type. kInvalidArgument: of CheckType.
void WriteType(const TensorType& type, ByteWriter* out);
StatusOr<TensorType> ReadType(ByteReader* in);

// Writes the attributes of an operator; equal ones have equal bytes.
void WriteAttributes(const Attributes& attributes, ByteWriter* out);

// Returns the bytes that Graph::digest() hashes: all but names and inline bytes. They are equal
// exactly when two graphs are equal.
std::string CanonicalBytes(const Graph& graph);

// Returns the canonical bytes and the trailer.
std::string EncodeGraph(const Graph& graph);
// Returns the graph of bytes from EncodeGraph. kDataLoss: the bytes are broken or not canonical.
// kInvalidArgument: the graph is ill-typed.
StatusOr<Graph> DecodeGraph(std::string_view bytes);

}  // namespace ag

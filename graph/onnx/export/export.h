// ONNX export: writes a standard model that any runtime loads. Thread-safe.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "graph/graph.h"
#include "graph/onnx/byte_sink.h"
#include "graph/onnx/origin.h"
#include "graph/weights.h"

namespace ag {

struct ExportOptions {
  // Metadata key and plan bytes; stored as base64 under "autograph.plan.<key>".
  std::vector<std::pair<std::string, std::string>> plans;
  // The graph that was imported with the origin: what is still there of it keeps its names. Null:
  // all names of inner nodes and values are new.
  const Graph* imported = nullptr;
  // The rules that made the graph's nodes, by node; "" or beyond the end: none or not known. A new
  // node has its rule in its name.
  std::vector<std::string> rules;
  // The same graph at other sizes of what the origin's model leaves open; then the sizes stay open
  // in what is written. Empty: they become the graph's.
  std::vector<Graph> at_other_sizes;
};

// Returns a serialized model with standard operators of the origin's opset only; composites that
// the opset lacks are expanded. Names of inputs and outputs are kept, constant recipes are folded
// (Materialize). Deterministic: same arguments, same bytes. kUnimplemented: an operator that the
// opset cannot express. kFailedPrecondition: what differs between the sizes follows from none of
// them; the message names the node. A model above 2 GiB is read by ImportOnnx, by others after
// SplitModel (graph/onnx/files); kResourceExhausted: it is that large without its weights.
StatusOr<std::string> ExportOnnx(const Graph& graph, const OnnxOrigin& origin,
                                 const WeightSource& weights, const ExportOptions& options = {});

// Writes the same bytes in pieces, in order, so that they are never in memory as a whole. Returns
// the first error of `sink`.
Status ExportOnnx(const Graph& graph, const OnnxOrigin& origin, const WeightSource& weights,
                  const ExportOptions& options, const ByteSink& sink);

}  // namespace ag

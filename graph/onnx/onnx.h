// ONNX import and export. Import reads a model into the IR and puts its weights into a blob folder.
// Export writes a standard model that any runtime loads. ImportOnnx parses hostile bytes: services
// call it only inside the jail (graph/onnx/jail.h). Thread-safe.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/blobs.h"
#include "graph/graph.h"
#include "graph/onnx/weight_sink.h"
#include "graph/weights.h"

namespace ag {

struct ImportLimits {
  int64_t model_bytes_max = int64_t{4} << 30;
  int64_t nodes_max = 200'000;
  int64_t tensor_bytes_max = int64_t{4} << 30;  // For each tensor, also activations.
  int64_t total_bytes_max = int64_t{64} << 30;  // For all activations and constants together.
  int rank_max = 16;
  int subgraph_depth_max = 16;
};

struct ImportOptions {
  // Bound shapes by input name ("x=1x3x224x224"); they replace the model's.
  std::map<std::string, Shape> shapes;
  ImportLimits limits;
};

// The parts of a model that the IR leaves out and that export restores.
struct OnnxOrigin {
  int64_t ir_version = 8;
  std::vector<std::pair<std::string, int64_t>> opsets;  // Domain and version.
  std::string producer_name, producer_version, domain, doc_string, graph_name;
  int64_t model_version = 0;
  std::vector<std::pair<std::string, std::string>> metadata;  // Without our own plans.
  // Sizes of inputs that the model leaves open: "x:0" and the symbol, "batch".
  std::vector<std::pair<std::string, std::string>> dim_names;
};

struct ImportedModel {
  Graph graph;
  OnnxOrigin origin;
  std::vector<std::string> warnings;  // For example "plan ignored: ...".
  // "autograph.plan.*" metadata: key and plan bytes.
  std::vector<std::pair<std::string, std::string>> plans;
  int64_t weight_bytes = 0;
};

// Imports a serialized model. kInvalidArgument, with the node in the message: not a protobuf,
// truncated, or empty; an unbound dimension (names input and dimension, and says "--shape
// NAME=..."); wrong types; a cycle; a missing weight; external data (never opened). kUnimplemented:
// opset outside 11..17 or ir_version above 8. kResourceExhausted: a tensor or the total exceeds the
// limits.
// The blobs survive the death of any process at once; they survive a power loss after blobs.Sync(),
// which the caller must call.
StatusOr<ImportedModel> ImportOnnx(std::string_view bytes, const ImportOptions& options,
                                   BlobDir& blobs);
// Imports a model and puts the bytes of constants into `sink`.
StatusOr<ImportedModel> ImportOnnx(std::string_view bytes, const ImportOptions& options,
                                   WeightSink& sink);

std::string EncodeOrigin(const OnnxOrigin& origin);
StatusOr<OnnxOrigin> DecodeOrigin(std::string_view bytes);

struct ExportOptions {
  // Metadata key and plan bytes; stored as base64 under "autograph.plan.<key>".
  std::vector<std::pair<std::string, std::string>> plans;
};

// Returns a serialized model with standard operators of the origin's opset only; composites that
// the opset lacks are expanded. Names of inputs and outputs are kept, constant recipes are folded
// (Materialize). Deterministic: same arguments, same bytes. kUnimplemented: an operator that the
// opset cannot express. kResourceExhausted: the model exceeds protobuf's 2 GiB.
StatusOr<std::string> ExportOnnx(const Graph& graph, const OnnxOrigin& origin,
                                 const WeightSource& weights, const ExportOptions& options = {});

// Writes the same bytes in pieces, in order, so that they are never in memory as a whole. Returns
// the first error of `sink`.
using ByteSink = std::function<Status(std::string_view piece)>;
Status ExportOnnx(const Graph& graph, const OnnxOrigin& origin, const WeightSource& weights,
                  const ExportOptions& options, const ByteSink& sink);

// Returns the tensor of a serialized TensorProto, as in ONNX test data and `autograph run --input
// x=FILE.pb`. kInvalidArgument: not a protobuf, or its data do not fit its dims. kUnimplemented:
// strings.
StatusOr<Tensor> ParseTensorProto(std::string_view bytes);

}  // namespace ag

// ONNX in and out. Import reads a model into the IR and puts its weights into a blob folder; export
// writes a standard model any runtime loads. ImportOnnx parses hostile bytes: services call it only
// inside the jail (graph/onnx/jail.h).
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
  int64_t tensor_bytes_max = int64_t{4} << 30;  // Any one tensor, activations included.
  int64_t total_bytes_max = int64_t{64} << 30;  // All activations and constants together.
  int rank_max = 16;
  int subgraph_depth_max = 16;
};

struct ImportOptions {
  std::map<std::string, Shape>
      shapes;  // Bound shapes by input name ("x=1x3x224x224"); wins over the model's.
  ImportLimits limits;
};

// What the IR leaves out and export gives back.
struct OnnxOrigin {
  int64_t ir_version = 8;
  std::vector<std::pair<std::string, int64_t>> opsets;  // domain, version
  std::string producer_name, producer_version, domain, doc_string, graph_name;
  int64_t model_version = 0;
  std::vector<std::pair<std::string, std::string>> metadata;  // Without our own plans.
  std::vector<std::pair<std::string, std::string>>
      dim_names;  // Sizes of inputs that the model leaves open: "x:0" and the symbol, "batch".
};

struct ImportedModel {
  Graph graph;
  OnnxOrigin origin;
  std::vector<std::string> warnings;  // E.g. "plan ignored: ...".
  std::vector<std::pair<std::string, std::string>>
      plans;  // "autograph.plan.*" metadata: key, plan bytes.
  int64_t weight_bytes = 0;
};

// Errors (all kInvalidArgument unless said): not a protobuf; truncated; empty model; opset
// outside 11..17 or ir_version above 8 (kUnimplemented); a dimension not bound (names input and
// dimension and says
// "--shape NAME=..."); wrong types; a cycle; a missing weight; external data (never opened); a
// tensor or total beyond the limits (kResourceExhausted). Messages name the node. The blobs survive
// the death of any process at once, a power loss after blobs.Sync(), which is the caller's.
StatusOr<ImportedModel> ImportOnnx(std::string_view bytes, const ImportOptions& options,
                                   BlobDir& blobs);
// The same with the bytes of constants going into any sink.
StatusOr<ImportedModel> ImportOnnx(std::string_view bytes, const ImportOptions& options,
                                   WeightSink& sink);

std::string EncodeOrigin(const OnnxOrigin& origin);
StatusOr<OnnxOrigin> DecodeOrigin(std::string_view bytes);

struct ExportOptions {
  // Metadata key -> plan bytes, stored as base64 under "autograph.plan.<key>".
  std::vector<std::pair<std::string, std::string>> plans;
};

// Serializes a model: standard operators of the origin's opset only (composites expanded where it
// lacks them), names of inputs and outputs kept, constant recipes folded (Materialize).
// Deterministic: same arguments, same bytes. kUnimplemented: an operator that the opset cannot
// express. kResourceExhausted: a model over protobuf's 2 GiB.
StatusOr<std::string> ExportOnnx(const Graph& graph, const OnnxOrigin& origin,
                                 const WeightSource& weights, const ExportOptions& options = {});

// The same file in pieces, in order, so that it never stands in memory as a whole. An error of
// `sink` ends it and is returned.
using ByteSink = std::function<Status(std::string_view piece)>;
Status ExportOnnx(const Graph& graph, const OnnxOrigin& origin, const WeightSource& weights,
                  const ExportOptions& options, const ByteSink& sink);

// A serialized TensorProto, as ONNX test data and `autograph run --input x=FILE.pb` hold them.
// kInvalidArgument: not a protobuf, or its data do not fit its dims. kUnimplemented: strings.
StatusOr<Tensor> ParseTensorProto(std::string_view bytes);

}  // namespace ag

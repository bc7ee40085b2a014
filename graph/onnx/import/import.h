// ONNX import: reads a model into the IR and puts its weights into a blob folder. ImportOnnx parses
// hostile bytes: services call it only inside the sandbox (graph/onnx/sandbox/sandbox.h).
// Thread-safe.
#pragma once

#include <string_view>

#include "base/blobs.h"
#include "graph/onnx/imported_model.h"
#include "graph/onnx/weight_sink.h"

namespace ag {

// Imports a serialized model. Open dimensions that `options` does not bind take sizes by their
// role, and a warning says which. kInvalidArgument, with the node in the message: not a protobuf,
// truncated, or empty; an input without a shape; wrong types; a cycle; a missing weight; external
// data, of which nothing is opened. kUnimplemented: opset outside 1..28, ir_version outside 3..14,
// or a node that can neither be imported nor kept. kResourceExhausted: a tensor or the total
// exceeds the limits.
// The blobs survive the death of any process at once; they survive a power loss after blobs.Sync(),
// which the caller must call.
StatusOr<ImportedModel> ImportOnnx(std::string_view bytes, const ImportOptions& options,
                                   BlobDir& blobs);
// Imports a model and puts the bytes of constants into `sink`.
StatusOr<ImportedModel> ImportOnnx(std::string_view bytes, const ImportOptions& options,
                                   WeightSink& sink);

}  // namespace ag

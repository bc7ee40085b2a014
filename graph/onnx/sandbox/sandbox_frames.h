// The frames between parent and child of the sandbox, over base/frames. The parent sends one
// request with the model as file descriptor. The child answers with weights, then with a result or
// an error. Decoders accept hostile bytes (kDataLoss). Pure functions.
#pragma once

#include <string>

#include "base/fields.h"
#include "graph/codec.h"
#include "graph/onnx/imported_model.h"
#include "graph/onnx/sandbox/sandbox.h"

namespace ag {

enum SandboxFrame : uint32_t {
  kSandboxRequest = 1,      // A SandboxRequest, with the model as descriptor.
  kSandboxWeight = 2,       // A weight of at most kSandboxPieceBytes: digest and bytes.
  kSandboxWeightPart = 3,   // A piece of a larger weight.
  kSandboxWeightEnd = 4,    // The digest, after the last piece.
  kSandboxResultPart = 5,   // A piece of the encoded ImportedModel.
  kSandboxDone = 6,         // The end of the ImportedModel.
  kSandboxError = 7,        // Status code and message.
  kSandboxWeightPlace = 8,  // A weight inside the model's bytes: digest, offset, size.
};

// The most bytes of a model that the parent holds at any time.
inline constexpr size_t kSandboxPieceBytes = size_t{16} << 20;

struct SandboxRequest {
  ImportOptions options;
  int64_t memory_bytes = 0;  // The child's limit on address space.
  int64_t cpu_seconds = 0;
};

struct WeightPlace {
  Digest digest;
  uint64_t offset = 0, size = 0;
};
void Fields(auto& io, Is<WeightPlace> auto& place) { io(place.digest, place.offset, place.size); }

void Fields(auto& io, Is<SandboxRequest> auto& request) {
  auto& limits = request.options.limits;
  io(request.memory_bytes, request.cpu_seconds, limits.model_bytes_max, limits.nodes_max,
     limits.tensor_bytes_max, limits.total_bytes_max, limits.rank_max, limits.subgraph_depth_max,
     request.options.shapes);
}

void Fields(auto& io, Is<ImportedModel> auto& model) {
  io.Nested(model.graph, EncodeGraph, DecodeGraph);
  io.Nested(model.origin, EncodeOrigin, DecodeOrigin);
  io(model.weight_bytes, model.warnings, model.chosen_sizes, model.plans);
}

}  // namespace ag

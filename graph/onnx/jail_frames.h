// What parent and child of the jail say to each other over base/frames. The parent sends one
// request with the model as file descriptor; the child answers with weights, then a result or an
// error.
#pragma once

#include <string>

#include "graph/onnx/jail.h"

namespace ag {

enum JailFrame : uint32_t {
  kJailRequest = 1,      // JailRequest; one descriptor: the model.
  kJailWeight = 2,       // Digest and bytes of a weight of at most kJailPieceBytes.
  kJailWeightPart = 3,   // A piece of a larger weight,
  kJailWeightEnd = 4,    // and its digest after the last piece.
  kJailResultPart = 5,   // A piece of the encoded ImportedModel,
  kJailDone = 6,         // and the end of it.
  kJailError = 7,        // Status code and message.
  kJailWeightPlace = 8,  // A weight that lies in the model as it is: digest, offset, size.
};

// Bounds what the parent holds of a model at any time.
inline constexpr size_t kJailPieceBytes = size_t{16} << 20;

struct JailRequest {
  ImportOptions options;
  int64_t memory_bytes = 0;  // Address space of the child.
  int64_t cpu_seconds = 0;
};

struct WeightPlace {
  Digest digest;
  uint64_t offset = 0, size = 0;
};
std::string EncodePlace(const WeightPlace& place);
StatusOr<WeightPlace> DecodePlace(std::string_view bytes);

std::string EncodeRequest(const JailRequest& request);
StatusOr<JailRequest> DecodeRequest(std::string_view bytes);
std::string EncodeImported(const ImportedModel& model);
StatusOr<ImportedModel> DecodeImported(std::string_view bytes);
std::string EncodeError(const Status& status);
Status DecodeError(std::string_view bytes);  // The error itself; kDataLoss when it is none.

}  // namespace ag

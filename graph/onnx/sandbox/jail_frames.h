// The frames between parent and child of the jail, over base/frames. The parent sends one request
// with the model as file descriptor. The child answers with weights, then with a result or an
// error. Decoders accept hostile bytes (kDataLoss). Pure functions.
#pragma once

#include <string>

#include "graph/onnx/imported_model.h"
#include "graph/onnx/sandbox/jail.h"

namespace ag {

enum JailFrame : uint32_t {
  kJailRequest = 1,      // A JailRequest, with the model as descriptor.
  kJailWeight = 2,       // A weight of at most kJailPieceBytes: digest and bytes.
  kJailWeightPart = 3,   // A piece of a larger weight.
  kJailWeightEnd = 4,    // The digest, after the last piece.
  kJailResultPart = 5,   // A piece of the encoded ImportedModel.
  kJailDone = 6,         // The end of the ImportedModel.
  kJailError = 7,        // Status code and message.
  kJailWeightPlace = 8,  // A weight inside the model's bytes: digest, offset, size.
};

// The most bytes of a model that the parent holds at any time.
inline constexpr size_t kJailPieceBytes = size_t{16} << 20;

struct JailRequest {
  ImportOptions options;
  int64_t memory_bytes = 0;  // The child's limit on address space.
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
Status DecodeError(std::string_view bytes);  // Returns that error; kDataLoss: the bytes hold none.

}  // namespace ag

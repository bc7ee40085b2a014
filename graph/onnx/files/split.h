// A model in two files: for one that is larger than the 2 GiB that protobuf's readers take.
// Thread-safe.
#pragma once

#include <string>

#include "base/status.h"

namespace ag {

// The most bytes that any ONNX reader takes in one file.
inline constexpr int64_t kProtobufBytesMax = (int64_t{1} << 31) - 1;

struct SplitOptions {
  int64_t data_bytes_min = 1024;  // Smaller weights stay inside.
};

// Writes the model in the file `whole` as `path` and the weights of its graph, also of subgraphs,
// as `path`.data beside it (ONNX: external data). Each is written atomically, the model last.
// `path` may be `whole`. Errors as WriteFileInPieces; kResourceExhausted: 2 GiB are left without
// the weights.
Status SplitModel(const std::string& whole, const std::string& path,
                  const SplitOptions& options = {});

}  // namespace ag

// Import in a child process: spawned anew, with limits on memory, processor time and open files,
// and a system-call filter (no new files, no sockets). The child gets the model as a file
// descriptor and a folder for weights through its parent only; it returns canonical bytes that our
// decoder reads. A crash, a limit or a timeout of the child is an error of the model, never of the
// caller.
#pragma once

#include <string>

#include "base/clock.h"
#include "graph/onnx/onnx.h"

namespace ag {

struct JailOptions {
  Nanos time_max{120'000'000'000};
  int64_t memory_base_bytes = int64_t{1} << 30;  // Address space: base + factor x model bytes.
  double memory_factor = 4;
  std::string program;  // The binary with the role "jail"; empty: our own.
};

// As ImportOnnx, for the model in file `path`, in the jail. kInvalidArgument "model import crashed
// ..." when the child died, kResourceExhausted when it met a limit, kDeadlineExceeded on timeout.
StatusOr<ImportedModel> ImportInJail(const std::string& path, const ImportOptions& options,
                                     BlobDir& blobs, const JailOptions& jail = {});

// Registers the role "jail" (base/process.h). Call at the top of main.
void RegisterJailRole();

}  // namespace ag

// Import in a child process: a new program with limits on memory, processor time and open files,
// and with a system-call filter (no new files, no sockets). The child gets only the model, as a
// file descriptor. It sends weights and canonical bytes, which our decoder checks. A crash, a limit
// or a timeout of the child is an error of the model, never of the caller. Thread-safe.
#pragma once

#include <string>

#include "base/blobs.h"
#include "base/clock.h"
#include "graph/onnx/imported_model.h"

namespace ag {

struct SandboxOptions {
  Nanos time_max{120'000'000'000};
  int64_t memory_base_bytes = int64_t{1} << 30;  // Address space: base + factor x model bytes.
  double memory_factor = 4;
  std::string program;  // The binary that has the role "sandbox"; "": the running one.
};

// Imports the model in the file `path` as ImportOnnx does, in the sandbox. kInvalidArgument "model
// import crashed ...": the child died. kResourceExhausted: it reached a limit. kDeadlineExceeded:
// it took longer than time_max.
StatusOr<ImportedModel> ImportInSandbox(const std::string& path, const ImportOptions& options,
                                        BlobDir& blobs, const SandboxOptions& sandbox = {});

// Registers the role "sandbox" (base/process.h). REQUIRES: called at the start of main.
void RegisterSandboxRole();

}  // namespace ag

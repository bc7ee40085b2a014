// Export in a child process, so that the weights of a big model never stand in the coordinator's
// memory: the child maps them, folds recipes, and writes the file.
#pragma once

#include <string>

#include "base/clock.h"
#include "graph/onnx/onnx.h"

namespace ag {

struct ExportRequest {
  Graph graph;
  OnnxOrigin origin;
  ExportOptions options;
  std::string blob_root;  // Where the weights are.
  std::string path;       // The file to write; replaced, and after an error half or gone.
};

struct ExportChildOptions {
  std::string program;  // The binary with the role "export"; empty: our own.
  Nanos time_max{std::chrono::minutes(10)};
};

// The file is not synced: what is to last goes into a BlobDir. Errors as ExportOnnx and FromErrno;
// kDeadlineExceeded; kInternal: the child died.
Status ExportInChild(const ExportRequest& request, const ExportChildOptions& options);

// Registers the role "export" (base/process.h). Call at the top of main.
void RegisterExportRole();

}  // namespace ag

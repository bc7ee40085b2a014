// Export of a model in a child process, so that the weights of a big model are never in the
// coordinator's memory: the child maps them, folds recipes, and writes the file through a
// descriptor. Thread-safe.
#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "graph/onnx/export/export.h"
#include "graph/onnx/origin.h"

namespace ag {

struct ExportRequest {
  Graph graph;
  Graph imported;  // Of the origin's names.
  OnnxOrigin origin;
  std::string blob_root;  // Where the weights are.
  int fd = -1;            // The file to append to. After an error it is partly written.
  std::vector<Graph> at_other_sizes = {};  // ExportOptions::at_other_sizes.
  std::vector<std::string> rules = {};     // ExportOptions::rules.
};

struct ExportChildOptions {
  std::string program;  // The binary with the role "export"; empty: this program.
  Nanos time_max{std::chrono::minutes(10)};
};

// Writes the model, without syncing the file. Returns the errors of ExportOnnx and FromErrno;
// kDeadlineExceeded: time_max passed; kInternal: the child died.
Status ExportInChild(const ExportRequest& request, const ExportChildOptions& options);

// Registers the role "export" (base/process.h). Call at the top of main.
void RegisterExportRole();

}  // namespace ag

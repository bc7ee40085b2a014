// A model with every tensor's data inside. Pure functions.
#pragma once

#include <string_view>

#include "graph/onnx/files/rewrite.h"

namespace ag {

struct JoinOptions {
  // Places of at least `aligned_bytes_min` bytes begin at the same offset within a page of
  // `page_bytes` as in their file, so that they can be mapped. 0: no place does.
  uint64_t page_bytes = 0, aligned_bytes_min = 0;
};

// Joins a model with its data files. `model` are the bytes of files.file(0); what is no model has
// no data files and stays as it is. Errors of DataFiles::Find. kResourceExhausted: above 32 GiB.
StatusOr<ModelPieces> JoinModel(std::string_view model, DataFiles& files,
                                const JoinOptions& options = {});

}  // namespace ag

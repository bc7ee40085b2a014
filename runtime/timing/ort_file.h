// A model's file as ONNX Runtime reads it. One thread at a time. Private to this folder.
#pragma once

#include <optional>
#include <string>

#include "base/file.h"

namespace ag::internal {

// The file itself, or where it is above 2 GiB the same model in two temporary files, which live as
// long as this.
class OrtFile {
 public:
  // Errors of SplitModel (graph/onnx/files/split.h).
  static StatusOr<OrtFile> Of(const std::string& path);
  const std::string& path() const { return path_; }

 private:
  std::optional<TempDir> folder_;
  std::string path_;
};

}  // namespace ag::internal

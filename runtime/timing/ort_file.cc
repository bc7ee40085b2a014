#include "runtime/timing/ort_file.h"

#include <filesystem>

#include "graph/onnx/files/split.h"

namespace ag::internal {

StatusOr<OrtFile> OrtFile::Of(const std::string& path) {
  OrtFile file;
  file.path_ = path;
  std::error_code missing;  // ONNX Runtime says it.
  const uintmax_t bytes = std::filesystem::file_size(path, missing);
  if (missing || bytes <= static_cast<uintmax_t>(kProtobufBytesMax)) return file;
  AG_LET(file.folder_, TempDir::Make("autograph-ort"));
  file.path_ = file.folder_->path() + "/model.onnx";
  AG_TRY(SplitModel(path, file.path_), "two files for ONNX Runtime");
  return file;
}

}  // namespace ag::internal

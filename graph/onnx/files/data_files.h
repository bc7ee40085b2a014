// The data files beside a model: each is opened once, at its first use. Only plain relative paths
// below the model's folder are opened. One thread at a time.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/file_reader.h"
#include "graph/onnx/wire.h"

namespace ag {

// Bytes in one of the files; file 0 is the model itself.
struct FilePlace {
  size_t file = 0;
  uint64_t offset = 0, size = 0;
};

class DataFiles {
 public:
  // Opens the model's file. Errors as FileReader::Open.
  static StatusOr<DataFiles> Open(const std::string& model_path);

  // Returns the place of the tensor's bytes, all of which the file has. kInvalidArgument, with the
  // tensor and its file: a path that is not below the model's folder, also by a symbolic link; a
  // wrong number; another length than type and shape need; a file that is too short. kNotFound: no
  // such file. REQUIRES: tensor.external.
  StatusOr<FilePlace> Find(const OnnxTensor& tensor);

  FileReader& file(size_t index) { return files_[index]; }
  bool has_data_files() const { return !paths_.empty(); }
  const std::vector<std::string>& paths() const { return paths_; }  // Of the data files, real ones.

 private:
  DataFiles(std::string folder, FileReader model) : folder_(std::move(folder)) {
    files_.push_back(std::move(model));
  }
  StatusOr<size_t> Index(const std::string& location);

  std::string folder_;
  std::vector<FileReader> files_;
  std::vector<std::string> paths_;
  std::map<std::string, size_t> by_location_;
};

}  // namespace ag

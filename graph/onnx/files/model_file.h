// A model's file with the data files beside it, as the bytes of one model with all weights inside,
// read piece by piece: to be hashed, sent or written. One thread at a time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/file.h"
#include "graph/onnx/byte_sink.h"
#include "graph/onnx/files/join.h"

namespace ag {

class ModelFile {
 public:
  // Opens the model and the data files that it names. Errors as MappedFile::Open and JoinModel;
  // the latter begin with `path`.
  static StatusOr<ModelFile> Open(const std::string& path);

  uint64_t size() const { return joined_.size; }
  // False: the bytes are those of the model's file.
  bool has_data_files() const { return files_.has_data_files(); }
  const std::vector<std::string>& data_paths() const { return files_.paths(); }

  // Gives all bytes in order, at most 1 MiB at a time. Returns the first error of `sink`, or of
  // reading. The bytes are the same at every call while the files do not change.
  Status Read(const ByteSink& sink);

 private:
  ModelFile(DataFiles files, ModelPieces joined)
      : files_(std::move(files)), joined_(std::move(joined)) {}
  DataFiles files_;
  ModelPieces joined_;
};

}  // namespace ag

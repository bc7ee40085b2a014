// A model's file with the data files beside it, in memory, as the bytes of one model with all
// weights inside. Large weights stay mapped from their files, which must not change meanwhile.
// Thread-safe.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "graph/onnx/files/data_files.h"

namespace ag {

class ModelView {
 public:
  // Opens the model and the data files that it names. Errors as ModelFile::Open.
  static StatusOr<std::shared_ptr<const ModelView>> Open(const std::string& path);
  ~ModelView();
  ModelView(const ModelView&) = delete;
  ModelView& operator=(const ModelView&) = delete;

  std::string_view bytes() const { return bytes_; }
  // Gives pages back that come again from the files when they are read.
  void DropPages() const;

 private:
  ModelView() = default;
  Status Join(const std::string& path);
  Status Put(FileReader& file, const FilePlace& place, char* to);

  std::shared_ptr<const MappedFile> model_;  // Set where the model has no data files.
  void* memory_ = nullptr;                   // The joined model elsewhere.
  std::string_view bytes_;
  std::vector<std::string_view> mapped_;  // The parts of bytes_ that are mapped from files.
};

}  // namespace ag

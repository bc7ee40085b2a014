#include "graph/onnx/files/model_file.h"

#include <algorithm>

namespace ag {
namespace {

constexpr uint64_t kReadBytes = uint64_t{1} << 20;

}  // namespace

StatusOr<ModelFile> ModelFile::Open(const std::string& path) {
  AG_LET(const std::shared_ptr<const MappedFile> model, MappedFile::Open(path));
  AG_LET(DataFiles files, DataFiles::Open(path));
  StatusOr<ModelPieces> joined = JoinModel(model->bytes(), files);
  AG_TRY(joined.status(), "{}", path);
  return ModelFile(std::move(files), *std::move(joined));
}

Status ModelFile::Read(const ByteSink& sink) {
  for (const ModelPiece& piece : joined_.pieces) {
    for (uint64_t at = 0; at < piece.size(); at += kReadBytes) {
      const auto size = static_cast<size_t>(std::min(kReadBytes, piece.size() - at));
      if (!piece.text.empty()) {
        AG_TRY(sink(std::string_view(piece.text).substr(at, size)));
        continue;
      }
      FileReader& file = files_.file(piece.place.file);
      AG_LET(const std::string_view bytes, file.Read(piece.place.offset + at, size));
      AG_TRY(sink(bytes));
    }
  }
  return OkStatus();
}

}  // namespace ag

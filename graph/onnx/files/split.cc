#include "graph/onnx/files/split.h"

#include <filesystem>

#include "base/file.h"
#include "base/write_pieces.h"
#include "graph/onnx/files/rewrite.h"

namespace ag {
namespace {

// Small weights share a cache line with no other; large ones can be mapped by themselves.
constexpr uint64_t kSmallAlignment = 64, kPageAlignment = 4096, kLargeBytes = 1 << 20;
constexpr uint32_t kEntryKey = 1, kEntryValue = 2;  // Of StringStringEntryProto.

class Splitter : public ModelRewriter {
 public:
  Splitter(std::string location, const SplitOptions& options)
      : location_(std::move(location)), options_(options) {}

  Status WriteData(const WritePiece& write) const {
    uint64_t at = 0;
    for (const auto& [offset, bytes] : data_) {
      AG_TRY(write(std::string(offset - at, '\0')));
      AG_TRY(write(bytes));
      at = offset + bytes.size();
    }
    return OkStatus();
  }

 private:
  static std::string_view RawData(std::string_view tensor) {
    std::string_view raw;
    const Status read = ForEachField(tensor, [&](const WireField& field) {
      if (field.number == kTensorRawData && field.is_bytes) raw = field.payload;
      return OkStatus();
    });
    return read.ok() ? raw : std::string_view();
  }

  bool Changes(std::string_view tensor, Kind parent) const override {
    return parent == Kind::kGraph &&
           static_cast<int64_t>(RawData(tensor).size()) >= options_.data_bytes_min;
  }

  Status WriteTensor(std::string_view tensor) override {
    const std::string_view raw = RawData(tensor);
    const uint64_t alignment = raw.size() < kLargeBytes ? kSmallAlignment : kPageAlignment;
    const uint64_t offset = (end_ + alignment - 1) / alignment * alignment;
    data_.emplace_back(offset, raw);
    end_ = offset + raw.size();
    AG_TRY(KeepAllButData(tensor));
    for (const auto& [key, value] : {std::pair{"location", location_},
                                     {"offset", fmt::format("{}", offset)},
                                     {"length", fmt::format("{}", raw.size())}}) {
      std::string entry, field;
      AppendLengthTag(kEntryKey, std::string_view(key).size(), entry);
      entry += key;
      AppendLengthTag(kEntryValue, value.size(), entry);
      entry += value;
      AppendLengthTag(kTensorExternalData, entry.size(), field);
      Text(field + entry);
    }
    std::string is_external;
    AppendVarint(uint64_t{kTensorDataLocation} << 3, is_external);
    AppendVarint(1, is_external);
    Text(is_external);
    return OkStatus();
  }

  const std::string location_;
  const SplitOptions& options_;
  uint64_t end_ = 0;  // Of the data file so far.
  std::vector<std::pair<uint64_t, std::string_view>> data_;
};

}  // namespace

Status SplitModel(const std::string& whole, const std::string& path, const SplitOptions& options) {
  AG_LET(const std::shared_ptr<const MappedFile> model, MappedFile::Open(whole));
  const std::string data = path + ".data";
  Splitter splitter(std::filesystem::path(data).filename().string(), options);
  AG_LET(const ModelPieces rest, splitter.Run(model->bytes()));
  if (static_cast<int64_t>(rest.size) > kProtobufBytesMax) {
    return Err(StatusCode::kResourceExhausted,
               "{}: the model has {} bytes without its weights, ONNX ends at 2 GiB", path,
               rest.size);
  }
  AG_TRY(
      WriteFileInPieces(data, [&](const WritePiece& write) { return splitter.WriteData(write); }));
  return WriteFileInPieces(path, [&](const WritePiece& write) -> Status {
    for (const ModelPiece& piece : rest.pieces) {
      AG_TRY(write(piece.text.empty() ? model->bytes().substr(piece.place.offset, piece.place.size)
                                      : std::string_view(piece.text)));
    }
    return OkStatus();
  });
}

}  // namespace ag

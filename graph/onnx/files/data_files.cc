#include "graph/onnx/files/data_files.h"

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "base/text.h"

namespace ag {
namespace {

namespace fs = std::filesystem;

Status NotBelow(const std::string& location) {
  return Err(StatusCode::kInvalidArgument,
             "its data file {} must lie in the model's folder or below it", Quoted(location));
}

StatusOr<std::optional<uint64_t>> NumberOf(const std::string& text, std::string_view what) {
  if (text.empty()) return std::optional<uint64_t>();
  const StatusOr<int64_t> number = ParseInt(text);
  if (!number.ok() || *number < 0) {
    return Err(StatusCode::kInvalidArgument, "the {} of its data, {}, is no number from 0 on", what,
               Quoted(text));
  }
  return std::optional<uint64_t>(static_cast<uint64_t>(*number));
}

// Returns the bytes that type and shape need, nothing where the type is not ours: its tensor is an
// error of the import.
StatusOr<std::optional<uint64_t>> NeededBytes(const OnnxTensor& tensor) {
  const StatusOr<DType> dtype = DTypeFromOnnx(tensor.data_type);
  if (!dtype.ok() || *dtype == DType::kString) return std::optional<uint64_t>();
  const TensorType type{*dtype, Shape(tensor.dims.begin(), tensor.dims.end())};
  AG_TRY(CheckType(type));
  return std::optional<uint64_t>(static_cast<uint64_t>(type.Bytes()));
}

}  // namespace

StatusOr<DataFiles> DataFiles::Open(const std::string& model_path) {
  AG_LET(FileReader model, FileReader::Open(model_path));
  std::string folder = fs::path(model_path).parent_path().string();
  return DataFiles(folder.empty() ? "." : std::move(folder), std::move(model));
}

StatusOr<size_t> DataFiles::Index(const std::string& location) {
  const auto known = by_location_.find(location);
  if (known != by_location_.end()) return known->second;
  const fs::path path(location);
  const bool climbs = std::ranges::any_of(path, [](const fs::path& part) { return part == ".."; });
  const bool has_nul = location.find('\0') != std::string::npos;
  if (location.empty() || path.is_absolute() || climbs || has_nul) return NotBelow(location);
  std::error_code error;
  const fs::path folder = fs::canonical(folder_, error);
  if (error) return FromErrno(error.value(), "read " + folder_);
  const fs::path real = fs::canonical(fs::path(folder_) / path, error);
  if (error) {
    return Within(FromErrno(error.value(), "read " + (fs::path(folder_) / path).string()),
                  fmt::format("its data file {}", Quoted(location)));
  }
  const auto differ = std::mismatch(folder.begin(), folder.end(), real.begin(), real.end());
  if (differ.first != folder.end()) return NotBelow(location);
  if (!fs::is_regular_file(real, error)) {  // To open a pipe would wait for its other end.
    return Err(StatusCode::kInvalidArgument, "its data file {} is not a regular file",
               Quoted(location));
  }
  AG_LET(FileReader file, FileReader::Open(real.string()));
  files_.push_back(std::move(file));
  paths_.push_back(real.string());
  by_location_[location] = files_.size() - 1;
  return files_.size() - 1;
}

StatusOr<FilePlace> DataFiles::Find(const OnnxTensor& tensor) {
  const auto find = [&]() -> StatusOr<FilePlace> {
    const OnnxExternal& external = *tensor.external;
    AG_LET(const std::optional<uint64_t> offset, NumberOf(external.offset, "offset"));
    AG_LET(const std::optional<uint64_t> length, NumberOf(external.length, "length"));
    AG_LET(const std::optional<uint64_t> needed, NeededBytes(tensor));
    FilePlace place{.offset = offset.value_or(0)};
    AG_LET(place.file, Index(external.location));
    const auto end = static_cast<uint64_t>(files_[place.file].size());
    const uint64_t rest = end - std::min(end, place.offset);
    place.size = length.value_or(needed.value_or(rest));
    if (needed.has_value() && place.size != *needed) {
      return Err(StatusCode::kInvalidArgument, "type and shape need {} bytes, it has {} in {}",
                 *needed, place.size, Quoted(external.location));
    }
    if (place.offset <= end && place.size <= rest) return place;
    return Err(StatusCode::kInvalidArgument,
               "its data file {} is too short: {} bytes from byte {} on are needed, it has {}",
               Quoted(external.location), place.size, place.offset, end);
  };
  StatusOr<FilePlace> place = find();
  AG_TRY(place.status(), "tensor {}", Quoted(tensor.name));
  return place;
}

}  // namespace ag

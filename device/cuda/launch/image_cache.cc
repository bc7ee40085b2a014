#include "device/cuda/launch/image_cache.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "base/bytes.h"
#include "base/file.h"
#include "base/log.h"

namespace ag::cuda {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kMagic = 0x49434741;  // "AGCI".
constexpr std::string_view kEnding = ".image";

// The file's bytes: the magic, the image's digest, the image.
StatusOr<std::string> Decode(std::string_view bytes) {
  ByteReader in(bytes);
  AG_LET(const uint32_t magic, in.U32());
  AG_LET(const Digest digest, in.ReadDigest());
  AG_LET(std::string image, in.String());
  AG_TRY(in.End());
  if (magic == kMagic && digest == Sha256(image)) return image;
  return Err(StatusCode::kDataLoss, "not a whole image");
}

}  // namespace

std::string ImageCache::PathOf(const Digest& key) const {
  return folder_ + "/" + key.Hex() + std::string(kEnding);
}

std::optional<std::string> ImageCache::Get(const Digest& key) const {
  if (folder_.empty()) return {};
  const StatusOr<std::string> bytes = ReadFile(PathOf(key));
  if (!bytes.ok()) return {};
  StatusOr<std::string> image = Decode(*bytes);
  if (!image.ok()) return {};
  return *std::move(image);
}

void ImageCache::Put(const Digest& key, std::string_view image) {
  if (folder_.empty()) return;
  MutexLock lock(mutex_);
  ByteWriter out;
  out.U32(kMagic);
  out.AddDigest(Sha256(image));
  out.String(image);
  Status status = MakeDirs(folder_);
  if (status.ok()) status = WriteFileAtomically(PathOf(key), out.bytes());
  if (!status.ok()) {
    LogWarn("compiled kernels are not kept: {}", Message(status));
    return;
  }
  Shrink();
}

void ImageCache::Shrink() {
  struct File {
    fs::file_time_type time;
    fs::path path;
    int64_t bytes = 0;
  };
  std::vector<File> files;
  int64_t total = 0;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_, error)) {
    if (entry.path().extension() != kEnding) continue;
    // Another process may remove a file while we look: it counts as gone.
    const auto bytes = static_cast<int64_t>(entry.file_size(error));
    if (error) continue;
    const fs::file_time_type time = entry.last_write_time(error);
    if (error) continue;
    files.push_back({time, entry.path(), bytes});
    total += bytes;
  }
  if (total <= bytes_max_) return;
  std::ranges::sort(files, {}, [](const File& file) { return std::pair(file.time, file.path); });
  for (const File& file : files) {
    if (total <= bytes_max_) break;
    fs::remove(file.path, error);
    total -= file.bytes;
  }
}

}  // namespace ag::cuda

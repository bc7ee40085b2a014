#include "device/cuda/launch/compiled_cache.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "base/file.h"
#include "base/log.h"

namespace ag::cuda {
namespace {

namespace fs = std::filesystem;

constexpr size_t kSealBytes = sizeof(Digest::bytes);  // The image's digest precedes it.

std::string Seal(const std::string& image) {
  const Digest digest = Sha256(image);
  return std::string(digest.bytes.begin(), digest.bytes.end());
}

void RemoveOldest(const std::string& folder, int64_t bytes_max) {
  struct Entry {
    fs::file_time_type time;
    fs::path path;
    int64_t bytes = 0;
  };
  std::vector<Entry> entries;
  int64_t total = 0;
  std::error_code error;
  for (const auto& file : fs::directory_iterator(folder, error)) {
    std::error_code gone;  // Another process may have removed it.
    const auto bytes = static_cast<int64_t>(file.file_size(gone));
    if (gone) continue;
    entries.push_back({file.last_write_time(gone), file.path(), bytes});
    total += bytes;
  }
  if (total <= bytes_max) return;
  std::ranges::sort(entries, {}, &Entry::time);
  for (const Entry& entry : entries) {
    if (total <= bytes_max / 2) break;
    fs::remove(entry.path, error);
    total -= entry.bytes;
  }
}

}  // namespace

CompiledCache::CompiledCache(std::string folder, int64_t bytes_max) : folder_(std::move(folder)) {
  if (folder_.empty()) return;
  if (const Status made = MakeDirs(folder_); !made.ok()) {
    LogWarn("what is compiled is not kept: {}", Message(made));
    folder_.clear();
    return;
  }
  RemoveOldest(folder_, bytes_max);
}

std::string CompiledCache::PathOf(const Digest& key) const { return folder_ + "/" + key.Hex(); }

std::optional<std::string> CompiledCache::Find(const Digest& key) const {
  if (folder_.empty()) return std::nullopt;
  const StatusOr<std::string> file = ReadFile(PathOf(key));
  if (!file.ok() || file->size() <= kSealBytes) return std::nullopt;
  std::string image = file->substr(kSealBytes);
  if (file->compare(0, kSealBytes, Seal(image)) != 0) return std::nullopt;
  return image;
}

void CompiledCache::Put(const Digest& key, const std::string& image) const {
  if (folder_.empty()) return;
  const Status written = WriteFileAtomically(PathOf(key), Seal(image) + image);
  if (!written.ok()) LogWarn("something compiled is not kept: {}", Message(written));
}

std::string CompiledCache::DefaultFolder() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache != '\0') {
    return std::string(cache) + "/autograph/compiled";
  }
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home == '\0') return "";
  return std::string(home) + "/.cache/autograph/compiled";
}

}  // namespace ag::cuda

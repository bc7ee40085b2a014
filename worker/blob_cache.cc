#include "worker/blob_cache.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "base/blobs.h"

namespace ag {
namespace {

struct Held {
  std::pair<int64_t, int64_t> used;  // Seconds and nanoseconds.
  Digest digest;
  int64_t bytes = 0;
};

// Returns all blobs, the least recently used first. Leaves out a blob that another worker removes
// meanwhile.
StatusOr<std::vector<Held>> ListByUse(const BlobDir& blobs) {
  AG_LET(const std::vector<Digest> digests, blobs.List());
  std::vector<Held> held;
  for (const Digest& digest : digests) {
    struct stat info {};
    if (::stat(blobs.PathOf(digest).c_str(), &info) != 0) continue;
    held.push_back({{info.st_mtim.tv_sec, info.st_mtim.tv_nsec}, digest, info.st_size});
  }
  std::stable_sort(held.begin(), held.end(),
                   [](const Held& a, const Held& b) { return a.used < b.used; });
  return held;
}

}  // namespace

StatusOr<BlobCache> BlobCache::Open(const std::string& root, int64_t bytes_max) {
  AG_LET(std::shared_ptr<BlobDir> blobs, BlobDir::Open(root));
  return BlobCache(std::move(blobs), root, bytes_max);
}

bool BlobCache::Use(const Digest& digest) {
  // Checks and marks in one system call: null means now.
  return ::utimensat(AT_FDCWD, blobs_->PathOf(digest).c_str(), nullptr, 0) == 0;
}

Status BlobCache::MakeRoom(int64_t bytes, const std::vector<Digest>& keep) {
  AG_LET(const std::vector<Held> held, ListByUse(*blobs_));
  const auto is_kept = [&](const Held& blob) {
    return std::find(keep.begin(), keep.end(), blob.digest) != keep.end();
  };
  int64_t total = 0, kept = 0;
  for (const Held& blob : held) {
    total += blob.bytes;
    if (is_kept(blob)) kept += blob.bytes;
  }
  if (bytes > bytes_max_ - kept) {
    return Err(StatusCode::kResourceExhausted,
               "blob cache {}: {} bytes do not fit beside {} bytes in use; the limit is {}", root_,
               bytes, kept, bytes_max_);
  }
  for (const Held& blob : held) {
    if (total <= bytes_max_ - bytes) break;
    if (is_kept(blob)) continue;
    const Status removed = blobs_->Remove(blob.digest);
    if (!removed.ok() && removed.code() != StatusCode::kNotFound) return removed;
    total -= blob.bytes;
  }
  return OkStatus();
}

}  // namespace ag

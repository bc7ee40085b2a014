// Weights fetched from a coordinator on another host: a blob folder that never holds more than so
// many bytes. What was used longest ago goes first; the time of a blob's last use is its file's
// time stamp, so workers may share a folder. A file that an executor has mapped keeps its bytes
// when it goes. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/blobs.h"
#include "base/status.h"

namespace ag {

class BlobCache {
 public:
  static StatusOr<BlobCache> Open(const std::string& root, int64_t bytes_max);

  BlobDir& blobs() { return *blobs_; }

  // Whether the blob is here; if so, it was used now.
  bool Use(const Digest& digest);

  // Removes blobs, none of `keep`, until `bytes` more fit. kResourceExhausted: they cannot; then
  // nothing was removed.
  Status MakeRoom(int64_t bytes, const std::vector<Digest>& keep);

 private:
  BlobCache(std::shared_ptr<BlobDir> blobs, std::string root, int64_t bytes_max)
      : blobs_(std::move(blobs)), root_(std::move(root)), bytes_max_(bytes_max) {}

  std::shared_ptr<BlobDir> blobs_;
  std::string root_;
  int64_t bytes_max_;
};

}  // namespace ag

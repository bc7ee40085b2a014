// A cache of the weights that were fetched from a coordinator on another host: a blob folder that
// holds at most `bytes_max`. The blob that was used longest ago is removed first; a blob's last use
// is the time stamp of its file, so several workers may share a folder. An executor that has mapped
// a removed file keeps its bytes. One thread at a time.
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

  // Returns true when the blob is here, and marks it as used now.
  bool Use(const Digest& digest);

  // Removes blobs other than `keep` until `bytes` more fit. kResourceExhausted: they cannot fit;
  // then nothing was removed.
  Status MakeRoom(int64_t bytes, const std::vector<Digest>& keep);

 private:
  BlobCache(std::shared_ptr<BlobDir> blobs, std::string root, int64_t bytes_max)
      : blobs_(std::move(blobs)), root_(std::move(root)), bytes_max_(bytes_max) {}

  std::shared_ptr<BlobDir> blobs_;
  std::string root_;
  int64_t bytes_max_;
};

}  // namespace ag

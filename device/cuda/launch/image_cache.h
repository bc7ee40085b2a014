// Compiled images in a folder that several processes may share, by the digest of what they were
// made from. A file that is not whole is a miss. Thread-safe.
#pragma once

#include <optional>
#include <string>

#include "base/digest.h"
#include "base/mutex.h"

namespace ag::cuda {

class ImageCache {
 public:
  // `folder` "": remembers nothing. Beyond `bytes_max` the images that were written first go.
  ImageCache(std::string folder, int64_t bytes_max)
      : folder_(std::move(folder)), bytes_max_(bytes_max) {}

  std::optional<std::string> Get(const Digest& key) const;

  // Failing to write is no error: the image is compiled again next time. Says so in the log.
  void Put(const Digest& key, std::string_view image);

 private:
  std::string PathOf(const Digest& key) const;
  void Shrink();

  const std::string folder_;
  const int64_t bytes_max_;
  Mutex mutex_;  // One Put at a time.
};

}  // namespace ag::cuda

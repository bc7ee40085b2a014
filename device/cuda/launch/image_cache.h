// Compiled images on disk, by digest. Any file may be lost or spoilt: that is a miss. Several
// processes may share a folder. Thread-safe.
#pragma once

#include <optional>
#include <string>

#include "base/digest.h"

namespace ag::cuda {

class ImageCache {
 public:
  // "" keeps nothing. When the folder holds more than `bytes_max`, the oldest files go until half
  // of that is left; a folder that cannot be made keeps nothing, with a warning.
  ImageCache(std::string folder, int64_t bytes_max);

  std::optional<std::string> Find(const Digest& key) const;
  void Put(const Digest& key, const std::string& image) const;  // A failure is only warned of.

  // autograph/cubin in XDG_CACHE_HOME or in .cache of HOME; "" where neither is set.
  static std::string DefaultFolder();

 private:
  std::string PathOf(const Digest& key) const;
  std::string folder_;
};

}  // namespace ag::cuda

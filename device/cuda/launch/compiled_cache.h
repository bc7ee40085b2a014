// What was compiled (NVRTC's images, cuDNN's plans), on disk, by digest. Any file may be lost or
// spoilt: that is a miss. Several processes may share a folder. Thread-safe.
#pragma once

#include <optional>
#include <string>

#include "base/digest.h"

namespace ag::cuda {

class CompiledCache {
 public:
  // "" keeps nothing. When the folder holds more than `bytes_max`, the oldest files go until half
  // of that is left; a folder that cannot be made keeps nothing, with a warning.
  CompiledCache(std::string folder, int64_t bytes_max);

  std::optional<std::string> Find(const Digest& key) const;
  void Put(const Digest& key, const std::string& compiled) const;  // A failure is only warned of.
  bool keeps_anything() const { return !folder_.empty(); }

  // autograph/compiled in XDG_CACHE_HOME or in .cache of HOME; "" where neither is set.
  static std::string DefaultFolder();
  static constexpr int64_t kBytesMax = int64_t{512} << 20;

 private:
  std::string PathOf(const Digest& key) const;
  std::string folder_;
};

}  // namespace ag::cuda

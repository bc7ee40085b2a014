// A cache of compiled code (NVRTC's images, cuDNN's plans) on disk, by digest. A lost or damaged
// file is a miss. Several processes may share a folder. Thread-safe.
#pragma once

#include <optional>
#include <string>

#include "base/digest.h"

namespace ag::cuda {

class CompiledCache {
 public:
  // Opens the cache; "" keeps nothing. When the folder holds more than `bytes_max`, removes the
  // oldest files until half of that is left. A folder that cannot be made keeps nothing, with a
  // warning.
  CompiledCache(std::string folder, int64_t bytes_max);

  std::optional<std::string> Find(const Digest& key) const;
  void Put(const Digest& key, const std::string& compiled) const;  // A failure is only a warning.
  bool keeps_anything() const { return !folder_.empty(); }

  // Returns autograph/compiled in XDG_CACHE_HOME or in .cache of HOME; "" where neither is set.
  static std::string DefaultFolder();
  static constexpr int64_t kBytesMax = int64_t{512} << 20;

 private:
  std::string PathOf(const Digest& key) const;
  std::string folder_;
};

}  // namespace ag::cuda

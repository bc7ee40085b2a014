// A folder of what cuDNN compiled at run time (execution plans as JSON, 0.05 to 0.2 MB each), so
// that a kernel is compiled once in an environment: reading one takes 1 ms, compiling 0.2 to 3 s.
// Files are named by the digest of their key and begin with the digest of what follows, because
// cuDNN takes damaged code for good. Safe between processes. Damage is a miss.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace ag::cuda {

class CompiledPlans {
 public:
  // Makes the folder where it is missing, and empties it when it has grown beyond kFilesMax.
  static constexpr size_t kFilesMax = 4000;
  static StatusOr<CompiledPlans> Open(const std::string& folder);

  // nullopt: there is none, or it is damaged.
  std::optional<std::string> Get(std::string_view key) const;
  Status Put(std::string_view key, std::string_view plan) const;

 private:
  explicit CompiledPlans(std::string folder) : folder_(std::move(folder)) {}
  std::string PathOf(std::string_view key) const;
  std::string folder_;
};

}  // namespace ag::cuda

#include "device/cuda/compiled_plans.h"

#include <algorithm>

#include "base/digest.h"
#include "base/file.h"
#include "base/file_ops.h"

namespace ag::cuda {
namespace {

constexpr std::string_view kSuffix = ".cudnnplan";
constexpr size_t kDigestChars = 64;

}  // namespace

StatusOr<CompiledPlans> CompiledPlans::Open(const std::string& folder) {
  AG_TRY(MakeDirs(folder));
  AG_LET(std::vector<std::string> names, ListDir(folder));
  std::erase_if(names, [](const std::string& name) { return !name.ends_with(kSuffix); });
  if (names.size() > kFilesMax) {
    for (const std::string& name : names) {
      const std::string path = folder + "/" + name;
      const int error = file_ops::Remove(path);  // Another process may have removed it.
      if (error != 0 && error != ENOENT) return FromErrno(error, path);
    }
  }
  return CompiledPlans(folder);
}

std::string CompiledPlans::PathOf(std::string_view key) const {
  return folder_ + "/" + Sha256(key).Hex() + std::string(kSuffix);
}

std::optional<std::string> CompiledPlans::Get(std::string_view key) const {
  StatusOr<std::string> bytes = ReadFile(PathOf(key));
  if (!bytes.ok() || bytes->size() <= kDigestChars) return std::nullopt;
  const std::string_view plan = std::string_view(*bytes).substr(kDigestChars);
  if (Sha256(plan).Hex() != bytes->substr(0, kDigestChars)) return std::nullopt;
  return std::string(plan);
}

Status CompiledPlans::Put(std::string_view key, std::string_view plan) const {
  return WriteFileAtomically(PathOf(key), Sha256(plan).Hex() + std::string(plan));
}

}  // namespace ag::cuda

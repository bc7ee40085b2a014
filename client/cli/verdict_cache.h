// Stored verdicts of the verifier, in the file verdicts.jsonl of the data folder (docs/rules.md),
// so that a rule is proved once. One thread at a time.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "rules/verify/verify.h"

namespace ag {

class VerdictCache {
 public:
  // Reads the file; a line that cannot be parsed is a miss. Writes and creates nothing.
  explicit VerdictCache(const std::string& data_dir);

  // Returns the verdict for the rule's text, the options and the version of the verifier, if
  // stored.
  std::optional<VerifyReport> Find(const Rule& rule, const VerifyOptions& options) const;
  void Add(const Rule& rule, const VerifyOptions& options, const VerifyReport& report);

  // Writes the file when something was added. Keeps what another process added meanwhile, unless
  // both write at the same moment; a lost verdict is proved again.
  Status Save() const;

 private:
  using Lines = std::map<std::string, std::string>;  // JSON text by key.
  static Lines Read(const std::string& path);

  std::string folder_, path_;
  Lines known_, added_;
};

}  // namespace ag

// Verdicts of the verifier that were reached before, in the file verdicts.jsonl of the data folder
// (docs/rules.md): a rule is proved once.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "rules/verify.h"

namespace ag {

class VerdictCache {
 public:
  // Reads what is there; a line that does not read is a miss. Nothing is made or written yet.
  explicit VerdictCache(const std::string& data_dir);

  // By the text of the rule, the options and the version of the verifier.
  std::optional<VerifyReport> Find(const Rule& rule, const VerifyOptions& options) const;
  void Add(const Rule& rule, const VerifyOptions& options, const VerifyReport& report);

  // Writes the file when something was added. What another process added meanwhile stays, unless
  // both write in the same moment: a verdict lost is proved again.
  Status Save() const;

 private:
  using Lines = std::map<std::string, std::string>;  // JSON text by key.
  static Lines Read(const std::string& path);

  std::string folder_, path_;
  Lines known_, added_;
};

}  // namespace ag

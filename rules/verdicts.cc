// Reads rules/verified.txt: the proofs at the last change of the shipped rules.
#include <map>

#include "base/text.h"
#include "embedded/rules_files.h"
#include "rules/verify.h"

namespace ag {

std::optional<std::string> ShippedProof(const Rule& rule) {
  static const auto& proofs = *[] {
    auto* found = new std::map<std::string, std::string, std::less<>>;
    for (const EmbeddedFile& file : RulesFiles()) {
      if (file.name != "verified.txt") continue;
      for (const std::string_view line : Split(file.text, '\n')) {  // digest name arithmetic count
        const auto words = Split(line, ' ');
        if (words.size() < 4) continue;
        found->emplace(words[0], fmt::format("{}, {} instances", words[2], words[3]));
      }
    }
    return found;
  }();
  const auto at = proofs.find(Sha256(rule.text).Hex());
  if (at == proofs.end()) return std::nullopt;
  return at->second;
}

}  // namespace ag

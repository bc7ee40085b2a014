// rules/verified.txt: what was proved when the shipped rules were last changed.
#include <set>

#include "base/text.h"
#include "embedded/rules_files.h"
#include "rules/verify.h"

namespace ag {

bool IsShippedVerdict(const Rule& rule) {
  static const auto& digests = *[] {
    auto* found = new std::set<std::string, std::less<>>;
    for (const EmbeddedFile& file : RulesFiles()) {
      if (file.name != "verified.txt") continue;
      for (const std::string_view line : Split(file.text, '\n')) {
        found->emplace(line.substr(0, line.find(' ')));
      }
    }
    return found;
  }();
  return digests.contains(Sha256(rule.text).Hex());
}

}  // namespace ag

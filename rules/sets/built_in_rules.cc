#include "rules/sets/built_in_rules.h"

#include <map>

#include "base/text.h"
#include "embedded/rules_files.h"

namespace ag {

const RuleSet& BuiltInRules() {
  static const RuleSet& rules = *[] {
    RuleSet all;
    for (const EmbeddedFile& file : RulesFiles()) {
      if (!file.name.ends_with(".rules")) continue;
      const StatusOr<RuleSet> parsed = RuleSet::Parse(file.text, file.name);
      if (!parsed.ok()) fmt::print(stderr, "{}\n", Message(parsed.status()));
      AG_CHECK(parsed.ok());
      const StatusOr<RuleSet> joined = RuleSet::Join(all, *parsed);
      if (!joined.ok()) fmt::print(stderr, "{}\n", Message(joined.status()));
      AG_CHECK(joined.ok());
      all = *joined;
    }
    return new RuleSet(std::move(all));
  }();
  return rules;
}

StatusOr<RuleSet> BuiltInRulesAnd(std::string_view more) {
  AG_LET(const RuleSet rules, RuleSet::Parse(more, "more rules"));
  return RuleSet::Join(BuiltInRules(), rules);
}

std::optional<std::string> ProofOf(const Rule& rule) {
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

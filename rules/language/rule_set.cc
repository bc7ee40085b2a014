#include "rules/language/rule_set.h"

#include <algorithm>

#include "base/text.h"
#include "rules/language/parser.h"

namespace ag {

std::string_view RuleClassName(RuleClass rule_class) {
  switch (rule_class) {
    case RuleClass::kExact:
      return "exact";
    case RuleClass::kRounding:
      return "rounding";
    case RuleClass::kFinite:
      return "finite";
  }
  return "";
}

Status ErrorAt(std::string_view file, const RulePlace& place, std::string_view what) {
  // Keeps tabs, so that the caret is under its column.
  std::string blanks = place.text.substr(0, static_cast<size_t>(place.column - 1));
  for (char& c : blanks) c = c == '\t' ? '\t' : ' ';
  return Err(StatusCode::kInvalidArgument, "{}:{}:{}: {}\n  {}\n  {}^", file, place.line,
             place.column, what, place.text, blanks);
}

StatusOr<RuleSet> RuleSet::Parse(std::string_view text, std::string_view file) {
  RuleSet set;
  AG_LET(set.rules_, ParseRules(text, file));
  return set;
}

StatusOr<RuleSet> RuleSet::Join(const RuleSet& a, const RuleSet& b) {
  RuleSet joined = a;
  for (const Rule& rule : b.rules_) {
    if (const Rule* other = a.Find(rule.name)) {
      return Err(StatusCode::kInvalidArgument, "rule '{}' stands in {}:{} and in {}:{}", rule.name,
                 other->file, other->line, rule.file, rule.line);
    }
    joined.rules_.push_back(rule);
  }
  return joined;
}

const Rule* RuleSet::Find(std::string_view name) const {
  const auto found = std::find_if(rules_.begin(), rules_.end(),
                                  [&](const Rule& rule) { return rule.name == name; });
  return found == rules_.end() ? nullptr : &*found;
}

Status RuleSet::CheckNames(const std::vector<std::string>& names) const {
  for (const std::string& name : names) {
    if (Find(name) != nullptr) continue;
    std::vector<std::string> known;
    for (const Rule& rule : rules_) known.push_back(rule.name);
    return Err(StatusCode::kInvalidArgument, "no rule is called {}{}", name,
               DidYouMean(name, known));
  }
  return OkStatus();
}

RuleSet RuleSet::Without(const std::vector<std::string>& names, bool strict) const {
  RuleSet rest;
  for (const Rule& rule : rules_) {
    if (std::find(names.begin(), names.end(), rule.name) != names.end()) continue;
    if (strict && rule.rule_class == RuleClass::kFinite) continue;
    rest.rules_.push_back(rule);
  }
  return rest;
}

Digest RuleSet::digest() const {
  Hasher hasher;
  for (const Rule& rule : rules_) {
    hasher.Update(rule.text);
    hasher.Update("\n");
  }
  return hasher.Finish();
}

}  // namespace ag

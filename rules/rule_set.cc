#include "rules/rule_set.h"

#include <algorithm>
#include <map>

#include "embedded/rules_files.h"
#include "rules/parser.h"

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

const RuleSet& RuleSet::Shipped() {
  static const RuleSet& shipped = *[] {
    RuleSet all;
    for (const EmbeddedFile& file : RulesFiles()) {
      if (!file.name.ends_with(".rules")) continue;
      const StatusOr<RuleSet> parsed = Parse(file.text, file.name);
      if (!parsed.ok()) fmt::print(stderr, "{}\n", Message(parsed.status()));
      AG_CHECK(parsed.ok());
      const StatusOr<RuleSet> joined = Join(all, *parsed);
      if (!joined.ok()) fmt::print(stderr, "{}\n", Message(joined.status()));
      AG_CHECK(joined.ok());
      all = *joined;
    }
    return new RuleSet(std::move(all));
  }();
  return shipped;
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

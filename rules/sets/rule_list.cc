#include "rules/sets/rule_list.h"

#include "rules/language/guards.h"
#include "rules/sets/built_in_rules.h"

namespace ag {

std::string FormatRuleList(const RuleSet& rules, const std::map<std::string, std::string>& where) {
  std::string text = "\n## Guards and functions\n\n| call | is |\n|---|---|\n";
  for (const RuleFunction& f : AllFunctions()) {
    text += fmt::format("| `{}` | {} |\n", f.signature, f.what);
  }
  text += fmt::format("\n## The {} rules of this build\n", rules.rules().size());
  std::string file;
  for (const Rule& rule : rules.rules()) {
    if (rule.file != file) text += fmt::format("\n### rules/sets/{}\n\n", rule.file);
    file = rule.file;
    const size_t body = rule.text.find("]:") + 3;
    const auto fires = where.find(rule.name);
    text += fmt::format("- **{}** ({}; {})  \n  `{}`  \n  {}\n", rule.name,
                        RuleClassName(rule.rule_class), ProofOf(rule).value_or("not proved"),
                        rule.text.substr(body), fires == where.end() ? "-" : fires->second);
  }
  return text;
}

}  // namespace ag

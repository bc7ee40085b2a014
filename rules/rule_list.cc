#include "rules/rule_list.h"

#include "rules/guards.h"

namespace ag {

std::string FormatRuleList(const RuleSet& rules) {
  std::string text = "\n## Guards and functions\n\n| call | is |\n|---|---|\n";
  for (const RuleFunction& f : AllFunctions()) {
    text += fmt::format("| `{}` | {} |\n", f.signature, f.what);
  }
  text += fmt::format("\n## The {} rules of this build\n", rules.rules().size());
  std::string file;
  for (const Rule& rule : rules.rules()) {
    if (rule.file != file) text += fmt::format("\n### rules/{}\n\n", rule.file);
    file = rule.file;
    const size_t body = rule.text.find("]:") + 3;
    text += fmt::format("- **{}** ({})  \n  `{}`\n", rule.name, RuleClassName(rule.rule_class),
                        rule.text.substr(body));
  }
  return text;
}

}  // namespace ag

// The text of coverage, for people and for docs/rules.md.
#include <array>

#include "lab/taso/coverage.h"

namespace ag {
namespace {

std::string PathText(const TasoCoverage& c) {
  std::string text = fmt::format("{}", fmt::join(c.path, ", "));
  if (c.regrouped) text += c.path.empty() ? "A1: sums and products in any grouping" : " (A1)";
  return text.empty() ? "the same graph in our IR" : text;
}

}  // namespace

std::string_view TasoVerdictName(TasoVerdict verdict) {
  switch (verdict) {
    case TasoVerdict::kImplied:
      return "implied";
    case TasoVerdict::kRepaired:
      return "repaired";
    case TasoVerdict::kNoise:
      return "noise";
    case TasoVerdict::kUnknown:
      return "unknown";
  }
  return "";
}

std::string TasoCoverageSummary(const std::vector<TasoCoverage>& coverage) {
  std::array<int, 4> counts{};
  for (const TasoCoverage& c : coverage) ++counts[static_cast<size_t>(c.verdict)];
  return fmt::format("{} implied, {} repaired, {} noise, {} unknown", counts[0], counts[1],
                     counts[2], counts[3]);
}

std::string FormatTasoCoverage(const TasoCoverage& c) {
  std::string text = fmt::format("{:<24} {:<8}  ", c.rule, TasoVerdictName(c.verdict));
  const bool ours = c.verdict == TasoVerdict::kImplied || c.verdict == TasoVerdict::kRepaired;
  text += ours ? PathText(c) : c.reason;
  const std::string margin = "\n" + std::string(35, ' ');
  text += margin + c.text;
  if (!c.guard.empty()) text += margin + "guard: " + c.guard;
  if (!c.counter_example.empty())
    text += margin + fmt::format("wrong on {}: {}", c.counter_example, c.difference);
  if (c.verdict == TasoVerdict::kImplied && !c.missed.empty()) {
    text += margin + "true, but not done on " + c.missed;
  }
  return text;
}

std::string TasoCoverageTable(const std::vector<TasoCoverage>& coverage) {
  std::string text = fmt::format("\n{}.\n\n| rule | is | by, or why |\n|---|---|---|\n",
                                 TasoCoverageSummary(coverage));
  for (const TasoCoverage& c : coverage) {
    const bool ours = c.verdict == TasoVerdict::kImplied || c.verdict == TasoVerdict::kRepaired;
    text += fmt::format("| {} `{}` | {} | {}", c.rule, c.text, TasoVerdictName(c.verdict),
                        ours ? PathText(c) : c.reason);
    if (!c.guard.empty()) text += fmt::format("; guard `{}`", c.guard);
    if (!c.counter_example.empty()) text += fmt::format("; wrong on `{}`", c.counter_example);
    if (c.verdict == TasoVerdict::kImplied && !c.missed.empty()) {
      text += fmt::format("; true, but not done on `{}`", c.missed);
    }
    text += " |\n";
  }
  return text;
}

}  // namespace ag

#include "lab/taso/import.h"

#include <algorithm>

#include "base/text.h"
#include "graph/text_form.h"
#include "lab/taso/coverage.h"
#include "lab/taso/rule_text.h"
#include "rules/match/matcher.h"
#include "rules/verify/verify.h"

namespace ag {
namespace {

// TASO's rules need two guards at most; rules that need more than this are left out.
constexpr size_t kGuardsMax = 3;
// A wrong text is refused after far fewer instances.
constexpr int kTrialInstances = 40;
constexpr int kProofs = 6;  // Proofs of a rule, each with its own seed, before it is accepted.

class Importer {
 public:
  Importer(const TasoRule& rule, const TasoImportOptions& options)
      : text_(rule), options_(options) {
    out_.rule = rule.name;
  }

  TasoImport Run() {
    if (!text_.refusal().empty()) {
      out_.why = text_.refusal();
      return std::move(out_);
    }
    std::vector<TasoChoice> ways = Ways();
    const std::string plain = text_.Write(ways[0]);
    const size_t arrow = plain.find(" => ");
    if (plain.substr(0, arrow) == plain.substr(arrow + 4)) {
      out_.why = "both sides are the same: our activations are operators of their own";
      return std::move(out_);
    }
    for (size_t count = 0; count <= std::min(kGuardsMax, text_.guards().size()); ++count) {
      std::vector<bool> in(text_.guards().size(), false);
      std::fill(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(count), true);
      do {
        for (TasoChoice& way : ways) {
          way.guards.clear();
          for (size_t i = 0; i < in.size(); ++i) {
            if (in[i]) way.guards.push_back(text_.guards()[i]);
          }
          if (Try(way)) return std::move(out_);
        }
      } while (std::prev_permutation(in.begin(), in.end()));
    }
    return std::move(out_);
  }

 private:
  // Returns all combinations of biases and groups, without guards.
  std::vector<TasoChoice> Ways() const {
    std::vector<TasoChoice> ways = {TasoChoice{}};
    for (const auto& biases : text_.biases()) {
      std::vector<TasoChoice> longer;
      for (const TasoChoice& way : ways) {
        for (const std::string& bias : biases) {
          longer.push_back(way);
          longer.back().biases.push_back(bias);
        }
      }
      ways = std::move(longer);
    }
    if (text_.biases().empty()) return ways;
    std::vector<TasoChoice> both = ways;
    for (TasoChoice& way : ways) way.infer_group = true;
    both.insert(both.end(), ways.begin(), ways.end());
    return both;
  }

  bool Try(const TasoChoice& choice) {
    const std::string body = text_.Write(choice);
    // Zeros made of other numbers, sub(b, b), are NaN when b is Inf.
    const bool finite = body.find("sub(") != std::string::npos;
    const auto rule = Parse(finite ? "finite" : "rounding", body);
    if (!rule.has_value()) return false;
    if (KnownToFail(*rule, body)) return false;
    const VerifyReport report = Prove(*rule);
    if (!report.proved) {
      Remember(*rule, body, report);
      return false;
    }
    out_.line = rule->text;
    if (!finite && report.float_error_max == 0) {
      const auto exact = Parse("exact", body);
      const VerifyOptions proof{.instances_min = options_.instances, .seed = options_.seed};
      if (exact.has_value() && Verify(*exact, proof).proved) out_.line = exact->text;
    }
    out_.proved = true;
    out_.why.clear();
    out_.guards = static_cast<int>(choice.guards.size());
    return true;
  }

  // Proves on a few instances first, then with several seeds: a missing guard shows only where two
  // random sizes differ in a special way (a stride that gives 3 and 4 the same result).
  VerifyReport Prove(const Rule& rule) const {
    const int few = std::min(kTrialInstances, options_.instances);
    VerifyReport report = Verify(rule, {.instances_min = few, .seed = options_.seed});
    for (int proof = 0; proof < kProofs && report.proved; ++proof) {
      report = Verify(rule, {.instances_min = options_.instances, .seed = options_.seed + proof});
    }
    return report;
  }

  std::optional<Rule> Parse(std::string_view rule_class, const std::string& body) {
    const std::string line = fmt::format("taso-{} [{}]: {}\n", out_.rule, rule_class, body);
    StatusOr<RuleSet> parsed = RuleSet::Parse(line, "taso");
    if (parsed.ok()) return parsed->rules()[0];
    if (out_.why.empty()) out_.why = Message(parsed.status());
    return std::nullopt;
  }

  static std::string TargetOf(const std::string& body) {
    const size_t arrow = body.find(" => ");
    return body.substr(arrow, body.find(" if ", arrow) - arrow);
  }

  // Whether the target fails on a known graph on which the rule still matches: more guards change
  // only the matches.
  bool KnownToFail(const Rule& rule, const std::string& body) const {
    const std::string target = TargetOf(body);
    return std::any_of(failures_.begin(), failures_.end(), [&](const auto& failure) {
      const NodeIndex index(failure.second);
      return failure.first == target &&
             !FindMatches(failure.second, index, *rule.pattern, 0).empty();
    });
  }

  // Keeps the graph of a counter-example: its text form, up to "=>".
  void Remember(const Rule& rule, const std::string& body, const VerifyReport& report) {
    const size_t end = report.counter_example.find("=>");
    if (end == std::string::npos) {
      if (out_.why.empty()) out_.why = report.counter_example;
      return;
    }
    // A difference is more useful than an ill-typed target.
    const bool typed = report.counter_example.find("does not fit here") == std::string::npos;
    if (out_.line.empty() || (typed && !has_difference_)) {
      out_.line = rule.text;
      out_.why = report.counter_example;
      has_difference_ = typed;
    }
    const StatusOr<Graph> graph = ParseGraph(report.counter_example.substr(0, end));
    if (graph.ok()) failures_.emplace_back(TargetOf(body), *graph);
  }

  const TasoRuleText text_;
  const TasoImportOptions options_;
  TasoImport out_;
  bool has_difference_ = false;  // Whether out_ has a difference as counter-example.
  // Target texts and the graphs on which they fail.
  std::vector<std::pair<std::string, Graph>> failures_;
};

std::string Commented(const std::string& text) {
  std::string out;
  for (const std::string_view line : Split(text, '\n')) {
    if (!line.empty()) out += fmt::format("#   {}\n", line);
  }
  return out;
}

}  // namespace

TasoImport ImportTasoRule(const TasoRule& rule, const TasoImportOptions& options) {
  const std::string noise = TasoNoiseOf(rule);
  if (!noise.empty()) return {.rule = rule.name, .why = "noise: " + noise};
  return Importer(rule, options).Run();
}

std::string FormatTasoImport(const std::vector<TasoRule>& rules,
                             const std::vector<TasoImport>& imports, std::string_view source) {
  const auto proved = std::count_if(imports.begin(), imports.end(),
                                    [](const TasoImport& import) { return import.proved; });
  std::string text = fmt::format(
      "# {}: {} of {} rules, each proved under the guards it stands with. The others are\n"
      "# commented out, with what is wrong with them.\n",
      source, proved, imports.size());
  for (size_t i = 0; i < imports.size(); ++i) {
    text += fmt::format("\n# {} {}\n", imports[i].rule, FormatTasoRule(rules[i]));
    if (imports[i].proved) {
      text += imports[i].line + "\n";
      continue;
    }
    text += "# stays out:\n" + Commented(imports[i].why);
    if (!imports[i].line.empty()) text += "# " + imports[i].line + "\n";
  }
  return text;
}

}  // namespace ag

#include "rules/generate/known.h"

#include <algorithm>

#include "rules/rewrite.h"

namespace ag::generate {
namespace {

static_assert(kOpKindCount <= 64, "operators are bits of one word");

// Graphs that are looked at after the first step, and how many of each: a chain through more than
// this is not looked for.
constexpr size_t kWidth = 24;

}  // namespace

uint64_t OpsIn(const Graph& graph) {
  uint64_t ops = 0;
  for (const Node& node : graph.nodes()) ops |= uint64_t{1} << static_cast<int>(node.op);
  return ops;
}

void KnownRules::Add(KnownEquation equation) {
  for (const FoundRule& rule : equation.rules) said_[rule.plain].push_back(rule.kept);
  equations_.push_back(std::move(equation));
}

bool KnownRules::Says(const TermTable& table, const std::vector<TermId>& source,
                      const std::vector<TermId>& target) const {
  for (const Wording& wording : Wordings()) {
    const auto phrase = Say(table, source, target, wording, {});
    const auto said = phrase ? said_.find(phrase->equation) : said_.end();
    if (said == said_.end()) continue;
    const auto here = [&](const Constraint& constraint) {
      const std::vector<Constraint>& all = phrase->constraints;
      return std::find(all.begin(), all.end(), constraint) != all.end();
    };
    for (const std::vector<Constraint>& kept : said->second) {
      if (std::all_of(kept.begin(), kept.end(), here)) return true;
    }
  }
  return false;
}

std::vector<KnownRules::Reached> KnownRules::Neighbors(const Graph& graph, int without) const {
  const uint64_t ops = OpsIn(graph);
  std::vector<Reached> reached;
  std::set<std::string> seen;
  for (size_t i = 0; i < equations_.size(); ++i) {
    if (static_cast<int>(i) == without) continue;
    for (const FoundRule& found : equations_[i].rules) {
      if ((found.ops & ops) != found.ops) continue;
      for (const Rewrite& rewrite : FindRewrites(graph, found.rule, 1)) {
        StatusOr<Graph> after = Apply(graph, rewrite);
        if (!after.ok()) continue;
        std::string key = KeyOf(*after);
        if (seen.insert(key).second) reached.push_back({std::move(key), *std::move(after)});
      }
    }
  }
  return reached;
}

bool KnownRules::Imply(const Graph& left, const Graph& right, int without) const {
  if (equations_.empty()) return false;
  const std::string goal = KeyOf(right);
  if (KeyOf(left) == goal) return true;
  const std::vector<Reached> from_left = Neighbors(left, without);
  for (const Reached& reached : from_left) {
    if (reached.key == goal) return true;
  }
  if (left.outputs().size() > 1) {
    // What merges roots binds what no single rule can: only the way from the left counts.
    for (size_t i = 0; i < from_left.size() && i < kWidth; ++i) {
      for (const Reached& reached : Neighbors(from_left[i].graph, without)) {
        if (reached.key == goal) return true;
      }
    }
    return false;
  }
  std::set<std::string> goals = {KeyOf(left)};
  for (const Reached& reached : from_left) goals.insert(reached.key);
  const std::vector<Reached> from_right = Neighbors(right, without);
  for (const Reached& reached : from_right) {
    if (goals.contains(reached.key)) return true;
  }
  // A third step from the right, which is the larger side: most rules make smaller.
  for (size_t i = 0; i < from_right.size() && i < kWidth; ++i) {
    for (const Reached& reached : Neighbors(from_right[i].graph, without)) {
      if (goals.contains(reached.key)) return true;
    }
  }
  return false;
}

void KnownRules::Reduce() {
  for (size_t i = equations_.size(); i-- > 0;) {
    if (!Imply(equations_[i].left, equations_[i].right, static_cast<int>(i))) continue;
    equations_.erase(equations_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

}  // namespace ag::generate

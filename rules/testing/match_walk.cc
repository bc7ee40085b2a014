#include "rules/testing/match_walk.h"

#include <algorithm>

#include "base/random.h"
#include "graph/patch.h"
#include "rules/match/applier.h"
#include "rules/match/matcher.h"

namespace ag {
namespace {

std::vector<Edge> SortedRoots(const Bindings& bindings) {
  std::vector<Edge> roots;
  for (const auto& family : bindings.roots) roots.insert(roots.end(), family.begin(), family.end());
  std::sort(roots.begin(), roots.end());
  return roots;
}

bool SameBindings(const Bindings& a, const Bindings& b) {
  return a.slots == b.slots && a.counts == b.counts && a.roots == b.roots && a.nodes == b.nodes;
}

std::string Describe(const Rewrite& rewrite) {
  std::string text = rewrite.rule->name;
  for (const Edge& root : rewrite.roots) text += fmt::format(" {}.{}", root.node, root.output);
  return fmt::format("{} variant {}", text, rewrite.variant);
}

Status Compare(const MatchSet& matches, const RuleSet& rules) {
  const std::vector<Rewrite> plain = FindRewritesPlainly(matches.graph(), rules);
  const size_t n = std::min(plain.size(), matches.sites().size());
  for (size_t i = 0; i < n; ++i) {
    const Rewrite found = matches.At(matches.sites()[i]);
    const Rewrite& wanted = plain[i];
    if (found.rule == wanted.rule && found.roots == wanted.roots &&
        found.variant == wanted.variant && SameBindings(*found.bindings, *wanted.bindings)) {
      continue;
    }
    return Err(StatusCode::kInternal, "rewrite {}: expected {}, got {}", i, Describe(wanted),
               Describe(found));
  }
  if (plain.size() == matches.sites().size()) return OkStatus();
  return Err(StatusCode::kInternal, "expected {} rewrites, got {}; the first beyond is {}",
             plain.size(), matches.sites().size(),
             plain.size() > n ? Describe(plain[n]) : Describe(matches.At(matches.sites()[n])));
}

// Applies random sites until one succeeds; returns false when none does.
StatusOr<bool> Step(const MatchWalkOptions& options, Random& random, MatchSet* matches,
                    MatchWalkCounts* counts) {
  GraphPatch patch(matches->graph());
  for (int attempt = 0; attempt < 20; ++attempt) {
    const Site& site = matches->sites()[random.Below(matches->sites().size())];
    const Rewrite rewrite = matches->At(site);
    patch.Clear();
    if (!ApplyTo(&patch, *rewrite.rule->pattern, *rewrite.bindings).ok()) continue;
    const StatusOr<StructureHash> hash = patch.Hash();
    std::vector<NodeId> place;
    const StatusOr<Graph> child = patch.Build(&place);
    if (hash.ok() != child.ok()) {
      return Err(StatusCode::kInternal, "{}: hash {}, graph {}", Describe(rewrite),
                 ToString(hash.status()), ToString(child.status()));
    }
    if (!child.ok() || child->size() > options.nodes_max) continue;
    if (HashOfStructure(*child) != *hash) {
      return Err(StatusCode::kInternal, "{}: the graph has another hash", Describe(rewrite));
    }
    if (random.Below(8) == 0) {
      ++counts->forgotten;
      for (NodeId& id : place) id = random.Below(4) == 0 ? -1 : id;
    }
    *matches = matches->Next(*child, place);
    return true;
  }
  return false;
}

}  // namespace

std::vector<Rewrite> FindRewritesPlainly(const Graph& graph, const RuleSet& rules,
                                         int subsets_max) {
  const NodeIndex index(graph);
  std::vector<Rewrite> rewrites;
  for (const Rule& rule : rules.rules()) {
    if (rule.clean_up) continue;
    std::vector<Rewrite> found;
    for (auto& bindings : FindMatches(graph, index, *rule.pattern, subsets_max)) {
      Rewrite rewrite{.rule = &rule, .roots = SortedRoots(bindings)};
      rewrite.bindings = std::make_shared<const Bindings>(std::move(bindings));
      found.push_back(std::move(rewrite));
    }
    std::stable_sort(found.begin(), found.end(),
                     [](const Rewrite& a, const Rewrite& b) { return a.roots < b.roots; });
    for (size_t i = 1; i < found.size(); ++i) {
      if (found[i].roots == found[i - 1].roots) found[i].variant = found[i - 1].variant + 1;
    }
    std::move(found.begin(), found.end(), std::back_inserter(rewrites));
  }
  return rewrites;
}

Status WalkMatches(const Graph& graph, const RuleSet& rules, const MatchWalkOptions& options,
                   MatchWalkCounts* counts) {
  const RuleIndex index(rules, RuleIndex::Kind::kSearch);
  Random random(options.seed);
  MatchSet matches(index, graph);
  AG_TRY(Compare(matches, rules), "at the start");
  for (int step = 1; step <= options.steps && !matches.sites().empty(); ++step) {
    AG_LET(const bool stepped, Step(options, random, &matches, counts));
    if (!stepped) break;
    AG_TRY(Compare(matches, rules), "step {}", step);
    ++counts->steps;
    counts->sites += static_cast<int64_t>(matches.sites().size());
  }
  return OkStatus();
}

}  // namespace ag

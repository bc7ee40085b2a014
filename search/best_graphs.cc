#include "search/best_graphs.h"

#include <algorithm>
#include <iterator>

#include "absl/container/flat_hash_set.h"
#include "rules/match/rule_clean_up.h"

namespace ag {

void BestGraphs::Offer(const Graph& graph, const GraphKey& key, int step) {
  best_.emplace(key, RankedGraph{graph, key.first, step});
  if (best_.size() > static_cast<size_t>(std::max(graphs_max_, 0))) {
    best_.erase(std::prev(best_.end()));
  }
}

std::vector<RankedGraph> BestGraphs::Take(const RuleIndex& clean_up) {
  std::vector<RankedGraph> best;
  for (auto& [key, ranked] : best_) {
    StatusOr<Graph> clean = CleanUp(ranked.graph, clean_up);
    AG_CHECK(clean.ok());  // It succeeded when this graph was made.
    ranked.graph = *std::move(clean);
    best.push_back(std::move(ranked));
  }
  best_.clear();
  return best;
}

std::vector<RankedGraph> BestOf(std::vector<RankedGraph> first, std::vector<RankedGraph> second,
                                int graphs_max) {
  std::ranges::move(second, std::back_inserter(first));
  std::ranges::stable_sort(first, {}, &RankedGraph::estimate_ns);
  absl::flat_hash_set<StructureHash> seen;
  std::erase_if(first, [&](const RankedGraph& ranked) {
    return !seen.insert(HashOfStructure(ranked.graph)).second;
  });
  const auto count = static_cast<size_t>(std::max(graphs_max, 0));
  if (first.size() > count) first.erase(first.begin() + static_cast<ptrdiff_t>(count), first.end());
  return first;
}

}  // namespace ag

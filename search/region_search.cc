#include "search/region_search.h"

#include <algorithm>
#include <map>

#include "rules/match/rule_clean_up.h"

namespace ag {
namespace {

// Returns the cost of a cut at each node: one more than the number of rewrites that touch it.
std::vector<int64_t> CutCosts(const Graph& graph, const RuleSet& rules) {
  std::vector<int64_t> costs(static_cast<size_t>(graph.size()), 1);
  for (const Rewrite& rewrite : FindRewrites(graph, rules)) {
    for (const NodeId id : rewrite.bindings->nodes) ++costs[id];
  }
  return costs;
}

std::vector<NodeId> NodesOf(const std::vector<Piece>& pieces, const Region& region) {
  std::vector<NodeId> nodes;
  for (int i = region.first; i < region.end; ++i) {
    nodes.insert(nodes.end(), pieces[i].begin(), pieces[i].end());
  }
  std::ranges::sort(nodes);
  return nodes;
}

}  // namespace

RegionSearch::RegionSearch(const SearchSetting& setting, RewriteTrail& trail)
    : whole_setting_(setting),
      request_(setting.request),
      setting_{request_,    setting.rules, setting.times, setting.pairs,
               setting.run, setting.pool,  setting.layout},
      trail_(trail),
      one_rule_(setting.rules) {
  request_.options.limits.stale_graphs_max = 0;  // The paper searches each region to its end.
}

int RegionSearch::ResultsMax() const {
  return std::max(whole_setting_.request.options.limits.candidates_max, 0);
}

std::vector<RankedGraph> RegionSearch::Run(const RankedGraph& root,
                                           const absl::flat_hash_set<StructureHash>& skip,
                                           int graphs_max) {
  RankedGraph clean = root;
  StatusOr<Graph> cleaned = CleanUp(root.graph, setting_.rules);
  AG_CHECK(cleaned.ok());  // It is cleaned up.
  clean.graph = *std::move(cleaned);
  const SearchOptions& options = request_.options;
  const std::vector<Piece> pieces =
      PartitionGraph(clean.graph, CutCosts(clean.graph, setting_.rules), options.partition);
  PartitionOptions runs = options.partition;
  if (options.method == SearchMethod::kPaperWithoutDp) runs.region_nodes_max = 0;
  const std::vector<Region> regions = RegionsOf(pieces, runs);
  std::vector<Piece> parts;
  for (const Region& region : regions) parts.push_back(NodesOf(pieces, region));
  std::vector<Cell> cells = CellsOf(clean.graph, parts);
  const int begin = setting_.run.counts.graphs;
  for (size_t i = 0; i < regions.size(); ++i) {
    const int spent = setting_.run.counts.graphs - begin;
    const auto left = static_cast<int>(regions.size() - i);
    const int share = (graphs_max - spent) / left;
    Solve(regions[i], std::move(cells[i]), share);
  }
  std::map<std::pair<double, StructureHash>, RankedGraph> best;
  for (const Cover& cover : Join(static_cast<int>(pieces.size()))) {
    if (setting_.run.Over() || IsSpent()) break;
    StatusOr<RankedGraph> made = Make(clean, cover);
    if (!made.ok() || made->estimate_ns == kNoTimeNs) continue;
    const std::pair key(made->estimate_ns, HashOfStructure(made->graph));
    if (skip.contains(key.second)) continue;
    if (best.emplace(key, *std::move(made)).second) Record(cover, key.first);
  }
  if (setting_.run.Over()) stop_ = setting_.run.OverReason();
  std::vector<RankedGraph> graphs;
  for (auto& [key, graph] : best) graphs.push_back(std::move(graph));
  return graphs;
}

// Whether a replay may score no more graphs.
bool RegionSearch::IsSpent() const {
  const int total = whole_setting_.request.options.limits.graphs_total_max;
  return total > 0 && setting_.run.counts.graphs >= total;
}

// Searches a region, which may score `graphs_max` graphs.
void RegionSearch::Solve(const Region& region, Cell cell, int graphs_max) {
  Solved solved{.region = region, .cell = std::move(cell)};
  StatusOr<Graph> clean = CleanUp(solved.cell.graph, setting_.rules);
  AG_CHECK(clean.ok());  // It is a part of a graph that was cleaned up.
  request_.input = *std::move(clean);
  if (graphs_max <= 0 || IsSpent() || setting_.run.Over()) {
    stop_ = StopReason::kGraphs;  // Or time; Run looks.
    solved.found.estimate_ns = EstimateNs(request_.input, setting_);
  } else {
    solved.found = SearchPart(setting_, one_rule_, {.backtracking_graphs = graphs_max});
    if (solved.found.stop != StopReason::kNone) stop_ = solved.found.stop;
  }
  SearchedRegion figures = solved.found.figures;
  figures.round = setting_.run.counts.rounds;
  figures.first_piece = region.first;
  figures.end_piece = region.end;
  figures.nodes = request_.input.size();
  figures.estimate_ns = solved.found.estimate_ns;
  if (figures.seen == 0) figures.best_ns = figures.estimate_ns;
  setting_.run.log.Add(figures);
  solved_.push_back(std::move(solved));
}

// Always: best[j] has the covers of the first j pieces with the least sums of estimates, ascending.
std::vector<RegionSearch::Cover> RegionSearch::Join(int pieces) const {
  // One more than wanted: the graph as it is is among them.
  const auto kept = static_cast<size_t>(ResultsMax()) + 1;
  std::vector<std::vector<Cover>> best(static_cast<size_t>(pieces) + 1);
  best[0].emplace_back();
  for (int end = 1; end <= pieces; ++end) {
    std::vector<Cover> covers;
    for (size_t s = 0; s < solved_.size(); ++s) {
      if (solved_[s].region.end != end) continue;
      const PartSearch& found = solved_[s].found;
      for (const Cover& before : best[solved_[s].region.first]) {
        for (int r = -1; r < static_cast<int>(found.results.size()); ++r) {
          Cover cover = before;
          cover.estimate_ns += r < 0 ? found.estimate_ns : found.results[r].estimate_ns;
          if (r >= 0) cover.parts.emplace_back(static_cast<int>(s), r);
          covers.push_back(std::move(cover));
        }
      }
    }
    // Covers that change nothing differ only in how regions as they are share the graph.
    std::ranges::stable_sort(
        covers, {}, [](const Cover& cover) { return std::tuple(cover.estimate_ns, cover.parts); });
    for (Cover& cover : covers) {
      const bool is_known =
          std::ranges::find(best[end], cover.parts, &Cover::parts) != best[end].end();
      if (!is_known && best[end].size() < kept) best[end].push_back(std::move(cover));
    }
  }
  std::vector<Cover> joined = std::move(best.back());
  std::erase_if(joined, [](const Cover& cover) { return cover.parts.empty(); });
  if (joined.size() > static_cast<size_t>(ResultsMax())) joined.resize(ResultsMax());
  return joined;
}

void RegionSearch::Record(const Cover& cover, double estimate_ns) const {
  JoinedRegions join{.round = setting_.run.counts.rounds, .estimate_ns = estimate_ns};
  for (const auto& [solved, result] : cover.parts) {
    const Region& region = solved_[static_cast<size_t>(solved)].region;
    join.parts.push_back({region.first, region.end, result});
  }
  setting_.run.log.Add(std::move(join));
}

// Makes the graph of a cover, from the last region to the first.
StatusOr<RankedGraph> RegionSearch::Make(const RankedGraph& root, const Cover& cover) {
  RankedGraph made = root;
  for (auto part = cover.parts.rbegin(); part != cover.parts.rend(); ++part) {
    const Solved& solved = solved_[part->first];
    AG_LET(CellReplay replay, ReplayInCell(made.graph, solved.cell,
                                           solved.found.results[part->second].steps, one_rule_));
    TakeReplay(std::move(replay), made.step == root.step, &made, &trail_);
  }
  AG_LET(made.graph, CleanUp(made.graph, setting_.rules));
  ++setting_.run.counts.graphs;
  made.estimate_ns = EstimateNs(made.graph, whole_setting_);
  return made;
}

}  // namespace ag

#include "search/part_search.h"

#include "search/beam_search.h"
#include "search/region_steps.h"

namespace ag {

PartSearch SearchPart(const SearchSetting& setting, OneRule& one_rule, const PartLimits& limits) {
  const Graph& part = setting.request.input;
  SearchCounts& counts = setting.run.counts;
  const SearchCounts before = counts;
  const int asked = setting.times.asked();
  PartSearch found;
  ++counts.graphs;
  if (FormMeasuredGroups(setting.For(part), setting.times).ok()) {
    found.estimate_ns = EstimateNs(part, setting);
    RewriteTrail trail;
    const RankedGraph root = {part, found.estimate_ns};
    Backtracking backtracking(setting, trail);
    std::vector<RankedGraph> graphs = backtracking.Run(root, {}, limits.backtracking_graphs);
    if (limits.beam_graphs > 0) {
      BeamSearch beam(setting, trail);
      graphs = BestOf(std::move(graphs), beam.Run({root}, {}, limits.beam_graphs),
                      setting.request.options.limits.candidates_max);
    }
    StepTeller teller(part, trail, one_rule);
    for (const RankedGraph& graph : graphs) {
      if (!IsGain(graph.estimate_ns, found.estimate_ns)) break;
      auto steps = teller.StepsTo(graph.step);
      if (steps.ok()) found.results.push_back({*std::move(steps), graph.estimate_ns});
    }
    found.stop = backtracking.stop();
  }
  SearchedRegion& figures = found.figures;
  figures.nodes = part.size();
  figures.estimate_ns = found.estimate_ns;
  figures.best_ns = found.results.empty() ? found.estimate_ns : found.results[0].estimate_ns;
  figures.seen = counts.graphs - before.graphs;
  figures.pruned = counts.pruned - before.pruned;
  figures.groups = setting.times.asked() - asked;
  figures.results = static_cast<int>(found.results.size());
  return found;
}

void TakeReplay(CellReplay replay, bool begins_round, RankedGraph* whole, RewriteTrail* trail) {
  for (RewriteStep& step : replay.steps) {
    step.begins_round = begins_round;
    begins_round = false;
    whole->step = trail->Add(whole->step, std::move(step));
  }
  whole->graph = std::move(replay.graph);
}

}  // namespace ag

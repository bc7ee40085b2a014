#include "search/part_search.h"

namespace ag {

std::vector<PartResult> SearchPart(const SearchSetting& setting, StopReason* stop) {
  const Graph& part = setting.request.input;
  ++setting.run.counts.graphs;
  if (!FormMeasuredGroups(setting.For(part), setting.times).ok()) return {};
  const StatusOr<ScoredGraph> scored = ScoreGraph(part, setting);
  if (!scored.ok()) return {};
  const RankedGraph root{part, scored->failure.ok() ? scored->estimate_ns : kNoTimeNs};
  RewriteTrail trail;
  Backtracking backtracking(setting, trail);
  std::vector<PartResult> results;
  for (const RankedGraph& found : backtracking.Run(root, {})) {
    if (!IsGain(found.estimate_ns, root.estimate_ns)) break;
    results.push_back({trail.Steps(found.step), found.estimate_ns});
  }
  if (backtracking.stop() != StopReason::kNone) *stop = backtracking.stop();
  return results;
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

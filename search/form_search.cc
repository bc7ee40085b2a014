#include "search/form_search.h"

#include <algorithm>

#include "search/region_steps.h"

namespace ag {
namespace {

bool IsSpent(const SearchSetting& setting) {
  return setting.run.counts.graphs >= setting.request.options.limits.graphs_total_max;
}

// Takes what is known of the form. False: nothing that is of use, and nothing was counted. The
// results are made and their groups asked for, as a search of the form would have: what is taken
// at the copies is compared by the same times. Each counts as a graph scored.
bool Recall(const SearchSetting& setting, OneRule& one_rule, const RegionEntry& known,
            FormFound* form) {
  const Graph& input = setting.request.input;
  SearchRun& run = setting.run;
  std::vector<std::pair<Graph, const RegionResult*>> made;
  for (const RegionResult& result : known.results) {
    StatusOr<Graph> graph = TakeSteps(input, result.steps, one_rule);
    if (graph.ok()) made.emplace_back(*std::move(graph), &result);
    if (run.Over()) return true;
  }
  if (made.empty() && !known.results.empty()) return false;
  form->origin = RegionOrigin::kKnown;
  const int graphs = run.counts.graphs, asked = setting.times.asked();
  const auto score = [&](const Graph& graph) {
    ++run.counts.graphs;
    const bool has_groups = FormMeasuredGroups(setting.For(graph), setting.times).ok();
    return has_groups ? EstimateNs(graph, setting) : kNoTimeNs;
  };
  const double estimate_ns = score(input);
  for (const auto& [graph, result] : made) {
    if (run.Over() || IsSpent(setting)) break;
    const double result_ns = score(graph);
    if (IsGain(result_ns, estimate_ns)) form->results.push_back({result->steps, result_ns});
  }
  std::ranges::stable_sort(form->results, {}, &RegionResult::estimate_ns);
  form->entry = known;
  form->figures.estimate_ns = form->figures.best_ns = estimate_ns;
  if (!form->results.empty()) form->figures.best_ns = form->results[0].estimate_ns;
  form->figures.seen = run.counts.graphs - graphs;
  form->figures.groups = setting.times.asked() - asked;
  form->figures.results = static_cast<int>(form->results.size());
  return true;
}

// Searches a cell. Its groups are mostly those of the whole graph, which are measured; those at its
// ends are not.
void Search(const SearchSetting& setting, OneRule& one_rule, FormFound* form) {
  const int failed = setting.times.failed();
  PartSearch found = SearchPart(setting, one_rule, kFormLimits);
  form->figures = found.figures;
  form->results = std::move(found.results);
  form->entry = {.estimate_ns = found.estimate_ns, .results = form->results};
  const bool has_times = found.stop != StopReason::kGroups && found.estimate_ns != kNoTimeNs &&
                         setting.times.failed() == failed;
  const bool is_complete = has_times && !setting.run.Over() && !IsSpent(setting);
  form->origin = is_complete ? RegionOrigin::kSearched : RegionOrigin::kCut;
}

}  // namespace

FormFound SearchForm(const SearchSetting& setting, OneRule& one_rule, const RegionEntry* known) {
  FormFound form;
  if (setting.run.Over() || IsSpent(setting)) return form;
  if (known == nullptr || !Recall(setting, one_rule, *known, &form)) {
    Search(setting, one_rule, &form);
  }
  return form;
}

}  // namespace ag

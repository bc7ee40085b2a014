#include "search/cell_search.h"

#include <algorithm>

#include "rules/match/rule_clean_up.h"
#include "search/cell_replay.h"

namespace ag {
namespace {

SearchRequest RequestForCells(const SearchRequest& request, Nanos time_max) {
  SearchRequest cells = request;
  cells.options.beta = std::max(request.options.beta, CellSearch::kCellBeta);
  SearchLimits& limits = cells.options.limits;
  limits.expansions_max = limits.graphs_max = CellSearch::kFormGraphsMax;
  limits.expansions_total_max = 0;
  limits.graphs_total_max = request.options.limits.cell_graphs_max;
  limits.candidates_max = CellSearch::kFormResultsMax;
  limits.time_max = time_max;
  return cells;
}

}  // namespace

CellSearch::CellSearch(const SearchSetting& setting, RewriteTrail& trail, Nanos time_max)
    : whole_setting_(setting),
      request_(RequestForCells(setting.request, time_max)),
      run_(request_, setting.run.clock()),
      setting_{request_, setting.rules, setting.times, setting.pairs, run_, setting.layout},
      trail_(trail),
      one_rule_(setting.rules) {}

// Always: whole_ is the input with what was taken so far, at cells behind those still to come.
std::optional<RankedGraph> CellSearch::Run() {
  StatusOr<Graph> clean = CleanUp(whole_setting_.request.input, setting_.rules);
  AG_CHECK(clean.ok());  // It is cleaned up.
  whole_.graph = *std::move(clean);
  whole_.estimate_ns = EstimateNs(whole_.graph, setting_);
  cells_ = CutIntoCells(whole_.graph);
  FindForms();
  std::vector<Form*> dearest;
  for (auto& [digest, form] : forms_) dearest.push_back(&form);
  std::ranges::stable_sort(dearest, std::greater<>(),
                           [](const Form* form) { return form->copies * form->estimate_ns; });
  for (Form* form : dearest) Solve(form);
  for (auto cell = cells_.rbegin(); cell != cells_.rend(); ++cell) {
    TakeAt(*cell, &forms_.at(cell->form));
  }
  for (const Form* form : dearest) Record(*form);
  whole_setting_.run.counts.cell_graphs = run_.counts.graphs;
  for (const std::string& warning : run_.warnings()) whole_setting_.run.Warn(warning);
  if (whole_.step == RewriteTrail::kInput) return std::nullopt;
  clean = CleanUp(whole_.graph, setting_.rules);
  AG_CHECK(clean.ok());  // It succeeded when this graph was made.
  whole_.graph = *std::move(clean);
  return std::move(whole_);
}

void CellSearch::FindForms() {
  for (const Cell& cell : cells_) {
    Form& form = forms_[cell.form];
    if (form.copies++ > 0) continue;
    StatusOr<Graph> clean = CleanUp(cell.graph, setting_.rules);
    AG_CHECK(clean.ok());  // It is a part of a graph that was cleaned up.
    form.graph = *std::move(clean);
    form.estimate_ns = EstimateNs(form.graph, setting_);
  }
}

// Searches a cell. Its groups are mostly those of the whole graph, which are measured; those at its
// ends are not.
void CellSearch::Solve(Form* form) {
  if (run_.Over() || run_.counts.graphs >= request_.options.limits.graphs_total_max) return;
  request_.input = form->graph;
  form->found = SearchPart(setting_, kFormBeamMax);
}

// Takes the first of the form's results that makes the whole graph's estimate less.
void CellSearch::TakeAt(const Cell& cell, Form* form) {
  for (const PartResult& result : form->found.results) {
    if (Over()) return;
    ++whole_setting_.run.counts.cell_takes;
    StatusOr<CellReplay> replay =
        ReplayInCell(whole_.graph, cell, form->graph, result.steps, one_rule_);
    if (!replay.ok()) continue;
    const double estimate_ns = EstimateNs(replay->graph, setting_);
    if (!IsGain(estimate_ns, whole_.estimate_ns)) continue;
    TakeReplay(*std::move(replay), whole_.step == RewriteTrail::kInput, &whole_, &trail_);
    whole_.estimate_ns = estimate_ns;
    ++form->taken;
    return;
  }
}

// Forms that were not searched any more stand in the log as well, with nothing seen.
void CellSearch::Record(const Form& form) {
  SearchedRegion figures = form.found.figures;
  figures.copies = form.copies;
  figures.nodes = form.graph.size();
  figures.taken = form.taken;
  if (figures.seen == 0) figures.estimate_ns = figures.best_ns = form.estimate_ns;
  whole_setting_.run.log.Add(figures);
}

bool CellSearch::Over() const {
  SearchRun& run = whole_setting_.run;
  return run.Over() ||
         run.counts.cell_takes >= whole_setting_.request.options.limits.cell_takes_max;
}

}  // namespace ag

#include "search/cell_search.h"

#include <algorithm>

#include "plan/spec/device_spec.h"
#include "rules/match/rule_clean_up.h"
#include "search/region_steps.h"

namespace ag {
namespace {

SearchRequest RequestForCells(const SearchRequest& request, Nanos time_max) {
  SearchRequest cells = request;
  cells.options.beta = std::max(request.options.beta, CellSearch::kCellBeta);
  SearchLimits& limits = cells.options.limits;
  limits.expansions_max = kFormLimits.backtracking_graphs;
  limits.expansions_total_max = 0;
  limits.stale_graphs_max = 0;
  limits.graphs_total_max = request.options.limits.cell_graphs_max;
  limits.candidates_max = CellSearch::kFormResultsMax;
  limits.time_max = time_max;
  return cells;
}

// Of cells, of what is searched in them, and of the estimate: what changes the results of equal
// cells raises it.
constexpr int kSearchVersion = 1;

RegionKey KeyOf(const Digest& form, const SearchSetting& setting) {
  const SearchRequest& request = setting.request;
  const SearchOptions& options = request.options;
  RegionKey key{.environment = request.environment};
  key.depends_on = fmt::format(
      "form={}\nenvironment={}\nspec={}\nrules={}\nprecision={}\ncold_cache={}\nlayout={}\n"
      "streams={}\nalpha={}\nbeta={}\ndetour={}\ngraphs={}+{}\nresults={}\nsearch={}\n",
      form.Hex(), request.environment, Sha256(FormatDeviceSpec(request.spec)).Hex(),
      setting.rules.digest().Hex(), request.policy.precision, request.policy.cold_cache,
      setting.layout ? LayoutName(*setting.layout) : "any", StreamsMax(request), options.alpha,
      options.beta, options.limits.detour_max, kFormLimits.backtracking_graphs,
      kFormLimits.beam_graphs, options.limits.candidates_max, kSearchVersion);
  return key;
}

}  // namespace

CellSearch::CellSearch(const SearchSetting& setting, RewriteTrail& trail, RegionStore* regions,
                       Nanos time_max)
    : whole_setting_(setting),
      request_(RequestForCells(setting.request, time_max)),
      run_(request_, setting.run.clock()),
      setting_{request_, setting.rules, setting.times, setting.pairs,
               run_,     setting.pool,  setting.layout},
      trail_(trail),
      regions_(regions),
      one_rules_(static_cast<size_t>(setting.pool.threads()), OneRule(setting.rules)) {}

// Always: whole_ is the input with what was taken so far, at cells behind those still to come.
std::optional<RankedGraph> CellSearch::Run() {
  StatusOr<Graph> clean = CleanUp(whole_setting_.request.input, setting_.rules);
  AG_CHECK(clean.ok());  // It is cleaned up.
  whole_.graph = *std::move(clean);
  whole_.estimate_ns = EstimateNs(whole_.graph, setting_);
  cells_ = CutIntoCells(whole_.graph);
  FindForms();
  SolveForms();
  TakeAtAll();
  for (const Form* form : dearest_) Record(*form);
  whole_setting_.run.counts.cell_graphs = run_.counts.graphs;
  for (const std::string& warning : run_.warnings()) whole_setting_.run.Warn(warning);
  if (whole_.step == RewriteTrail::kInput) return std::nullopt;
  clean = CleanUp(whole_.graph, setting_.rules);
  AG_CHECK(clean.ok());  // It succeeded when this graph was made.
  whole_.graph = *std::move(clean);
  return std::move(whole_);
}

std::vector<RegionUse> CellSearch::TakeUses() {
  std::vector<RegionUse> uses;
  for (Form* form : dearest_) uses.push_back(std::move(form->use));
  return uses;
}

void CellSearch::FindForms() {
  for (const Cell& cell : cells_) {
    Form& form = forms_[cell.form];
    if (form.use.copies++ > 0) continue;
    StatusOr<Graph> clean = CleanUp(cell.graph, setting_.rules);
    AG_CHECK(clean.ok());  // It is a part of a graph that was cleaned up.
    form.graph = *std::move(clean);
    form.estimate_ns = EstimateNs(form.graph, setting_);
    form.use.key = KeyOf(cell.form, setting_);
    form.use.entry = {.operators = static_cast<int>(cell.nodes.size()),
                      .estimate_ns = form.estimate_ns};
  }
}

void CellSearch::SolveForms() {
  for (auto& [digest, form] : forms_) dearest_.push_back(&form);
  std::ranges::stable_sort(dearest_, std::greater<>(),
                           [](const Form* form) { return form->use.copies * form->estimate_ns; });
  const auto forms = std::span<Form* const>(dearest_);
  for (size_t begin = 0; begin < forms.size(); begin += kFormsAtOnce) {
    if (run_.Over() || IsSpent() || setting_.times.Stopped()) return;
    SolveWave(forms.subspan(begin, std::min(kFormsAtOnce, forms.size() - begin)));
  }
}

bool CellSearch::IsSpent() const {
  return run_.counts.graphs >= request_.options.limits.graphs_total_max;
}

void CellSearch::SolveWave(std::span<Form* const> forms) {
  std::vector<std::optional<RegionEntry>> known;
  for (const Form* form : forms) known.push_back(Recall(*form));
  std::vector<FormWave::Task> tasks;
  for (size_t i = 0; i < forms.size(); ++i) {
    tasks.push_back({forms[i]->graph, known[i] ? &*known[i] : nullptr});
  }
  std::vector<FormFound> found = FormWave(setting_, one_rules_).Run(tasks);
  for (size_t i = 0; i < forms.size(); ++i) {
    Form& form = *forms[i];
    form.use.origin = found[i].origin;
    if (found[i].origin == RegionOrigin::kNotReached) continue;
    found[i].entry.operators = form.use.entry.operators;
    form.use.entry = std::move(found[i].entry);
    form.results = std::move(found[i].results);
    form.figures = found[i].figures;
    if (form.use.origin == RegionOrigin::kSearched) Keep(form);
  }
}

// Returns what the store knows of the form.
std::optional<RegionEntry> CellSearch::Recall(const Form& form) {
  if (regions_ == nullptr) return std::nullopt;
  StatusOr<RegionEntry> entry = regions_->Find(form.use.key, form.use.copies);
  if (entry.ok()) return *std::move(entry);
  if (entry.status().code() != StatusCode::kNotFound) run_.Warn(Message(entry.status()));
  return std::nullopt;
}

void CellSearch::Keep(const Form& form) {
  if (regions_ == nullptr) return;
  const Status kept = regions_->Put(form.use.key, form.use.entry, form.use.copies);
  if (!kept.ok()) run_.Warn(Message(kept));
}

// Takes at each cell, the last one first, the first of its form's results that makes the whole
// graph's estimate less. Most do not, so each thread makes one of those that come next; what was
// made behind one that is taken was made in vain.
void CellSearch::TakeAtAll() {
  std::vector<Try> tries;
  for (auto cell = cells_.rbegin(); cell != cells_.rend(); ++cell) {
    Form& form = forms_.at(cell->form);
    for (const RegionResult& result : form.results) tries.push_back({*cell, result, form});
  }
  for (std::span<const Try> left = tries; !left.empty() && !Over();) {
    const auto next = left.first(std::min(left.size(), one_rules_.size()));
    std::vector<Tried> made(next.size());
    setting_.pool.Each(static_cast<int>(next.size()), [&](int i, int thread) {
      made[i] = Make(next[static_cast<size_t>(i)], one_rules_[static_cast<size_t>(thread)]);
    });
    for (size_t i = 0; i < next.size() && !Over(); ++i) {
      ++whole_setting_.run.counts.cell_takes;
      left = left.subspan(1);
      if (!IsGain(made[i].estimate_ns, whole_.estimate_ns)) continue;
      TakeReplay(std::move(made[i].replay), whole_.step == RewriteTrail::kInput, &whole_, &trail_);
      whole_.estimate_ns = made[i].estimate_ns;
      ++next[i].form.figures.taken;
      while (!left.empty() && &left[0].cell == &next[i].cell) left = left.subspan(1);
      break;
    }
  }
}

// Returns what the whole graph becomes; kNoTimeNs: the result has no place there.
CellSearch::Tried CellSearch::Make(const Try& one, OneRule& one_rule) const {
  StatusOr<CellReplay> replay = ReplayInCell(whole_.graph, one.cell, one.result.steps, one_rule);
  if (!replay.ok()) return {};
  Tried made{.replay = *std::move(replay)};
  made.estimate_ns = EstimateNs(made.replay.graph, setting_);
  return made;
}

// Forms that were not searched any more stand in the log as well, with nothing seen.
void CellSearch::Record(const Form& form) {
  SearchedRegion figures = form.figures;
  figures.copies = form.use.copies;
  figures.nodes = form.graph.size();
  if (figures.seen == 0) figures.estimate_ns = figures.best_ns = form.estimate_ns;
  whole_setting_.run.log.Add(figures);
}

bool CellSearch::Over() const {
  SearchRun& run = whole_setting_.run;
  return run.Over() ||
         run.counts.cell_takes >= whole_setting_.request.options.limits.cell_takes_max;
}

}  // namespace ag

// Searches parts of a graph by themselves: each distinct cell (cells.h) once, and takes what it
// finds there at every copy. A slack that is a share of the estimate is narrow in a cell and wide
// in a whole graph, so cells get more of it: a detour through a dearer graph is found in a cell in
// a few graphs, and not in the whole graph at all. A form that a store knows (region_store.h) is
// not searched. Several forms are searched at once (form_wave.h). One thread at a time.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "search/cell_replay.h"
#include "search/cells.h"
#include "search/form_wave.h"
#include "search/region_store.h"

namespace ag {

class CellSearch {
 public:
  // Backtracking inside a cell keeps what is below kCellBeta x the best.
  static constexpr double kCellBeta = 2;
  // The most results of a form that are tried at each copy.
  static constexpr int kFormResultsMax = 3;
  // The forms that are searched at once, however many threads there are: none of them sees what
  // the others learn.
  static constexpr size_t kFormsAtOnce = 4;

  // All must outlive it; `regions` may be null. One object serves one Run. limits.cell_graphs_max
  // and cell_takes_max hold, setting.run gets the counts, and `time_max` is a backstop for the
  // search inside cells.
  CellSearch(const SearchSetting& setting, RewriteTrail& trail, RegionStore* regions,
             Nanos time_max);

  // Returns the input with what gains, cleaned up, and with its steps in the trail. Nothing: no
  // cell gains.
  std::optional<RankedGraph> Run();

  // Returns the forms, in the order in which they were searched. After Run.
  std::vector<RegionUse> TakeUses();

 private:
  // What was found for the cells of one form.
  struct Form {
    double estimate_ns = 0;
    Graph graph;  // Of the first cell, cleaned up.
    std::vector<RegionResult> results;
    RegionUse use;
    SearchedRegion figures;
  };

  // A result of a form that is tried at one of its cells, and what the whole graph becomes there.
  struct Try {
    const Cell& cell;
    const RegionResult& result;
    Form& form;
  };
  struct Tried {
    CellReplay replay;
    double estimate_ns = kNoTimeNs;
  };

  void FindForms();
  void SolveForms();
  void SolveWave(std::span<Form* const> forms);
  std::optional<RegionEntry> Recall(const Form& form);
  void Keep(const Form& form);
  bool IsSpent() const;
  void TakeAtAll();
  Tried Make(const Try& one, OneRule& one_rule) const;
  void Record(const Form& form);
  bool Over() const;

  const SearchSetting& whole_setting_;
  SearchRequest request_;  // Of all forms.
  SearchRun run_;
  SearchSetting setting_;  // The same.
  RewriteTrail& trail_;
  RegionStore* const regions_;
  std::vector<OneRule> one_rules_;  // For each thread of the pool.
  std::vector<Cell> cells_;
  std::map<Digest, Form> forms_;
  std::vector<Form*> dearest_;  // In the order in which they are searched.
  RankedGraph whole_;
};

}  // namespace ag

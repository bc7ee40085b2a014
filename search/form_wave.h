// Forms of cells (cells.h) that are searched side by side, by the threads of SearchSetting::pool.
// Each begins with what is known at the wave's begin and sees nothing of the others; what they
// learn is taken afterwards, in their order. So what is found does not depend on the number of
// threads.
//
// The limits hold as if the forms were searched one after the other: each may score the graphs and
// request the groups that those before it left. The first try of all forms may take all of it; one
// that takes too much is given up as soon as that is certain, and searched again with its part. A
// form that is cut by time, or by a cancellation, is the last: what others found behind it is
// dropped, so the counts repeat what was found.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "base/mutex.h"
#include "search/form_search.h"
#include "search/measuring_together.h"

namespace ag {

class FormWave {
 public:
  struct Task {
    const Graph& graph;        // Of the form.
    const RegionEntry* known;  // As in SearchForm.
  };

  // How often one of them asks whether the search is cancelled, for the others as well: an answer
  // may take long, since a measurement of another search may run meanwhile, so it is given while no
  // form is searched. At 10,000 graphs a second that is every 10 ms.
  static constexpr int kAsksPerLook = 128;

  // `cells` is the setting of all cells: its run has their counts, its times what is known.
  // `one_rules` has one for each thread of the pool. All must outlive it.
  FormWave(const SearchSetting& cells, std::span<OneRule> one_rules);
  ~FormWave();

  // Returns what was found for the forms, in their order; kNotReached: no limit is left, or time.
  // `tasks`, of which there is one at least, must outlive it. One object serves one Run.
  std::vector<FormFound> Run(const std::vector<Task>& tasks);

 private:
  // What limits of all cells count.
  struct Amount {
    int graphs = 0;
    int groups = 0;
  };
  struct Attempt;

  bool IsCancelled(Attempt& attempt);
  bool IsLookDue(Attempt& attempt);
  void Report(const Attempt& attempt, SearchProgress progress);
  void Search(Attempt& attempt, OneRule& one_rule);
  static bool Fits(Amount used, Amount limit, Amount left);
  std::vector<FormFound> Accept();

  const SearchSetting& cells_;
  const std::span<OneRule> one_rules_;
  MeasuringTogether measuring_;
  std::vector<std::unique_ptr<Attempt>> attempts_;
  Mutex mutex_;
  std::vector<Amount> used_ AG_GUARDED_BY(mutex_);  // So far, by place in the wave.
  int asks_ AG_GUARDED_BY(mutex_) = 0;
  std::atomic<bool> is_cancelled_{false};
};

}  // namespace ag

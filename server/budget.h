// How a job's time is divided, so that the whole ends with its budget:
//
//   begin      imported          search_end     finals_end               check_begin     end
//     |- import -|---- search ------|--- finals ---|--- exports, timings ---|--- checks ---|
//
// All of it is one clock's, from the moment the job began to run. What is not used of one part goes
// to the next. What the end takes is reserved by what the beginning took: a model is exported and
// read back about as fast as it was imported.
#pragma once

#include "base/clock.h"

namespace ag {

class Budget {
 public:
  Budget(Nanos begin, Nanos total);

  // The model is here. `check` is what comparing the answer with the model will take.
  void Imported(Nanos now, Nanos check);

  Nanos search_end() const { return search_end_; }    // SearchLimits::time_max from now,
  Nanos finals_end() const { return finals_end_; }    // and finals_max after it.
  Nanos check_begin() const { return check_begin_; }  // Timings of what was read back end by then.
  Nanos end() const { return end_; }

  // The end's share of the total: at least kEndShare, at most kEndShareMax.
  static constexpr double kEndShare = 0.25;
  static constexpr double kEndShareMax = 0.6;
  static constexpr double kFinalsShare = 0.2;  // Of what the end leaves.
  // Two exports, each read back.
  static constexpr int kImportsAtEnd = 4;

 private:
  void Divide(Nanos imported, Nanos read_backs, Nanos check);

  Nanos begin_, end_;
  Nanos search_end_{0}, finals_end_{0}, check_begin_{0};
};

}  // namespace ag

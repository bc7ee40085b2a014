// The division of a job's time, so that the whole job ends within its budget:
//
//   begin      imported          search_end        comparison_end           check_begin     end
//     |- import -|---- search ------|- final comparison -|--- exports, timings ---|--- checks ---|
//
// All times are of one clock, from the moment the job began to run. Time that one part leaves
// unused goes to the next part. The time reserved for the end follows from the time of the import:
// a model is exported and read back about as fast as it was imported. One thread at a time.
#pragma once

#include "base/clock.h"

namespace ag {

class Budget {
 public:
  Budget(Nanos begin, Nanos total);

  // Tells that the import is done and divides the rest of the time anew. `check` is the time that
  // comparing the outputs with the model will take.
  void Imported(Nanos now, Nanos check);

  Nanos search_end() const { return search_end_; }          // SearchLimits::time_max ends here,
  Nanos comparison_end() const { return comparison_end_; }  // and its comparison_max here.
  Nanos check_begin() const { return check_begin_; }        // Timings of files end by then.
  Nanos end() const { return end_; }

  // The share of the total that is kept for the end: at least kEndShare, at most kEndShareMax.
  static constexpr double kEndShare = 0.25;
  static constexpr double kEndShareMax = 0.7;
  static constexpr double kComparisonShare = 0.2;  // Of the time before the end's share.
  // Two exports, and reading each of them back.
  static constexpr int kImportsAtEnd = 4;

 private:
  void Divide(Nanos imported, Nanos read_backs, Nanos check);

  Nanos begin_, end_;
  Nanos search_end_{0}, comparison_end_{0}, check_begin_{0};
};

}  // namespace ag

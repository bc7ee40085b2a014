#include "server/pipeline/budget.h"

#include <algorithm>

namespace ag {
namespace {

Nanos Part(double share, Nanos of) {
  return Nanos(static_cast<int64_t>(share * static_cast<double>(of.count())));
}

}  // namespace

Budget::Budget(Nanos begin, Nanos total) : begin_(begin), end_(begin + std::max(total, Nanos{0})) {
  Divide(begin, Nanos{0}, Nanos{0});
}

void Budget::Imported(Nanos now, Nanos check) {
  Divide(now, kImportsAtEnd * (now - begin_), check);
}

void Budget::Divide(Nanos imported, Nanos read_backs, Nanos check) {
  const Nanos total = end_ - begin_;
  const Nanos most = Part(kEndShareMax, total);
  // kEndShare of the total is for the last timings; the rest follows from the read-backs and the
  // check.
  const Nanos kept = std::min(Part(kEndShare, total) + read_backs + check, most);
  check_begin_ = end_ - std::min(check, kept / 2);
  comparison_end_ = std::max(imported, end_ - kept);
  search_end_ = comparison_end_ - Part(kComparisonShare, comparison_end_ - imported);
}

}  // namespace ag

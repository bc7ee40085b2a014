#include "plan/rank_correlation.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/status.h"

namespace ag {

std::vector<double> Ranks(std::span<const double> values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, {}, [&](size_t i) { return values[i]; });
  std::vector<double> ranks(values.size());
  for (size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    const double mean = (static_cast<double>(begin + end) + 1) / 2;
    for (size_t i = begin; i < end; ++i) ranks[order[i]] = mean;
  }
  return ranks;
}

double Spearman(std::span<const double> a, std::span<const double> b) {
  AG_CHECK(a.size() == b.size());
  const std::vector<double> ranks_a = Ranks(a), ranks_b = Ranks(b);
  const double mean = (static_cast<double>(a.size()) + 1) / 2;
  double both = 0, of_a = 0, of_b = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double da = ranks_a[i] - mean, db = ranks_b[i] - mean;
    both += da * db;
    of_a += da * da;
    of_b += db * db;
  }
  return of_a == 0 || of_b == 0 ? 0 : both / std::sqrt(of_a * of_b);
}

}  // namespace ag

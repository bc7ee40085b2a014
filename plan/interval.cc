#include "plan/interval.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace ag {
namespace {

// Returns P(Binomial(n, p) >= k).
double BinomialTail(int n, int k, double p) {
  if (p >= 1) return 1;
  double tail = 0;
  for (int i = k; i <= n; ++i) {
    const double log_choose = std::lgamma(n + 1) - std::lgamma(i + 1) - std::lgamma(n - i + 1);
    tail += std::exp(log_choose + i * std::log(p) + (n - i) * std::log1p(-p));
  }
  return tail;
}

}  // namespace

double Median(std::span<const double> values) {
  AG_CHECK(!values.empty());
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  const size_t middle = sorted.size() / 2;
  if (sorted.size() % 2 == 1) return sorted[middle];
  return (sorted[middle - 1] + sorted[middle]) / 2;
}

// A resampled median is at most the k-th smallest sample when more than half of the n draws are,
// and each draw is so with probability k/n. This gives the bootstrap's distribution in closed form.
OrderRanks BootstrapRanks(int n, double confidence) {
  AG_CHECK(n > 0);
  const double enough = 1 - (1 - confidence) / 2;
  int low = 1, high = n;  // The smallest k with enough probability; n always has it.
  while (low < high) {
    const int k = (low + high) / 2;
    const bool is_enough = BinomialTail(n, n / 2 + 1, static_cast<double>(k) / n) >= enough;
    (is_enough ? high : low) = is_enough ? k : k + 1;
  }
  return {n - low, low - 1};
}

Latency MedianInterval(std::span<const double> values, double confidence) {
  AG_CHECK(!values.empty());
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  const OrderRanks ranks = BootstrapRanks(static_cast<int>(sorted.size()), confidence);
  return {Median(sorted), sorted[ranks.low], sorted[ranks.high]};
}

}  // namespace ag

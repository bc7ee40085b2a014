#include "plan/file_times.h"

#include <numeric>

#include "plan/check_figures.h"
#include "plan/interval.h"

namespace ag {
namespace {

// One look at the ratio: at 99 % an A/A comparison has its lower end above 1.01 in less than 1 % of
// cases, however large the noise.
constexpr double kRatioConfidence = 0.99;
constexpr double kLatencyConfidence = 0.95;

// Returns the file's times in the block, one or two.
std::vector<double> TimesIn(const std::vector<double>& block, size_t file) {
  std::vector<double> ns = {block[file], block[block.size() - 1 - file]};
  std::erase(ns, 0.0);
  return ns;
}

// Returns the mean of the file's times in each block.
std::vector<double> Means(const FileTimes& times, size_t file) {
  std::vector<double> means;
  for (const std::vector<double>& block : times.blocks) {
    const std::vector<double> ns = TimesIn(block, file);
    means.push_back(std::accumulate(ns.begin(), ns.end(), 0.0) / static_cast<double>(ns.size()));
  }
  return means;
}

}  // namespace

Status CheckFileTimes(const FileTimes& times, size_t files) {
  if (times.runners.size() != files) {
    return Err(StatusCode::kInternal, "file times: {} files, not {}", times.runners.size(), files);
  }
  for (const std::vector<double>& block : times.blocks) {
    if (block.size() != 2 * files) {
      return Err(StatusCode::kInternal, "file times: a block of {} times for {} files",
                 block.size(), files);
    }
    for (size_t file = 0; file < files; ++file) {
      if (!times.runners[file].status.ok()) continue;
      const std::vector<double> ns = TimesIn(block, file);
      if (ns.empty()) return Err(StatusCode::kInternal, "file times: a time of 0 ns");
      for (const double time : ns) {
        if (IsPossibleTime(time)) continue;
        return Err(StatusCode::kInternal, "file times: a time of {} ns", time);
      }
    }
  }
  return OkStatus();
}

Latency LatencyOf(const FileTimes& times, size_t file) {
  std::vector<double> ns;
  for (const std::vector<double>& block : times.blocks) {
    const std::vector<double> in_block = TimesIn(block, file);
    ns.insert(ns.end(), in_block.begin(), in_block.end());
  }
  return MedianInterval(ns, kLatencyConfidence);
}

Ratio RatioOf(const FileTimes& times, size_t baseline, size_t file) {
  const std::vector<double> before = Means(times, baseline), after = Means(times, file);
  std::vector<double> ratios;
  for (size_t b = 0; b < before.size(); ++b) ratios.push_back(before[b] / after[b]);
  const Latency interval = MedianInterval(ratios, kRatioConfidence);
  return {interval.median_ns, interval.low_ns, interval.high_ns};
}

}  // namespace ag

#include "plan/file_times.h"

#include <cmath>

#include "plan/interval.h"

namespace ag {
namespace {

// One look at the ratio: at 99 % an A/A comparison has its lower end above 1.01 in less than 1 % of
// cases, however large the noise.
constexpr double kRatioConfidence = 0.99;
constexpr double kLatencyConfidence = 0.95;

// The sums of both places of a file, by block.
std::vector<double> Sums(const FileTimes& times, size_t file) {
  std::vector<double> sums;
  for (const std::vector<double>& block : times.blocks) {
    sums.push_back(block[file] + block[block.size() - 1 - file]);
  }
  return sums;
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
    for (size_t place = 0; place < block.size(); ++place) {
      const size_t file = place < files ? place : block.size() - 1 - place;
      if (!times.runners[file].status.ok()) continue;
      if (std::isfinite(block[place]) && block[place] > 0) continue;
      return Err(StatusCode::kInternal, "file times: a time of {} ns", block[place]);
    }
  }
  return OkStatus();
}

Latency LatencyOf(const FileTimes& times, size_t file) {
  std::vector<double> ns;
  for (const std::vector<double>& block : times.blocks) {
    ns.insert(ns.end(), {block[file], block[block.size() - 1 - file]});
  }
  return MedianInterval(ns, kLatencyConfidence);
}

Ratio RatioOf(const FileTimes& times, size_t baseline, size_t file) {
  const std::vector<double> before = Sums(times, baseline), after = Sums(times, file);
  std::vector<double> ratios;
  for (size_t b = 0; b < before.size(); ++b) ratios.push_back(before[b] / after[b]);
  const Latency interval = MedianInterval(ratios, kRatioConfidence);
  return {interval.median_ns, interval.low_ns, interval.high_ns};
}

}  // namespace ag

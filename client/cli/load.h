// Figures of clients that ran at the same time: throughput and percentiles of latency.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace ag {

// When a client has had enough: after `runs` runs, or when that is 0 after so many seconds.
struct LoadLimits {
  int runs = 0;
  double seconds = 3;
};

// Nearest rank: the smallest time that so many percent of the runs did not exceed.
struct Percentiles {
  int runs = 0;
  double p50_ns = 0;
  double p95_ns = 0;
  double p99_ns = 0;
};
Percentiles PercentilesOf(std::vector<double> run_ns);  // REQUIRES: not empty.

struct LoadFigures {
  double seconds = 0;  // From the common start to the last client's end.
  double runs_per_second = 0;
  Percentiles all;
  std::vector<Percentiles> each;
};
// REQUIRES: every client ran, seconds > 0.
LoadFigures SumUp(std::vector<std::vector<double>> run_ns, double seconds);

// {runs, seconds, runs_per_second, latency_ms{p50, p95, p99}, each[{runs, latency_ms}]}
nlohmann::ordered_json LoadJson(const LoadFigures& figures);

// "812.5 runs/s  p50 1.21  p95 1.31  p99 1.52 ms  (2438 runs)", the second without the rate.
std::string LoadText(const LoadFigures& figures);
std::string PercentilesText(const Percentiles& percentiles);

}  // namespace ag

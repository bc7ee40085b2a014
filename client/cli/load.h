// Figures of clients that ran at the same time: throughput and percentiles of latency. Pure
// functions.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace ag {

// The end of a client: after `runs` runs, or when that is 0, after this many seconds.
struct LoadLimits {
  int runs = 0;
  double seconds = 3;
};

// Percentiles by nearest rank: the smallest time that this share of the runs did not exceed.
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
// Returns the figures of the clients' runs. REQUIRES: every client ran, seconds > 0.
LoadFigures SumUp(std::vector<std::vector<double>> run_ns, double seconds);

// {runs, seconds, runs_per_second, latency{p50_ns, p95_ns, p99_ns}, each[{runs, latency}]}
nlohmann::ordered_json LoadJson(const LoadFigures& figures);

// Returns "812.5 runs/s  p50 1.21  p95 1.31  p99 1.52 ms  (2438 runs)"; PercentilesText leaves out
// the rate.
std::string LoadText(const LoadFigures& figures);
std::string PercentilesText(const Percentiles& percentiles);

}  // namespace ag

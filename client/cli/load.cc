#include "client/cli/load.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace ag {
namespace {

using Json = nlohmann::ordered_json;

double NearestRank(const std::vector<double>& sorted, double percent) {
  const double rank = std::ceil(percent / 100 * static_cast<double>(sorted.size()));
  return sorted[static_cast<size_t>(std::max(1.0, rank)) - 1];
}

Json PercentilesJson(const Percentiles& p) {
  return {{"p50_ns", p.p50_ns}, {"p95_ns", p.p95_ns}, {"p99_ns", p.p99_ns}};
}

}  // namespace

Percentiles PercentilesOf(std::vector<double> run_ns) {
  AG_CHECK(!run_ns.empty());
  std::ranges::sort(run_ns);
  return {static_cast<int>(run_ns.size()), NearestRank(run_ns, 50), NearestRank(run_ns, 95),
          NearestRank(run_ns, 99)};
}

LoadFigures SumUp(std::vector<std::vector<double>> run_ns, double seconds) {
  AG_CHECK(seconds > 0);
  LoadFigures figures{.seconds = seconds};
  std::vector<double> all;
  for (std::vector<double>& times : run_ns) {
    all.insert(all.end(), times.begin(), times.end());
    figures.each.push_back(PercentilesOf(std::move(times)));
  }
  figures.runs_per_second = static_cast<double>(all.size()) / seconds;
  figures.all = PercentilesOf(std::move(all));
  return figures;
}

Json LoadJson(const LoadFigures& figures) {
  Json each = Json::array();
  for (const Percentiles& p : figures.each) {
    each.push_back({{"runs", p.runs}, {"latency", PercentilesJson(p)}});
  }
  return {{"runs", figures.all.runs},
          {"seconds", figures.seconds},
          {"runs_per_second", figures.runs_per_second},
          {"latency", PercentilesJson(figures.all)},
          {"each", each}};
}

std::string PercentilesText(const Percentiles& p) {
  return fmt::format("p50 {:.3f}  p95 {:.3f}  p99 {:.3f} ms  ({} runs)", p.p50_ns / 1e6,
                     p.p95_ns / 1e6, p.p99_ns / 1e6, p.runs);
}

std::string LoadText(const LoadFigures& figures) {
  return fmt::format("{:>9.2f} runs/s  {}", figures.runs_per_second, PercentilesText(figures.all));
}

}  // namespace ag

#include "plan/schedule/contention_model.h"

#include <algorithm>
#include <cmath>

namespace ag {
namespace {

// Steps of 0.01: finer than the agreement of two measuring sessions.
constexpr int kSteps = 100;

// Sums that differ by less than this count as equal; rounding alone makes them differ.
constexpr double kEqual = 1e-9;

double Misses(std::span<const PairTime> pairs, int cores, double overlap) {
  double sum = 0;
  for (const PairTime& pair : pairs) {
    sum += std::abs(TogetherNs(pair, cores, overlap) / pair.together_ns - 1);
  }
  return sum;
}

}  // namespace

int ShareOf(const Graph& graph, const Group& group, int stream_cores, int active_cores,
            const DeviceSpec& spec) {
  if (active_cores > 0) return std::min(active_cores, spec.cores);
  const int given = group.cores > 0 ? group.cores : stream_cores;
  int64_t outputs = 1;
  for (const Port& port : group.outputs) {
    outputs = std::max(outputs, graph.type(port.edge).NumElements());
  }
  return CoresTaken(spec, outputs, given > 0 ? std::min(given, spec.cores) : spec.cores);
}

double SpeedUnderContention(int running, double wanted, int cores, double overlap) {
  if (running <= 1) return 1;
  const double in_turn = 1.0 / running;
  const double dealt = std::clamp(cores / wanted, in_turn, 1.0);
  return overlap <= 1 ? std::lerp(in_turn, dealt, overlap) : std::lerp(dealt, 1.0, overlap - 1);
}

double TogetherNs(const PairTime& pair, int cores, double overlap) {
  const double speed = SpeedUnderContention(2, pair.cores[0] + pair.cores[1], cores, overlap);
  const auto [shorter, longer] = std::minmax(pair.ns[0], pair.ns[1]);
  return shorter / speed + longer - shorter;  // The rest of the longer one runs alone.
}

double FitOverlap(std::span<const PairTime> pairs, int cores) {
  double best = 1;
  double best_misses = Misses(pairs, cores, best);
  const auto look = [&](int step) {
    const double overlap = static_cast<double>(step) / kSteps;
    const double misses = Misses(pairs, cores, overlap);
    if (misses >= best_misses - kEqual) return;
    best = overlap;
    best_misses = misses;
  };
  for (int away = 1; away <= kSteps; ++away) {
    look(kSteps - away);
    look(kSteps + away);
  }
  return best;
}

}  // namespace ag

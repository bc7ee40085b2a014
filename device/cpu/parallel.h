// Loops over the cores that a kernel was built for. One loop at a time for one team.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdint>

#include "device/cpu/team.h"

namespace ag::cpu {

// Calls body(begin, end, worker) on disjoint ranges that cover [0, n), with worker in [0, cores).
// Each range but the last is a multiple of `grain` long, and no two calls have the same worker.
// Work of one grain stays on the calling thread.
template <class Body>
void ParallelFor(int cores, int64_t n, int64_t grain, const Body& body) {
  if (n <= 0) return;
  const int64_t grains = (n + grain - 1) / grain;
  if (cores <= 1 || grains <= 1 || Team::Here().inside) {
    body(int64_t{0}, n, 0);
    return;
  }
  const TeamScope scope(cores);
  const int64_t parts = std::min<int64_t>({grains, cores, scope.team().size()});
  scope.team().Run(static_cast<int>(parts), [&](int part) {
    const int64_t begin = grains * part / parts * grain;
    const int64_t end = std::min(n, grains * (part + 1) / parts * grain);
    if (begin < end) body(begin, end, part);
  });
}

// With fewer elements of light work (a few operations each) threads cost more than they gain.
inline constexpr int64_t kLightGrain = 8192;

// Sets omp's thread count to `threads` until the end of the scope, for code (oneDNN) that asks omp
// for it.
class OmpThreads {
 public:
  explicit OmpThreads(int threads) : before_(omp_get_max_threads()) {
    if (threads != before_) omp_set_num_threads(threads);
  }
  ~OmpThreads() {
    if (omp_get_max_threads() != before_) omp_set_num_threads(before_);
  }
  OmpThreads(const OmpThreads&) = delete;
  OmpThreads& operator=(const OmpThreads&) = delete;

 private:
  int before_;
};

}  // namespace ag::cpu

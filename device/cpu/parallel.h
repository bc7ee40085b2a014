// Loops over the cores that a kernel was built for.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdint>
#include <thread>
#include <vector>

namespace ag::cpu {

// Calls body(begin, end, worker) on disjoint ranges that cover [0, n), with worker in [0, cores),
// each range a multiple of `grain` long but the last. Work of one grain stays on the calling
// thread. The team is always 1 or `cores` threads: libgomp ends and starts threads when the size
// changes.
template <class Body>
void ParallelFor(int cores, int64_t n, int64_t grain, const Body& body) {
  if (n <= 0) return;
  const int64_t grains = (n + grain - 1) / grain;
#if defined(__SANITIZE_THREAD__)
  cores = 1;  // libgomp is not instrumented: every team would be reported as a race.
#endif
  if (cores <= 1 || grains <= 1) {
    body(int64_t{0}, n, 0);
    return;
  }
#pragma omp parallel num_threads(cores)
  {
    const int64_t team = omp_get_num_threads();
    const int64_t worker = omp_get_thread_num();
    const int64_t begin = grains * worker / team * grain;
    const int64_t end = std::min(n, grains * (worker + 1) / team * grain);
    if (begin < end) body(begin, end, static_cast<int>(worker));
  }
}

// Calls body(i) for each i in [0, n) at the same time, each on a thread of the same team that
// ParallelFor uses: so no second team waits for work on a core that somebody needs. False, and
// nothing was called, when there is no such team to be had (inside another parallel region).
// REQUIRES: n <= cores.
template <class Body>
bool RunBeside(int cores, int n, const Body& body) {
#if defined(__SANITIZE_THREAD__)
  std::vector<std::thread> threads;  // See ParallelFor.
  for (int i = 1; i < n; ++i) threads.emplace_back([&body, i] { body(i); });
  body(0);
  for (std::thread& thread : threads) thread.join();
  return true;
#else
  bool has_team = true;
#pragma omp parallel num_threads(cores)
  {
    const int worker = omp_get_thread_num();
    if (omp_get_num_threads() >= n) {
      if (worker < n) body(worker);
    } else if (worker == 0) {
      has_team = false;
    }
  }
  return has_team;
#endif
}

// Elements of light work (a few operations each) below which threads cost more than they give.
inline constexpr int64_t kLightGrain = 8192;

// Runs with omp's thread count set to `threads`, for code (oneDNN) that asks omp for it.
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

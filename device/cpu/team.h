// The threads that compute one run: the caller and helpers that wait beside it. The parts of a job
// are taken, not assigned: a helper that does not run, because another process has its core, takes
// none, and the caller computes that part as well (bench/results/2026-11-22-busy-serving.md). One
// thread at a time runs a team; Here and TeamScope work on the calling thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

namespace ag::cpu {

// Invariants of a job:
//   - `open_` holds the job's number, its parts and the next part to take in one word, and a part
//     is taken by a compare-and-exchange on it. So each part is taken once, and a helper that comes
//     late, with an old number, takes nothing.
//   - `function_`, `data_` and `parts` do not change while a part that was taken has not ended,
//     because RunParts returns only when `left_` is 0.
//   - The caller takes parts, too, so a job ends even when no helper runs. Only parts that wait for
//     each other (Barrier) need a thread each, hence parts <= size().
//   - No wake-up is lost. A helper counts itself in `asleep_` before its last look at `job_`; the
//     caller writes `job_` before it reads `asleep_`; both are sequentially consistent, so one of
//     them sees the other. The same holds for `caller_asleep_` and `left_`.
class Team {
 public:
  // Starts threads - 1 helpers, or fewer where the system gives no more; size() is the real number.
  explicit Team(int threads);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int wanted() const { return wanted_; }
  int size() const { return static_cast<int>(helpers_.size()) + 1; }

  // Calls body(part) once for each part in [0, parts) and returns after the last. Parts may wait
  // for each other (Barrier), since each has its own thread if need be. From inside a part, runs
  // everything in turn on the caller's thread. REQUIRES: one thread at a time calls it; parts <=
  // size().
  template <class Body>
  void Run(int parts, const Body& body) {
    RunParts(
        parts, [](const void* data, int part) { (*static_cast<const Body*>(data))(part); }, &body);
  }

  // Returns, inside a part, once every part of its job has called it as often.
  void Barrier();

  // The calling thread's place: a part of a job, or none.
  struct Place {
    Team* team = nullptr;  // Of the run or the part; null: neither.
    int part = 0;
    int parts = 1;
    bool inside = false;  // In a part.
  };
  static Place& Here();

 private:
  using Function = void (*)(const void* data, int part);

  void RunParts(int parts, Function function, const void* data);
  void RunPart(int part, int parts);
  bool TakePart(uint32_t job, int* part, int* parts);
  void Help();
  void WaitForParts();
  uint32_t WaitForJob(uint32_t seen);

  const int wanted_;
  // The current job.
  Function function_ = nullptr;
  const void* data_ = nullptr;
  alignas(64) std::atomic<uint64_t> open_{0};
  std::atomic<uint32_t> job_{0};               // Its number again, to sleep on.
  std::atomic<int> asleep_{0};                 // Helpers that need to be woken.
  std::atomic<int64_t> cores_lost_{0};         // By the process, when a helper looked last.
  alignas(64) std::atomic<uint32_t> left_{0};  // Parts that have not ended.
  std::atomic<bool> caller_asleep_{false};
  alignas(64) std::atomic<int> at_barrier_{0};
  std::atomic<uint32_t> barriers_{0};
  std::atomic<bool> stop_{false};
  std::vector<std::thread> helpers_;
};

// Gives the calling thread a team of this many threads until the end of the scope: the outer
// scope's where that is large enough, else one that nothing else uses. Teams are kept for later.
class TeamScope {
 public:
  explicit TeamScope(int threads);
  ~TeamScope();
  TeamScope(const TeamScope&) = delete;
  TeamScope& operator=(const TeamScope&) = delete;

  Team& team() const { return *Team::Here().team; }

 private:
  Team::Place before_;
  std::unique_ptr<Team> taken_;  // Null: the outer scope's.
};

}  // namespace ag::cpu

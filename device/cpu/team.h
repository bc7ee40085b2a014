// The threads that compute one run: the caller and helpers who wait beside it. A job's parts are
// taken, not dealt out: a helper who is not running, because somebody else has its core, takes
// none, and the caller does that part as well (bench/results/2026-11-22-busy-serving.md).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

namespace ag::cpu {

class Team {
 public:
  // Fewer threads than asked for where the system gives no more; size() says how many.
  explicit Team(int threads);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int wanted() const { return wanted_; }
  int size() const { return static_cast<int>(helpers_.size()) + 1; }

  // Calls body(part) once for each part in [0, parts) and returns after the last. Parts may wait
  // for each other: each has a thread of its own if need be. Runs everything in turn, on the
  // caller's thread, from inside a part.
  // REQUIRES: one thread at a time calls it; parts <= size().
  template <class Body>
  void Run(int parts, const Body& body) {
    RunParts(
        parts, [](const void* data, int part) { (*static_cast<const Body*>(data))(part); }, &body);
  }

  // Of a part: returns once every part of its job has called it as often.
  void Barrier();

  // What the calling thread is in: a part of a job, or nothing.
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
  // The job in progress. `open_` is number, parts and next part to take, in one word: who takes a
  // part of this number knows that the rest stands still until the part has ended.
  Function function_ = nullptr;
  const void* data_ = nullptr;
  alignas(64) std::atomic<uint64_t> open_{0};
  std::atomic<uint32_t> job_{0};               // Its number again, to sleep on.
  std::atomic<int> asleep_{0};                 // Helpers that need to be woken.
  alignas(64) std::atomic<uint32_t> left_{0};  // Parts that have not ended.
  std::atomic<bool> caller_asleep_{false};
  alignas(64) std::atomic<int> at_barrier_{0};
  std::atomic<uint32_t> barriers_{0};
  std::atomic<bool> stop_{false};
  std::vector<std::thread> helpers_;
};

// Gives the calling thread a team of so many threads until the end of the scope: its own from the
// outer scope where it has one, or one that nobody else uses. Teams are kept for later.
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

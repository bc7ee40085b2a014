#include "device/cpu/team.h"

#include <linux/futex.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

#include "base/mutex.h"

namespace ag::cpu {
namespace {

using Steady = std::chrono::steady_clock;

// How long a thread spins before it sleeps. Helpers spin until the next group of a plan; a wake-up
// costs about 50 us. The caller spins until a running helper has ended its part. On a busy machine
// a thread that spins uses up the share of its core that it needs for the next part. Median times
// of SqueezeNet beside a busy loop: 10.4 ms with 100 and 300 us, 8.1 with these, 6.7 with almost no
// spinning; without the loop: 3.5, 3.6 and 4.6.
constexpr auto kHelperSpin = std::chrono::microseconds(50);
constexpr auto kCallerSpin = std::chrono::microseconds(20);
// How much longer helpers of a small team spin where no thread of the process lost a core since one
// of them looked last: the next run may follow at once (bench/results/2026-11-30-teams.md).
constexpr auto kQuietSpin = std::chrono::microseconds(150);
constexpr int kSmallTeam = 8;       // The look costs more the more threads there are.
constexpr int kPausesPerLook = 32;  // Reading the clock costs more than a pause.

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Spins until done() or for `most`; returns whether it is done.
template <class Done>
bool Spin(Steady::duration most, const Done& done) {
  Steady::time_point end{};
  while (true) {
    for (int i = 0; i < kPausesPerLook; ++i) {
      if (done()) return true;
      Pause();
    }
    const Steady::time_point now = Steady::now();
    if (end == Steady::time_point{}) end = now + most;
    if (now >= end) return false;
  }
}

// Returns how often the system took a core from a thread of the process that still wanted it.
int64_t CoresLost() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_nivcsw;
}

// Sleeps while `word` is `value`; may return early.
void SleepWhile(std::atomic<uint32_t>* word, uint32_t value) {
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}
void Wake(std::atomic<uint32_t>* word, int sleepers) {
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, sleepers, nullptr, nullptr, 0);
}

constexpr int kCountBits = 16;
constexpr uint64_t kCountMask = (1u << kCountBits) - 1;

uint64_t OpenWord(uint32_t job, int parts, int next) {
  return uint64_t{job} << (2 * kCountBits) | static_cast<uint64_t>(parts) << kCountBits |
         static_cast<uint64_t>(next);
}

// Teams that are not in use. Never destroyed: their threads end with the process.
class Shelf {
 public:
  static Shelf& Instance() {
    static Shelf* const shelf = new Shelf();
    return *shelf;
  }

  // Returns the team of this size that was in use last: its helpers may still be awake, and those
  // of another one would share cores with them. Null: there is none.
  std::unique_ptr<Team> Take(int threads) {
    const MutexLock lock(mutex_);
    for (auto it = teams_.rbegin(); it != teams_.rend(); ++it) {
      if ((*it)->wanted() != threads) continue;
      std::unique_ptr<Team> team = std::move(*it);
      teams_.erase(std::next(it).base());
      return team;
    }
    return nullptr;
  }

  void Put(std::unique_ptr<Team> team) {
    const MutexLock lock(mutex_);
    teams_.push_back(std::move(team));
  }

 private:
  Mutex mutex_;
  std::vector<std::unique_ptr<Team>> teams_ AG_GUARDED_BY(mutex_);
};

}  // namespace

Team::Place& Team::Here() {
  static thread_local Place place;
  return place;
}

Team::Team(int threads) : wanted_(threads) {
  try {
    for (int i = 1; i < threads; ++i) helpers_.emplace_back([this] { Help(); });
  } catch (const std::system_error&) {
    // The system limits threads: the existing ones compute everything.
  }
}

Team::~Team() {
  stop_ = true;
  job_.fetch_add(1);
  Wake(&job_, size());
  for (std::thread& helper : helpers_) helper.join();
}

void Team::RunParts(int parts, Function function, const void* data) {
  const Place before = Here();
  if (parts <= 1 || before.inside) {
    for (int part = 0; part < parts; ++part) {
      Here() = {this, part, parts, true};
      function(data, part);
    }
    Here() = before;
    return;
  }
  function_ = function;
  data_ = data;
  left_.store(static_cast<uint32_t>(parts), std::memory_order_relaxed);
  const uint32_t job = job_.load(std::memory_order_relaxed) + 1;
  open_.store(OpenWord(job, parts, 1), std::memory_order_release);
  job_.store(job);  // Sequentially consistent, as asleep_: one side sees the other.
  if (asleep_.load() > 0) Wake(&job_, parts - 1);
  RunPart(0, parts);
  int part = 0;
  while (TakePart(job, &part, &parts)) RunPart(part, parts);
  WaitForParts();
  Here() = before;
}

void Team::RunPart(int part, int parts) {
  Here() = {this, part, parts, true};
  function_(data_, part);
  if (left_.fetch_sub(1) == 1 && caller_asleep_.load()) Wake(&left_, 1);
}

bool Team::TakePart(uint32_t job, int* part, int* parts) {
  uint64_t open = open_.load(std::memory_order_acquire);
  while (static_cast<uint32_t>(open >> (2 * kCountBits)) == job) {
    *part = static_cast<int>(open & kCountMask);
    *parts = static_cast<int>(open >> kCountBits & kCountMask);
    if (*part >= *parts) return false;
    if (open_.compare_exchange_weak(open, open + 1, std::memory_order_acq_rel)) return true;
  }
  return false;
}

void Team::WaitForParts() {
  const auto done = [this] { return left_.load(std::memory_order_acquire) == 0; };
  if (Spin(kCallerSpin, done)) return;
  caller_asleep_.store(true);
  for (uint32_t left = left_.load(); left != 0; left = left_.load()) SleepWhile(&left_, left);
  caller_asleep_.store(false);
}

uint32_t Team::WaitForJob(uint32_t seen) {
  const auto done = [&] { return job_.load(std::memory_order_acquire) != seen; };
  const auto is_quiet = [this] {
    if (wanted_ > kSmallTeam) return false;
    const int64_t lost = CoresLost();
    return cores_lost_.exchange(lost) == lost;
  };
  if (!Spin(kHelperSpin, done) && !(is_quiet() && Spin(kQuietSpin, done))) {
    asleep_.fetch_add(1);
    while (job_.load() == seen) SleepWhile(&job_, seen);
    asleep_.fetch_sub(1);
  }
  return job_.load(std::memory_order_acquire);
}

void Team::Help() {
  uint32_t job = 0;
  while (true) {
    job = WaitForJob(job);
    if (stop_.load()) return;
    int part = 0, parts = 0;
    while (TakePart(job, &part, &parts)) RunPart(part, parts);
    Here() = {};
  }
}

void Team::Barrier() {
  const int parts = Here().parts;
  const uint32_t before = barriers_.load();
  if (at_barrier_.fetch_add(1) + 1 == parts) {
    at_barrier_.store(0);
    barriers_.fetch_add(1);
    return;
  }
  while (barriers_.load(std::memory_order_acquire) == before) Pause();
}

TeamScope::TeamScope(int threads) : before_(Team::Here()) {
  if (before_.inside || (before_.team != nullptr && before_.team->wanted() >= threads)) return;
  taken_ = Shelf::Instance().Take(threads);
  if (taken_ == nullptr) taken_ = std::make_unique<Team>(threads);
  Team::Here() = {.team = taken_.get()};
}

TeamScope::~TeamScope() {
  if (taken_ == nullptr) return;
  Team::Here() = before_;
  Shelf::Instance().Put(std::move(taken_));
}

}  // namespace ag::cpu

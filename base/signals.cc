#include "base/signals.h"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <thread>
#include <utility>

#include "base/log.h"
#include "base/mutex.h"
#include "base/partial_files.h"
#include "base/status.h"

namespace ag {
namespace {

std::atomic<int> stop_signal{0};
std::atomic<bool> first_asks{false};
bool signals_taken = false;  // Signals have a thread. Only main uses this.

constexpr rlim_t kEarlySeconds = 2;

int Take(const sigset_t& signals) {
  int signal = 0;
  AG_CHECK(::sigwait(&signals, &signal) == 0);
  if (signal == SIGXCPU) std::fputs("\nthe processor time is nearly used up (ulimit -t)\n", stderr);
  return signal;
}

// Sets the soft limit below the hard one: the kernel sends SIGXCPU at the soft limit, and kills
// without a warning at the hard limit.
void AskForWarningOfLimit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_CPU, &limit) != 0 || limit.rlim_max == RLIM_INFINITY) return;
  const rlim_t early = limit.rlim_max > kEarlySeconds ? limit.rlim_max - kEarlySeconds : 1;
  limit.rlim_cur = std::min(limit.rlim_cur, early);
  (void)::setrlimit(RLIMIT_CPU, &limit);  // On failure the process ends without a warning.
}

struct LastWords {
  Mutex mutex;
  std::function<void()> say AG_GUARDED_BY(mutex);
};

// Never destroyed, because the thread of the signals runs until the process ends.
LastWords& Words() {
  static auto* const kWords = new LastWords;
  return *kWords;
}

void SayLastWords() {
  LastWords& words = Words();
  MutexLock lock(words.mutex);
  if (words.say) words.say();
}

void TakeSignals() {
  AG_CHECK(!signals_taken);
  signals_taken = true;
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGINT);
  ::sigaddset(&signals, SIGTERM);
  ::sigaddset(&signals, SIGXCPU);
  AskForWarningOfLimit();
  AG_CHECK(::pthread_sigmask(SIG_BLOCK, &signals, nullptr) == 0);
  std::thread([signals] {
    stop_signal = Take(signals);
    stop_signal.notify_all();
    if (first_asks) Take(signals);
    RemovePartialFiles();
    SayLastWords();
    ::_exit(kStoppedExitCode);  // No destructors: they could hang.
  }).detach();
}

}  // namespace

void CatchStopSignals() {
  first_asks = true;
  if (!signals_taken) TakeSignals();
}

void LeaveAtStopSignal() { TakeSignals(); }

void SetLastWords(std::function<void()> words) {
  LastWords& last = Words();
  MutexLock lock(last.mutex);
  last.say = std::move(words);
}

int StopSignal() { return stop_signal; }

int WaitForStopSignal() {
  stop_signal.wait(0);
  return stop_signal;
}

void EndAfter(Nanos grace) {
  std::thread([grace] {
    RealClock().SleepFor(grace);
    LogWarn("what runs did not end in time: leaving it");
    RemovePartialFiles();
    ::_exit(0);  // No destructors: they wait for what runs.
  }).detach();
}

}  // namespace ag

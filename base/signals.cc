#include "base/signals.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "base/status.h"

namespace ag {
namespace {

std::atomic<int> stop_signal{0};

int Take(const sigset_t& signals) {
  int signal = 0;
  AG_CHECK(::sigwait(&signals, &signal) == 0);
  return signal;
}

}  // namespace

void CatchStopSignals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGINT);
  ::sigaddset(&signals, SIGTERM);
  AG_CHECK(::pthread_sigmask(SIG_BLOCK, &signals, nullptr) == 0);
  std::thread([signals] {
    stop_signal = Take(signals);
    stop_signal.notify_all();
    Take(signals);
    ::_exit(kStoppedExitCode);  // No destructors: whatever hangs, this does not.
  }).detach();
}

int StopSignal() { return stop_signal; }

int WaitForStopSignal() {
  stop_signal.wait(0);
  return stop_signal;
}

}  // namespace ag

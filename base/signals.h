// SIGINT and SIGTERM without signal handlers: every thread blocks them, and one thread waits for
// them. The first signal asks the program to stop. The second one ends it at once: children die
// with it (base/process.h) and incomplete files are removed (base/partial_files.h). SIGXCPU also
// asks to stop, with a message on standard error; it comes 2 s of processor time before the hard
// limit (ulimit -t). Thread-safe.
#pragma once

#include <functional>

#include "base/clock.h"

namespace ag {

inline constexpr int kStoppedExitCode = 130;  // Exit code after the second signal.

// Takes the signals from here on. REQUIRES: called before any other thread starts, because threads
// inherit the set of blocked signals; or after LeaveAtStopSignal, and then the first signal asks.
void CatchStopSignals();

// Takes the signals from here on: already the first one ends the program. REQUIRES: called once,
// before any other thread starts.
void LeaveAtStopSignal();

// Names what is called before a signal ends the program; null: nothing.
void SetLastWords(std::function<void()> words);

int StopSignal();         // Returns the signal that asked to stop; 0: none.
int WaitForStopSignal();  // Waits for a signal that asks to stop, and returns it.

// Ends the program with exit code 0 after `grace`, as a second signal would, unless it has ended by
// then. For a program whose state survives any end.
void EndAfter(Nanos grace);

}  // namespace ag

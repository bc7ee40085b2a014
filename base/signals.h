// SIGINT and SIGTERM as ordinary code: blocked in every thread and taken by one that waits for
// them, so that nothing of ours runs inside a signal handler. The first asks the program to stop;
// the second ends it at once, its children die with it (base/process.h) and files that are not
// whole yet go (base/partial_files.h). SIGXCPU asks to stop as well: it comes 2 s of processor time
// before the hard limit (ulimit -t), and is said on standard error. Thread-safe.
#pragma once

namespace ag {

inline constexpr int kStoppedExitCode = 130;  // Of a program that the second signal ended.

// Takes both signals from here on. REQUIRES: called once, before any other thread starts: threads
// inherit what is blocked.
void CatchStopSignals();

int StopSignal();         // The signal that asked to stop; 0: none did.
int WaitForStopSignal();  // Waits for it.

}  // namespace ag

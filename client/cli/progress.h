// A job's progress as text for people: on a terminal one line that is drawn again and again,
// elsewhere one line per stage. The functions are pure.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <thread>

#include "autograph/v1/optimizer.pb.h"
#include "base/mutex.h"
#include "client/cli/context.h"

namespace ag {

// Returns all that is known of the progress: "searching, round 2: rewriting  best 1.070x  0:12 of
// 1:00 waits for the measuring lock, held by process 123  310 graphs, 40 groups, 8 plans".
std::string ProgressLine(const autograph::v1::Job& job);

// Returns the same with a bar, in at most `columns` characters: leaves out the least important
// parts until it fits, and shows what the job waits for instead of what it does. `seconds` have
// passed since the job reported it.
std::string FitProgress(const autograph::v1::Job& job, double seconds, int columns);

// Draws the line on a terminal and keeps its clock running; elsewhere prints one line when a stage
// begins, and one more when that stage waits for something. Says once, on a line that stays, which
// sizes were chosen. Thread-safe.
class ProgressPrinter {
 public:
  explicit ProgressPrinter(const Context& context) : context_(context) {}
  ~ProgressPrinter() { Clear(); }
  void Show(const autograph::v1::Job& job);
  void ShowBytes(const std::string& what, int64_t done, int64_t total);
  void Clear();  // Removes the line from the terminal.

 private:
  void Print(const autograph::v1::Job& job);
  void SaySizes(const std::string& chosen);
  void Draw(const std::string& line) AG_REQUIRES(mutex_);
  void DrawJob() AG_REQUIRES(mutex_);
  void KeepDrawing();

  const Context& context_;
  std::set<std::string> printed_;  // Stages whose line was printed.
  Mutex mutex_;
  CondVar ended_;
  bool said_sizes_ AG_GUARDED_BY(mutex_) = false;
  std::optional<autograph::v1::Job> job_ AG_GUARDED_BY(mutex_);  // The job that was last shown,
  Nanos shown_ AG_GUARDED_BY(mutex_){0};                         // and when.
  bool drawn_ AG_GUARDED_BY(mutex_) = false;
  bool done_ AG_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace ag

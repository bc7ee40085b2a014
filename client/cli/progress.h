// A job's progress for people: one line that fits, drawn again and again on a terminal, and a line
// a stage elsewhere.
#pragma once

#include <condition_variable>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "autograph/v1/optimizer.pb.h"
#include "base/mutex.h"
#include "client/cli/context.h"

namespace ag {

// "searching, round 2: rewriting  best 1.070x  0:12 of 1:00  waits for the measuring lock, held by
// process 123  310 graphs, 40 groups, 8 plans": what is known of it.
std::string ProgressLine(const autograph::v1::Job& job);

// The same with a bar, in at most `columns` characters: what matters least is left out until it
// fits, and what the job waits for stands in the place of what it does. `seconds` have passed since
// the job said so.
std::string FitProgress(const autograph::v1::Job& job, double seconds, int columns);

// Where standard error is a terminal, draws the line and keeps its time going; elsewhere prints one
// line when a stage begins, and one more when that waits for something. Thread-safe.
class ProgressPrinter {
 public:
  explicit ProgressPrinter(const Context& context) : context_(context) {}
  ~ProgressPrinter() { Clear(); }
  void Show(const autograph::v1::Job& job);
  void ShowBytes(const std::string& what, int64_t done, int64_t total);
  void Clear();  // Takes the line off the terminal.

 private:
  void Print(const autograph::v1::Job& job);
  void Draw(const std::string& line) AG_REQUIRES(mutex_);
  void DrawJob() AG_REQUIRES(mutex_);
  void KeepDrawing();

  const Context& context_;
  std::set<std::string> printed_;  // Stages that had their line.
  Mutex mutex_;
  CondVar ended_;
  std::optional<autograph::v1::Job> job_ AG_GUARDED_BY(mutex_);  // As last shown, ...
  Nanos shown_ AG_GUARDED_BY(mutex_){0};                         // ... and when.
  bool drawn_ AG_GUARDED_BY(mutex_) = false;
  bool done_ AG_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace ag

// What timing whole files gives: raw times by block, as they travel from the worker to the
// coordinator, which draws its own conclusions.
#pragma once

#include <string>
#include <vector>

#include "plan/measurement.h"

namespace ag {

// A file's process.
struct FileRunner {
  Status status;              // Why it has no times.
  std::string version;        // Of the runtime.
  bool carried_plan = false;  // Our runtime runs the plan that the file carries.
};

struct FileTimes {
  std::vector<FileRunner> runners;  // By file.
  // Nanoseconds a run. A block visits every file once in order and once in reverse: entries f and
  // 2 n - 1 - f are of file f. An entry is 0 where the file was not timed: a file whose runs are
  // long has one time a block.
  std::vector<std::vector<double>> blocks;
  int disturbed = 0;  // Of the blocks: others used the processors meanwhile.

  bool HasTimes(size_t file) const { return runners[file].status.ok() && !blocks.empty(); }
};

// kInternal: blocks of another size than the runners ask for, or a file with status OK that
// has no time in a block, or one that none can be (IsPossibleTime).
Status CheckFileTimes(const FileTimes& times, size_t files);

// Median and 95 % interval of a file's times. REQUIRES: HasTimes(file).
Latency LatencyOf(const FileTimes& times, size_t file);

// How many times faster `file` is than `baseline`: median and 99 % interval of the paired ratios of
// blocks. REQUIRES: both have times.
Ratio RatioOf(const FileTimes& times, size_t baseline, size_t file);

}  // namespace ag

// A recording: a device's measurements of groups, and of pairs of groups run together, as a text
// file with one line for each (docs/recording.md). It can be committed. `autograph cache export`
// writes it, `cache import` reads it, and a simulated device (device/sim) answers from it. Plain
// data and pure functions.
//   autograph-measurements 4
//   spec name h200
//   environment device=...;driver=...
//   group ns=2127.5 low=2120 high=2131 samples=15 ... kernel=direct others=... pattern=conv ...
//   pair ns=3100 low=... time=... groups=1,4 first=direct second=tiled
// spec: a line of docs/device-spec.md; these lines are optional. environment: of all following
// lines. A pair names its two groups by their numbers.
// that follow. A group is one line; a pair names two of them by number.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plan/fusion/group_problem.h"
#include "plan/fusion/pair_problem.h"
#include "plan/measurement.h"

namespace ag {

inline constexpr std::string_view kRecordingHeader = "autograph-measurements 4";

// The kernel name of a group whose time a simulated device with a recording had to estimate.
inline constexpr std::string_view kEstimatedKernel = "estimated";

struct RecordedGroup {
  GroupProblem problem;
  Environment environment;
  Measurement measurement;
  int64_t measured_unix_seconds = 0;
};

struct RecordedPair {
  PairProblem problem;
  Environment environment;
  Measurement measurement;  // The time of both groups together; no kernel, no alternatives.
  int64_t measured_unix_seconds = 0;
};

struct Recording {
  std::optional<DeviceSpec> spec;  // Without the lines that only device/sim reads.
  std::vector<RecordedGroup> groups;
  std::vector<RecordedPair> pairs;
};

// Returns true when the text begins as a recording of any version.
bool IsRecording(std::string_view text);

// Returns the file's text, sorted by environment and group: equal recordings have equal texts, in
// whatever order they hold groups and pairs. A pair is written only when both of its groups are
// there with its environment; without them it has no meaning.
std::string FormatRecording(const Recording& recording);

// Returns the recording in a text of this version. kInvalidArgument "line N:
// ...": the first mistake. Hostile text never crashes.
StatusOr<Recording> ParseRecording(std::string_view text);

}  // namespace ag

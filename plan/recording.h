// A recording: measurements of a device's groups, and of pairs of them run together, as a text file
// (docs/recording.md), one line each, which can be committed. `autograph cache export` writes one,
// `cache import` reads it, and a simulated device answers from it (device/sim).
//   autograph-measurements 3
//   spec name h200
//   environment device=...;driver=...
//   group ns=2127.5 low=2120 high=2131 samples=15 ... kernel=direct others=... pattern=conv ...
//   pair ns=3100 low=... time=... groups=1,4 first=direct second=tiled
//
// spec: the device as data, a line of docs/device-spec.md each; optional. environment: of the lines
// that follow. A group is one line; a pair names two of them by number.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plan/group_problem.h"
#include "plan/measurement.h"
#include "plan/pair_problem.h"

namespace ag {

inline constexpr std::string_view kRecordingHeader = "autograph-measurements 3";

// The kernel of groups whose time a simulated device with a recording had to estimate.
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
  Measurement measurement;  // Of both together; no kernel, no alternatives.
  int64_t measured_unix_seconds = 0;
};

struct Recording {
  std::optional<DeviceSpec> spec;  // Without the lines that only device/sim reads.
  std::vector<RecordedGroup> groups;
  std::vector<RecordedPair> pairs;
};

// Whether the text means to be a recording, of any version.
bool IsRecording(std::string_view text);

// The file's text: ordered by environment and group, so equal recordings have equal texts whatever
// the order of their groups and pairs. A pair is written only where both of its groups are, of its
// environment: alone it says nothing.
std::string FormatRecording(const Recording& recording);

// Reads versions 2 (which has no pairs) and 3. kInvalidArgument "line N: ..." for the first thing
// that is wrong; hostile text never crashes.
StatusOr<Recording> ParseRecording(std::string_view text);

}  // namespace ag

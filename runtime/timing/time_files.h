// Times model files as users run them: each file in a fresh process of its own, in our runtime or
// in ONNX Runtime, all interleaved. What a result says of a file is measured here, on the bytes
// that are published. Nothing here needs Python: without it, or without its onnxruntime module,
// the files that want ONNX Runtime have a status instead of times.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "device/profile/interference_monitor.h"
#include "graph/types.h"
#include "plan/file_times.h"

namespace ag {

enum class FileRuntime : uint8_t { kAutograph = 0, kOnnxRuntime = 1 };

struct FileToTime {
  std::string path;
  FileRuntime runtime = FileRuntime::kAutograph;
  std::string plan = {};  // Bytes of the plan for our runtime; empty: the one that it carries.
  bool operator==(const FileToTime&) const = default;
};

struct TimeFilesRequest {
  std::vector<FileToTime> files;
  std::string device = "cpu";           // Of our runtime, by name (device/open_device.h).
  std::map<std::string, Shape> shapes;  // For inputs whose sizes a model leaves open.
  // The file of a set of inputs (graph/inputs/input_set.h) that all runs get; what it lacks, or all
  // where it is empty, is random.
  std::string inputs = {};
  int threads = 0;          // Of ONNX Runtime; 0: the cores of `device`.
  bool cold_cache = false;  // Our runtime evicts caches before each run.
  double seconds = 10;      // Of sampling, unless 9 blocks take longer.
  int blocks_max = 21;
  // Of RealClock. No block is repeated or added to the 9 then, and no file has times when 9 blocks
  // would be late by more than kLateMax, and by more than kLateShare of the time from the call
  // until then.
  Nanos until = Nanos::max();
  static constexpr Nanos kLateMax{4'000'000'000};
  static constexpr double kLateShare = 0.25;
  Nanos answer_max{60'000'000'000};   // A process that says nothing for so long counts as hung.
  std::string program = {};           // The binary with the role "time-file"; empty: our own.
  std::function<bool()> stop;         // May be null. Asked often; true ends with kCancelled.
  std::function<void()> on_progress;  // May be null. Called often.
  // What was used so far, by these processes as by us; empty: ReadProcessorTimes. A block beside
  // others is waited for and repeated in bounded time, then counted (FileTimes::disturbed).
  std::function<ProcessorTimes(std::span<const pid_t>)> read_times = nullptr;
  std::function<void(pid_t)> on_wait = nullptr;  // May be null. As LockWait::on_wait.
};

// Holds the host's measuring lock while it times on a real device. Files that cannot be loaded or
// run have a status; the others are timed. kCancelled: `stop`; kDeadlineExceeded: `until`;
// kInvalidArgument: no files.
StatusOr<FileTimes> TimeFiles(const TimeFilesRequest& request);

// The version of ONNX Runtime that would be used, without loading it. AUTOGRAPH_PYTHON names the
// interpreter, python3 otherwise. kNotFound: there is no interpreter or it has no onnxruntime;
// kDeadlineExceeded: no answer within `time_max`.
StatusOr<std::string> FindOnnxRuntime(Nanos time_max = Nanos{60'000'000'000});

// kNotFound: AUTOGRAPH_PYTHON names a program that is not there, so that ONNX Runtime is left out
// where it is not required. OK: it is there, or none is named. Starts nothing.
Status CheckChosenPython();

// Runs both files in ONNX Runtime on the sets of inputs in files or, where there are none, on
// `seeds` sets of random ones, and compares every output of the second with the first's. kNotFound:
// no ONNX Runtime; kInvalidArgument: it refuses a file.
struct CompareFilesRequest {
  std::string reference, file;  // Paths.
  std::map<std::string, Shape> shapes;
  std::vector<std::string> inputs = {};  // Paths.
  int seeds = 3;
  std::function<void()> on_progress;  // May be null.
};
StatusOr<std::vector<OutputError>> CompareInOnnxRuntime(const CompareFilesRequest& request);

// Registers the role "time-file" (base/process.h). Call at the top of main.
void RegisterTimeFileRole();

}  // namespace ag

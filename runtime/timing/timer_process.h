// The process of one file while files are timed: it is started, asked for runs line by line, and
// ended with this object. One thread at a time. Private to this folder.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "base/process.h"
#include "runtime/timing/ort_file.h"
#include "runtime/timing/time_files.h"

namespace ag::internal {

// Deadlines and cancellation of one conversation.
struct Waiting {
  Nanos time_max{0};
  const std::function<bool()>* stop = nullptr;         // May be null, or hold none.
  const std::function<void()>* on_progress = nullptr;  // As `stop`.
};

// The runs of a file in its turn.
struct Place {
  int runs = 1;
  bool warm = true;  // One more run before, which is not counted.
};

class TimerProcess {
 public:
  // Starts the process; Ready waits until its model is loaded. kNotFound: no Python.
  static StatusOr<TimerProcess> Start(const TimeFilesRequest& request, const FileToTime& file);

  // Waits until the model is loaded and returns what the process reports about itself. kNotFound:
  // no ONNX Runtime; kInvalidArgument: it refuses the file, or the session's own error;
  // kDeadlineExceeded; kCancelled; kUnavailable: the process died.
  StatusOr<FileRunner> Ready(const Waiting& waiting);

  // Returns the mean time of the place's runs in nanoseconds. kUnavailable: the process died;
  // kInternal: the answer is not a time.
  StatusOr<double> Run(const Place& place, const Waiting& waiting);

  pid_t pid() const { return child_.pid(); }

 private:
  explicit TimerProcess(ChildProcess child, std::string noun)
      : child_(std::move(child)), noun_(std::move(noun)) {}
  std::optional<OrtFile> file_;  // Outlives the process that reads it.
  ChildProcess child_;
  std::string noun_;  // "ONNX Runtime", "the session".
  std::string rest_;  // Bytes after the last line.
};

// Returns the sizes by input name in the form that the script reads.
nlohmann::ordered_json ShapesJson(const std::map<std::string, Shape>& shapes);

// Returns the interpreter that AUTOGRAPH_PYTHON names, python3 otherwise. kNotFound: there is none.
StatusOr<std::string> FindPython();

// Starts Python on the embedded script with this request, a JSON document. kNotFound: no Python.
StatusOr<ChildProcess> SpawnOrtTimer(const std::string& request_json);

// Returns the child's next line without its end; `rest` keeps the bytes after it. kCancelled,
// kDeadlineExceeded, and kUnavailable when the child died.
StatusOr<std::string> ReadLine(ChildProcess& child, const std::string& noun, std::string* rest,
                               const Waiting& waiting);

// Parses "ready PLAN VERSION"; returns the status of "missing ..." and "error ...", and kInternal
// for anything else.
StatusOr<FileRunner> ParseReady(const std::string& line, const std::string& noun);

}  // namespace ag::internal

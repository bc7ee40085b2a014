// One file's process while files are timed: started, asked for runs line by line, ended. Private to
// this folder.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/process.h"
#include "runtime/timing/time_files.h"

namespace ag::internal {

// Deadlines and cancellation of one conversation.
struct Waiting {
  Nanos time_max{0};
  const std::function<bool()>* stop = nullptr;         // May be null, or hold none.
  const std::function<void()>* on_progress = nullptr;  // As `stop`.
};

// What a file does when its turn comes.
struct Place {
  int runs = 1;
  bool warm = true;  // One more run before, not counted.
};

class TimerProcess {
 public:
  // Starts the process; Ready waits until its model is loaded. kNotFound: no Python.
  static StatusOr<TimerProcess> Start(const TimeFilesRequest& request, const FileToTime& file);

  // Fills in what the process says of itself. kNotFound: no ONNX Runtime; kInvalidArgument: it
  // refuses the file; the session's own error; kDeadlineExceeded; kCancelled.
  StatusOr<FileRunner> Ready(const Waiting& waiting);

  // The mean of the place's runs in nanoseconds. kUnavailable: the process died; kInternal: it
  // answered with a time that is none.
  StatusOr<double> Run(const Place& place, const Waiting& waiting);

  pid_t pid() const { return child_.pid(); }

 private:
  explicit TimerProcess(ChildProcess child, std::string noun)
      : child_(std::move(child)), noun_(std::move(noun)) {}
  ChildProcess child_;
  std::string noun_;  // "ONNX Runtime", "the session".
  std::string rest_;  // What came after the last line.
};

// Sizes by input name, as the script takes them.
nlohmann::ordered_json ShapesJson(const std::map<std::string, Shape>& shapes);

// Starts Python on the embedded script with this request, a JSON document. kNotFound: no Python.
StatusOr<ChildProcess> SpawnOrtTimer(const std::string& request_json);

// The next line from the child without its end; `rest` keeps what came behind it.
StatusOr<std::string> ReadLine(ChildProcess& child, const std::string& noun, std::string* rest,
                               const Waiting& waiting);

// "ready PLAN VERSION" as what it says; "missing", "error" and the like as their status.
StatusOr<FileRunner> ParseReady(const std::string& line, const std::string& noun);

}  // namespace ag::internal

#include "runtime/timing/timer_process.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/frames.h"
#include "base/text.h"
#include "base/thread.h"
#include "device/api/device_name.h"
#include "embedded/timing_scripts.h"
#include "runtime/timing/file_timer.h"

namespace ag::internal {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kOrtNoun = "ONNX Runtime";
constexpr size_t kLineMax = size_t{4} << 20;

// Returns the first program of this name in PATH; a name with a slash is a path already.
StatusOr<std::string> FindProgram(const std::string& name) {
  std::vector<std::string> candidates;
  if (name.find('/') != std::string::npos) {
    candidates.push_back(name);
  } else if (const char* path = std::getenv("PATH"); path != nullptr) {
    for (const std::string_view folder : Split(path, ':')) {
      if (!folder.empty()) candidates.push_back(std::string(folder) + "/" + name);
    }
  }
  for (const std::string& candidate : candidates) {
    std::error_code error;
    if (!std::filesystem::is_directory(candidate, error) && access(candidate.c_str(), X_OK) == 0) {
      return candidate;
    }
  }
  return Err(StatusCode::kNotFound, "there is no {} to ask for ONNX Runtime", name);
}

// Returns the number of threads that makes ONNX Runtime comparable with `device`: the cores of a
// `cpu` device, else all cores that this process may use.
int ThreadsBeside(const TimeFilesRequest& request) {
  if (request.threads > 0) return request.threads;
  const StatusOr<DeviceName> name = ParseDeviceName(request.device);
  const bool cores = name.ok() && name->kind == DeviceName::Kind::kCpu && name->cores > 0;
  return cores ? name->cores : UsableCores();
}

StatusOr<ChildProcess> SpawnOnnxRuntime(const TimeFilesRequest& request, const OrtFile& file) {
  const Json asked = {{"model", file.path()},
                      {"threads", ThreadsBeside(request)},
                      {"shapes", ShapesJson(request.shapes)},
                      {"inputs", request.inputs}};
  return SpawnOrtTimer(asked.dump());
}

StatusOr<ChildProcess> SpawnSession(const TimeFilesRequest& request, const FileToTime& file) {
  AG_LET(ChildProcess child, SpawnRole(kTimeFileRole, {}, request.program));
  const FileTimerRequest asked{file.path,          request.device, request.shapes,
                               request.cold_cache, file.plan,      request.inputs};
  AG_TRY(SendFrame(child.socket(), kTimeFileFrame, EncodeFields(asked)));
  return child;
}

bool Holds(const auto* function) { return function != nullptr && *function != nullptr; }

}  // namespace

Json ShapesJson(const std::map<std::string, Shape>& shapes) {
  Json sizes = Json::object();
  for (const auto& [name, shape] : shapes) {
    sizes[name] = std::vector<int64_t>(shape.begin(), shape.end());
  }
  return sizes;
}

StatusOr<std::string> FindPython() {
  const char* const chosen = std::getenv("AUTOGRAPH_PYTHON");
  if (chosen == nullptr || *chosen == 0) return FindProgram("python3");
  StatusOr<std::string> python = FindProgram(chosen);
  if (python.ok()) return python;
  return Err(python.status().code(), "{} (AUTOGRAPH_PYTHON names it)", Message(python.status()));
}

StatusOr<ChildProcess> SpawnOrtTimer(const std::string& request_json) {
  AG_LET(const std::string python, FindPython());
  const std::string script(TimingScripts().front().text);
  return ChildProcess::Spawn({python, {"-c", script, request_json}, {}});
}

StatusOr<std::string> ReadLine(ChildProcess& child, const std::string& noun, std::string* rest,
                               const Waiting& waiting) {
  constexpr int kPollMs = 50;
  const Nanos begin = RealClock().Now();
  while (true) {
    if (const size_t end = rest->find('\n'); end != std::string::npos) {
      std::string line = rest->substr(0, end);
      rest->erase(0, end + 1);
      return line;
    }
    if (rest->size() > kLineMax) {
      return Err(StatusCode::kInternal, "{} wrote more than it may", noun);
    }
    if (Holds(waiting.stop) && (*waiting.stop)()) return Err(StatusCode::kCancelled, "interrupted");
    if (Holds(waiting.on_progress)) (*waiting.on_progress)();
    if (RealClock().Now() - begin > waiting.time_max) {
      return Err(StatusCode::kDeadlineExceeded, "{} did not answer in {:.0f} s", noun,
                 std::chrono::duration<double>(waiting.time_max).count());
    }
    pollfd ready = {child.socket(), POLLIN, 0};
    if (poll(&ready, 1, kPollMs) <= 0) continue;
    char piece[4096];
    const ssize_t size = recv(child.socket(), piece, sizeof(piece), 0);
    if (size > 0) {
      rest->append(piece, static_cast<size_t>(size));
      continue;
    }
    const Status ended = child.WaitFor(std::chrono::seconds(1));
    return Err(StatusCode::kUnavailable, "{} gave no answer{}{}", noun, ended.ok() ? "" : ": ",
               Message(ended));
  }
}

StatusOr<FileRunner> ParseReady(const std::string& line, const std::string& noun) {
  const size_t space = line.find(' ');
  const std::string word = line.substr(0, space);
  const std::string text = space == std::string::npos ? "" : line.substr(space + 1);
  if (word == "missing") {
    return Err(StatusCode::kNotFound, "ONNX Runtime is not installed: {}", text);
  }
  if (word == "error") return Err(StatusCode::kInvalidArgument, "{}: {}", noun, text);
  const size_t second = text.find(' ');
  if (word != "ready" || second == std::string::npos) {
    return Err(StatusCode::kInternal, "{} answered \"{}\"", noun, line.substr(0, 100));
  }
  FileRunner runner;
  runner.carried_plan = text.substr(0, second) == "carried";
  runner.version = text.substr(second + 1);
  return runner;
}

StatusOr<TimerProcess> TimerProcess::Start(const TimeFilesRequest& request,
                                           const FileToTime& file) {
  if (file.runtime != FileRuntime::kOnnxRuntime) {
    AG_LET(ChildProcess child, SpawnSession(request, file));
    return TimerProcess(std::move(child), "the session");
  }
  AG_LET(OrtFile readable, OrtFile::Of(file.path));
  AG_LET(ChildProcess child, SpawnOnnxRuntime(request, readable));
  TimerProcess process(std::move(child), kOrtNoun);
  process.file_ = std::move(readable);
  return process;
}

StatusOr<FileRunner> TimerProcess::Ready(const Waiting& waiting) {
  AG_LET(const std::string line, ReadLine(child_, noun_, &rest_, waiting));
  return ParseReady(line, noun_);
}

StatusOr<double> TimerProcess::Run(const Place& place, const Waiting& waiting) {
  const std::string asked = fmt::format("{} {}\n", place.warm ? "warm" : "run", place.runs);
  if (send(child_.socket(), asked.data(), asked.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(asked.size())) {
    return Err(StatusCode::kUnavailable, "{} is gone", noun_);
  }
  AG_LET(const std::string line, ReadLine(child_, noun_, &rest_, waiting));
  if (line.starts_with("error ")) return ParseReady(line, noun_).status();
  double ns = 0;
  const auto parsed = std::from_chars(line.data(), line.data() + line.size(), ns);
  if (parsed.ec != std::errc() || !std::isfinite(ns) || ns <= 0) {
    return Err(StatusCode::kInternal, "{} answered with a time that is none: \"{}\"", noun_,
               line.substr(0, 100));
  }
  return ns;
}

}  // namespace ag::internal

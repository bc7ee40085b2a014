// Log lines on stderr: one line for each message, in UTC; for people, or for programs as JSON.
// Before InitLog only warnings and errors are shown, as the command line needs it. Thread-safe,
// except InitLog.
//   2026-11-21T03:04:05.123Z info autographd: jobs/7: QUEUED
//   {"time":"2026-11-21T03:04:05.123Z","level":"info","program":"autographd",
//    "message":"jobs/7: QUEUED","job":"jobs/7","trace_id":"4bf92f3577b34da6a3ce929d0e0e4736"}
#pragma once

#include <fmt/format.h>

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ag {

// What a line says beside its message: a name, such as "job", and a value.
using LogField = std::pair<std::string, std::string>;

struct LogOptions {
  std::string level = "info";  // The lowest that is shown: "info", "warn", "error" or "off".
  bool json = false;
  std::vector<LogField> fields = {};  // Of each line of this process.
};

// Sets the program's name in each line, and how lines look. Another level gives a warning and
// counts as "info". REQUIRES: called before other threads start.
void InitLog(std::string_view program, LogOptions options);
// Returns the options of a process that another one of ours has started: it logs in the same form,
// which the variable AUTOGRAPH_LOG_FORMAT says.
LogOptions ChildLogOptions(std::string_view level);
inline void InitLog(std::string_view program, std::string_view level) {
  InitLog(program, ChildLogOptions(level));
}

// Adds fields to the lines of this thread while it lives. Lines for people have no fields: their
// message names the job. Scopes of a thread end in the reverse order of their begins.
class LogScope {
 public:
  LogScope(std::initializer_list<LogField> fields);
  ~LogScope();
  LogScope(const LogScope&) = delete;
  LogScope& operator=(const LogScope&) = delete;

 private:
  size_t count_;
};

namespace internal {

enum class LogLevel { kInfo, kWarn, kError };
bool LogShows(LogLevel level);
// Writes one line. Control characters in `message` become escapes, so a client cannot forge a line.
void LogMessage(LogLevel level, std::string_view message);

template <class... Args>
void Log(LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
  if (LogShows(level)) LogMessage(level, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace internal

template <class... Args>
void LogInfo(fmt::format_string<Args...> format, Args&&... args) {
  internal::Log(internal::LogLevel::kInfo, format, std::forward<Args>(args)...);
}

template <class... Args>
void LogWarn(fmt::format_string<Args...> format, Args&&... args) {
  internal::Log(internal::LogLevel::kWarn, format, std::forward<Args>(args)...);
}

template <class... Args>
void LogError(fmt::format_string<Args...> format, Args&&... args) {
  internal::Log(internal::LogLevel::kError, format, std::forward<Args>(args)...);
}

}  // namespace ag

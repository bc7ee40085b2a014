// Log lines for people, on stderr: one line for each message, in UTC. Before InitLog only warnings
// and errors are shown, as the command line needs it. Thread-safe, except InitLog.
//   2026-11-21T03:04:05.123Z info autographd: job 7: started
#pragma once

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace ag {

// Sets the program's name in each line and the lowest level shown: "info", "warn", "error" or
// "off". Another level gives a warning and counts as "info". REQUIRES: called before other threads
// start.
void InitLog(std::string_view program, std::string_view level);

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

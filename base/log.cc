#include "base/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <array>
#include <memory>
#include <string>

namespace ag {
namespace {

std::shared_ptr<spdlog::logger> MakeLogger(std::string program, spdlog::level::level_enum level) {
  auto logger = std::make_shared<spdlog::logger>(std::move(program),
                                                 std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_level(level);
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %l %n: %v", spdlog::pattern_time_type::utc);
  return logger;
}

// Never destroyed, so that other threads and destructors can log until the end.
std::shared_ptr<spdlog::logger>& Logger() {
  static auto* const kLogger =
      new std::shared_ptr<spdlog::logger>(MakeLogger("autograph", spdlog::level::warn));
  return *kLogger;
}

spdlog::level::level_enum ToSpdlog(internal::LogLevel level) {
  switch (level) {
    case internal::LogLevel::kInfo:
      return spdlog::level::info;
    case internal::LogLevel::kWarn:
      return spdlog::level::warn;
    case internal::LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::err;
}

std::string OnOneLine(std::string_view message) {
  std::string line;
  line.reserve(message.size());
  for (const char c : message) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '\n') {
      line += "\\n";
    } else if (code < 0x20 || code == 0x7f) {
      line += fmt::format("\\x{:02x}", code);
    } else {
      line += c;
    }
  }
  return line;
}

}  // namespace

void InitLog(std::string_view program, std::string_view level) {
  struct Name {
    std::string_view name;
    spdlog::level::level_enum level;
  };
  constexpr std::array<Name, 4> kLevels = {{{"info", spdlog::level::info},
                                            {"warn", spdlog::level::warn},
                                            {"error", spdlog::level::err},
                                            {"off", spdlog::level::off}}};
  for (const Name& known : kLevels) {
    if (level != known.name) continue;
    Logger() = MakeLogger(std::string(program), known.level);
    return;
  }
  Logger() = MakeLogger(std::string(program), spdlog::level::info);
  LogWarn("log level: expected info, warn, error or off, got '{}'", level);
}

namespace internal {

bool LogShows(LogLevel level) { return Logger()->should_log(ToSpdlog(level)); }

void LogMessage(LogLevel level, std::string_view message) {
  const std::string line = OnOneLine(message);
  Logger()->log(ToSpdlog(level), spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace internal
}  // namespace ag

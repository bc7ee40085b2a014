#include "base/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <string>

namespace ag {
namespace {

std::shared_ptr<spdlog::logger> MakeLogger(std::string program, spdlog::level::level_enum level,
                                           bool json = false) {
  auto logger = std::make_shared<spdlog::logger>(std::move(program),
                                                 std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_level(level);
  logger->set_pattern(json ? R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l","program":"%n",%v})"
                           : "%Y-%m-%dT%H:%M:%S.%eZ %l %n: %v",
                      spdlog::pattern_time_type::utc);
  return logger;
}

// Set by InitLog, before other threads start.
LogOptions& Options() {
  static auto* const kOptions = new LogOptions{.level = "warn"};
  return *kOptions;
}

thread_local std::vector<LogField> fields_of_thread;

constexpr char kFormatVariable[] = "AUTOGRAPH_LOG_FORMAT";

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

// Returns the text as a JSON string. Bytes that are not UTF-8 become U+FFFD.
std::string JsonString(std::string_view text) {
  std::string json = "\"";
  for (size_t i = 0; i < text.size();) {
    const auto code = static_cast<unsigned char>(text[i]);
    const size_t length = code < 0x80 ? 1 : code >= 0xf0 ? 4 : code >= 0xe0 ? 3 : 2;
    bool is_whole = code < 0x80 || (code >= 0xc2 && code <= 0xf4 && i + length <= text.size());
    for (size_t k = 1; is_whole && k < length; ++k) {
      is_whole = (static_cast<unsigned char>(text[i + k]) & 0xc0) == 0x80;
    }
    if (!is_whole) {
      json += "\xef\xbf\xbd";
      ++i;
      continue;
    }
    if (code == '"' || code == '\\') json += '\\';
    if (code < 0x20 || code == 0x7f) {
      json += fmt::format("\\u{:04x}", code);
    } else {
      json += text.substr(i, length);
    }
    i += length;
  }
  return json + '"';
}

std::string JsonLine(std::string_view message) {
  std::string line = "\"message\":" + JsonString(message);
  for (const auto* fields : {&Options().fields, &fields_of_thread}) {
    for (const auto& [name, value] : *fields) {
      line += fmt::format(",{}:{}", JsonString(name), JsonString(value));
    }
  }
  return line;
}

}  // namespace

void InitLog(std::string_view program, LogOptions options) {
  const std::string level = options.level;
  Options() = std::move(options);
  const bool json = Options().json;
  ::setenv(kFormatVariable, json ? "json" : "text", /*overwrite=*/1);
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
    Logger() = MakeLogger(std::string(program), known.level, json);
    return;
  }
  Logger() = MakeLogger(std::string(program), spdlog::level::info, json);
  LogWarn("log level: expected info, warn, error or off, got '{}'", level);
}

LogOptions ChildLogOptions(std::string_view level) {
  const char* format = std::getenv(kFormatVariable);
  return {.level = std::string(level), .json = format != nullptr && std::string(format) == "json"};
}

LogScope::LogScope(std::initializer_list<LogField> fields) : count_(fields.size()) {
  fields_of_thread.insert(fields_of_thread.end(), fields.begin(), fields.end());
}

LogScope::~LogScope() { fields_of_thread.resize(fields_of_thread.size() - count_); }

namespace internal {

bool LogShows(LogLevel level) { return Logger()->should_log(ToSpdlog(level)); }

void LogMessage(LogLevel level, std::string_view message) {
  const std::string line = Options().json ? JsonLine(message) : OnOneLine(message);
  Logger()->log(ToSpdlog(level), spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace internal
}  // namespace ag

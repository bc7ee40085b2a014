#include "base/log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "base/text.h"

namespace ag {
namespace {

// Returns `text` with TIME in place of each time at the start of a line.
std::string WithoutTimes(std::string_view text) {
  constexpr std::string_view kShape = "0000-00-00T00:00:00.000Z";
  std::string masked;
  for (const std::string_view line : Split(text, '\n')) {
    std::string time(line.substr(0, kShape.size()));
    for (char& c : time) c = c >= '0' && c <= '9' ? '0' : c;
    if (!masked.empty()) masked += '\n';
    masked += time == kShape ? "TIME" : time;
    masked += line.substr(std::min(line.size(), kShape.size()));
  }
  return masked;
}

// Returns the output of the calls below at this level.
std::string Logged(std::string_view level) {
  testing::internal::CaptureStderr();
  InitLog("prog", LogOptions{.level = std::string(level)});
  LogInfo("job {}: {}", 7, "started");
  LogWarn("two\nlines\x1b[0m");
  LogError("failed {{}}");
  const std::string text = testing::internal::GetCapturedStderr();
  InitLog("base_test", "warn");
  return WithoutTimes(text);
}

constexpr char kInfo[] = "TIME info prog: job 7: started\n";
constexpr char kWarn[] = "TIME warning prog: two\\nlines\\x1b[0m\n";
constexpr char kError[] = "TIME error prog: failed {}\n";

TEST(LogTest, LevelsAndLines) {
  const struct {
    const char* level;
    std::string expected;
  } cases[] = {
      {"info", std::string(kInfo) + kWarn + kError},
      {"warn", std::string(kWarn) + kError},
      {"error", kError},
      {"off", ""},
      {"loud", "TIME warning prog: log level: expected info, warn, error or off, got 'loud'\n" +
                   (std::string(kInfo) + kWarn + kError)},
  };
  for (const auto& c : cases) EXPECT_EQ(Logged(c.level), c.expected) << c.level;
}

TEST(LogTest, JsonLinesHaveTheFieldsOfTheirScope) {
  testing::internal::CaptureStderr();
  InitLog("prog", LogOptions{.level = "info", .json = true, .fields = {{"job", "jobs/7"}}});
  {
    const LogScope outer({{"trace_id", "abc"}});
    const LogScope inner({{"attempt", "e3.1"}, {"worker", "w\"1"}});
    LogWarn("two\nlines, \xff and \xc3\xa9");
  }
  LogInfo("done");
  std::string text = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(ChildLogOptions("warn").json) << "what this process starts logs alike";
  InitLog("base_test", LogOptions{.level = "warn"});
  for (size_t at = text.find("\"time\":\""); at != text.npos;
       at = text.find("\"time\":\"", at + 1)) {
    text.replace(at + 8, 24, "TIME");
  }
  EXPECT_EQ(text,
            "{\"time\":\"TIME\",\"level\":\"warning\",\"program\":\"prog\",\"message\":\"two"
            "\\u000alines, \xef\xbf\xbd and \xc3\xa9\",\"job\":\"jobs/7\",\"trace_id\":\"abc\","
            "\"attempt\":\"e3.1\",\"worker\":\"w\\\"1\"}\n"
            "{\"time\":\"TIME\",\"level\":\"info\",\"program\":\"prog\",\"message\":\"done\","
            "\"job\":\"jobs/7\"}\n");
}

}  // namespace
}  // namespace ag

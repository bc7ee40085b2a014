#include "client/cli/context.h"
#include "base/reason.h"
#include "base/text.h"
#include "client/cli/testing/testing.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>

namespace ag {
namespace {

// Sets or removes an environment variable while this object lives.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name); old != nullptr) old_ = old;
    value != nullptr ? setenv(name, value, 1) : unsetenv(name);
  }
  ~Variable() { old_.has_value() ? setenv(name_, old_->c_str(), 1) : unsetenv(name_); }

 private:
  const char* name_;
  std::optional<std::string> old_;
};

TEST(Context, ParsesDurations) {
  const struct {
    const char* text;
    double seconds;
  } kGood[] = {{"90s", 90}, {"2m", 120}, {"1h", 3600}, {"0.5m", 30}, {"1e2s", 100}};
  for (const auto& c : kGood) {
    const auto seconds = ParseDuration(c.text);
    ASSERT_EQ(ToString(seconds.status()), "OK") << c.text;
    EXPECT_EQ(*seconds, c.seconds) << c.text;
  }
  for (const char* text : {"", "s", "0", "0s", "-1s", "1d", "1ms", "m2", "nan", "inf", "1 s"}) {
    EXPECT_EQ(ToString(ParseDuration(text).status()),
              fmt::format("INVALID_ARGUMENT: \"{}\" is not a duration; try 60s, 2m or 1h", text));
  }
}

TEST(Context, ADurationWithoutAUnitIsRefused) {
  for (const char* text : {"5", "0.5", "1e2"}) {
    EXPECT_EQ(ToString(ParseDuration(text).status()),
              fmt::format("INVALID_ARGUMENT: \"{0}\" has no unit; try {0}s, {0}m or {0}h", text));
  }
}

TEST(Context, EveryStatusHasItsExitCode) {
  const struct {
    StatusCode code;
    int exit;
  } kCases[] = {
      {StatusCode::kOk, kExitOk},
      {StatusCode::kInvalidArgument, kExitInput},
      {StatusCode::kOutOfRange, kExitInput},
      {StatusCode::kNotFound, kExitInput},
      {StatusCode::kUnimplemented, kExitInput},
      {StatusCode::kResourceExhausted, kExitInput},
      {StatusCode::kFailedPrecondition, kExitInput},
      {StatusCode::kUnavailable, kExitUnavailable},
      {StatusCode::kDeadlineExceeded, kExitUnavailable},
      {StatusCode::kCancelled, kExitInterrupted},
      {StatusCode::kInternal, kExitInternal},
      {StatusCode::kDataLoss, kExitInternal},
      {StatusCode::kUnknown, kExitInternal},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(ExitCodeOf(Status(c.code, "why")), c.exit) << static_cast<int>(c.code);
  }
}

TEST(Context, AnErrorIsOneDocument) {
  const Status missing = Err(StatusCode::kNotFound, "no such thing");
  for (const bool json : {false, true}) {
    const Ran failed = Capture([&] { return Context({.json = json}).Fail(missing); });
    EXPECT_EQ(failed.code, kExitInput);
    EXPECT_EQ(failed.err, "autograph: no such thing\n");
    EXPECT_EQ(failed.out, json ? ErrorJson(missing) + "\n" : "");
    EXPECT_EQ(Capture([&] { return Context({.json = json}).FailUsage(missing); }).code, kExitUsage);
  }
  EXPECT_EQ(nlohmann::json::parse(ErrorJson(missing)).dump(),
            R"({"error":{"code":5,"message":"no such thing","reason":"NOT_FOUND"}})");
  EXPECT_EQ(
      nlohmann::json::parse(ErrorJson(
          RetryAfter(std::chrono::seconds(5), Because(Reason::kNoWorker, missing))))["error"]
          .dump(),
      R"({"code":5,"message":"no such thing","reason":"NO_WORKER","retry_after_seconds":5.0})");
  // File names may be invalid UTF-8.
  EXPECT_TRUE(nlohmann::json::accept(ErrorJson(Err(StatusCode::kNotFound, "read \xff"))));
  // A verb that has printed its document prints no second one.
  const Ran both = Capture([&] {
    const Context context({.json = true});
    context.Print("{}");
    return context.Fail(missing);
  });
  EXPECT_EQ(both.out, "{}\n");
  EXPECT_EQ(both.err, "autograph: no such thing\n");
}

TEST(Context, KnowsWhereTheStoreIs) {
  const struct {
    const char *flag, *xdg, *home, *dir;
  } kCases[] = {
      {"/given", "/xdg", "/home/a", "/given"},
      {"", "/xdg", "/home/a", "/xdg/autograph"},
      {"", "", "/home/a", "/home/a/.local/share/autograph"},
      {"", nullptr, "/home/a", "/home/a/.local/share/autograph"},
      {"", nullptr, "", "/tmp/.local/share/autograph"},
      {"", nullptr, nullptr, "/tmp/.local/share/autograph"},
  };
  for (const auto& c : kCases) {
    const Variable xdg("XDG_DATA_HOME", c.xdg), home("HOME", c.home);
    EXPECT_EQ(Context({.data_dir = c.flag}).flags().data_dir, c.dir);
  }
}

TEST(Context, PrintsToOneAndNotesToTheOther) {
  for (const bool json : {false, true}) {
    const Context context({.json = json});
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    context.Print("answer");
    context.Note("by the way");
    EXPECT_EQ(::testing::internal::GetCapturedStdout(), "answer\n");
    EXPECT_EQ(::testing::internal::GetCapturedStderr(), json ? "" : "by the way\n");
    EXPECT_FALSE(context.embedded());
  }
}

TEST(Context, AServerThatIsNotThereIsSaidAtOnce) {
  Context context({.server = "127.0.0.1:1"});
  EXPECT_EQ(ToString(context.Connect("").status()),
            "UNAVAILABLE: no server at 127.0.0.1:1: is autographd running?");
}

}  // namespace
}  // namespace ag

// Tests of `bench`'s times in ONNX Runtime: shell scripts that answer on descriptor 3 stand for
// Python (runtime/timing has the script's own tests).
#include "client/cli/ort.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/thread.h"
#include "runtime/timing/testing/testing.h"

namespace ag {
namespace {

using ::testing::HasSubstr;

class OrtTest : public ::testing::Test {
 protected:
  static OrtRequest Two() {
    return {.models = {"a.onnx", "b.onnx"}, .threads = 3, .seconds = 0.05};
  }
  const ::ag::testing::FakePython python_;
};

// Answers with `first` for a.onnx, `second` for others.
std::string TimesOfTwo(const char* first, const char* second) {
  return fmt::format("case $3 in *a.onnx*) t={};; *) t={};; esac; ", first, second) +
         ::ag::testing::FakeAnswers("$t");
}

TEST_F(OrtTest, VerdictsComeFromTheBlocks) {
  const struct {
    const char *name, *first, *second;
    Verdict verdict;
    double speedup;
  } kCases[] = {
      {"faster", "200", "100", Verdict::kFaster, 2},
      {"slower", "100", "200", Verdict::kSlower, 0.5},
      {"same", "100", "100", Verdict::kSame, 1},
  };
  for (const auto& c : kCases) {
    python_.Runs(TimesOfTwo(c.first, c.second));
    OrtRequest request = Two();
    request.seconds = 60;
    const auto times = TimeInOrt(request);
    ASSERT_TRUE(times.ok()) << c.name << ": " << Message(times.status());
    EXPECT_EQ(times->second.verdict, c.verdict) << c.name;
    EXPECT_DOUBLE_EQ(times->second.speedup, c.speedup) << c.name;
    EXPECT_EQ(times->version, "1.2.3");
    EXPECT_EQ(times->threads, 3);
  }
}

TEST_F(OrtTest, OneModelHasOneLatency) {
  python_.Runs(TimesOfTwo("1500000", "0"));
  const auto times = TimeInOrt({.models = {"a.onnx"}, .threads = 2, .seconds = 0.01});
  ASSERT_TRUE(times.ok()) << Message(times.status());
  EXPECT_DOUBLE_EQ(times->first.median_ns, 1.5e6);
  EXPECT_EQ(OrtText(*times, "model"), "model 1.500 ms  [1.2.3, 2 threads]");
  EXPECT_FALSE(OrtJson(*times, "model").contains("speedup"));
}

TEST_F(OrtTest, TextAndJsonNameBothModels) {
  python_.Runs(TimesOfTwo("3000000", "2000000"));
  OrtRequest request = Two();
  request.seconds = 60;
  const auto times = TimeInOrt(request);
  EXPECT_EQ(OrtText(*times, "input", "output"),
            "input 3.000 ms, output 2.000 ms: 1.500x (1.500 to 1.500) FASTER  "
            "[1.2.3, 3 threads]");
  const auto json = OrtJson(times, "input", "output");
  EXPECT_EQ(json["input_latency"]["median_ns"], 3e6);
  EXPECT_EQ(json["output_latency"]["median_ns"], 2e6);
  EXPECT_EQ(json["verdict"], "FASTER");
  EXPECT_EQ(OrtJson(Status(StatusCode::kNotFound, "none"), "a", "b").dump(), R"({"error":"none"})");
}

TEST_F(OrtTest, RequireIsCheckedBeforeTheWork) {
  python_.Runs(R"(echo 'missing No module named onnxruntime' >&3)");
  EXPECT_TRUE(CheckOrt({.mode = "auto"}).ok());
  EXPECT_TRUE(CheckOrt({.mode = "off"}).ok());
  const Status status = CheckOrt({.mode = "require"});
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_THAT(Message(status), HasSubstr("pip install onnxruntime"));
  EXPECT_THAT(Message(status), HasSubstr("AUTOGRAPH_PYTHON"));
  python_.Runs(R"(echo 'ready - 1.2.3' >&3)");
  EXPECT_TRUE(CheckOrt({.mode = "require"}).ok());
}

TEST(Ort, WhoWantsTimes) {
  const struct {
    const char *mode, *device;
    bool wants;
  } kCases[] = {
      {"auto", "cpu", true},       {"auto", "cpu:1", true},        {"auto", "sim:small", false},
      {"auto", "cuda:0", false},   {"off", "cpu", false},          {"require", "cpu", true},
      {"require", "cuda:0", true}, {"require", "sim:small", true},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(WantsOrt({.mode = c.mode}, c.device), c.wants) << c.mode << " " << c.device;
  }
  EXPECT_EQ(OrtThreads("cpu:3"), 3);
  EXPECT_EQ(OrtThreads("cpu"), UsableCores());
  EXPECT_EQ(OrtThreads("sim:small"), UsableCores());
}

TEST(Ort, AbsenceIsOneLine) {
  const Status status = Err(StatusCode::kNotFound, "nothing here");
  EXPECT_EQ(OrtAbsence(status, false), "no times from ONNX Runtime: nothing here");
  EXPECT_EQ(OrtAbsence(status, true), "\033[2mno times from ONNX Runtime: nothing here\033[0m");
}

}  // namespace
}  // namespace ag

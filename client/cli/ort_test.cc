// Times from ONNX Runtime as `bench` says them: shell scripts that answer on descriptor 3 stand for
// Python (runtime/timing has the script's own tests).
#include "client/cli/ort.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "device/cpu/host.h"

namespace ag {
namespace {

using ::testing::HasSubstr;

class OrtTest : public ::testing::Test {
 protected:
  OrtTest() { setenv("AUTOGRAPH_MEASURING_LOCK", (folder_.path() + "/lock").c_str(), 1); }
  ~OrtTest() override {
    unsetenv("AUTOGRAPH_PYTHON");
    unsetenv("PYTHONPATH");
  }
  std::string Write(const std::string& name, const std::string& text) const {
    AG_CHECK(MakeDirs(folder_.path() + "/modules").ok());
    AG_CHECK(WriteFileAtomically(folder_.path() + "/" + name, text).ok());
    return folder_.path() + "/" + name;
  }
  // Makes the interpreter a shell script with this body.
  void Python(const std::string& body) const {
    const std::string path = Write("python", "#!/bin/sh\n" + body + "\n");
    AG_CHECK(chmod(path.c_str(), 0755) == 0);
    setenv("AUTOGRAPH_PYTHON", path.c_str(), 1);
  }
  static OrtRequest Two() {
    return {.models = {"a.onnx", "b.onnx"}, .threads = 3, .seconds = 0.05};
  }
  const TempDir folder_ = *TempDir::Make("ort-test");
};

// Answers `ready` and a time for each question: `first` for a.onnx, `second` for others.
std::string Answers(const char* first, const char* second) {
  return fmt::format(
      "case $3 in *a.onnx*) t={};; *) t={};; esac; echo 'ready - 1.2.3' >&3; "
      "while read -r line <&3; do echo $t >&3; done",
      first, second);
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
    Python(Answers(c.first, c.second));
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

TEST_F(OrtTest, FewBlocksSayNothing) {
  Python(Answers("200", "100"));
  OrtRequest request = Two();
  request.seconds = 0;
  EXPECT_EQ(TimeInOrt(request)->second.verdict, Verdict::kAmbiguous);
}

TEST_F(OrtTest, OneModelHasOneLatency) {
  Python(Answers("1500000", "0"));
  const auto times = TimeInOrt({.models = {"a.onnx"}, .threads = 2, .seconds = 0.01});
  ASSERT_TRUE(times.ok()) << Message(times.status());
  EXPECT_DOUBLE_EQ(times->first.median_ns, 1.5e6);
  EXPECT_EQ(OrtText(*times, "model"), "model 1.500 ms  [1.2.3, 2 threads]");
  EXPECT_FALSE(OrtJson(*times, "model").contains("speedup"));
}

TEST_F(OrtTest, TextAndJsonNameBothModels) {
  Python(Answers("3000000", "2000000"));
  OrtRequest request = Two();
  request.seconds = 60;
  const auto times = TimeInOrt(request);
  EXPECT_EQ(OrtText(*times, "input", "output"),
            "input 3.000 ms, output 2.000 ms: 1.500x (1.500 to 1.500) FASTER  "
            "[1.2.3, 3 threads]");
  const auto json = OrtJson(times, "input", "output");
  EXPECT_EQ(json["input_latency_ms"]["median"], 3.0);
  EXPECT_EQ(json["output_latency_ms"]["median"], 2.0);
  EXPECT_EQ(json["verdict"], "FASTER");
  EXPECT_EQ(OrtJson(Status(StatusCode::kNotFound, "none"), "a", "b").dump(), R"({"error":"none"})");
}

TEST_F(OrtTest, RequireIsCheckedBeforeTheWork) {
  Python(R"(echo 'missing No module named onnxruntime' >&3)");
  EXPECT_TRUE(CheckOrt({.mode = "auto"}).ok());
  EXPECT_TRUE(CheckOrt({.mode = "off"}).ok());
  const Status status = CheckOrt({.mode = "require"});
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_THAT(Message(status), HasSubstr("pip install onnxruntime"));
  EXPECT_THAT(Message(status), HasSubstr("AUTOGRAPH_PYTHON"));
  Python(R"(echo 'ready - 1.2.3' >&3)");
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
  EXPECT_EQ(OrtThreads("cpu"), cpu::UsableCores());
  EXPECT_EQ(OrtThreads("sim:small"), cpu::UsableCores());
}

TEST(Ort, AbsenceIsOneLine) {
  const Status status = Err(StatusCode::kNotFound, "nothing here");
  EXPECT_EQ(OrtAbsence(status, false), "no times from ONNX Runtime: nothing here");
  EXPECT_EQ(OrtAbsence(status, true), "\033[2mno times from ONNX Runtime: nothing here\033[0m");
}

}  // namespace
}  // namespace ag

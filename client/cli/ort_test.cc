// Times from ONNX Runtime: fake interpreters (shell scripts that answer on descriptor 3) stand for
// what may be installed; the script itself runs on modules that the test writes.
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

std::string Blocks(int count, const char* block) {
  std::string list;
  for (int i = 0; i < count; ++i) list += std::string(i > 0 ? "," : "") + block;
  return "echo '{\"version\": \"1.2.3\", \"blocks\": [" + list + "]}' >&3";
}

TEST_F(OrtTest, VerdictsComeFromTheBlocks) {
  const struct {
    const char* name;
    int blocks;
    const char* block;
    Verdict verdict;
    double speedup;
  } kCases[] = {
      {"faster", 9, "[200,100,100,200]", Verdict::kFaster, 2},
      {"slower", 9, "[100,200,200,100]", Verdict::kSlower, 0.5},
      {"same", 9, "[100,100,100,100]", Verdict::kSame, 1},
      {"too few", 8, "[200,100,100,200]", Verdict::kAmbiguous, 2},
  };
  for (const auto& c : kCases) {
    Python(Blocks(c.blocks, c.block));
    const auto times = TimeInOrt(Two());
    ASSERT_TRUE(times.ok()) << c.name << ": " << Message(times.status());
    EXPECT_EQ(times->second.verdict, c.verdict) << c.name;
    EXPECT_DOUBLE_EQ(times->second.speedup, c.speedup) << c.name;
    EXPECT_EQ(times->second.blocks, c.blocks) << c.name;
    EXPECT_EQ(times->version, "1.2.3");
    EXPECT_EQ(times->threads, 3);
  }
}

TEST_F(OrtTest, OneModelHasOneLatency) {
  Python(Blocks(3, "[1500000]"));
  const auto times = TimeInOrt({.models = {"a.onnx"}, .threads = 2});
  ASSERT_TRUE(times.ok()) << Message(times.status());
  EXPECT_DOUBLE_EQ(times->first.median_ns, 1.5e6);
  EXPECT_EQ(OrtText(*times, "model"), "model 1.500 ms  [1.2.3, 2 threads]");
  EXPECT_FALSE(OrtJson(*times, "model").contains("speedup"));
}

TEST_F(OrtTest, TextAndJsonNameBothModels) {
  Python(Blocks(9, "[3000000,2000000,2000000,3000000]"));
  const auto times = TimeInOrt(Two());
  EXPECT_EQ(OrtText(*times, "input", "output"),
            "input 3.000 ms, output 2.000 ms: 1.500x (1.500 to 1.500) FASTER  "
            "[1.2.3, 3 threads]");
  const auto json = OrtJson(times, "input", "output");
  EXPECT_EQ(json["input_latency_ms"]["median"], 3.0);
  EXPECT_EQ(json["output_latency_ms"]["median"], 2.0);
  EXPECT_EQ(json["verdict"], "FASTER");
  EXPECT_EQ(OrtJson(Status(StatusCode::kNotFound, "none"), "a", "b").dump(), R"({"error":"none"})");
}

TEST_F(OrtTest, WhatIsMissingOrBrokenIsSaid) {
  const struct {
    const char* name;
    std::string body;
    StatusCode code;
    const char* message;  // Part of it.
  } kCases[] = {
      {"no module", R"(echo '{"missing": "No module named onnxruntime"}' >&3)",
       StatusCode::kNotFound, "/python: No module named onnxruntime"},
      {"refused model", R"(echo '{"error": "InvalidGraph: b.onnx"}' >&3)",
       StatusCode::kInvalidArgument, "ONNX Runtime: InvalidGraph: b.onnx"},
      {"silent exit", "exit 3", StatusCode::kInternal, "gave no answer about ONNX Runtime: child"},
      {"crash", "kill -9 $$", StatusCode::kInternal, "killed by SIGKILL"},
      {"garbage", "echo hello >&3", StatusCode::kInternal, "gave no answer"},
      {"no version", "echo '{}' >&3", StatusCode::kInternal, "without a version"},
      {"no blocks", Blocks(0, ""), StatusCode::kInternal, "took no times"},
      {"short block", Blocks(9, "[1,2,3]"), StatusCode::kInternal, "times that are none"},
      {"zero", Blocks(9, "[1,0,1,1]"), StatusCode::kInternal, "times that are none"},
      {"words", Blocks(9, "[1,\"x\",1,1]"), StatusCode::kInternal, "times that are none"},
      {"no list", Blocks(9, "7"), StatusCode::kInternal, "times that are none"},
  };
  for (const auto& c : kCases) {
    Python(c.body);
    const Status status = TimeInOrt(Two()).status();
    EXPECT_EQ(status.code(), c.code) << c.name << ": " << Message(status);
    EXPECT_THAT(Message(status), HasSubstr(c.message)) << c.name;
  }
  setenv("AUTOGRAPH_PYTHON", "/none/python", 1);
  EXPECT_EQ(Message(FindOrt().status()), "there is no /none/python to ask for ONNX Runtime");
  setenv("AUTOGRAPH_PYTHON", "no-such-python", 1);
  EXPECT_EQ(Message(FindOrt().status()), "there is no no-such-python to ask for ONNX Runtime");
  setenv("AUTOGRAPH_PYTHON", folder_.path().c_str(), 1);
  EXPECT_EQ(FindOrt().status().code(), StatusCode::kNotFound) << "a folder is no program";
}

TEST_F(OrtTest, WhoDoesNotAnswerIsNotWaitedFor) {
  Python("sleep 30");
  OrtRequest request = Two();
  request.start_max = Nanos{100'000'000};
  const Nanos begin = RealClock().Now();
  const Status status = TimeInOrt(request).status();
  EXPECT_EQ(Message(status), "ONNX Runtime did not answer in 0 s");
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded);
  EXPECT_LT(RealClock().Now() - begin, Nanos{10'000'000'000});
}

TEST_F(OrtTest, RequireIsCheckedBeforeTheWork) {
  Python(R"(echo '{"missing": "No module named onnxruntime"}' >&3)");
  EXPECT_TRUE(CheckOrt({.mode = "auto"}).ok());
  EXPECT_TRUE(CheckOrt({.mode = "off"}).ok());
  const Status status = CheckOrt({.mode = "require"});
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_THAT(Message(status), HasSubstr("pip install onnxruntime"));
  EXPECT_THAT(Message(status), HasSubstr("AUTOGRAPH_PYTHON"));
  Python(R"(echo '{"version": "1.2.3"}' >&3)");
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

// The script on a runtime of which the test knows what it was asked: model "slow" takes longer.
constexpr char kFakeNumpy[] = R"PY(
class Array:
    def __init__(self, sizes): self.sizes = sizes
    def astype(self, dtype): self.dtype = dtype; return self
class Generator:
    def standard_normal(self, sizes): return Array(sizes)
    def integers(self, low, high, sizes): return Array(sizes)
class random:
    @staticmethod
    def default_rng(seed): return Generator()
)PY";
constexpr char kFakeOrt[] = R"PY(
import time
__version__ = "0.fake"
class SessionOptions:
    def add_session_config_entry(self, key, value): setattr(self, key, value)
def set_default_logger_severity(level): pass
class Info:
    def __init__(self, name, shape, type): self.name, self.shape, self.type = name, shape, type
class InferenceSession:
    def __init__(self, path, options, providers):
        assert options.intra_op_num_threads == 3
        assert getattr(options, "session.force_spinning_stop") == "1"
        print("this must not reach standard output")
        if "broken" in path: raise RuntimeError("no such model")
        self.seconds = 0.004 if "slow" in path else 0.002
        self.open = "open" in path
    def get_inputs(self):
        sizes = ["batch", 4] if self.open else [1, 4]
        return [Info("x", sizes, "tensor(float)"), Info("ids", [2], "tensor(int64)")]
    def run(self, names, feeds):
        assert feeds["x"].sizes == [1, 4] and feeds["x"].dtype == "float32"
        assert feeds["ids"].dtype == "int64"
        time.sleep(self.seconds)
)PY";

TEST_F(OrtTest, TheScriptTimesWhatItIsGiven) {
  if (!FindOrt().ok() && FindOrt().status().code() != StatusCode::kNotFound) GTEST_SKIP();
  if (std::system("python3 -c '' 2>/dev/null") != 0) GTEST_SKIP() << "there is no python3";
  Write("modules/numpy.py", kFakeNumpy);
  Write("modules/onnxruntime.py", kFakeOrt);
  setenv("PYTHONPATH", (folder_.path() + "/modules").c_str(), 1);
  EXPECT_EQ(*FindOrt(), "0.fake");

  ::testing::internal::CaptureStdout();
  OrtRequest request{.models = {"slow.onnx", "quick.onnx"}, .threads = 3, .seconds = 0.2};
  const auto times = TimeInOrt(request);
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
  ASSERT_TRUE(times.ok()) << Message(times.status());
  EXPECT_GT(times->second.speedup, 1.2);
  EXPECT_GE(times->first.low_ns, 4e6);
  EXPECT_GE(times->second.latency.low_ns, 2e6);
  EXPECT_GE(times->second.blocks, 1);

  request.models = {"quick.onnx", "broken.onnx"};
  EXPECT_EQ(Message(TimeInOrt(request).status()), "ONNX Runtime: RuntimeError: no such model");
  request.models = {"open.onnx"};
  EXPECT_EQ(Message(TimeInOrt(request).status()),
            "ONNX Runtime: ValueError: input x: size batch is open; give it with --shape");
  request.shapes = {"x=1x4"};
  EXPECT_TRUE(TimeInOrt(request).ok());
}

}  // namespace
}  // namespace ag

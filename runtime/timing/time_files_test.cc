// Files timed in fresh processes: sessions of ours, and ONNX Runtime, for which shell scripts stand
// that answer on descriptor 3; the script itself runs on modules that the test writes.
#include "runtime/timing/time_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/file.h"
#include "embedded/timing_scripts.h"
#include "graph/inputs/input_set.h"
#include "graph/onnx/export/export.h"
#include "graph/onnx/origin.h"
#include "graph/text_form.h"
#include "runtime/timing/file_timer.h"
#include "runtime/timing/testing/testing.h"

namespace ag {
namespace {

using ::ag::testing::FakeAnswers;
using ::testing::HasSubstr;

class TimeFilesTest : public ::testing::Test {
 protected:
  static TimeFilesRequest Two() {
    TimeFilesRequest request;
    request.files = {{"a.onnx", FileRuntime::kOnnxRuntime}, {"b.onnx", FileRuntime::kOnnxRuntime}};
    request.threads = 3;
    request.seconds = 0.05;
    return request;
  }
  // A model of one relu, as a file.
  std::string Model(const std::string& name) const {
    MemoryWeights weights;
    const Graph graph = *ParseGraph("input x f32[4,8]\noutput y = relu(x)\n", &weights);
    OnnxOrigin origin;
    origin.opsets = {{"", 13}};
    return python_.Write(name, *ExportOnnx(graph, origin, weights));
  }
  const ::ag::testing::FakePython python_;
};

TEST_F(TimeFilesTest, RatiosAreOfBlocks) {
  python_.Runs("case $3 in *a.onnx*) " + FakeAnswers("2000000") + ";; *) " +
               FakeAnswers("1000000") + ";; esac");
  TimeFilesRequest request = Two();
  request.seconds = 60;
  request.blocks_max = 15;
  const auto times = TimeFiles(request);
  ASSERT_TRUE(times.ok()) << Message(times.status());
  EXPECT_EQ(times->blocks.size(), 15u);
  EXPECT_EQ(times->blocks[0], (std::vector<double>{2e6, 1e6, 1e6, 2e6}));
  EXPECT_EQ(times->runners[0].version, "1.2.3");
  EXPECT_DOUBLE_EQ(LatencyOf(*times, 1).median_ns, 1e6);
  const Ratio ratio = RatioOf(*times, 0, 1);
  EXPECT_DOUBLE_EQ(ratio.median, 2);
  EXPECT_DOUBLE_EQ(ratio.low, 2);
  EXPECT_TRUE(CheckFileTimes(*times, 2).ok());
  EXPECT_FALSE(CheckFileTimes(*times, 3).ok());
  request.seconds = 0;
  EXPECT_EQ(TimeFiles(request)->blocks.size(), 9u) << "fewer would not hold what is claimed";
}

// Its interval is that of nine times, not of eighteen.
TEST_F(TimeFilesTest, ALongModelRunsOnceInABlock) {
  python_.Runs("case $3 in *a.onnx*) " + FakeAnswers("60000000") + ";; *) " +
               FakeAnswers("1000000") + ";; esac");
  TimeFilesRequest request = Two();
  request.seconds = 0;
  const auto times = TimeFiles(request);
  ASSERT_TRUE(times.ok()) << Message(times.status());
  ASSERT_EQ(times->blocks.size(), 9u);
  EXPECT_EQ(times->blocks[0], (std::vector<double>{6e7, 1e6, 1e6, 0}));
  EXPECT_EQ(times->blocks[1], (std::vector<double>{0, 1e6, 1e6, 6e7}));
  EXPECT_TRUE(CheckFileTimes(*times, 2).ok());
  EXPECT_DOUBLE_EQ(LatencyOf(*times, 0).median_ns, 6e7);
  EXPECT_DOUBLE_EQ(RatioOf(*times, 0, 1).median, 60);
  FileTimes none = *times;
  none.blocks[4] = {0, 1e6, 1e6, 0};
  EXPECT_EQ(Message(CheckFileTimes(none, 2)), "file times: a time of 0 ns");
}

TEST_F(TimeFilesTest, WhatFailedIsNotRunInASecondProcess) {
  const std::string count = python_.path() + "/runs";
  python_.Runs("echo 'ready - 1' >&3; read -r line <&3; echo run >> " + count + "; exit 4");
  TimeFilesRequest request = Two();
  request.files[1] = request.files[0];
  const auto times = TimeFiles(request);
  ASSERT_TRUE(times.ok()) << Message(times.status());
  EXPECT_EQ(times->runners[0].status.code(), StatusCode::kUnavailable);
  EXPECT_EQ(ToString(times->runners[1].status), ToString(times->runners[0].status));
  EXPECT_EQ(*ReadFile(count), "run\n");
}

TEST_F(TimeFilesTest, NineBlocksAreTimedByTheEndOrNone) {
  python_.Runs(FakeAnswers("$(sleep 0.4; echo 1000000)"));
  TimeFilesRequest request = Two();
  request.seconds = 3600;
  request.blocks_max = 1'000'000;
  request.until = RealClock().Now();
  auto times = TimeFiles(request);
  EXPECT_EQ(times.status().code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(Message(times.status()), HasSubstr("timing the files would take "));
  python_.Runs(FakeAnswers("1000000"));
  request.until = RealClock().Now() + std::chrono::seconds(3);
  times = TimeFiles(request);
  ASSERT_TRUE(times.ok()) << Message(times.status());
  EXPECT_GE(times->blocks.size(), 9u);
  EXPECT_LT(times->blocks.size(), 1'000'000u);
  EXPECT_GE(RealClock().Now(), request.until);
}

// The first block waits for a second; the others have no credit left for that.
TEST_F(TimeFilesTest, TheWaitForOthersIsNoPartOfABlock) {
  python_.Runs(FakeAnswers("1000000"));
  TimeFilesRequest request = Two();
  request.seconds = 0;
  request.read_times = [](std::span<const pid_t>) {
    const Nanos now = RealClock().Now();
    return ProcessorTimes{.at = now, .busy = 2 * now};
  };
  request.until = RealClock().Now() + std::chrono::milliseconds(1100);
  const auto times = TimeFiles(request);
  ASSERT_TRUE(times.ok()) << Message(times.status());
  EXPECT_EQ(times->blocks.size(), 9u);
}

// Blocks beside others are waited for and repeated, and counted when that did not help.
TEST_F(TimeFilesTest, OthersAreNoticed) {
  python_.Runs(FakeAnswers("1000"));
  for (const double cores : {0.0, 1.5}) {
    TimeFilesRequest request = Two();
    request.seconds = cores > 1 ? 1.6 : 0.4;  // The wait for quiet takes 1 s.
    request.blocks_max = 1'000'000;
    size_t helpers = 0;
    request.read_times = [&](std::span<const pid_t> pids) {
      helpers = pids.size();
      const Nanos now = RealClock().Now();
      const auto busy = static_cast<int64_t>(cores * static_cast<double>(now.count()));
      return ProcessorTimes{.at = now, .busy = Nanos(busy)};
    };
    const auto times = TimeFiles(request);
    ASSERT_TRUE(times.ok()) << Message(times.status());
    EXPECT_EQ(helpers, 2u);
    EXPECT_EQ(times->disturbed > 0, cores > 1);
    EXPECT_GT(times->blocks.size(), static_cast<size_t>(times->disturbed))
        << "the first say little";
  }
}

TEST_F(TimeFilesTest, WhatIsMissingOrBrokenIsSaid) {
  const struct {
    const char* name;
    std::string body;
    StatusCode code;
    const char* message;  // Part of it.
  } kCases[] = {
      {"no module", "echo 'missing No module named onnxruntime' >&3", StatusCode::kNotFound,
       "ONNX Runtime is not installed: No module named onnxruntime"},
      {"refused model", "echo 'error InvalidGraph: b.onnx' >&3", StatusCode::kInvalidArgument,
       "ONNX Runtime: InvalidGraph: b.onnx"},
      {"silent exit", "exit 3", StatusCode::kUnavailable, "ONNX Runtime gave no answer: child"},
      {"crash", "kill -9 $$", StatusCode::kUnavailable, "killed by SIGKILL"},
      {"garbage", "echo hello >&3", StatusCode::kInternal, "ONNX Runtime answered \"hello\""},
      {"no version", "echo ready >&3", StatusCode::kInternal, "ONNX Runtime answered \"ready\""},
      {"zero", FakeAnswers("0"), StatusCode::kInternal, "a time that is none"},
      {"words", FakeAnswers("soon"), StatusCode::kInternal, "a time that is none: \"soon\""},
      {"no number", FakeAnswers("nan"), StatusCode::kInternal, "a time that is none"},
      {"dies later", "echo 'ready - 1' >&3; read -r line <&3; exit 4", StatusCode::kUnavailable,
       "gave no answer"},
  };
  for (const auto& c : kCases) {
    python_.Runs(c.body);
    const auto times = TimeFiles(Two());
    ASSERT_TRUE(times.ok()) << c.name;
    for (const FileRunner& runner : times->runners) {
      EXPECT_EQ(runner.status.code(), c.code) << c.name << ": " << Message(runner.status);
      EXPECT_THAT(Message(runner.status), HasSubstr(c.message)) << c.name;
    }
    EXPECT_FALSE(times->HasTimes(0)) << c.name;
  }
  for (const char* python : {"/none/python", "no-such-python"}) {
    setenv("AUTOGRAPH_PYTHON", python, 1);
    const std::string why =
        fmt::format("there is no {} to ask for ONNX Runtime (AUTOGRAPH_PYTHON names it)", python);
    EXPECT_EQ(Message(FindOnnxRuntime().status()), why);
    EXPECT_EQ(ToString(CheckChosenPython()), "NOT_FOUND: " + why);
  }
  unsetenv("AUTOGRAPH_PYTHON");
  EXPECT_EQ(ToString(CheckChosenPython()), "OK");
  setenv("AUTOGRAPH_PYTHON", python_.path().c_str(), 1);
  EXPECT_EQ(FindOnnxRuntime().status().code(), StatusCode::kNotFound) << "a folder is no program";
}

TEST_F(TimeFilesTest, WhoDoesNotAnswerIsNotWaitedFor) {
  python_.Runs("sleep 30");
  TimeFilesRequest request = Two();
  request.answer_max = Nanos{100'000'000};
  const Nanos begin = RealClock().Now();
  const auto times = TimeFiles(request);
  ASSERT_TRUE(times.ok());
  EXPECT_EQ(Message(times->runners[0].status), "ONNX Runtime did not answer in 0 s");
  EXPECT_EQ(times->runners[0].status.code(), StatusCode::kDeadlineExceeded);
  request.answer_max = Nanos{60'000'000'000};
  request.stop = [] { return true; };
  EXPECT_EQ(TimeFiles(request).status().code(), StatusCode::kCancelled);
  EXPECT_LT(RealClock().Now() - begin, Nanos{10'000'000'000});
}

TEST_F(TimeFilesTest, OurSessionsRunInProcessesOfTheirOwn) {
  python_.Runs(FakeAnswers("1000"));
  TimeFilesRequest request;
  const std::string model = Model("relu.onnx");
  request.files = {{model, FileRuntime::kAutograph},
                   {python_.path() + "/none.onnx", FileRuntime::kAutograph},
                   {model, FileRuntime::kOnnxRuntime}};
  request.device = "cpu:1";
  request.blocks_max = 3;
  const auto times = TimeFiles(request);
  ASSERT_TRUE(times.ok()) << Message(times.status());
  EXPECT_TRUE(times->runners[0].status.ok()) << Message(times->runners[0].status);
  EXPECT_FALSE(times->runners[0].carried_plan);
  EXPECT_THAT(Message(times->runners[1].status), HasSubstr("none.onnx"));
  EXPECT_TRUE(times->HasTimes(0));
  EXPECT_FALSE(times->HasTimes(1));
  EXPECT_TRUE(times->HasTimes(2));
  EXPECT_EQ(times->blocks[0][1], 0);
  EXPECT_TRUE(CheckFileTimes(*times, 3).ok());
  request.device = "sim:small";
  const auto simulated = TimeFiles(request);
  ASSERT_TRUE(simulated.ok());
  EXPECT_TRUE(simulated->HasTimes(0)) << Message(simulated->runners[0].status);
}

TEST_F(TimeFilesTest, OurSessionsRunOnTheSetThatIsGiven) {
  TimeFilesRequest request;
  request.files = {{Model("relu.onnx"), FileRuntime::kAutograph}};
  request.device = "sim:small";
  request.blocks_max = 1;
  const auto time = [&](const Tensor& x) {
    request.inputs = python_.Write("inputs", EncodeInputSet({{"x", x}}));
    return Message(TimeFiles(request)->runners[0].status);
  };
  EXPECT_EQ(time(Tensor::Zeros({DType::kFloat32, {4, 8}})), "");
  EXPECT_THAT(time(Tensor::Zeros({DType::kFloat32, {4, 9}})),
              HasSubstr("input x: the model takes f32[4,8], given is f32[4,9]"));
}

TEST(FileTimer, RequestsComeBackEqual) {
  const internal::FileTimerRequest request{"a b.onnx", "cpu:2", {{"x", {1, 3}}, {"y", {}}},
                                           true,       "plan",  "inputs"};
  const auto again = DecodeFields<internal::FileTimerRequest>(EncodeFields(request));
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->path, request.path);
  EXPECT_EQ(again->device, request.device);
  EXPECT_EQ(again->shapes, request.shapes);
  EXPECT_TRUE(again->cold_cache);
  EXPECT_EQ(again->plan, "plan");
  EXPECT_EQ(again->inputs, "inputs");
  EXPECT_FALSE(DecodeFields<internal::FileTimerRequest>("x").ok());
}

// The script on a runtime of which the test knows what it was asked: model "slow" takes longer.
constexpr char kFakeNumpy[] = R"PY(
class Array:
    def __init__(self, sizes): self.sizes = sizes
    def astype(self, dtype): self.dtype = dtype; return self
    def reshape(self, sizes): self.sizes = sizes; return self
def frombuffer(data, dtype):
    array = Array(None).astype(dtype)
    array.data = data
    return array
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
        if "broken" in path: raise RuntimeError(f"cannot load {path}: no such file")
        self.seconds = 0.004 if "slow" in path else 0.002
        self.open = "open" in path
        self.given = "given" in path
    def get_inputs(self):
        sizes = ["batch", 4] if self.open else [1, 4]
        return [Info("x", sizes, "tensor(float)"), Info("ids", [2], "tensor(int64)")]
    def run(self, names, feeds):
        assert feeds["x"].sizes == [1, 4] and feeds["x"].dtype == "float32"
        assert feeds["ids"].dtype == "int64"
        if self.given: assert feeds["x"].data == b"0123456789abcdef"
        time.sleep(self.seconds)
)PY";

// Whoever asked may be killed before the answer: nobody wants a traceback then.
TEST_F(TimeFilesTest, TheScriptEndsQuietlyWithItsCaller) {
  if (std::system("python3 -c '' 2>/dev/null") != 0) GTEST_SKIP() << "there is no python3";
  python_.Write("modules/numpy.py", kFakeNumpy);
  python_.Write("modules/onnxruntime.py", kFakeOrt);
  setenv("PYTHONPATH", (python_.path() + "/modules").c_str(), 1);
  const std::string script = python_.Write("script.py", std::string(TimingScripts().front().text));
  const std::string said = python_.path() + "/said";
  const std::string command =
      fmt::format("(sleep 0.2; python3 {} '{{}}' 3>&1 2>{}) | true", script, said);
  ASSERT_EQ(std::system(command.c_str()), 0);
  EXPECT_EQ(*ReadFile(said), "");
}

TEST_F(TimeFilesTest, TheScriptTimesWhatItIsGiven) {
  if (std::system("python3 -c '' 2>/dev/null") != 0) GTEST_SKIP() << "there is no python3";
  python_.Write("modules/numpy.py", kFakeNumpy);
  python_.Write("modules/onnxruntime.py", kFakeOrt);
  setenv("PYTHONPATH", (python_.path() + "/modules").c_str(), 1);

  ::testing::internal::CaptureStdout();
  TimeFilesRequest request = Two();
  request.files[0].path = "slow.onnx";
  request.files[1].path = "quick.onnx";
  request.seconds = 0.2;
  const auto times = TimeFiles(request);
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
  ASSERT_TRUE(times.ok()) << Message(times.status());
  ASSERT_TRUE(times->HasTimes(0)) << Message(times->runners[0].status);
  EXPECT_GT(RatioOf(*times, 0, 1).median, 1.2);
  EXPECT_GE(LatencyOf(*times, 0).low_ns, 4e6);
  EXPECT_EQ(times->runners[0].version, "0.fake");

  request.files[0].path = "broken.onnx";
  request.files[1].path = "open.onnx";
  const auto broken = TimeFiles(request);
  ASSERT_TRUE(broken.ok());
  EXPECT_EQ(Message(broken->runners[0].status),
            "ONNX Runtime: RuntimeError: cannot load the model: no such file");
  EXPECT_EQ(Message(broken->runners[1].status),
            "ONNX Runtime: ValueError: input x: size batch is open; give it with --shape");
  request.shapes = {{"x", {1, 4}}};
  EXPECT_TRUE(TimeFiles(request)->HasTimes(1));

  request.files[1].path = "given.onnx";
  EXPECT_FALSE(TimeFiles(request)->HasTimes(1)) << "random data";
  const Tensor x = Tensor::FromBytes({DType::kFloat32, {1, 4}}, "0123456789abcdef");
  request.inputs = python_.Write("inputs", EncodeInputSet({{"x", x}}));
  const auto given = TimeFiles(request);
  EXPECT_TRUE(given->HasTimes(1)) << Message(given->runners[1].status);
}

}  // namespace
}  // namespace ag

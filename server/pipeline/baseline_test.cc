#include "server/pipeline/baseline.h"

#include <gtest/gtest.h>

#include <utility>

#include "base/file.h"
#include "server/store/open_store.h"

namespace ag {
namespace {

const Digest kInput = Sha256("input"), kOutput = Sha256("output");
constexpr double kOnnxRuntimeNs = 400, kUntunedNs = 300, kOutputNs = 200;

// Answers every set of files with nine blocks of the same times, and counts the sets.
class FileRunnerFake : public WorkRunner {
 public:
  Status Run(ItemRequest request, const std::function<void(const Delivery&)>& on_result,
             const std::function<bool()>&) override {
    const auto& files = request.work->files().files();
    sets.push_back(static_cast<size_t>(files.size()));
    ends.push_back(request.work->end_within_seconds());
    Delivery delivery;
    std::vector<double> block(2 * sets.back());
    for (size_t f = 0; f < sets.back(); ++f) {
      const v1::FileToTime& file = files[static_cast<int>(f)];
      FileRunner runner;
      runner.carried_plan = file.digest() == kOutput.Hex();
      if (file.in_onnxruntime()) {
        runner.version = "9.9";
        runner.status = onnxruntime;
      }
      const double ns = file.in_onnxruntime()           ? kOnnxRuntimeNs
                        : file.digest() == kInput.Hex() ? kUntunedNs
                                                        : kOutputNs;
      block[f] = block[block.size() - 1 - f] = runner.status.ok() ? ns : 0;
      delivery.result.file_times.runners.push_back(runner);
    }
    delivery.result.file_times.blocks.assign(9, block);
    delivery.result.status = sets.size() >= late_from ? late : OkStatus();
    on_result(delivery);
    return OkStatus();
  }
  std::vector<size_t> sets;  // Files of each.
  std::vector<double> ends;  // Seconds that each may take.
  Status onnxruntime;        // Of every file there.
  const Status late = Err(StatusCode::kDeadlineExceeded, "timing would take 30.0 s, not 10.0 s");
  size_t late_from = 99;  // The first set that cannot be timed in time.
};

class BaselineTest : public ::testing::Test {
 protected:
  BaselineTest() {
    request_.input = kInput;
    request_.output = kOutput;
    request_.carries_plan = true;
    request_.onnxruntime = "9.9";
    measurer_.emplace(runner_, *store_.cache, clock_,
                      PoolMeasurer::Options{.device = "cpu", .environment = "e"});
  }
  BaselineResult Compare() {
    StatusOr<BaselineResult> result = CompareWithBaseline(request_, *measurer_);
    EXPECT_TRUE(result.ok()) << Message(result.status());
    return result.ok() ? *std::move(result) : BaselineResult();
  }

  const TempDir dir_ = *TempDir::Make("baseline-test-");
  FakeClock clock_;
  FileRunnerFake runner_;
  const Store store_ = *OpenStore({.folder = dir_.path()}, clock_);
  std::optional<PoolMeasurer> measurer_;
  BaselineRequest request_;
};

TEST_F(BaselineTest, NoMoreThanTwoOfOurSessionsStandInOneSetBesideOnnxRuntime) {
  const BaselineResult result = Compare();
  EXPECT_EQ(runner_.sets, (std::vector<size_t>{3, 2}));
  EXPECT_EQ(result.verdict, v1::Result::FASTER);
  EXPECT_EQ(result.baseline, "ONNX Runtime 9.9");
  EXPECT_EQ(result.speedup.median, kOnnxRuntimeNs / kOutputNs);
  EXPECT_EQ(result.over_untuned->median, kUntunedNs / kOutputNs);
  EXPECT_EQ(result.fresh_session->median, 1);
  EXPECT_TRUE(result.notes.empty());
}

TEST_F(BaselineTest, TheSecondSetIsLeftOutWhenLessTimeIsLeftThanTheFirstTook) {
  Nanos left = std::chrono::seconds(5);  // Each reading is 3 s later.
  request_.time_left = [&] { return std::exchange(left, left - std::chrono::seconds(3)); };
  const BaselineResult result = Compare();
  EXPECT_EQ(runner_.sets, (std::vector<size_t>{3}));
  EXPECT_EQ(result.verdict, v1::Result::FASTER);
  EXPECT_FALSE(result.over_untuned.has_value());
  EXPECT_TRUE(result.fresh_session.has_value());
  EXPECT_EQ(result.notes,
            std::vector<std::string>{"our untuned session on the input: the budget is spent"});
}

TEST_F(BaselineTest, TheSecondSetIsTimedWhenThereIsTime) {
  Nanos left = std::chrono::seconds(6);
  request_.time_left = [&] { return std::exchange(left, left - std::chrono::seconds(3)); };
  EXPECT_TRUE(Compare().over_untuned.has_value());
  EXPECT_EQ(runner_.sets, (std::vector<size_t>{3, 2}));
}

TEST_F(BaselineTest, FilesThatCannotBeTimedInTimeAreNotMeasured) {
  runner_.late_from = 1;
  BaselineResult result = Compare();
  EXPECT_TRUE(result.is_time_over);
  EXPECT_EQ(result.verdict, v1::Result::NOT_MEASURED);
  EXPECT_EQ(runner_.sets.size(), 1u) << "no other set is asked for";
  EXPECT_EQ(result.notes, std::vector<std::string>{
                              "the budget is too short: timing would take 30.0 s, not 10.0 s"});
  runner_.late_from = 3;
  result = Compare();
  EXPECT_FALSE(result.is_time_over);
  EXPECT_EQ(result.verdict, v1::Result::FASTER);
  EXPECT_FALSE(result.over_untuned.has_value());
  EXPECT_EQ(result.notes,
            std::vector<std::string>{"our sessions: timing would take 30.0 s, not 10.0 s"});
}

TEST_F(BaselineTest, WorkersAreToldWhenTimingsOfFilesEnd) {
  measurer_->EndBy(clock_.Now() + std::chrono::seconds(9));
  Compare();
  clock_.Advance(std::chrono::seconds(8));
  Compare();
  EXPECT_EQ(runner_.ends, (std::vector<double>{9, 9, 5, 5})) << "small models have 5 s";
}

TEST_F(BaselineTest, TheInputRunsAsBefore) {
  BaselineResult input = UnchangedInput(Compare());
  EXPECT_EQ(input.verdict, v1::Result::NO_GAIN_FOUND);
  EXPECT_EQ(input.baseline, "ONNX Runtime 9.9");
  EXPECT_EQ(input.output_runtime, "ONNX Runtime 9.9");
  EXPECT_TRUE(input.output_in_onnxruntime);
  EXPECT_EQ(input.input_latency.median_ns, kOnnxRuntimeNs);
  EXPECT_EQ(input.output_latency.median_ns, kOnnxRuntimeNs);
  EXPECT_EQ(input.speedup.high, 1);
  EXPECT_FALSE(input.over_untuned.has_value());
  request_.onnxruntime.clear();
  input = UnchangedInput(Compare());
  EXPECT_EQ(input.baseline, "AutoGraph, untuned");
  EXPECT_EQ(input.output_runtime, "AutoGraph");
  EXPECT_FALSE(input.output_in_onnxruntime);
}

TEST_F(BaselineTest, WithoutOnnxRuntimeOneSetIsEnough) {
  request_.onnxruntime.clear();
  request_.time_left = [] { return Nanos{0}; };
  const BaselineResult result = Compare();
  EXPECT_EQ(runner_.sets, (std::vector<size_t>{3}));
  EXPECT_EQ(result.baseline, "AutoGraph, untuned");
  EXPECT_EQ(result.over_untuned->median, kUntunedNs / kOutputNs);
}

TEST_F(BaselineTest, WhatOnnxRuntimeRefusesIsComparedWithOurSession) {
  runner_.onnxruntime = Err(StatusCode::kInvalidArgument, "InvalidGraph");
  const BaselineResult result = Compare();
  EXPECT_EQ(runner_.sets, (std::vector<size_t>{3, 3}));
  EXPECT_EQ(result.verdict, v1::Result::FASTER);
  EXPECT_EQ(result.baseline, "AutoGraph, untuned");
  EXPECT_FALSE(result.over_onnxruntime.has_value());
  EXPECT_EQ(result.notes, std::vector<std::string>{"ONNX Runtime on the input: InvalidGraph"});
}

TEST_F(BaselineTest, OneProcessIsNoPair) {
  request_.output = kInput;
  request_.carries_plan = request_.runs_here = false;
  BaselineResult result = Compare();
  EXPECT_EQ(runner_.sets, (std::vector<size_t>{1}));
  EXPECT_EQ(result.verdict, v1::Result::NO_GAIN_FOUND);
  EXPECT_EQ(result.output_runtime, "ONNX Runtime 9.9");
  EXPECT_FALSE(result.over_onnxruntime.has_value());
  request_.runs_here = true;
  result = Compare();
  EXPECT_EQ(runner_.sets.back(), 3u);  // ONNX Runtime and two sessions.
  EXPECT_EQ(result.over_onnxruntime->median, kOnnxRuntimeNs / kUntunedNs);
  EXPECT_FALSE(result.over_untuned.has_value());
  EXPECT_TRUE(result.fresh_session.has_value());
}

TEST_F(BaselineTest, APairNeedsBothFiles) {
  EXPECT_EQ(CompareFiles({kInput, kOutput, false, {}, 1}, *measurer_)->median,
            kUntunedNs / kOutputNs);
  runner_.onnxruntime = Err(StatusCode::kInvalidArgument, "InvalidGraph");
  EXPECT_EQ(ToString(CompareFiles({kInput, kOutput, true, {}, 1}, *measurer_).status()),
            "INVALID_ARGUMENT: InvalidGraph");
}

}  // namespace
}  // namespace ag

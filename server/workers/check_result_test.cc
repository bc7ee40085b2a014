#include "server/workers/check_result.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace ag {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNan = std::nan("");

ItemRequest ItemOf(const std::function<void(v1::WorkItem&)>& fill) {
  v1::WorkItem work;
  fill(work);
  ItemRequest item;
  item.work = std::make_shared<const v1::WorkItem>(std::move(work));
  item.outputs = {"y", "z"};
  return item;
}

std::string Said(const ItemRequest& item, const EntryResult& result) {
  return ToString(CheckResult(item, result));
}

TEST(CheckResult, OfAGroup) {
  const ItemRequest item = ItemOf([](v1::WorkItem& w) { w.mutable_groups()->add_problems("p"); });
  EntryResult good;
  good.measurement = {.latency = {5, 4, 6}, .samples = 9, .canary_ns = 7, .kernel = "k"};
  good.measurement.alternatives = {{"other", 8}};
  EXPECT_EQ(Said(item, good), "OK");
  using M = Measurement;
  const std::pair<std::function<void(M&)>, std::string> kBad[] = {
      {[](M& m) { m.latency.median_ns = kNan; }, "a time of nan ns"},
      {[](M& m) { m.latency.high_ns = kInf; }, "a time of inf ns"},
      {[](M& m) { m.latency.low_ns = -1; }, "a time of -1 ns"},
      {[](M& m) { m.latency.low_ns = 0; }, "a time of 0 ns"},
      {[](M& m) { m.latency.low_ns = 1e-300; }, "a time of 1e-300 ns"},
      {[](M& m) { m.latency.low_ns = 5.5; }, "median 5 ns outside [5.5, 6]"},
      {[](M& m) { m.latency.high_ns = 4.5; }, "median 5 ns outside [4, 4.5]"},
      {[](M& m) { m.samples = -9; }, "-9 samples, 0 discarded, 0 disturbed"},
      {[](M& m) { m.discarded = -1; }, "9 samples, -1 discarded, 0 disturbed"},
      {[](M& m) { m.disturbed = 10; }, "9 samples, 0 discarded, 10 disturbed"},
      {[](M& m) { m.canary_ns = kNan; }, "a canary of nan ns"},
      {[](M& m) { m.alternatives[0].second = -8; }, "kernel other with a time of -8 ns"},
      {[](M& m) { m.active_cores = -1; }, "-1 active cores"},
  };
  for (const auto& [spoil, message] : kBad) {
    EntryResult bad = good;
    spoil(bad.measurement);
    EXPECT_EQ(Said(item, bad), "INVALID_ARGUMENT: measurement: " + message);
    bad.status = Err(StatusCode::kInternal, "no");
    EXPECT_EQ(Said(item, bad), "OK") << "a failed result has no figures";
  }
}

TEST(CheckResult, OfAPlan) {
  const ItemRequest item = ItemOf([](v1::WorkItem& w) { w.mutable_plans()->add_candidates(); });
  EntryResult good;
  good.timing.latency = {5, 4, 6};
  good.timing.speedup = 1.5;
  good.timing.speedup_low = 1.4;
  good.timing.speedup_high = 1.6;
  good.timing.verdict = Verdict::kFaster;
  good.timing.blocks = 9;
  EXPECT_EQ(Said(item, good), "OK");
  using T = PlanTiming;
  const std::pair<std::function<void(T&)>, std::string> kBad[] = {
      {[](T& t) { t.latency.median_ns = -1; }, "a time of -1 ns"},
      {[](T& t) { t.speedup = kNan; }, "a speedup of nan"},
      {[](T& t) { t.speedup_low = -3; }, "a speedup of -3"},
      {[](T& t) { t.speedup_high = kInf; }, "a speedup of inf"},
      {[](T& t) { t.speedup = 1.7; }, "speedup 1.7 outside [1.4, 1.6]"},
      {[](T& t) { t.speedup_low = 0.9; }, "FASTER with a speedup from 0.9 to 1.6"},
      {[](T& t) { t.verdict = Verdict::kSlower; }, "SLOWER with a speedup from 1.4 to 1.6"},
      {[](T& t) { t.blocks = -1; }, "-1 blocks, 0 discarded, 0 disturbed"},
  };
  for (const auto& [spoil, message] : kBad) {
    EntryResult bad = good;
    spoil(bad.timing);
    EXPECT_EQ(Said(item, bad), "INVALID_ARGUMENT: timing of a plan: " + message);
  }
}

TEST(CheckResult, OfOutputs) {
  const ItemRequest here = ItemOf([](v1::WorkItem& w) { w.mutable_check(); });
  const ItemRequest elsewhere =
      ItemOf([](v1::WorkItem& w) { w.mutable_files()->set_compare_seeds(3); });
  EntryResult good;
  good.errors = {{"y", 0, 0, 0, false}, {"z", kInf, kInf, 1, true}};
  using Errors = std::vector<OutputError>;
  const std::pair<std::function<void(Errors&)>, std::string> kBad[] = {
      {[](Errors& e) { e.pop_back(); }, "1 of 2 outputs were compared"},
      {[](Errors& e) { e.clear(); }, "0 of 2 outputs were compared"},
      {[](Errors& e) { e[1].name = "y"; }, "output z was compared as y"},
      {[](Errors& e) { e[0].max_rel = -1; }, "output y: an error of -1"},
      {[](Errors& e) { e[0].max_abs = kNan; }, "output y: an error of nan"},
  };
  for (const ItemRequest& item : {here, elsewhere}) {
    EXPECT_EQ(Said(item, good), "OK");
    for (const auto& [spoil, message] : kBad) {
      EntryResult bad = good;
      spoil(bad.errors);
      EXPECT_EQ(Said(item, bad), "INVALID_ARGUMENT: " + message);
    }
  }
}

TEST(CheckResult, OfFiles) {
  const ItemRequest item = ItemOf([](v1::WorkItem& w) {
    w.mutable_files()->add_files();
    w.mutable_files()->set_blocks_max(2);
  });
  EntryResult good;
  good.file_times.runners.resize(1);
  good.file_times.blocks = {{5, 6}, {7, 0}};
  EXPECT_EQ(Said(item, good), "OK");
  using T = FileTimes;
  const std::pair<std::function<void(T&)>, std::string> kBad[] = {
      {[](T& t) { t.blocks[0][1] = kNan; }, "INTERNAL: file times: a time of nan ns"},
      {[](T& t) { t.blocks[0][1] = -1; }, "INTERNAL: file times: a time of -1 ns"},
      {[](T& t) { t.blocks[0][1] = 1e300; }, "INTERNAL: file times: a time of 1e+300 ns"},
      {[](T& t) { t.blocks[1][0] = 0; }, "INTERNAL: file times: a time of 0 ns"},
      {[](T& t) {
         t.blocks.push_back({5, 6});
       },
       "INVALID_ARGUMENT: file times: 3 blocks, at most 2 were asked for"},
      {[](T& t) { t.runners.clear(); }, "INTERNAL: file times: 0 files, not 1"},
  };
  for (const auto& [spoil, message] : kBad) {
    EntryResult bad = good;
    spoil(bad.file_times);
    EXPECT_EQ(Said(item, bad), message);
  }
}

TEST(CheckResult, OfShownValues) {
  const ItemRequest item = ItemOf([](v1::WorkItem& w) { w.mutable_show()->set_bytes_max(8); });
  EntryResult good;
  EXPECT_EQ(Said(item, good), "OK") << "nothing differs";
  good.shown.emplace().set_value_bytes(12);
  good.shown->add_errors()->set_output("y");
  good.shown->add_errors()->set_output("z");
  good.shown->add_inputs("1234");
  good.shown->add_actual("1234");
  EXPECT_EQ(Said(item, good), "OK");
  using S = v1::ShownValues;
  const std::pair<std::function<void(S&)>, std::string> kBad[] = {
      {[](S& s) { s.mutable_errors()->RemoveLast(); }, "1 of 2 outputs were compared"},
      {[](S& s) { s.mutable_errors(1)->set_max_rel(kNan); }, "output z: an error of nan"},
      {[](S& s) { s.add_expected("5"); }, "9 bytes of values of 12, at most 8 were asked for"},
      {[](S& s) { s.set_value_bytes(-1); }, "8 bytes of values of -1, at most 8 were asked for"},
  };
  for (const auto& [spoil, message] : kBad) {
    EntryResult bad = good;
    spoil(*bad.shown);
    EXPECT_EQ(Said(item, bad), "INVALID_ARGUMENT: " + message);
  }
}

TEST(CheckResult, OfKernels) {
  const ItemRequest item = ItemOf([](v1::WorkItem& w) { w.mutable_refine()->add_rivals(); });
  EntryResult result;
  result.kernels = {{0, "k"}};
  EXPECT_EQ(Said(item, result), "OK");
  result.kernels.push_back({1, "k"});
  EXPECT_EQ(Said(item, result), "INVALID_ARGUMENT: 2 kernels of 1 rivals");
}

}  // namespace
}  // namespace ag

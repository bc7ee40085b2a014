#include "search/measuring_together.h"

#include <gmock/gmock.h>

#include <array>
#include <atomic>

#include "base/thread_pool.h"
#include "search/testing/fake_measurer.h"

namespace ag {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

// Returns a group that Answer knows by its number.
GroupProblem Group(int number) {
  static const Graph relu = TestGraph("input x f32[8]\noutput y = relu(x)\n");
  return {.graph = relu,
          .pattern = "one",
          .input_layouts = {Layout::kPlain},
          .output_layouts = {Layout::kPlain},
          .cores = number};
}

StatusOr<Measurement> Answer(const GroupProblem& group) {
  const double ns = group.cores;
  return Measurement{.latency = {ns, ns, ns}};
}

std::vector<double> NsOfAnswers(const std::vector<StatusOr<Measurement>>& answers) {
  std::vector<double> ns;
  for (const auto& answer : answers) ns.push_back(answer.ok() ? answer->latency.median_ns : -1);
  return ns;
}

class MeasuringTogetherTest : public testing::Test {
 protected:
  MeasuringTogether measuring_{[this](const std::vector<GroupProblem>& groups) {
    std::vector<StatusOr<Measurement>> answers;
    calls_.emplace_back();
    for (const GroupProblem& group : groups) {
      calls_.back().push_back(group.cores);
      answers.push_back(answer_(group));
    }
    return answers;
  }};
  std::function<StatusOr<Measurement>(const GroupProblem&)> answer_ = Answer;
  std::vector<std::vector<int>> calls_;  // The numbers of the groups.
};

TEST_F(MeasuringTogetherTest, OneSearchMeasuresAtOnceAndEachGroupOnce) {
  measuring_.Enter();
  measuring_.Pause();
  EXPECT_THAT(NsOfAnswers(measuring_.Measure(0, {Group(3), Group(1), Group(3)})),
              ElementsAre(3, 1, 3));
  EXPECT_THAT(NsOfAnswers(measuring_.Measure(0, {Group(1), Group(2)})), ElementsAre(1, 2));
  EXPECT_THAT(NsOfAnswers(measuring_.Measure(0, {Group(2), Group(3)})), ElementsAre(2, 3));
  measuring_.Leave();
  EXPECT_THAT(calls_, ElementsAre(ElementsAre(3, 1), ElementsAre(2)));
}

// The second search runs until it asks as well: only then there is a call, for both.
TEST_F(MeasuringTogetherTest, SearchesThatAskTogetherShareACall) {
  ThreadPool pool(2);
  std::atomic<int> entered{0};
  std::array<std::vector<double>, 2> ns;
  pool.Each(2, [&](int place, int) {
    measuring_.Enter();
    ++entered;
    while (entered < 2) std::this_thread::yield();
    ns[place] = NsOfAnswers(measuring_.Measure(place, {Group(7), Group(10 + place)}));
    measuring_.Leave();
  });
  EXPECT_THAT(ns, ElementsAre(ElementsAre(7, 10), ElementsAre(7, 11)));
  EXPECT_THAT(calls_, ElementsAre(ElementsAre(7, 10, 11)));
}

TEST_F(MeasuringTogetherTest, NothingIsMeasuredOrRunAloneWhileASearchRuns) {
  constexpr int kSearches = 4;
  std::array<std::atomic<bool>, kSearches> runs{};
  std::atomic<int> beside = 0, wrong = 0, alone = 0;
  const auto look = [&] {
    for (const std::atomic<bool>& one : runs) beside += one;
    beside += alone++ > 0;
    --alone;
  };
  answer_ = [&](const GroupProblem& group) {
    look();
    return Answer(group);
  };
  ThreadPool pool(3);
  pool.Each(kSearches, [&](int place, int) {
    measuring_.Enter();
    for (int turn = 0; turn < 300; ++turn) {
      runs[place] = true;
      const int number = turn * (place + 2) % 97;
      runs[place] = false;
      measuring_.Pause();
      if (turn % 7 == place) measuring_.RunAlone(look);
      if (turn % (place + 1) > 0) continue;
      const auto answers = measuring_.Measure(place, {Group(number), Group(number + 100)});
      wrong += NsOfAnswers(answers) != std::vector<double>{1.0 * number, 100.0 + number};
    }
    measuring_.Leave();
  });
  EXPECT_EQ(beside, 0);
  EXPECT_EQ(wrong, 0);
  std::vector<int> all;
  for (const auto& call : calls_) all.insert(all.end(), call.begin(), call.end());
  std::ranges::sort(all);
  EXPECT_EQ(std::ranges::adjacent_find(all), all.end()) << "asked twice";
  EXPECT_GE(all.size(), 97u);
}

TEST_F(MeasuringTogetherTest, NoCallHasMoreGroupsThanABatch) {
  std::vector<GroupProblem> groups;
  for (int i = 0; i < 2 * kGroupBatchMax + 1; ++i) groups.push_back(Group(i));
  measuring_.Enter();
  EXPECT_THAT(measuring_.Measure(0, groups), SizeIs(groups.size()));
  measuring_.Leave();
  EXPECT_THAT(calls_, ElementsAre(SizeIs(kGroupBatchMax), SizeIs(kGroupBatchMax), SizeIs(1)));
}

// kCancelled says nothing about a group: no more are asked for now, and it is asked for again.
TEST_F(MeasuringTogetherTest, WhatWasCancelledIsNotRemembered) {
  std::vector<GroupProblem> groups;
  for (int i = 0; i < 2 * kGroupBatchMax; ++i) groups.push_back(Group(i));
  answer_ = [](const GroupProblem& group) -> StatusOr<Measurement> {
    if (group.cores > 5) return Err(StatusCode::kCancelled, "time is up");
    if (group.cores == 5) return Err(StatusCode::kInternal, "broken");
    return Answer(group);
  };
  measuring_.Enter();
  const auto cut = measuring_.Measure(0, groups);
  EXPECT_THAT(calls_, SizeIs(1));
  EXPECT_EQ(cut[4]->latency.median_ns, 4);
  EXPECT_EQ(cut[5].status().code(), StatusCode::kInternal);
  for (size_t i = 6; i < cut.size(); ++i) EXPECT_EQ(cut[i].status().code(), StatusCode::kCancelled);
  answer_ = Answer;
  const auto again = measuring_.Measure(0, {Group(4), Group(5), Group(6)});
  measuring_.Leave();
  EXPECT_THAT(calls_.back(), ElementsAre(6));
  EXPECT_EQ(again[1].status().code(), StatusCode::kInternal);
  EXPECT_EQ(again[2]->latency.median_ns, 6);
}

}  // namespace
}  // namespace ag

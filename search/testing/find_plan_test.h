// The fixture for tests of a whole search, and what holds for each of its answers.
#pragma once

#include <gtest/gtest.h>

#include "plan/format/plan_codec.h"
#include "plan/format/plan_validate.h"
#include "search/search.h"
#include "search/testing/fake_measurer.h"

namespace ag {

// Searches graphs and rules in their text forms.
class FindPlanTest : public testing::Test {
 protected:
  SearchRequest Request(std::string_view graph, std::string_view rules) {
    rules_ = TestRules(rules);
    SearchRequest request{.input = TestGraph(graph), .rules = &rules_, .spec = measurer_.spec()};
    request.environment = "device=test";
    return request;
  }
  StatusOr<SearchResult> Find(const SearchRequest& request) {
    return FindPlan(request, measurer_, clock_);
  }

  RuleSet rules_;
  FakeMeasurer measurer_{TestSpec()};
  FakeClock clock_;
};

// Checks what must hold for every answer, whatever was measured.
inline void ExpectSound(const SearchRequest& request, const SearchResult& result) {
  EXPECT_TRUE(ValidatePlan(result.graph, result.plan, request.spec).ok());
  EXPECT_TRUE(ValidatePlan(request.input, result.input_plan, request.spec).ok());
  EXPECT_EQ(result.plan.graph, result.graph.digest());
  EXPECT_LT(result.estimate_ns, 1e12);
  if (result.timing.verdict == Verdict::kFaster) {
    EXPECT_GT(result.timing.speedup, 1);
    return;
  }
  EXPECT_EQ(result.graph.digest(), request.input.digest());
  EXPECT_EQ(EncodePlan(result.plan), EncodePlan(result.input_plan));
  EXPECT_EQ(result.timing.speedup, 1);
  EXPECT_TRUE(result.rewrites.empty());
}

}  // namespace ag

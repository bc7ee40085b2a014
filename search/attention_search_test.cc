// The built-in rules on a block of attention as exporters write it, and the search's result.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "rules/match/rewrite.h"
#include "rules/match/rule_clean_up.h"
#include "rules/sets/built_in_rules.h"
#include "search/testing/fake_measurer.h"

namespace ag {
namespace {

// The attention of one layer of a BERT with 4 heads of 32 and 64 tokens.
constexpr std::string_view kBert = R"(
input x f32[1,64,128]
input m f32[1,1,1,64]
q = reshape(add(matmul(x, const f32[128,128] seed 1), const f32[128] seed 2)) shape=[1,64,4,32]
k = reshape(add(matmul(x, const f32[128,128] seed 3), const f32[128] seed 4)) shape=[1,64,4,32]
v = reshape(add(matmul(x, const f32[128,128] seed 5), const f32[128] seed 6)) shape=[1,64,4,32]
s = matmul(transpose(q) perm=[0,2,1,3], transpose(k) perm=[0,2,3,1])
p = softmax(add(div(s, const f32 {5.656854}), m)) axis=3
c = transpose(matmul(p, transpose(v) perm=[0,2,1,3])) perm=[0,2,1,3]
output y = matmul(reshape(c) shape=[1,64,128], const f32[128,128] seed 7)
)";

// Returns a built-in device spec.
DeviceSpec SpecOf(const std::string& file) {
  const auto spec = ReadDeviceSpec(std::string(AG_SOURCE_DIR) + "/deploy/devices/" + file);
  EXPECT_TRUE(spec.ok()) << Message(spec.status());
  return spec.ok() ? *spec : DeviceSpec();
}

SearchRequest RequestFor(const DeviceSpec& spec) {
  SearchRequest request;
  request.input = *CleanUp(TestGraph(kBert), BuiltInRules());
  request.rules = &BuiltInRules();
  request.spec = spec;
  request.environment = "device=test";
  return request;
}

TEST(AttentionSearch, ThePriceLeadsToOneProductOfAllHeads) {
  FakeMeasurer measurer(SpecOf("h200.spec"));
  FakeClock clock;
  SearchRequest request = RequestFor(measurer.spec());
  // With several streams the three products run beside each other instead.
  request.options.streams_max = 1;
  const auto result = FindPlan(request, measurer, clock);
  ASSERT_TRUE(result.ok()) << Message(result.status());
  EXPECT_GT(result->timing.speedup, 1.15);
  std::vector<std::string> rules;
  for (const AppliedRewrite& rewrite : result->rewrites) rules.push_back(rewrite.rule);
  EXPECT_THAT(rules, testing::IsSupersetOf({"matmul-add-merge-siblings", "reshape-out-of-split",
                                            "transpose-out-of-split"}));
}

// The plan for `cpu` has one group for the attention, and no transpose is copied.
TEST(AttentionSearch, TheCpuRunsAttentionAsOneGroup) {
  FakeMeasurer measurer(SpecOf("cpu.spec"));
  FakeClock clock;
  const SearchRequest request = RequestFor(measurer.spec());
  const auto result = FindPlan(request, measurer, clock);
  ASSERT_TRUE(result.ok()) << Message(result.status());
  int attentions = 0;
  for (const Group& group : result->input_plan.groups) {
    if (group.pattern == "attention") ++attentions;
    EXPECT_NE(group.pattern, "move");
    EXPECT_NE(group.pattern, "softmax");
  }
  EXPECT_EQ(attentions, 1);
  EXPECT_EQ(std::ranges::count(result->plan.groups, "attention", &Group::pattern), 1);
}

}  // namespace
}  // namespace ag

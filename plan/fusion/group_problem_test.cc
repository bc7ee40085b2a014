#include "plan/fusion/group_problem.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "base/text.h"
#include "plan/format/plan_validate.h"
#include "plan/fusion/grouping.h"
#include "plan/testing/testing.h"

namespace ag {
namespace {

std::vector<GroupProblem> Problems(const Graph& graph) {
  RooflineTimes times(SmallSpec());
  const std::vector<Group> groups = *FormGroups(graph, SmallSpec(), {}, times);
  std::vector<GroupProblem> problems;
  for (const Group& group : groups) {
    if (group.pattern != kViewPattern) problems.push_back(ExtractGroup(graph, group, {}));
  }
  return problems;
}

constexpr std::string_view kNetwork = R"(
input x f32[1,3,8,8]
w0 = const f32[16,3,3,3] seed 1
w1 = const f32[16,16,1,1] seed 2
b = const f32[16] seed 3
c = relu(conv(x, w0, b) strides=[1,1] pads=[1,1,1,1] dilations=[1,1])
d = add(conv(c, w1, b) strides=[1,1] pads=[0,0,0,0] dilations=[1,1], c)
m = reduce_mean(d) axes=[2,3] keepdims=0
v = const f32[16,4] seed 4
half = const f32[] {0.5}
output "y" = mul(matmul(m, v), half)
output "z" = c
output "again" = c
)";

TEST(GroupProblem, SingleGroupPlansAreValid) {
  const Graph graph = GraphOf(kNetwork);
  for (const GroupProblem& problem : Problems(graph)) {
    const Plan plan = SingleGroupPlan(problem);
    EXPECT_TRUE(ValidatePlan(problem.graph, plan, SmallSpec()).ok())
        << problem.pattern << ": " << ToString(ValidatePlan(problem.graph, plan, SmallSpec()));
  }
}

TEST(GroupProblem, BytesDecodeToTheSame) {
  for (const GroupProblem& problem : Problems(GraphOf(kNetwork))) {
    const std::string bytes = EncodeGroupProblem(problem);
    const StatusOr<GroupProblem> decoded = DecodeGroupProblem(bytes);
    ASSERT_TRUE(decoded.ok()) << ToString(decoded.status());
    EXPECT_EQ(EncodeGroupProblem(*decoded), bytes);
    EXPECT_EQ(decoded->graph.digest(), problem.graph.digest());
  }
}

// The layouts of the outputs are the last bytes but a few.
TEST(GroupProblem, ManyOutputsDecodeToTheSame) {
  std::string text = "input x f32[64]\n", names;
  for (int i = 0; i < 64; ++i) names += fmt::format("{}p{}", i == 0 ? "" : ", ", i);
  text += names + " = split(x) axis=0 sizes=[" + Join(std::vector<int>(64, 1), ",") + "]\n";
  for (int i = 0; i < 64; ++i) text += fmt::format("output p{}\n", i);
  const Graph graph = GraphOf(text);
  const GroupProblem problem{.graph = graph,
                             .pattern = "concat",
                             .input_layouts = {Layout::kPlain},
                             .output_layouts = std::vector<Layout>(64, Layout::kPlain)};
  const StatusOr<GroupProblem> decoded = DecodeGroupProblem(EncodeGroupProblem(problem));
  ASSERT_EQ(ToString(decoded.status()), "OK");
  EXPECT_EQ(EncodeGroupProblem(*decoded), EncodeGroupProblem(problem));
}

TEST(GroupProblem, WeightsDoNotMatterButScalarsDo) {
  const auto bytes = [](std::string_view seed, std::string_view scalar) {
    const Graph graph =
        GraphOf(fmt::format("input x f32[4,8]\nw = const f32[8,8] seed {}\ns = const f32[] {{{}}}\n"
                            "output relu(matmul(x, w))\noutput \"t\" = mul(x, s)\n",
                            seed, scalar));
    std::string all;
    for (const GroupProblem& problem : Problems(graph)) all += EncodeGroupProblem(problem);
    return all;
  };
  EXPECT_EQ(bytes("1", "2"), bytes("9", "2"));
  EXPECT_NE(bytes("1", "2"), bytes("1", "3"));
}

TEST(GroupProblem, ARecipeIsOneConstant) {
  const Graph graph = GraphOf(
      "input x f32[4,8]\nv = const f32[8,3] seed 1\nw = const f32[8,5] seed 2\n"
      "output matmul(x, concat(v, w) axis=1)\n");
  const std::vector<GroupProblem> problems = Problems(graph);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].graph.size(), 3);
  EXPECT_EQ(problems[0].graph.type({1, 0}).ToString(), "f32[8,8]");
}

TEST(GroupProblem, KeyDependsOnTheEnvironment) {
  EXPECT_EQ(GroupKey("abc", "device=x"), GroupKey("abc", "device=x"));
  EXPECT_NE(GroupKey("abc", "device=x"), GroupKey("abc", "device=y"));
  EXPECT_NE(GroupKey("ab", "c"), GroupKey("a", "bc"));
}

// Warm problems keep the bytes of version 1.
TEST(GroupProblem, AColdProblemIsAnotherOne) {
  const Graph graph = GraphOf(kNetwork);
  RooflineTimes times(SmallSpec());
  const std::vector<Group> groups = *FormGroups(graph, SmallSpec(), {}, times);
  for (const Group& group : groups) {
    if (group.pattern == kViewPattern) continue;
    const GroupProblem warm = ExtractGroup(graph, group, {});
    const GroupProblem cold = ExtractGroup(graph, group, {.cold_cache = true});
    std::string bytes = EncodeGroupProblem(warm);
    EXPECT_EQ(bytes.substr(4, 4), std::string("\1\0\0\0", 4));
    EXPECT_NE(GroupKey(bytes, "e"), GroupKey(EncodeGroupProblem(cold), "e"));
    bytes[4] = 2;
    EXPECT_EQ(EncodeGroupProblem(cold), bytes);
    EXPECT_TRUE(DecodeGroupProblem(bytes)->cold_cache);
    EXPECT_TRUE(SingleGroupPlan(cold).policy.cold_cache);
    EXPECT_EQ(Summary(cold), Summary(warm) + " cold");
    bytes[4] = 3;
    EXPECT_EQ(ToString(DecodeGroupProblem(bytes).status()),
              "DATA_LOSS: group problem: expected version 1 or 2, got 3 (magic 0x50474741)");
  }
}

TEST(GroupProblem, HostileBytesAreRefused) {
  std::vector<std::string> all;
  for (const GroupProblem& problem : Problems(GraphOf(kNetwork))) {
    all.push_back(EncodeGroupProblem(problem));
  }
  Random random(1);
  for (int i = 0; i < 3000; ++i) {
    std::string bytes = all[random.Below(all.size())];
    for (uint64_t k = 0; k <= random.Below(3); ++k) {
      bytes[random.Below(bytes.size())] = static_cast<char>(random.Below(256));
    }
    if (random.Below(4) == 0) bytes.resize(random.Below(bytes.size()));
    const StatusOr<GroupProblem> problem = DecodeGroupProblem(bytes);
    if (!problem.ok()) continue;
    (void)WorkOf(*problem);
    const Plan plan = SingleGroupPlan(*problem);
    (void)ValidatePlan(problem->graph, plan, SmallSpec());
  }
}

}  // namespace
}  // namespace ag

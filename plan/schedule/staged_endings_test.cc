#include "plan/schedule/staged_endings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/testing/schedule_scene.h"
#include "plan/testing/testing.h"

namespace ag {
namespace {

using testing::ElementsAre;

// Returns each stage as "Exp Relu|Neg": components, each a list of groups.
std::vector<std::string> StagesText(const ScheduleScene& scene, const std::vector<Stage>& stages) {
  std::vector<std::string> lines;
  for (const Stage& stage : stages) {
    std::string& line = lines.emplace_back();
    for (const std::vector<int>& component : stage) {
      if (!line.empty()) line += '|';
      for (const int g : component) {
        line += scene.NameOf(g) + (g == component.back() ? "" : " ");
      }
    }
  }
  return lines;
}

constexpr std::string_view kBranches =
    "input x f32[4]\na = exp(x)\noutput y = add(relu(a), neg(a))\n";

// Relu beside Neg: max(80, 50 + two events of 10), one after the other 130.
TEST(StagedEndings, BranchesThatGainByItAreOneStage) {
  const ScheduleScene scene(kBranches, SmallSpec());
  const ScheduleProblem problem =
      scene.Problem({{"Exp", 100}, {"Relu", 50}, {"Neg", 80}, {"Add", 10}}, 2);
  EXPECT_THAT(StagesText(scene, StagesOf(problem)), ElementsAre("Exp", "Neg|Relu", "Add"));
  EXPECT_THAT(scene.Text(StagedEndings(problem)), ElementsAre("Exp Neg Add<Relu", "Relu<Exp"));
}

// The second block has as many groups and edges as the first one; with its times too they are
// equal.
TEST(StagedEndings, EqualBlocksHaveEqualStages) {
  const ScheduleScene scene(
      "input x f32[4]\na = exp(x)\nb = add(relu(a), neg(a))\n"
      "output y = mul(abs(b), sqrt(b))\n",
      SmallSpec());
  const auto stages = [&](double abs_ns, double sqrt_ns) {
    return StagesText(scene, StagesOf(scene.Problem({{"Exp", 100},
                                                     {"Relu", 50},
                                                     {"Neg", 80},
                                                     {"Add", 10},
                                                     {"Abs", abs_ns},
                                                     {"Sqrt", sqrt_ns},
                                                     {"Mul", 10}},
                                                    2)));
  };
  EXPECT_THAT(stages(50, 80), ElementsAre("Exp", "Neg|Relu", "Add", "Sqrt|Abs", "Mul"));
  EXPECT_THAT(stages(80, 50), ElementsAre("Exp", "Neg|Relu", "Add", "Abs|Sqrt", "Mul"));
  EXPECT_THAT(stages(5, 8), ElementsAre("Exp", "Neg|Relu", "Add", "Abs", "Sqrt", "Mul"));
}

// With events of 50: 150 beside each other.
TEST(StagedEndings, BranchesThatDoNotAreTwoStages) {
  DeviceSpec spec = SmallSpec();
  spec.event_ns = 50;
  const ScheduleScene scene(kBranches, spec);
  const ScheduleProblem problem =
      scene.Problem({{"Exp", 100}, {"Relu", 50}, {"Neg", 80}, {"Add", 10}}, 2);
  EXPECT_THAT(StagesText(scene, StagesOf(problem)), ElementsAre("Exp", "Relu", "Neg", "Add"));
  EXPECT_THAT(scene.Text(StagedEndings(problem)), ElementsAre("Exp Relu Neg Add"));
}

constexpr std::string_view kTwoBranches =
    "input x f32[4]\nt = tanh(x)\noutput y = add(relu(exp(t)), neg(t))\n";

// A component is a chain: 200 and 150 + 20 beside each other. In stages of single groups it takes
// max(150, 100 + 20) + 100.
TEST(StagedEndings, AComponentHasSeveralGroups) {
  const ScheduleScene scene(kTwoBranches, SmallSpec());
  const ScheduleProblem problem =
      scene.Problem({{"Tanh", 10}, {"Exp", 100}, {"Relu", 100}, {"Neg", 150}, {"Add", 10}}, 2);
  EXPECT_THAT(StagesText(scene, StagesOf(problem)), ElementsAre("Tanh", "Exp Relu|Neg", "Add"));
}

// The block of Exp, Relu and Neg gets 3/5 of the endings. With single groups it looks at 9: of
// {Exp, Relu, Neg} Relu, Neg and both, of {Exp, Neg} three, of {Exp, Relu}, {Exp} and {Neg} one
// each. With components of up to 3 groups there are more.
TEST(StagedEndings, WithFewEndingsComponentsAreSingleGroupsAndThenLevels) {
  const ScheduleScene scene(kTwoBranches, SmallSpec());
  const ScheduleProblem problem =
      scene.Problem({{"Tanh", 10}, {"Exp", 100}, {"Relu", 130}, {"Neg", 150}, {"Add", 10}}, 2);
  EXPECT_THAT(StagesText(scene, StagesOf(problem, 15)),
              ElementsAre("Tanh", "Exp", "Neg|Relu", "Add"));
  EXPECT_THAT(StagesText(scene, StagesOf(problem, 14)),
              ElementsAre("Tanh", "Neg|Exp", "Relu", "Add"));
}

// 70 groups beside each other are two blocks; neither can be searched, so each is one level.
TEST(StagedEndings, ManyBranchesAreSpreadOverTheStreams) {
  std::string text = "input x f32[4]\n";
  for (int i = 0; i < 70; ++i)
    text += fmt::format("output y{0} = add(x, const f32[4] seed {0})\n", i);
  const Graph graph = GraphOf(text);
  RooflineTimes times(SmallSpec());
  const auto groups = *FormGroups(graph, SmallSpec(), {}, times, {.grouped = false});
  ASSERT_EQ(groups.size(), 70u);
  const auto streams = StagedEndings(
      MakeScheduleProblem(graph, groups, std::vector<double>(70, 100.0), SmallSpec(), {}, 4));
  ASSERT_EQ(streams.size(), 4u);
  for (const Stream& stream : streams) {
    EXPECT_NEAR(static_cast<double>(stream.launches.size()), 17.5, 1.5);
  }
}

}  // namespace
}  // namespace ag

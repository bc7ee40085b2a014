#include "plan/schedule/chain_cover.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/testing/schedule_scene.h"
#include "plan/testing/testing.h"

namespace ag {
namespace {

using testing::ElementsAre;

TEST(ChainCover, TheLongPathIsOneChain) {
  const ScheduleScene scene("input x f32[4]\na = exp(x)\noutput y = add(relu(a), neg(a))\n",
                            SmallSpec());
  const auto streams =
      ChainCover(scene.Problem({{"Exp", 100}, {"Relu", 50}, {"Neg", 80}, {"Add", 10}}, 2));
  EXPECT_THAT(scene.Text(streams), ElementsAre("Exp Neg Add<Relu", "Relu<Exp"));
  EXPECT_EQ(streams[0].cores, 2);
}

// Add reads Exp and Relu, which reads Exp: the edge from Exp is implied, and one chain is left.
TEST(ChainCover, AnEdgeThatAPathImpliesIsNoReasonToFork) {
  const ScheduleScene scene("input x f32[4]\na = exp(x)\noutput y = add(a, relu(a))\n",
                            SmallSpec());
  const auto streams = ChainCover(scene.Problem({{"Exp", 10}, {"Relu", 10}, {"Add", 10}}, 4));
  EXPECT_THAT(scene.Text(streams), ElementsAre("Exp Relu Add"));
  EXPECT_EQ(streams[0].cores, 0);
}

// Relu first takes the edge to Add, then leaves it to Neg, whose only edge it is.
TEST(ChainCover, TheMatchingIsMaximum) {
  const ScheduleScene scene(
      "input x f32[4]\na = relu(x)\nb = neg(x)\noutput y = add(a, b)\noutput z = tanh(a)\n",
      SmallSpec());
  const auto streams =
      ChainCover(scene.Problem({{"Relu", 100}, {"Neg", 10}, {"Add", 50}, {"Tanh", 20}}, 4));
  EXPECT_THAT(scene.Text(streams), ElementsAre("Relu Tanh", "Neg Add<Relu"));
}

// Tanh and Sqrt begin after Relu has ended, so its stream is free for one of them.
TEST(ChainCover, AChainFollowsOneThatIsBeforeIt) {
  const ScheduleScene scene(
      "input x f32[4]\na = exp(x)\nb = add(relu(a), neg(a))\noutput y = tanh(b)\n"
      "output z = sqrt(b)\n",
      SmallSpec());
  const auto streams = ChainCover(scene.Problem(
      {{"Exp", 100}, {"Relu", 50}, {"Neg", 80}, {"Add", 10}, {"Tanh", 90}, {"Sqrt", 30}}, 4));
  EXPECT_THAT(scene.Text(streams), ElementsAre("Exp Neg Add<Relu Tanh", "Relu<Exp Sqrt<Add"));
}

TEST(ChainCover, WithFewerStreamsChainsShareTheOneWithTheLeastWork) {
  const ScheduleScene scene(
      "input x f32[4]\noutput a = exp(x)\noutput b = relu(x)\noutput c = neg(x)\n"
      "output d = tanh(x)\n",
      SmallSpec());
  const auto streams =
      ChainCover(scene.Problem({{"Exp", 100}, {"Relu", 70}, {"Neg", 50}, {"Tanh", 20}}, 2));
  EXPECT_THAT(scene.Text(streams), ElementsAre("Exp Tanh", "Relu Neg"));
}

}  // namespace
}  // namespace ag

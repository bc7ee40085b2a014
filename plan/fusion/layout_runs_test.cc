#include "plan/fusion/layout_runs.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "plan/fusion/grouping.h"
#include "plan/testing/testing.h"

namespace ag {
namespace {

// 3x3 convolutions are fast in blocks, 5x5 ones with channels last; other groups are cheap.
class TasteTimes : public GroupTimes {
 public:
  explicit TasteTimes(double reorder_ns) : reorder_ns_(reorder_ns) {}
  GroupTime Time(const GroupProblem& problem) override {
    if (problem.pattern == kReorderPattern) return {.ns = reorder_ns_};
    for (const Node& node : problem.graph.nodes()) {
      if (node.op != OpKind::kConv) continue;
      const bool is_small = problem.graph.type(node.inputs[1]).shape[2] == 3;
      const bool is_blocked = problem.output_layouts[0] == Layout::kBlocked16;
      return {.ns = is_small == is_blocked ? 10e3 : 100e3};
    }
    return {.ns = 1e3};
  }

 private:
  const double reorder_ns_;
};

DeviceSpec SpecOf(double cache_bytes_per_second) {
  DeviceSpec spec = LoadSpec(AG_SOURCE_DIR, "cpu");
  spec.cache_bytes_per_second = cache_bytes_per_second;
  return spec;
}

// Returns four convolutions in a row: 3x3, 3x3, 5x5, 5x5.
Graph Row() {
  const std::string same = " strides=[1,1] dilations=[1,1] pads=";
  return GraphOf(
      "input x f32[1,32,8,8]\ns = const f32[32,32,3,3] seed 1\nl = const f32[32,32,5,5] seed 2\n"
      "b = const f32[32] seed 3\n"
      "p = conv(x, s, b)" +
      same + "[1,1,1,1]\nq = conv(p, s, b)" + same +
      "[1,1,1,1]\n"
      "t = conv(q, l, b)" +
      same + "[2,2,2,2]\noutput conv(t, l, b)" + same + "[2,2,2,2]\n");
}

std::string LayoutsOf(const TimedGroups& timed) {
  std::string text;
  for (const Group& group : timed.groups) {
    if (group.pattern == "conv") text += std::string(LayoutName(group.outputs[0].layout)) + " ";
    if (group.pattern == kReorderPattern) text += "reorder ";
  }
  return text;
}

TEST(ChooseRuns, ChangesWhereAReorderCostsLess) {
  const struct {
    const char* name;
    double cache_bytes_per_second;  // The price of a change, ...
    double reorder_ns;              // ... and its real time.
    bool mixed;
    const char* layouts;
  } kCases[] = {
      {"cheap", 1e11, 2e3, true,
       "reorder blocked16 blocked16 reorder channels_last channels_last "
       "reorder "},
      {"cheap, not allowed", 1e11, 2e3, false,
       "reorder channels_last channels_last channels_last channels_last reorder "},
      {"no rate of a cache, so memory's", 0, 2e3, true,
       "reorder blocked16 blocked16 reorder channels_last channels_last "
       "reorder "},
      {"dear by the rates", 1e7, 2e3, true,
       "reorder channels_last channels_last channels_last channels_last reorder "},
      {"dear when measured", 1e11, 1e6, true,
       "reorder channels_last channels_last channels_last channels_last reorder "},
  };
  const Graph graph = Row();
  for (const auto& c : kCases) {
    TasteTimes times(c.reorder_ns);
    const DeviceSpec spec = SpecOf(c.cache_bytes_per_second);
    const auto timed = FormTimedGroups(graph, spec, {}, times, {.mixed_layouts = c.mixed});
    ASSERT_EQ(ToString(timed.status()), "OK") << c.name;
    EXPECT_EQ(LayoutsOf(*timed), c.layouts) << c.name;
  }
}

TEST(ChooseRuns, OneCoverIsTakenWhole) {
  const Graph graph = Row();
  const DeviceSpec spec = SpecOf(1e11);
  const LayoutCover cover{.preferred = Layout::kBlocked16,
                          .layouts = {std::vector<Layout>(graph.size(), Layout::kBlocked16)},
                          .node_cost = std::vector<Cost>(graph.size(), {.ns = 1})};
  EXPECT_EQ(ChooseRuns(graph, spec, {cover}),
            std::vector<Layout>(graph.size(), Layout::kBlocked16));
}

// Two branches without a common tensor: the second one begins in another layout for nothing.
TEST(ChooseRuns, AChangeThatNoTensorCrossesIsFree) {
  const Graph graph = GraphOf(
      "input x f32[1,32,8,8]\noutput a = relu(x)\ninput y f32[1,32,8,8]\noutput b = exp(y)\n");
  const auto cover = [&](Layout layout, double relu_ns, double exp_ns) {
    LayoutCover made{.preferred = layout,
                     .layouts = {std::vector<Layout>(graph.size(), layout)},
                     .node_cost = std::vector<Cost>(graph.size())};
    for (NodeId id = 0; id < graph.size(); ++id) {
      if (graph.node(id).op == OpKind::kRelu) made.node_cost[id].ns = relu_ns;
      if (graph.node(id).op == OpKind::kExp) made.node_cost[id].ns = exp_ns;
      if (graph.node(id).op == OpKind::kInput) made.layouts.of[id] = Layout::kPlain;
    }
    return made;
  };
  const std::vector<Layout> chosen =
      ChooseRuns(graph, SpecOf(1e11),
                 {cover(Layout::kBlocked16, 1, 1.5), cover(Layout::kChannelsLast, 1.5, 1)});
  for (NodeId id = 0; id < graph.size(); ++id) {
    if (graph.node(id).op == OpKind::kInput) continue;
    const bool is_relu = graph.node(id).op == OpKind::kRelu;
    EXPECT_EQ(chosen[id], is_relu ? Layout::kBlocked16 : Layout::kChannelsLast);
  }
}

TEST(FormTimedGroups, TakesTheLayoutThatIsAskedFor) {
  TasteTimes times(2e3);
  const DeviceSpec spec = SpecOf(1e11);
  EXPECT_EQ(LayoutChoices(Row(), spec),
            (std::vector<Layout>{Layout::kChannelsLast, Layout::kBlocked16}));
  for (const Layout layout : {Layout::kChannelsLast, Layout::kBlocked16, Layout::kPlain}) {
    const auto timed = FormTimedGroups(Row(), spec, {}, times, {.layout = layout});
    ASSERT_EQ(ToString(timed.status()), "OK");
    for (const Group& group : timed->groups) {
      if (group.pattern != "conv") continue;
      EXPECT_EQ(group.outputs[0].layout, layout);
    }
  }
}

// A convolution in blocks of 16 channels, and what follows it.
TEST(FormTimedGroups, OperatorsFollowInBlocksWhereTheyCan) {
  const struct {
    const char* name;
    int channels;
    const char* follower;
    bool blocked;
  } kCases[] = {
      {"a cut at a block", 48, "slice(c) axes=[1] starts=[16] ends=[48] steps=[1]", true},
      {"a cut inside a block", 48, "slice(c) axes=[1] starts=[8] ends=[24] steps=[1]", false},
      {"a cut at a block, another inside one", 48,
       "slice(c) axes=[2,1] starts=[0,8] ends=[4,24] steps=[1,1]", false},
      {"every second row", 48, "slice(c) axes=[2] starts=[0] ends=[8] steps=[2]", false},
      {"a sum of two, with a block that is not full", 20, "add(c, exp(c))", true},
      {"a difference of two", 20, "sub(c, exp(c))", true},
      {"a quotient would be NaN behind the channels", 20, "div(c, exp(c))", false},
      {"one value for all channels would reach behind them", 20, "add(c, r)", false},
      {"a whole block takes all", 32, "div(c, exp(c))", true},
      {"one per channel", 32, "add(c, s)", true},
      {"the mean of each channel", 20, "reduce_mean(c) axes=[2,3]", true},
      {"the mean of each row", 20, "reduce_mean(c) axes=[3]", true},
      {"the mean over channels", 32, "reduce_mean(c) axes=[1]", false},
  };
  for (const auto& c : kCases) {
    const Graph graph =
        GraphOf(fmt::format("input x f32[1,{0},8,8]\ninput r f32[1,1,8,8]\ninput s f32[1,{0},1,1]\n"
                            "w = const f32[{0},{0},1,1] seed 1\nb = const f32[{0}] seed 2\n"
                            "c = conv(x, w, b) strides=[1,1] pads=[0,0,0,0] dilations=[1,1]\n"
                            "output c\noutput y = {1}\n",
                            c.channels, c.follower));
    TasteTimes times(2e3);
    const auto timed = FormTimedGroups(graph, SpecOf(1e11), {}, times,
                                       {.grouped = false, .layout = Layout::kBlocked16});
    ASSERT_EQ(ToString(timed.status()), "OK") << c.name;
    const NodeId last = graph.outputs()[1].edge.node;
    for (const Group& group : timed->groups) {
      if (!std::ranges::count(group.nodes, last)) continue;
      EXPECT_EQ(group.outputs[0].layout == Layout::kBlocked16, c.blocked) << c.name;
    }
  }
}

// Its result is plain, what it reads need not be.
TEST(FormTimedGroups, ReductionsWithoutTheirAxesReadBlocks) {
  for (const auto& [channels, blocked] : {std::pair{32, true}, {20, false}}) {
    const Graph graph =
        GraphOf(fmt::format("input x f32[1,{0},8,8]\nw = const f32[{0},{0},1,1] seed 1\n"
                            "b = const f32[{0}] seed 2\n"
                            "c = conv(x, w, b) strides=[1,1] pads=[0,0,0,0] dilations=[1,1]\n"
                            "output y = relu(reduce_max(c) axes=[2,3] keepdims=0)\n",
                            channels));
    TasteTimes times(2e3);
    const auto timed = FormTimedGroups(graph, SpecOf(1e11), {}, times,
                                       {.grouped = false, .layout = Layout::kBlocked16});
    ASSERT_EQ(ToString(timed.status()), "OK") << channels;
    for (const Group& group : timed->groups) {
      if (group.pattern != "reduce") continue;
      EXPECT_EQ(group.inputs[0].layout == Layout::kBlocked16, blocked) << channels;
      EXPECT_EQ(group.outputs[0].layout, Layout::kPlain);
    }
  }
}

}  // namespace
}  // namespace ag

// Channels padded for libraries: which tensors get channels_last8, and its effect on estimates.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "plan/fusion/grouping.h"
#include "plan/schedule/makespan.h"
#include "plan/testing/testing.h"
#include "rules/match/rule_clean_up.h"
#include "rules/sets/built_in_rules.h"
#include "zoo/zoo.h"

namespace ag {
namespace {

// Returns the spec with every convolution alone in its group, as libraries have it.
DeviceSpec H200() {
  DeviceSpec spec = LoadSpec(AG_SOURCE_DIR, "h200");
  std::erase_if(spec.patterns, [](const GroupPattern& p) { return p.name == "separable"; });
  return spec;
}

// Returns the spec of a device without channels_last8.
DeviceSpec Unpadded() {
  DeviceSpec spec = H200();
  for (GroupPattern& pattern : spec.patterns) std::erase(pattern.layouts, Layout::kChannelsLast8);
  return spec;
}

// Returns "conv last8,last8>last; ...": the layouts at the ports of each group, in order.
std::string PortsOf(const std::vector<Group>& groups) {
  static constexpr const char* kNames[] = {"plain", "block8", "block16", "last", "last8"};
  const auto layouts = [](const std::vector<Port>& ports) {
    std::vector<std::string> names;
    for (const Port& port : ports) names.emplace_back(kNames[static_cast<size_t>(port.layout)]);
    return Join(names, ",");
  };
  std::vector<std::string> said;
  for (const Group& group : groups) {
    said.push_back(
        fmt::format("{} {}>{}", group.pattern, layouts(group.inputs), layouts(group.outputs)));
  }
  return Join(said, "; ");
}

std::string PortsIn(const Graph& graph, Layout preferred) {
  const DeviceSpec spec = H200();
  RooflineTimes times(spec);
  const auto groups = FormGroups(graph, spec, {}, times, {.layout = preferred});
  return groups.ok() ? PortsOf(*groups) : ToString(groups.status());
}

// Returns "NAME = conv(FROM)" with 1x1 weights.
std::string Conv(std::string_view name, std::string_view from, int in, int out) {
  return fmt::format(
      "w{0} = const f32[{3},{2},1,1] seed 1\nb{0} = const f32[{3}] seed 2\n"
      "{0} = conv({1}, w{0}, b{0}) strides=[1,1] pads=[0,0,0,0] dilations=[1,1] group=1\n",
      name, from, in, out);
}

TEST(PaddedChannels, LayoutsFollowTheChannels) {
  const std::string x3 = "input x f32[1,3,8,8]\n", x42 = "input x f32[1,42,8,8]\n";
  const struct {
    const char* name;
    std::string text;
    const char* ports;
  } cases[] = {
      {"three channels in, round ones on",
       x3 + Conv("c", "x", 3, 16) + Conv("d", "c", 16, 32) + "output relu(d)\n",
       "reorder plain>last8; conv last8>last; conv last>last; reorder last>plain"},
      {"round to broken and back",
       "input x f32[1,16,8,8]\n" + Conv("c", "x", 16, 42) + Conv("d", "c", 42, 16) + "output d\n",
       "reorder plain>last; conv last>last8; conv last8>last; reorder last>plain"},
      {"what follows is padded too",
       x42 + Conv("c", "x", 42, 42) + "s = softmax(c) axis=3\n" +
           "output reduce_mean(sigmoid(add(c, c))) axes=[2,3]\noutput s\n",
       "reorder plain>last8; conv last8>last8; reorder last8>plain; chain last8>last8; "
       "reduce last8>last8; reorder last8>plain; softmax plain>plain"},
      {"groups of several channels are not",
       x42 + "w = const f32[42,14,1,1] seed 1\nb = const f32[42] seed 2\n"
             "output conv(x, w, b) strides=[1,1] pads=[0,0,0,0] dilations=[1,1] group=3\n",
       "reorder plain>last; conv last>last; reorder last>plain"},
      {"depthwise ones are",
       x42 + "w = const f32[42,1,1,1] seed 1\nb = const f32[42] seed 2\n"
             "output conv(x, w, b) strides=[1,1] pads=[0,0,0,0] dilations=[1,1] group=42\n",
       "reorder plain>last8; conv last8>last8; reorder last8>plain"},
      {"a concat of broken parts may be round",
       x42 + Conv("c", "x", 42, 42) + Conv("d", "x", 42, 6) + "k = concat(c, d) axis=1\n" +
           Conv("e", "k", 48, 16) + "output e\n",
       "reorder plain>last8; conv last8>last8; conv last8>last8; concat last8,last8>last; "
       "conv last>last; reorder last>plain"},
      {"whole blocks of one pixel are a view, also under their other name",
       "input x f32[1,8,1,1]\n" + Conv("c", "x", 8, 20) +
           "k = slice(c) axes=[1] starts=[0] ends=[16] steps=[1]\n" + Conv("e", "k", 16, 8) +
           "output e\n",
       "view plain>last; conv last>last8; view last8>last; conv last>last; view last>plain"},
      {"a slice of round channels may be broken",
       "input x f32[1,48,8,8]\n" + Conv("c", "x", 48, 48) +
           "k = slice(c) axes=[1] starts=[0] ends=[42] steps=[1]\n" + Conv("e", "k", 42, 16) +
           "output e\n",
       "reorder plain>last; conv last>last; concat last>last8; conv last8>last; "
       "reorder last>plain"},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(PortsIn(GraphOf(c.text), Layout::kChannelsLast8), c.ports) << c.name;
  }
}

TEST(PaddedChannels, RoundChannelsSeeNoDifference) {
  const Graph graph = GraphOf("input x f32[1,16,8,8]\n" + Conv("c", "x", 16, 64) + "r = relu(c)\n" +
                              Conv("d", "r", 64, 24) + "output d\n");
  const DeviceSpec spec = H200();
  EXPECT_EQ(LayoutChoices(graph, spec), std::vector<Layout>{Layout::kChannelsLast});
  EXPECT_EQ(PortsIn(graph, Layout::kChannelsLast8), PortsIn(graph, Layout::kChannelsLast));
  const Graph broken = GraphOf("input x f32[1,16,8,8]\n" + Conv("c", "x", 16, 20) + "output c\n");
  EXPECT_EQ(LayoutChoices(broken, spec),
            (std::vector<Layout>{Layout::kChannelsLast, Layout::kChannelsLast8}));
  EXPECT_EQ(LayoutChoices(broken, Unpadded()), std::vector<Layout>{Layout::kChannelsLast});
}

// Makes padding expensive.
class DearPadding : public GroupTimes {
 public:
  GroupTime Time(const GroupProblem& problem) override {
    const bool pads = std::ranges::count(problem.output_layouts, Layout::kChannelsLast8) > 0;
    return {.ns = pads ? 1e6 : 1e3};
  }
};

// A search forms one cover with channels last; a plan that will run compares both.
TEST(PaddedChannels, WholePlansMayDoWithout) {
  const Graph graph = GraphOf("input x f32[1,3,8,8]\n" + Conv("c", "x", 3, 44) + "output c\n");
  const DeviceSpec spec = H200();
  const auto layout_of = [&](bool is_mixed) {
    DearPadding times;
    const TimedGroups timed = *FormTimedGroups(graph, spec, {}, times, {.mixed_layouts = is_mixed});
    return LayoutName(timed.groups[1].outputs[0].layout);
  };
  EXPECT_EQ(layout_of(false), "channels_last8");
  EXPECT_EQ(layout_of(true), "channels_last");
}

// Returns the number of tensors of a convolution that its estimate copies.
double CopiesOf(const GroupProblem& problem) {
  DeviceSpec spec = H200();
  const double ns = RooflineNs(problem, spec);
  spec.channel_bytes = 0;
  return std::floor((ns - RooflineNs(problem, spec)) / spec.launch_ns);
}

TEST(PaddedChannels, EstimatesCountTheCopiesOfBrokenChannels) {
  const struct {
    const char* name;
    int in, out, group;
    Layout layout;
    const char* precision;
    double copies;
  } cases[] = {
      {"both sides", 42, 42, 1, Layout::kChannelsLast, "fp16", 2},
      {"padded", 42, 42, 1, Layout::kChannelsLast8, "fp16", 0},
      {"one side", 48, 42, 1, Layout::kChannelsLast, "fp16", 1},
      {"the first of a network", 3, 32, 1, Layout::kChannelsLast, "fp32", 1},
      {"16 bytes of f32 are four channels", 44, 44, 1, Layout::kChannelsLast, "fp32", 0},
      {"and eight of f16", 44, 44, 1, Layout::kChannelsLast, "bf16", 2},
      {"depthwise ones read any", 42, 42, 42, Layout::kChannelsLast, "fp16", 0},
      {"grouped ones do not", 42, 42, 3, Layout::kChannelsLast, "fp16", 2},
      {"plain ones are another matter", 42, 42, 1, Layout::kPlain, "fp16", 0},
  };
  for (const auto& c : cases) {
    const Graph graph = GraphOf(fmt::format(
        "input x f32[1,{},8,8]\nw = const f32[{},{},1,1] seed 1\nb = const f32[{}] seed 2\n"
        "output conv(x, w, b) strides=[1,1] pads=[0,0,0,0] dilations=[1,1] group={}\n",
        c.in, c.out, c.in / c.group, c.out, c.group));
    const GroupProblem problem{.graph = graph,
                               .pattern = "conv",
                               .input_layouts = {c.layout},
                               .output_layouts = {c.layout},
                               .precision = c.precision};
    EXPECT_EQ(CopiesOf(problem), c.copies) << c.name;
  }
}

struct Predicted {
  double ns = 0;   // On four streams.
  double sum = 0;  // Of the groups' times in nanoseconds, which no schedule changes.
  int padded = 0;  // Library convolutions with padded channels, ...
  int copied = 0;  // ... and those with copied tensors.
  int64_t arena = 0;
};

Predicted PredictedOf(const Graph& graph, const DeviceSpec& spec, const std::string& precision) {
  const Policy policy{.precision = precision};
  LearnedTimes times(spec, nullptr);
  const Plan plan = *MakePlan(graph, spec, policy, times, {.mixed_layouts = true}, 4);
  Predicted predicted{.arena = plan.arena_bytes};
  std::vector<double> ns;
  Contention contention;
  for (const Group& group : plan.groups) {
    const GroupProblem problem = ExtractGroup(graph, group, policy);
    const GroupEstimate estimate =
        group.pattern == kViewPattern ? GroupEstimate() : EstimateGroup(problem, spec);
    ns.push_back(estimate.ns);
    predicted.sum += estimate.ns;
    contention.active_cores.push_back(estimate.active_cores);
    if (group.pattern != "conv") continue;
    predicted.copied += CopiesOf(problem) > 0 ? 1 : 0;
    const auto is_padded = [](const Port& port) { return port.layout == Layout::kChannelsLast8; };
    const bool pads = std::ranges::any_of(group.inputs, is_padded) ||
                      std::ranges::any_of(group.outputs, is_padded);
    const Node& conv = graph.node(group.nodes[0]);
    predicted.padded += pads && conv.Int("group") == 1 ? 1 : 0;
  }
  predicted.ns = MakespanNs(graph, plan, ns, spec, contention);
  return predicted;
}

// By the spec's estimates NASNet uses the layout for every convolution with 11, 22, 42 and 44
// channels; networks with whole blocks of channels use it only for the first one. The padding adds
// less than 1 % to the groups' times without copies.
TEST(PaddedChannels, TheZooIsPredictedFaster) {
  const struct {
    const char* model;
    const char* precision;
    int padded;
    // The prediction with the layout, divided by the one without. Of schedules that are equal but
    // for one copy, list scheduling may make either one longer.
    double ratio_max;
  } cases[] = {
      {"nasnet_mobile", "fp16", 76, 0.85}, {"nasnet_mobile", "tf32", 38, 0.95},
      {"nasnet_a", "fp16", 27, 0.96},      {"squeezenet", "fp16", 1, 1},
      {"inception_v3", "fp16", 1, 1.01},
  };
  for (const auto& c : cases) {
    MemoryWeights weights;
    const Graph graph = *CleanUp(*BuildZooModel(c.model, {}, &weights), BuiltInRules());
    const Predicted without = PredictedOf(graph, Unpadded(), c.precision);
    const Predicted with = PredictedOf(graph, H200(), c.precision);
    DeviceSpec free = Unpadded();
    free.channel_bytes = 0;
    const Predicted least = PredictedOf(graph, free, c.precision);
    SCOPED_TRACE(fmt::format(
        "{} {}: {:.1f} us, {} copied, arena {}; padded {:.1f} us, {}, {}, {}; copies free {:.1f}",
        c.model, c.precision, without.ns / 1e3, without.copied, without.arena, with.ns / 1e3,
        with.padded, with.copied, with.arena, least.ns / 1e3));
    EXPECT_EQ(with.copied, 0);
    EXPECT_EQ(without.padded, 0);
    EXPECT_EQ(with.padded, c.padded);
    EXPECT_LE(with.ns, without.ns * c.ratio_max);
    EXPECT_LE(with.sum, least.sum * 1.01);
  }
}

}  // namespace
}  // namespace ag

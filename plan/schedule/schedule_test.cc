#include "plan/schedule/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>

#include "plan/fusion/grouping.h"
#include "plan/schedule/contention_model.h"
#include "plan/schedule/greedy_streams.h"
#include "plan/schedule/makespan.h"
#include "plan/schedule/planner.h"
#include "plan/testing/testing.h"

namespace ag {
namespace {

using testing::ElementsAre;

// The graph exp -> {relu, neg} -> add with one group for each operator.
struct Diamond {
  Diamond() : graph(GraphOf("input x f32[4]\na = exp(x)\noutput add(relu(a), neg(a))\n")) {
    RooflineTimes times(SmallSpec());
    groups = *FormGroups(graph, SmallSpec(), {}, times, {.grouped = false});
  }
  Graph graph;
  std::vector<Group> groups;
};

Stream StreamOf(std::vector<Launch> launches, int cores) { return {cores, std::move(launches)}; }

// On a device that deals out blocks, groups of few blocks run beside each other at full speed.
TEST(Makespan, SmallGroupsShareAGpu) {
  DeviceSpec spec = SmallSpec();
  spec.cores = 8;
  spec.block_outputs = 100;
  for (const auto& [size, makespan_ns] : {std::pair(400, 100.0), std::pair(800, 200.0)}) {
    const Graph graph =
        GraphOf(fmt::format("input x f32[{}]\noutput a = exp(x)\noutput b = relu(x)\n", size));
    Plan plan;
    plan.groups.resize(2);
    for (int g = 0; g < 2; ++g) plan.groups[g].outputs = {{graph.outputs()[g].edge}};
    plan.streams = {{.launches = {{0, {}}}}, {.launches = {{1, {}}}}};
    EXPECT_DOUBLE_EQ(MakespanNs(graph, plan, {100, 100}, spec), makespan_ns) << size;
  }
}

// Two groups of 100 ns that want 8 cores by their blocks; measured values replace these.
TEST(Makespan, MeasuredSharesAndOverlap) {
  DeviceSpec spec = SmallSpec();
  spec.cores = 8;
  spec.block_outputs = 100;
  const Graph graph = GraphOf("input x f32[800]\noutput a = exp(x)\noutput b = relu(x)\n");
  Plan plan;
  plan.groups.resize(2);
  for (int g = 0; g < 2; ++g) plan.groups[g].outputs = {{graph.outputs()[g].edge}};
  plan.streams = {{.launches = {{0, {}}}}, {.launches = {{1, {}}}}};
  const struct {
    const char* name;
    Contention contention;
    double makespan_ns;
  } kCases[] = {
      {"by blocks", {}, 200},
      {"two cores each", {.active_cores = {2, 2}}, 100},
      {"one is known", {.active_cores = {2, 0}}, 125},
      {"they run in turn", {.active_cores = {2, 2}, .overlap = 0}, 200},
      {"half way", {.active_cores = {2, 2}, .overlap = 0.5}, 100 / 0.75},
      {"they do not notice each other", {.active_cores = {}, .overlap = 2}, 100},
  };
  for (const auto& c : kCases) {
    EXPECT_DOUBLE_EQ(MakespanNs(graph, plan, {100, 100}, spec, c.contention), c.makespan_ns)
        << c.name;
    const auto pairs = OverlappingPairs(graph, plan, {100, 100}, spec, c.contention);
    ASSERT_EQ(pairs.size(), 1u) << c.name;
    EXPECT_EQ(pairs[0].first, 0);
    EXPECT_EQ(pairs[0].second, 1);
    EXPECT_DOUBLE_EQ(pairs[0].ns, c.makespan_ns) << c.name;
  }
}

TEST(OverlappingPairs, TheLongestFirst) {
  const Diamond d;
  Plan plan;
  plan.groups = d.groups;
  // relu runs from 100 to 150, neg from 110 to 190, add waits for neg.
  plan.streams = {StreamOf({{0, {}}, {1, {}}, {3, {2}}}, 2), StreamOf({{2, {0}}}, 2)};
  const auto pairs = OverlappingPairs(d.graph, plan, {100, 50, 80, 10}, SmallSpec());
  ASSERT_EQ(pairs.size(), 1u);
  EXPECT_EQ(pairs[0].first, 1);
  EXPECT_EQ(pairs[0].second, 2);
  EXPECT_DOUBLE_EQ(pairs[0].ns, 40);
  plan.streams = {StreamOf({{1, {2}}}, 0), StreamOf({{2, {1}}}, 0)};
  EXPECT_TRUE(OverlappingPairs(d.graph, plan, {100, 50, 80, 10}, SmallSpec()).empty());
}

TEST(Makespan, ByHand) {
  const Diamond d;
  struct Case {
    const char* name;
    std::vector<Stream> streams;
    double makespan_ns;
  };
  const Launch exp{0, {}}, relu{1, {}}, neg{2, {}}, neg_waits{2, {0}}, add{3, {}},
      add_waits{3, {2}};
  const Case cases[] = {
      {"one stream", {StreamOf({exp, relu, neg, add}, 0)}, 100 + 50 + 80 + 10},
      // neg: 100 + 10 + 80 = 190; add: 190 + 10 + 10.
      {"two streams of half the cores",
       {StreamOf({exp, relu, add_waits}, 2), StreamOf({neg_waits}, 2)},
       210},
      // relu runs alone from 100 to 110, then both at half speed: relu has 40 left and ends at 190;
      // neg has 40 left, ends at 230; add begins at 240.
      {"two streams that want all cores",
       {StreamOf({exp, relu, add_waits}, 0), StreamOf({neg_waits}, 0)},
       250},
      {"a circle",
       {StreamOf({{1, {2}}}, 0), StreamOf({{2, {1}}}, 0)},
       std::numeric_limits<double>::infinity()},
      {"nothing", {}, 0},
  };
  for (const Case& c : cases) {
    Plan plan;
    plan.groups = d.groups;
    plan.streams = c.streams;
    EXPECT_DOUBLE_EQ(MakespanNs(d.graph, plan, {100, 50, 80, 10}, SmallSpec()), c.makespan_ns)
        << c.name;
  }
}

TEST(GreedyStreams, TheLongBranchStaysAndTheShortOneMoves) {
  const Diamond d;
  const auto streams =
      GreedyStreams(MakeScheduleProblem(d.graph, d.groups, {100, 50, 80, 10}, SmallSpec(), {}, 2));
  ASSERT_EQ(streams.size(), 2u);
  EXPECT_EQ(streams[0].cores, 2);
  // neg, on the longer path, continues at once; relu waits for the event on the other stream.
  ASSERT_EQ(streams[0].launches.size(), 3u);
  EXPECT_EQ(streams[0].launches[0].group, 0);
  EXPECT_EQ(streams[0].launches[1].group, 2);
  EXPECT_EQ(streams[0].launches[2].group, 3);
  EXPECT_THAT(streams[0].launches[2].waits, ElementsAre(1));
  ASSERT_EQ(streams[1].launches.size(), 1u);
  EXPECT_THAT(streams[1].launches[0].waits, ElementsAre(0));
}

// A chain of three groups of 100 ns, and two of about 150 ns.
TEST(GreedyStreams, WhatBeginsBesideAFullGroupTakesLonger) {
  DeviceSpec spec = SmallSpec();
  spec.cores = 8;
  spec.block_outputs = 1;
  const Graph graph = GraphOf(
      "input x f32[8]\na = exp(x)\nb = relu(a)\noutput c = neg(b)\noutput d = tanh(x)\n"
      "output e = sqrt(x)\n");
  RooflineTimes times(spec);
  const auto groups = *FormGroups(graph, spec, {}, times, {.grouped = false});
  const auto name = [&](int g) {
    return std::string(Info(graph.node(groups[g].nodes[0]).op).name);
  };
  std::vector<double> ns;
  for (int g = 0; g < 5; ++g) {
    ns.push_back(name(g) == "Tanh" ? 151 : name(g) == "Sqrt" ? 150 : 100);
  }
  const auto launched = [&](const Contention& contention) {
    std::vector<std::vector<std::string>> names;
    for (const Stream& stream :
         GreedyStreams(MakeScheduleProblem(graph, groups, ns, spec, {}, 2, contention))) {
      names.emplace_back();
      for (const Launch& launch : stream.launches) names.back().push_back(name(launch.group));
    }
    return names;
  };
  // Half of the device each: Tanh and Sqrt run beside the chain.
  EXPECT_THAT(launched({.active_cores = {4, 4, 4, 4, 4}}),
              ElementsAre(ElementsAre("Exp", "Relu", "Neg"), ElementsAre("Tanh", "Sqrt")));
  // All of it by their blocks: Tanh would need 302 ns beside Exp, so Sqrt goes to the other stream.
  EXPECT_THAT(launched({}),
              ElementsAre(ElementsAre("Exp", "Relu", "Sqrt"), ElementsAre("Tanh", "Neg")));
  // The same when overlap says that they share the device worse.
  EXPECT_THAT(launched({.active_cores = {4, 4, 4, 4, 4}, .overlap = 0}),
              ElementsAre(ElementsAre("Exp", "Relu", "Sqrt"), ElementsAre("Tanh", "Neg")));
}

TEST(GreedyStreams, AChainStaysOnOneStreamWithAllCores) {
  const Graph graph = GraphOf("input x f32[4]\noutput softmax(softmax(x) axis=0) axis=0\n");
  RooflineTimes times(SmallSpec());
  const auto groups = *FormGroups(graph, SmallSpec(), {}, times);
  const auto streams =
      GreedyStreams(MakeScheduleProblem(graph, groups, {10, 10}, SmallSpec(), {}, 4));
  ASSERT_EQ(streams.size(), 1u);
  EXPECT_EQ(streams[0].cores, 0);
}

// Returns times of the diamond's groups; cores 0: all cores.
TimedGroups Timed(const Diamond& d, std::vector<double> ns, int cores) {
  TimedGroups timed{.groups = d.groups};
  for (Group& group : timed.groups) group.cores = cores;
  for (const double one : ns) timed.times.push_back({.ns = one});
  return timed;
}

TEST(GreedyWideStreams, TakesAllCoresWhereNothingRunsBeside) {
  const Diamond d;
  struct Case {
    const char* name;
    std::vector<double> narrow_ns, wide_ns;
    std::vector<int> cores;  // By group, as scheduled.
    size_t streams;
    double makespan_ns;
  };
  const Case cases[] = {
      // exp and add run alone; relu and neg beside each other take 10 + 50, on all cores 80.
      {"branches side by side", {100, 50, 50, 100}, {60, 40, 40, 60}, {0, 1, 1, 0}, 2, 180},
      {"all cores always", {100, 100, 100, 100}, {50, 50, 50, 50}, {0, 0, 0, 0}, 1, 200},
      {"all cores bring nothing", {50, 50, 50, 50}, {50, 50, 50, 50}, {1, 1, 1, 1}, 2, 160},
      {"one branch that scales", {60, 200, 20, 60}, {40, 50, 30, 40}, {0, 0, 1, 0}, 1, 150},
  };
  for (const Case& c : cases) {
    Schedule schedule = GreedyWideStreams(d.graph, Timed(d, c.narrow_ns, 1), Timed(d, c.wide_ns, 0),
                                          SmallSpec(), 2);
    std::vector<int> cores;
    std::vector<double> ns;
    for (const Group& group : schedule.timed.groups) cores.push_back(group.cores);
    for (const GroupTime& time : schedule.timed.times) ns.push_back(time.ns);
    EXPECT_EQ(cores, c.cores) << c.name;
    EXPECT_EQ(schedule.streams.size(), c.streams) << c.name;
    const auto plan =
        CompletePlan(d.graph, schedule.timed.groups, schedule.streams, SmallSpec(), {});
    ASSERT_EQ(ToString(plan.status()), "OK") << c.name;
    EXPECT_DOUBLE_EQ(MakespanNs(d.graph, *plan, ns, SmallSpec()), c.makespan_ns) << c.name;
  }
}

TEST(GreedyWideStreams, AWideGroupWaitsForAllAndAllWaitForIt) {
  const Diamond d;
  const Schedule schedule = GreedyWideStreams(d.graph, Timed(d, {100, 50, 50, 100}, 1),
                                              Timed(d, {60, 40, 40, 60}, 0), SmallSpec(), 2);
  ASSERT_EQ(schedule.streams.size(), 2u);
  for (const Stream& stream : schedule.streams) EXPECT_EQ(stream.cores, 0);
  EXPECT_THAT(schedule.streams[1].launches[0].waits, ElementsAre(0));  // exp
  EXPECT_EQ(schedule.streams[0].launches.size() + schedule.streams[1].launches.size(), 4u);
}

TEST(OneStream, FinishesABranchBeforeTheNext) {
  const Graph graph = GraphOf(
      "input x f32[1,1024]\nw = const f32[1024,4] seed 1\n"
      "a = softmax(neg(x)) axis=1\nb = softmax(exp(x)) axis=1\n"
      "output add(matmul(a, w), matmul(b, w))\n");
  RooflineTimes times(SmallSpec());
  const auto groups = *FormGroups(graph, SmallSpec(), {}, times, {.grouped = false});
  const Plan plan = *CompletePlan(graph, groups, OneStream(graph, groups), SmallSpec(), {});
  EXPECT_EQ(plan.arena_bytes, 2 * 4096 + 16);  // Two large tensors and the first product.
}

// b is freed first where a larger tensor takes its place.
TEST(OneStream, FreesBeforeItBeginsAnew) {
  const Graph graph = GraphOf(
      "input x f32[1,1024]\nw = const f32[1024,1536] seed 1\nv = const f32[1536,4] seed 2\n"
      "u = const f32[1024,4] seed 3\n"
      "a = softmax(neg(x)) axis=1\nb = softmax(exp(x)) axis=1\n"
      "output add(matmul(matmul(b, w), v), matmul(a, u))\n");
  RooflineTimes times(SmallSpec());
  const auto groups = *FormGroups(graph, SmallSpec(), {}, times);
  const Plan plan = *CompletePlan(graph, groups, OneStream(graph, groups), SmallSpec(), {});
  EXPECT_EQ(plan.arena_bytes, 6144 + 2 * 4096) << FormatPlan(graph, plan);
}

// Counts the cores of the problems that it is asked for.
class CoresAsked : public GroupTimes {
 public:
  GroupTime Time(const GroupProblem& problem) override {
    ++asked[problem.cores];
    return {.ns = problem.cores == 1 ? 100.0 : 90.0};
  }
  std::map<int, int> asked;
};

TEST(MakeTimedPlan, AsksForGroupsOnAllCoresAndOnThoseOfAStream) {
  const Diamond d;
  DeviceSpec spec = SmallSpec();
  spec.stream_cores = 1;
  CoresAsked times;
  const auto made = MakeTimedPlan(
      {.graph = d.graph, .spec = spec, .policy = {}, .grouping = {.grouped = false}, .streams = 2},
      times);
  ASSERT_EQ(ToString(made.status()), "OK");
  EXPECT_EQ(times.asked, (std::map<int, int>{{0, 4}, {1, 4}}));
}

// Every group takes `launch_ns` and hardly more, so two branches at once save half of them.
DeviceSpec SpecOfTwoCores() {
  DeviceSpec spec = SmallSpec();
  spec.cores = spec.streams_max = 2;
  spec.stream_cores = 1;
  return spec;
}

constexpr std::string_view kTwoLongBranches =
    "input x f32[4]\na = softmax(x) axis=0\nb = softmax(a) axis=0\nc = softmax(b) axis=0\n"
    "d = relu(x)\ne = softmax(d) axis=0\nf = softmax(e) axis=0\noutput add(c, f)\n";

size_t GuessedStreams(std::string_view text, const DeviceSpec& spec, int streams_max,
                      bool grouped = true) {
  const Graph graph = GraphOf(text);
  const Policy policy;
  PlanRequest request{graph, spec, policy, {.grouped = grouped}, streams_max};
  request.streams_min = 1;
  const StatusOr<TimedPlan> made = GuessPlan(request);
  EXPECT_EQ(ToString(made.status()), "OK");
  return made.ok() ? made->plan.streams.size() : 0;
}

TEST(GuessPlan, HasTwoStreamsWhereTheyPromiseAGain) {
  const DeviceSpec spec = SpecOfTwoCores();
  EXPECT_EQ(GuessedStreams(kTwoLongBranches, spec, 2), 2);
  EXPECT_EQ(GuessedStreams("input x f32[4]\na = softmax(x) axis=0\noutput relu(a)\n", spec, 2), 1);
}

TEST(GuessPlan, HasOneStreamWhereNoMoreAreAllowed) {
  DeviceSpec spec = SpecOfTwoCores();
  EXPECT_EQ(GuessedStreams(kTwoLongBranches, spec, 1), 1);
  EXPECT_EQ(GuessedStreams(kTwoLongBranches, spec, 2, /*grouped=*/false), 1);
  spec.stream_cores = 0;
  EXPECT_EQ(GuessedStreams(kTwoLongBranches, spec, 2), 1);
}

TEST(OneStream, AConstantIsCopied) {
  const Graph graph = GraphOf("c = const f32[2] {1, 2}\noutput c\n");
  RooflineTimes times(SmallSpec());
  const auto groups = *FormGroups(graph, SmallSpec(), {}, times);
  const Plan plan = *CompletePlan(graph, groups, OneStream(graph, groups), SmallSpec(), {});
  EXPECT_EQ(Summary(graph, plan.groups), std::vector<std::string>{"copy"});
}

TEST(PartsToTry, AreBesideEachOtherFirst) {
  DeviceSpec spec;
  spec.cores = 2;
  spec.stream_cores = 1;
  Plan whole;
  whole.arena_bytes = 1000;
  using Parts = std::vector<BatchParts>;
  EXPECT_EQ(PartsToTry(whole, spec, 1), Parts());
  EXPECT_EQ(PartsToTry(whole, spec, 2), (Parts{{2, 2}}));
  EXPECT_EQ(PartsToTry(whole, spec, 7), Parts());  // Three and a half samples each.
  EXPECT_EQ(PartsToTry(whole, spec, 64), (Parts{{4, 2}}));
  spec.cache_bytes = 999;
  EXPECT_EQ(PartsToTry(whole, spec, 2), (Parts{{2, 2}, {2, 1}}));
  EXPECT_EQ(PartsToTry(whole, spec, 7), (Parts{{7, 2}, {7, 1}}));
  const Parts all{{4, 2}, {16, 2}, {64, 2}, {16, 1}, {64, 1}, {8, 1}, {32, 1}, {4, 1}};
  EXPECT_EQ(PartsToTry(whole, spec, 64), all);
  EXPECT_EQ(std::ssize(all), kBatchPartsMax);
  whole.policy.cold_cache = true;
  EXPECT_EQ(PartsToTry(whole, spec, 2), (Parts{{2, 1}}));
  whole.policy.cold_cache = false;
  spec.stream_cores = 0;
  EXPECT_EQ(PartsToTry(whole, spec, 2), (Parts{{2, 1}}));
  EXPECT_EQ(CoresBeside(spec, 1), 0);
  spec.cores = 8;
  EXPECT_EQ(CoresBeside(spec, 3), 2);
  spec.stream_cores = 1;
  EXPECT_EQ(CoresBeside(spec, 3), 1);
}

}  // namespace
}  // namespace ag

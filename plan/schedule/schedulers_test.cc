#include "plan/schedule/schedulers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/random.h"
#include "graph/testing/random_graph.h"
#include "plan/fusion/grouping.h"
#include "plan/happens_before.h"
#include "plan/schedule/least_makespan.h"
#include "plan/schedule/makespan.h"
#include "plan/schedule/schedule.h"
#include "plan/testing/schedule_scene.h"
#include "plan/testing/testing.h"

namespace ag {
namespace {

using testing::ElementsAre;

// A random graph, its groups with random times, and a device on which they share cores or not.
struct RandomProblem {
  explicit RandomProblem(uint64_t seed) : random(seed), spec(SmallSpec()) {
    graph = RandomGraph(seed, nullptr, {.nodes = 8 + static_cast<int>(random.Below(40))});
    spec.cores = 8;
    spec.block_outputs = seed % 2 == 0 ? 8 : 0;
    spec.event_ns = static_cast<double>(random.Below(60));
    RooflineTimes times(spec);
    groups = *FormGroups(graph, spec, {}, times, {.grouped = seed % 3 != 0});
    for (size_t g = 0; g < groups.size(); ++g) {
      const bool is_view = groups[g].pattern == kViewPattern;
      ns.push_back(is_view ? 0 : 20 + 100 * random.Unit());
      contention.active_cores.push_back(
          spec.block_outputs > 0 ? 1 + static_cast<int>(random.Below(8)) : 0);
    }
    contention.overlap = 2 * random.Unit();
  }
  ScheduleProblem For(int streams) const {
    return MakeScheduleProblem(graph, groups, ns, spec, {}, streams, contention);
  }

  Random random;
  DeviceSpec spec;
  Graph graph;
  std::vector<Group> groups;
  std::vector<double> ns;
  Contention contention;
};

// Calls check(problem, streams, scheduler) for each scheduler on 1 to 4 streams of many random
// problems.
template <class Check>
void ForAllSchedules(int seeds, Check&& check) {
  for (int seed = 1; seed <= seeds; ++seed) {
    const RandomProblem random(static_cast<uint64_t>(seed));
    for (int streams = 1; streams <= 4; ++streams) {
      const ScheduleProblem problem = random.For(streams);
      for (const Scheduler& scheduler : Schedulers()) {
        SCOPED_TRACE(fmt::format("seed {}, {}, {} streams", seed, scheduler.name, streams));
        check(problem, scheduler.schedule(problem), scheduler);
      }
    }
  }
}

// Returns what is wrong with the order of the launches; "": nothing.
std::string OrderFault(const ScheduleProblem& problem, const std::vector<Stream>& streams) {
  const auto order = HappensBefore::Make(problem.groups.size(), streams);
  if (!order.ok()) return Message(order.status());
  for (size_t g = 0; g < problem.groups.size(); ++g) {
    const int group = static_cast<int>(g);
    const bool is_launched = order->StreamOf(group) >= 0;
    const bool is_view = problem.groups[g].pattern == kViewPattern;
    if (is_launched == is_view) return fmt::format("group {}: launched {}", g, is_launched);
    for (const int b : problem.before[g]) {
      if (is_launched && !order->IsBefore(b, group)) return fmt::format("{} not before {}", b, g);
    }
  }
  for (const Stream& stream : streams) {
    for (size_t i = 0; i < stream.launches.size(); ++i) {
      const Launch& launch = stream.launches[i];
      for (const int wait : launch.waits) {
        const auto implies = [&](int other) {
          return other == wait || order->IsBefore(wait, other);
        };
        bool is_implied = i > 0 && implies(stream.launches[i - 1].group);
        for (const int other : launch.waits) is_implied |= other != wait && implies(other);
        if (is_implied) return fmt::format("group {}: needless wait for {}", launch.group, wait);
      }
    }
  }
  return "";
}

TEST(Schedulers, LaunchEachGroupOnceAfterWhatItReadsAndWaitForNoMore) {
  ForAllSchedules(150, [](const ScheduleProblem& problem, const std::vector<Stream>& streams,
                          const Scheduler& scheduler) {
    ASSERT_EQ(OrderFault(problem, streams), "");
    ASSERT_LE(std::ssize(streams), problem.streams);
    const int cores = streams.size() < 2 ? 0 : StreamCores(problem.spec, problem.streams);
    for (const Stream& stream : streams) ASSERT_EQ(stream.cores, cores);
    ASSERT_TRUE(streams == scheduler.schedule(problem));
  });
}

TEST(Schedulers, EndNoEarlierThanTheLeastMakespan) {
  ForAllSchedules(
      60, [](const ScheduleProblem& problem, const std::vector<Stream>& streams, const Scheduler&) {
        ASSERT_GE(MakespanNs(problem, streams), LeastMakespanNs(problem, 1000) * (1 - 1e-9));
      });
}

TEST(Schedulers, MakePlansThatDevicesTake) {
  ForAllSchedules(
      40, [](const ScheduleProblem& problem, const std::vector<Stream>& streams, const Scheduler&) {
        const auto plan = CompletePlan(problem.graph, problem.groups, streams, problem.spec, {});
        ASSERT_EQ(ToString(plan.status()), "OK");
      });
}

// With no group slowed down by others, each begins at the greatest of sums of times and events.
TEST(Makespan, WithoutContentionALongerGroupNeverEndsThePlanEarlier) {
  Random random(7);
  ForAllSchedules(
      60, [&](const ScheduleProblem& given, const std::vector<Stream>& streams, const Scheduler&) {
        ScheduleProblem problem = given;
        problem.overlap = kOverlapMax;
        const double before_ns = MakespanNs(problem, streams);
        if (problem.order.empty()) return;
        problem.ns[problem.order[random.Below(problem.order.size())]] += 50 * random.Unit();
        ASSERT_GE(MakespanNs(problem, streams), before_ns * (1 - 1e-12));
      });
}

// What holds with contention: the plan ends no earlier than without it, and no later than if its
// groups and waits came one after the other, since groups beside each other are together as fast as
// one alone or faster. And it scales with all times.
TEST(Makespan, IsBoundedWithContention) {
  ForAllSchedules(
      60, [](const ScheduleProblem& given, const std::vector<Stream>& streams, const Scheduler&) {
        ScheduleProblem problem = given;
        const double ns = MakespanNs(problem, streams);
        double most_ns = std::accumulate(problem.ns.begin(), problem.ns.end(), 0.0);
        for (const Stream& stream : streams) {
          for (const Launch& launch : stream.launches) {
            most_ns += launch.waits.empty() ? 0 : problem.spec.event_ns;
          }
        }
        ASSERT_LE(ns, most_ns * (1 + 1e-9));
        problem.overlap = kOverlapMax;
        ASSERT_GE(ns, MakespanNs(problem, streams) * (1 - 1e-9));
        DeviceSpec twice = problem.spec;
        twice.event_ns *= 2;
        const ScheduleProblem slow = MakeScheduleProblem(problem.graph, problem.groups, problem.ns,
                                                         twice, problem.policy, problem.streams);
        ScheduleProblem scaled = slow;
        scaled.shares = given.shares;
        scaled.overlap = given.overlap;
        for (double& group_ns : scaled.ns) group_ns *= 2;
        ASSERT_NEAR(MakespanNs(scaled, streams), 2 * ns, 1e-6 * ns + 1e-9);
      });
}

// An anomaly as Graham's: a longer Abs keeps Exp, which wants all 8 cores, from running beside Neg,
// which wants them too, and lets it run beside Relu, which wants one.
TEST(Makespan, WithContentionALongerGroupMayEndThePlanEarlier) {
  DeviceSpec spec = SmallSpec();
  spec.cores = 8;
  spec.block_outputs = 1;
  const ScheduleScene scene("input x f32[4]\noutput y = relu(neg(x))\noutput z = exp(abs(x))\n",
                            spec);
  const auto makespan = [&](double abs_ns) {
    const ScheduleProblem problem =
        scene.Problem({{"Neg", 100}, {"Relu", 100}, {"Abs", abs_ns}, {"Exp", 100}}, 2,
                      {{"Neg", 8}, {"Relu", 1}, {"Abs", 1}, {"Exp", 8}});
    const auto launch = [&](std::string_view name) { return Launch{scene.GroupOf(name), {}}; };
    return MakespanNs(problem, {{.launches = {launch("Neg"), launch("Relu")}},
                                {.launches = {launch("Abs"), launch("Exp")}}});
  };
  // Neg and Abs at 8/9 of their speed for 10.125 ns, Neg and Exp at half for 182 ns, Relu and Exp
  // at 8/9 for 10.125 ns, then 91 ns of Relu.
  EXPECT_DOUBLE_EQ(makespan(9), 10.125 + 182 + 10.125 + 91);
  EXPECT_DOUBLE_EQ(makespan(100), 112.5 + 112.5);
}

TEST(SchedulesOf, TheFirstOfEqualOnesCounts) {
  const ScheduleScene scene("input x f32[4]\na = exp(x)\noutput y = add(relu(a), neg(a))\n",
                            SmallSpec());
  const auto schedules =
      SchedulesOf(scene.Problem({{"Exp", 100}, {"Relu", 50}, {"Neg", 80}, {"Add", 10}}, 2));
  std::vector<std::string> made;
  for (const SimulatedSchedule& schedule : schedules) {
    made.push_back(fmt::format("{}: {} ns", schedule.scheduler, schedule.makespan_ns));
  }
  // Opara's streams continue with Relu, so Neg waits for an event and Add for another.
  EXPECT_THAT(made, ElementsAre("greedy: 190 ns", "interleaved: 210 ns"));
}

// Numbers of streams together give what each of them gives, up to the first that nobody uses up.
TEST(SchedulesOf, SeveralNumbersOfStreams) {
  constexpr int kMin = 2, kMax = 6;
  int stopped = 0;
  for (uint64_t seed = 2; seed <= 60; seed += 2) {  // Cores are shared, so all streams have them.
    SCOPED_TRACE(seed);
    const RandomProblem random(seed);
    std::vector<SimulatedSchedule> each;
    for (int streams = kMin; streams <= kMax; ++streams) {
      for (SimulatedSchedule& one : SchedulesOf(random.For(streams))) {
        each.push_back(std::move(one));
      }
    }
    const auto all = SchedulesOf(random.For(kMax), kMin);
    ASSERT_EQ(all.empty(), each.empty());
    if (all.empty()) continue;
    const auto best = std::ranges::min(each, {}, &SimulatedSchedule::makespan_ns);
    EXPECT_EQ(all[0].makespan_ns, best.makespan_ns);
    EXPECT_TRUE(std::ranges::is_sorted(all, {}, &SimulatedSchedule::makespan_ns));
    for (size_t i = 0; i < all.size(); ++i) {
      for (size_t j = 0; j < i; ++j) EXPECT_NE(all[i].streams, all[j].streams);
    }
    const auto uses_all = [](const SimulatedSchedule& one) { return one.streams.size() == kMax; };
    if (std::ranges::none_of(each, uses_all)) ++stopped;
  }
  EXPECT_GT(stopped, 0);
}

TEST(SchedulesOf, AChainHasNone) {
  const ScheduleScene scene("input x f32[4]\noutput y = neg(relu(x))\n", SmallSpec());
  EXPECT_TRUE(SchedulesOf(scene.Problem({{"Relu", 50}, {"Neg", 80}}, 4)).empty());
}

}  // namespace
}  // namespace ag

// Compares what is estimated of groups in brief with what follows from whole groups.
#include "plan/fusion/brief_groups.h"

#include <gtest/gtest.h>

#include <map>

#include "base/random.h"
#include "graph/testing/random_graph.h"
#include "graph/testing/random_modules.h"
#include "plan/fusion/group_dependencies.h"
#include "plan/fusion/grouping.h"
#include "plan/testing/testing.h"

namespace ag {
namespace {

// Times without a pattern in them: of some groups measured ones with a kernel, of others estimates.
class ScatteredTimes : public GroupTimes {
 public:
  explicit ScatteredTimes(uint64_t seed) : seed_(seed) {}
  GroupTime Time(const GroupProblem& problem) override {
    Random random(seed_ + std::hash<std::string>()(EncodeGroupProblem(problem)));
    const double ns = 100 + static_cast<double>(random.Below(10'000)) / 7;
    if (random.Below(2) == 0) return {.ns = ns, .active_cores = static_cast<int>(random.Below(4))};
    return {.ns = ns, .state = TimeState::kMeasured, .kernel = "k", .noise_ns = ns / 20};
  }

 private:
  const uint64_t seed_;
};

std::vector<double> NsOfGroups(const TimedGroups& timed) {
  std::vector<double> ns;
  for (const GroupTime& time : timed.times) ns.push_back(time.ns);
  return ns;
}

TEST(BriefGroups, AreTheWholeGroupsInBrief) {
  std::map<BriefGroup::Kind, int> kinds;
  for (const char* name : {"cpu", "small", "h200"}) {
    const DeviceSpec spec = LoadSpec(AG_SOURCE_DIR, name);
    for (uint64_t seed = 1; seed <= 200; ++seed) {
      SCOPED_TRACE(testing::Message() << name << " " << seed);
      const Graph graph =
          seed % 2 == 0 ? RandomModules(seed, 30) : RandomGraph(seed, nullptr, {.nodes = 40});
      ScatteredTimes times(seed);
      const Policy policy;
      const GroupingOptions options{.cores = static_cast<int>(seed % 2),
                                    .mixed_layouts = seed % 3 == 0};
      const auto brief = FormBriefGroups(graph, spec, policy, times, options);
      const auto whole = FormTimedGroups(graph, spec, policy, times, options);
      ASSERT_EQ(ToString(brief.status()), ToString(whole.status()));
      if (!brief.ok()) continue;
      ASSERT_EQ(brief->groups.size(), whole->groups.size());
      for (size_t g = 0; g < whole->groups.size(); ++g) {
        const BriefGroup& one = brief->groups[g];
        const Group& group = whole->groups[g];
        ++kinds[one.kind];
        EXPECT_EQ(group.pattern == kViewPattern, one.kind == BriefGroup::Kind::kView);
        EXPECT_EQ(IsCopy(group), one.kind == BriefGroup::Kind::kCopy);
        EXPECT_EQ(group.cores, options.cores);
        if (one.kind == BriefGroup::Kind::kView) continue;
        const GroupTime time = times.Time(ExtractGroup(graph, group, policy));
        EXPECT_EQ(one.time.ns, time.ns);
        EXPECT_EQ(whole->times[g].active_cores, time.active_cores);
        EXPECT_EQ(whole->times[g].noise_ns, time.noise_ns);
        EXPECT_EQ(whole->times[g].state, time.state);
        EXPECT_EQ(group.kernel, time.kernel);
      }
      EXPECT_EQ(MixedEstimateNs(graph, *brief, 0.25),
                MixedEstimateNs(graph, whole->groups, NsOfGroups(*whole), 0.25));
    }
  }
  for (const auto kind : {BriefGroup::Kind::kOperators, BriefGroup::Kind::kView,
                          BriefGroup::Kind::kReorder, BriefGroup::Kind::kCopy}) {
    EXPECT_GT(kinds[kind], 20) << static_cast<int>(kind);
  }
}

}  // namespace
}  // namespace ag

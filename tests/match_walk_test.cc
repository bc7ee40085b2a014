// The incremental matcher over the model zoo: along random walks of rewrites it finds what a plain
// match of every rule finds (rules/testing/match_walk.h compares at every step).
#include "rules/testing/match_walk.h"

#include <gtest/gtest.h>

#include "rules/match/rule_clean_up.h"
#include "rules/sets/built_in_rules.h"
#include "zoo/zoo.h"

namespace ag {
namespace {

TEST(MatchWalk, OverTheZooFindsWhatAPlainMatchFinds) {
  for (const ZooEntry& entry : Zoo()) {
    SCOPED_TRACE(std::string(entry.name));
    MemoryWeights weights;
    const StatusOr<Graph> zoo = BuildZooModel(entry.name, {}, &weights);
    ASSERT_TRUE(zoo.ok()) << ToString(zoo.status());
    const StatusOr<Graph> clean = CleanUp(*zoo, BuiltInRules());
    ASSERT_TRUE(clean.ok()) << ToString(clean.status());
    MatchWalkCounts counts;
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      const Status walked = WalkMatches(*clean, BuiltInRules(),
                                        {.steps = entry.tiny ? 40 : 15, .seed = seed}, &counts);
      ASSERT_TRUE(walked.ok()) << "seed " << seed << ": " << ToString(walked);
    }
    EXPECT_GT(counts.steps, 0);
  }
}

}  // namespace
}  // namespace ag

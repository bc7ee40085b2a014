#include "search/rewrite_trail.h"

#include <gmock/gmock.h>

namespace ag {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> Lines(const std::vector<AppliedRewrite>& rewrites) {
  std::vector<std::string> lines;
  for (const AppliedRewrite& r : rewrites) {
    lines.push_back(fmt::format("{} x{} {} ns", r.rule, r.count, r.gain_ns));
  }
  return lines;
}

RewriteStep Of(const Rule& rule, double gain_ns) {
  return {.rewrite = {.rule = &rule}, .gain_ns = gain_ns};
}

TEST(RewriteTrail, TheInputHasNoRewrites) {
  EXPECT_THAT(RewriteTrail().Path(RewriteTrail::kInput), IsEmpty());
}

TEST(RewriteTrail, APathIsOneEntryARuleInOrderOfFirstApplication) {
  const Rule merge{.name = "merge"};
  const Rule split{.name = "split"};
  RewriteTrail trail;
  const int a = trail.Add(RewriteTrail::kInput, Of(split, -5));
  const int b = trail.Add(a, Of(merge, 30));
  const int other = trail.Add(a, Of(split, 1));
  const int c = trail.Add(b, Of(split, 10));
  EXPECT_THAT(Lines(trail.Path(c)), ElementsAre("split x2 5 ns", "merge x1 30 ns"));
  EXPECT_THAT(Lines(trail.Path(other)), ElementsAre("split x2 -4 ns"));
  ASSERT_EQ(trail.Steps(c).size(), 3u);
  EXPECT_EQ(trail.Steps(c)[1].rewrite.rule, &merge);
}

}  // namespace
}  // namespace ag

#include "search/region_search.h"

#include <gmock/gmock.h>

#include "rules/match/rule_clean_up.h"
#include "search/rewrite_walk.h"
#include "search/testing/strategy_test.h"
#include "search/testing/testing.h"

namespace ag {
namespace {

using testing::Ge;
using testing::IsEmpty;
using testing::SizeIs;

// A chain of products with constants, and operators that no rule touches between them.
std::string Chain(std::string_view ops) {
  std::string text = "input x f32[64,64]\n", x = "x";
  int seed = 0;
  for (const char op : ops) {
    ++seed;
    const std::string y = fmt::format("v{}", seed);
    text += op == 'm' ? fmt::format("{} = matmul({}, const f32[64,64] seed {})\n", y, x, seed)
                      : fmt::format("{} = {}({})\n", y, op == 't' ? "tanh" : "sigmoid", x);
    x = y;
  }
  return text + fmt::format("output y = {}\n", x);
}

class RegionSearchTest : public StrategyTest {
 protected:
  std::vector<RankedGraph> Run(std::string_view graph, const SearchOptions& options) {
    return RunStrategy<RegionSearch>(graph, kReassociate, options);
  }
};

int Count(const RewriteTrail& trail, const RankedGraph& graph) {
  int count = 0;
  for (const AppliedRewrite& rewrite : trail.Path(graph.step)) count += rewrite.count;
  return count;
}

// Pieces of at most three operators: mmt, mmt, mmt. Each has one rewrite.
TEST_F(RegionSearchTest, ResultsOfPiecesAreJoined) {
  SearchOptions options{.method = SearchMethod::kPaper, .partition = {3, 3}};
  options.limits.candidates_max = 20;
  const auto best = Run(Chain("mmtmmtmms"), options);
  // Every subset of the three rewrites but the empty one.
  ASSERT_THAT(best, SizeIs(7));
  EXPECT_EQ(Count(trail_, best[0]), 3);
  EXPECT_LT(best[0].estimate_ns, root_ns_);
  EXPECT_TRUE(std::ranges::is_sorted(best, {}, &RankedGraph::estimate_ns));
  EXPECT_EQ(stop_, StopReason::kNone);
}

// A row for each piece, and the cover of each graph that is returned.
TEST_F(RegionSearchTest, TheLogHasRegionsAndJoins) {
  SearchOptions options{.method = SearchMethod::kPaper, .partition = {3, 3}};
  options.limits.candidates_max = 2;
  const auto best = Run(Chain("mmtmmtmms"), options);
  ASSERT_THAT(log_.regions, SizeIs(3));
  for (int piece = 0; piece < 3; ++piece) {
    const SearchedRegion& region = log_.regions[static_cast<size_t>(piece)];
    EXPECT_EQ(region.first_piece, piece);
    EXPECT_EQ(region.end_piece, piece + 1);
    EXPECT_EQ(region.copies, 1);
    EXPECT_EQ(region.seen, 2);  // The piece as it is and its one rewrite.
    EXPECT_EQ(region.pruned, 0);
    EXPECT_EQ(region.results, 1);
    EXPECT_LT(region.best_ns, region.estimate_ns);
  }
  ASSERT_THAT(best, SizeIs(2));
  ASSERT_THAT(log_.joins, SizeIs(2));
  EXPECT_EQ(log_.joins[0].estimate_ns, best[0].estimate_ns);
  using Part = JoinedRegions::Part;
  EXPECT_THAT(log_.joins[0].parts,
              testing::ElementsAre(Part{0, 1, 0}, Part{1, 2, 0}, Part{2, 3, 0}));
  EXPECT_THAT(log_.joins[1].parts, SizeIs(2));
}

TEST_F(RegionSearchTest, TheBestAreKept) {
  SearchOptions options{.method = SearchMethod::kPaper, .partition = {3, 3}};
  options.limits.candidates_max = 2;
  const auto best = Run(Chain("mmtmmtmms"), options);
  ASSERT_THAT(best, SizeIs(2));
  EXPECT_EQ(Count(trail_, best[0]), 3);
  EXPECT_EQ(Count(trail_, best[1]), 2);
}

// Pieces of at most two: tm, mt. Only the run of both holds the two products.
TEST_F(RegionSearchTest, OnlyARunAcrossACutFindsIt) {
  SearchOptions options{.method = SearchMethod::kPaper, .partition = {2, 4}};
  const auto best = Run(Chain("tmmt"), options);
  ASSERT_THAT(best, SizeIs(1));
  EXPECT_EQ(Count(trail_, best[0]), 1);
  options.method = SearchMethod::kPaperWithoutDp;
  EXPECT_THAT(Run(Chain("tmmt"), options), IsEmpty());
}

TEST_F(RegionSearchTest, TheStepsRepeatTheGraph) {
  SearchOptions options{.method = SearchMethod::kPaper, .partition = {3, 6}};
  const auto best = Run(Chain("mmtmmtmms"), options);
  ASSERT_THAT(best, SizeIs(Ge(1u)));
  for (const RankedGraph& graph : best) {
    RewriteWalk walk(request_.input, rules_);
    ASSERT_TRUE(walk.Take(trail_.Steps(graph.step)).ok());
    EXPECT_EQ(CleanUp(walk.graph(), rules_)->digest(), graph.graph.digest());
  }
}

TEST_F(RegionSearchTest, KnownGraphsAreLeftOut) {
  SearchOptions options{.method = SearchMethod::kPaper, .partition = {3, 3}};
  const auto best = Run(Chain("mmt"), options);
  ASSERT_THAT(best, SizeIs(1));
  skip_.insert(HashOfStructure(best[0].graph));
  EXPECT_THAT(Run(Chain("mmt"), options), IsEmpty());
}

TEST_F(RegionSearchTest, TheGraphLimitIsShared) {
  SearchOptions options{.method = SearchMethod::kPaper, .partition = {3, 3}};
  options.limits.graphs_max = 2;  // The first region's share is none.
  const auto best = Run(Chain("mmtmmtmms"), options);
  EXPECT_EQ(stop_, StopReason::kGraphs);
  EXPECT_THAT(best, SizeIs(1));
}

}  // namespace
}  // namespace ag

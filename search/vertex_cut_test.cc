#include "search/vertex_cut.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"

namespace ag {
namespace {

// Returns the capacity of the vertices before the cut with a successor behind it; -1: not closed.
int64_t ValueOf(const CutProblem& problem, const std::vector<bool>& before) {
  int64_t value = 0;
  for (size_t v = 0; v < before.size(); ++v) {
    bool crosses = false;
    for (const int w : problem.successors[v]) {
      if (before[w] && !before[v]) return -1;
      crosses = crosses || (before[v] && !before[w]);
    }
    if (crosses) value += problem.capacity[v];
  }
  return value;
}

// Returns the least value over all subsets.
int64_t LeastValue(const CutProblem& problem) {
  const int n = static_cast<int>(problem.successors.size());
  int64_t least = -1;
  for (int set = 0; set < 1 << n; ++set) {
    std::vector<bool> before;
    for (int v = 0; v < n; ++v) before.push_back((set >> v & 1) != 0);
    const bool head =
        std::all_of(before.begin(), before.begin() + problem.head, [](bool b) { return b; });
    const bool tail =
        std::none_of(before.end() - problem.tail, before.end(), [](bool b) { return b; });
    const int64_t value = head && tail ? ValueOf(problem, before) : -1;
    if (value >= 0 && (least < 0 || value < least)) least = value;
  }
  return least;
}

CutProblem RandomProblem(Random& random, int n) {
  CutProblem problem;
  problem.successors.resize(n);
  for (int v = 0; v < n; ++v) {
    problem.capacity.push_back(random.Between(0, 5));
    for (int w = v + 1; w < n; ++w) {
      if (random.Below(3) == 0) problem.successors[v].push_back(w);
    }
  }
  return problem;
}

TEST(MinVertexCut, IsTheLeastOfAllClosedCuts) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    CutProblem problem = RandomProblem(random, 2 + static_cast<int>(random.Below(8)));
    const int n = static_cast<int>(problem.successors.size());
    problem.head = static_cast<int>(random.Between(1, n - 1));
    problem.tail = static_cast<int>(random.Between(1, n - problem.head));
    const VertexCut cut = MinVertexCut(problem);
    EXPECT_EQ(cut.value, LeastValue(problem)) << "seed " << seed;
    EXPECT_EQ(ValueOf(problem, cut.before), cut.value) << "seed " << seed;
    EXPECT_TRUE(cut.before[problem.head - 1]) << "seed " << seed;
    EXPECT_FALSE(cut.before[n - problem.tail]) << "seed " << seed;
  }
}

TEST(BalancedVertexCut, HasTheLeastValueToo) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Random random(seed);
    const CutProblem problem = RandomProblem(random, 2 + static_cast<int>(random.Below(9)));
    const VertexCut cut = BalancedVertexCut(problem);
    EXPECT_EQ(cut.value, LeastValue(problem)) << "seed " << seed;
    EXPECT_EQ(ValueOf(problem, cut.before), cut.value) << "seed " << seed;
  }
}

TEST(BalancedVertexCut, ALongChainIsCutNearTheMiddle) {
  CutProblem chain;
  chain.successors.resize(1000);
  chain.capacity.assign(1000, 1);
  for (int v = 0; v + 1 < 1000; ++v) chain.successors[v].push_back(v + 1);
  const VertexCut cut = BalancedVertexCut(chain);
  EXPECT_EQ(cut.value, 1);
  EXPECT_NEAR(std::count(cut.before.begin(), cut.before.end(), true), 500, 20);
}

}  // namespace
}  // namespace ag

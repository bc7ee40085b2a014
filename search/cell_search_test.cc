#include "search/cell_search.h"

#include <gmock/gmock.h>

#include "search/testing/fake_measurer.h"

namespace ag {
namespace {

using testing::ElementsAre;
using testing::FieldsAre;
using testing::IsEmpty;

// The way to a gain leads through a graph that is dearer: too much dearer for a slack of 1.1 of
// three modules, and not for a slack of 2 of one.
constexpr std::string_view kDetour =
    "detour [exact]: tanh(x) => tanh(abs(abs(x)))\n"
    "gain [exact]: tanh(abs(abs(x))) => sigmoid(x)\n";

std::string Modules(int count, std::string_view end) {
  std::string text = "input x0 f32[4,8]\n";
  for (int i = 0; i < count; ++i) {
    text += fmt::format(
        "a{0} = relu(x{0})\n"
        "b{0} = matmul(a{0}, const f32[8,8] seed {1})\n"
        "c{0} = {2}(matmul(a{0}, const f32[8,8] seed {3}))\n"
        "x{4} = add(b{0}, c{0})\n",
        i, 2 * i + 1, end, 2 * i + 2, i + 1);
  }
  return text + fmt::format("output y = x{}\n", count);
}

bool Contains(const Graph& graph, OpKind op) {
  return std::ranges::any_of(graph.nodes(), [&](const Node& node) { return node.op == op; });
}

class CellSearchTest : public testing::Test {
 protected:
  // Every group takes 1,000 ns, one with a sigmoid 100.
  CellSearchTest() {
    measurer_.group_ns = [](const GroupProblem& problem) {
      return Contains(problem.graph, OpKind::kSigmoid) ? 100.0 : 1000.0;
    };
  }

  SearchResult Find(std::string_view graph, std::string_view rules, int cell_graphs_max = 1000) {
    rules_ = TestRules(rules);
    SearchRequest request{.input = TestGraph(graph), .rules = &rules_, .spec = measurer_.spec()};
    request.environment = "device=test";
    request.options.limits.cell_graphs_max = cell_graphs_max;
    auto result = FindPlan(request, measurer_, clock_);
    AG_CHECK(result.ok());
    return *std::move(result);
  }

  RuleSet rules_;
  FakeMeasurer measurer_{TestSpec()};
  FakeClock clock_;
};

TEST_F(CellSearchTest, ADetourThatFitsACellIsFoundForAllCopies) {
  const SearchResult result = Find(Modules(3, "tanh"), kDetour);
  EXPECT_EQ(result.timing.verdict, Verdict::kFaster);
  EXPECT_THAT(result.rewrites,
              ElementsAre(FieldsAre("detour", 3, testing::Lt(0), testing::_, testing::_),
                          FieldsAre("gain", 3, testing::Gt(0), testing::_, testing::_)));
  EXPECT_EQ(result.cell_takes, 3);
  EXPECT_FALSE(Contains(result.graph, OpKind::kTanh));
}

TEST_F(CellSearchTest, TheLogHasWhatWasSearchedByItself) {
  const SearchResult result = Find(Modules(3, "tanh"), kDetour);
  int copies = 0, seen = 0, groups = 0, taken = 0;
  for (const SearchedRegion& form : result.log.regions) {
    EXPECT_EQ(form.round, 0);
    EXPECT_GT(form.nodes, 0);
    EXPECT_LE(form.best_ns, form.estimate_ns);
    EXPECT_LE(form.pruned, form.seen);
    EXPECT_EQ(form.results > 0, form.best_ns < form.estimate_ns);
    copies += form.copies;
    seen += form.seen;
    groups += form.groups;
    taken += form.taken;
  }
  EXPECT_GE(copies, 3);
  EXPECT_EQ(seen, result.cell_graphs);
  EXPECT_EQ(groups, result.cell_groups);
  EXPECT_EQ(taken, 3);
  EXPECT_THAT(Find(Modules(3, "tanh"), kDetour, /*cell_graphs_max=*/0).log.regions, IsEmpty());
}

TEST_F(CellSearchTest, WithoutCellsABeamOverTheWholeGraphFindsAFewOfThem) {
  const SearchResult three = Find(Modules(3, "tanh"), kDetour, /*cell_graphs_max=*/0);
  EXPECT_EQ(three.cell_graphs, 0);
  EXPECT_THAT(three.rewrites, ElementsAre(FieldsAre("detour", 3, testing::Lt(0)),
                                          FieldsAre("gain", 3, testing::Gt(0))));
}

TEST_F(CellSearchTest, AFormIsSearchedOnce) {
  const SearchResult one = Find(Modules(1, "tanh"), kDetour);
  const SearchResult ten = Find(Modules(10, "tanh"), kDetour);
  EXPECT_GT(one.cell_graphs, 1);
  EXPECT_EQ(one.cell_graphs, ten.cell_graphs);
  EXPECT_EQ(ten.cell_takes, 10);
}

// The first operator of a cell runs in the group of the one before it: what is faster alone is not
// faster there.
TEST_F(CellSearchTest, WhatMakesTheWholeGraphDearerIsNotTaken) {
  measurer_.group_ns = [](const GroupProblem& problem) {
    return Contains(problem.graph, OpKind::kRelu) && !Contains(problem.graph, OpKind::kMatMul)
               ? 2000.0
               : 1000.0;
  };
  const SearchResult result = Find(
      "input x f32[8,8]\n"
      "a = relu(matmul(tanh(x), sigmoid(x)))\n"
      "output y = matmul(tanh(a), sigmoid(a))\n",
      "swap [exact]: relu(x) => abs(x)\n");
  EXPECT_GT(result.cell_takes, 0);
  EXPECT_THAT(result.rewrites, IsEmpty());
  EXPECT_EQ(result.candidates, 0);
}

}  // namespace
}  // namespace ag

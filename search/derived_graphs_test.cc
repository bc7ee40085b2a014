#include "search/derived_graphs.h"

#include <gtest/gtest.h>

#include "search/testing/fake_measurer.h"
#include "search/testing/testing.h"

namespace ag {
namespace {

// Four places in a row, so that rewrites build on rewrites.
constexpr std::string_view kFourPlaces = R"(
input x f32[8,8]
a = const f32[8,8] seed 1
b = const f32[8,8] seed 2
c = const f32[8,8] seed 3
d = const f32[8,8] seed 4
output "y" = matmul(matmul(matmul(matmul(x, a), b), c), d)
)";

struct Added {
  DerivedGraphs::Id id;
  Digest digest;
  int size;
};

// Returns every graph within two rewrites of the root, in order.
std::vector<Added> AddAll(const Graph& root, DerivedGraphs& graphs) {
  std::vector<Added> all = {{graphs.AddRoot(root), root.digest(), root.size()}};
  for (size_t i = 0; i < all.size() && i < 8; ++i) {
    const auto matches = graphs.Matches(all[i].id);
    ChildGraphs children = graphs.Children(all[i].id);
    for (const Site& site : matches->sites()) {
      Rewrite rewrite = matches->At(site);
      AG_CHECK(children.Try(rewrite).ok());
      ChildGraph child = *children.Make();
      const Graph graph = child.graph;
      all.push_back({graphs.Add(all[i].id, std::move(rewrite), std::move(child)), graph.digest(),
                     graph.size()});
    }
  }
  return all;
}

TEST(DerivedGraphsTest, GivesBackEveryGraphHoweverFewAreHeld) {
  const Graph root = TestGraph(kFourPlaces);
  const RuleSet rules = TestRules(kReassociate);
  for (const int64_t nodes_max : {int64_t{1}, int64_t{30}, DerivedGraphs::kNodesMax}) {
    DerivedGraphs graphs(rules, nodes_max);
    const std::vector<Added> all = AddAll(root, graphs);
    ASSERT_GT(all.size(), 6u);
    for (const Added& added : all) EXPECT_EQ(graphs.Get(added.id).digest(), added.digest);
    for (size_t i = all.size(); i-- > 0;) {
      EXPECT_EQ(graphs.Get(all[i].id).digest(), all[i].digest);
    }
  }
}

TEST(DerivedGraphsTest, HoldsNoMoreThanItsNodesButAlwaysTheLastGraph) {
  const Graph root = TestGraph(kFourPlaces);
  const RuleSet rules = TestRules(kReassociate);
  DerivedGraphs graphs(rules, /*nodes_max=*/30);
  const std::vector<Added> all = AddAll(root, graphs);
  EXPECT_LE(graphs.nodes_held(), 30);
  const int before = graphs.made_again();
  graphs.Get(all[3].id);
  EXPECT_GT(graphs.made_again(), before);
  const int made = graphs.made_again();
  graphs.Get(all[3].id);
  graphs.Get(all[0].id);
  EXPECT_EQ(graphs.made_again(), made);

  DerivedGraphs small(rules, /*nodes_max=*/1);
  const DerivedGraphs::Id id = AddAll(root, small).back().id;
  const int begin = small.made_again();
  small.Get(id);
  EXPECT_EQ(small.made_again(), begin);
  EXPECT_GT(small.nodes_held(), 1);
}

}  // namespace
}  // namespace ag

#include "search/partition.h"

#include <gmock/gmock.h>

#include "base/random.h"
#include "search/testing/fake_measurer.h"

namespace ag {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

std::vector<int64_t> Ones(const Graph& graph) { return std::vector<int64_t>(graph.size(), 1); }

// Returns n element-wise operators; each reads one or two of the last `reach` values.
Graph RandomGraph(uint64_t seed, int n, int reach) {
  Random random(seed);
  GraphBuilder builder;
  std::vector<Edge> values = {builder.Input("x", {DType::kFloat32, {4}})};
  const auto pick = [&] {
    const size_t back = random.Below(std::min<size_t>(values.size(), reach));
    return values[values.size() - 1 - back];
  };
  for (int i = 0; i < n; ++i) {
    const bool binary = random.Below(2) == 0;
    const auto added = binary ? builder.Add1(OpKind::kAdd, {pick(), pick()})
                              : builder.Add1(OpKind::kTanh, {pick()});
    AG_CHECK(added.ok());
    values.push_back(*added);
  }
  for (size_t i = 0; i < values.size(); ++i) builder.Output(values[i], fmt::format("y{}", i));
  const auto graph = builder.Build();
  AG_CHECK(graph.ok());
  return *graph;
}

TEST(PartitionGraph, EveryOperatorStandsOnceAndReadsOnlyFromEarlierPieces) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    const Graph graph = RandomGraph(seed, 300, 6);
    const auto pieces = PartitionGraph(graph, Ones(graph));
    std::vector<int> piece_of(graph.size(), -1);
    size_t nodes = 0;
    for (size_t p = 0; p < pieces.size(); ++p) {
      EXPECT_LE(pieces[p].size(), 40u);
      nodes += pieces[p].size();
      for (const NodeId id : pieces[p]) {
        EXPECT_EQ(piece_of[id], -1);
        piece_of[id] = static_cast<int>(p);
      }
    }
    EXPECT_EQ(nodes, 300u) << "seed " << seed;
    for (NodeId id = 0; id < graph.size(); ++id) {
      for (const Edge& input : graph.node(id).inputs) {
        EXPECT_LE(piece_of[input.node], piece_of[id]) << "seed " << seed;
      }
    }
    EXPECT_EQ(pieces, PartitionGraph(graph, Ones(graph)));
  }
}

TEST(PartitionGraph, CutsWhereTheFewestRewritesAreTouched) {
  const Graph graph = TestGraph(R"(
    input x f32[4]
    output "y" = tanh(tanh(tanh(tanh(tanh(tanh(x))))))
  )");
  std::vector<int64_t> capacity(graph.size(), 5);
  capacity[4] = 1;  // The fourth operator: node 0 is the input.
  EXPECT_THAT(PartitionGraph(graph, capacity, {.piece_nodes_max = 4}),
              ElementsAre(SizeIs(4), SizeIs(2)));
}

TEST(PartitionGraph, ConstantsAndRecipesStandInNoPiece) {
  const Graph graph = TestGraph(R"(
    input x f32[4]
    w = const f32[4] seed 1
    output "y" = add(x, tanh(w))
  )");
  EXPECT_THAT(PartitionGraph(graph, Ones(graph)), ElementsAre(SizeIs(1)));
  const Graph wire = TestGraph("input x f32[4]\noutput \"y\" = x\n");
  EXPECT_THAT(PartitionGraph(wire, Ones(wire)), IsEmpty());
}

TEST(RegionsOf, AreTheRunsThatFitAndEverySinglePiece) {
  const std::vector<Piece> pieces = {Piece(40), Piece(40), Piece(40), Piece(130), Piece(10)};
  EXPECT_THAT(RegionsOf(pieces),
              ElementsAre(Region{0, 1}, Region{0, 2}, Region{0, 3}, Region{1, 2}, Region{1, 3},
                          Region{2, 3}, Region{3, 4}, Region{4, 5}));
}

}  // namespace
}  // namespace ag

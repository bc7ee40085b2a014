#include "search/edge_names.h"

#include <gtest/gtest.h>

#include "search/testing/fake_measurer.h"

namespace ag {
namespace {

StructureHash OutputOf(EdgeNames names, const Graph& graph) {
  return names.Of(graph.outputs()[0].edge);
}

Graph Sum(std::string_view operands) {
  return TestGraph(fmt::format("input x f32[8]\ninput z f32[8]\noutput y = add({})\n", operands));
}

TEST(EdgeNames, SayWhatIsComputed) {
  const Graph one = Sum("tanh(x), z"), other = Sum("z, tanh(x)"), swapped = Sum("x, tanh(z)");
  EXPECT_EQ(OutputOf(EdgeNames::Exact(one), one), OutputOf(EdgeNames::Exact(other), other));
  EXPECT_NE(OutputOf(EdgeNames::Exact(one), one), OutputOf(EdgeNames::Exact(swapped), swapped));
}

TEST(EdgeNames, InputsMayHaveTheNamesOfWhatIsReadThere) {
  const Graph whole = Sum("tanh(relu(x)), sigmoid(z)");
  const Graph cell = Sum("tanh(x), z");
  const Graph& read = whole;
  EdgeNames names = EdgeNames::Exact(whole);
  std::vector<StructureHash> inputs;
  for (NodeId id = 0; id < read.size(); ++id) {
    const OpKind op = read.node(id).op;
    if (op == OpKind::kRelu || op == OpKind::kSigmoid) inputs.push_back(names.Of(Edge{id, 0}));
  }
  EXPECT_EQ(OutputOf(EdgeNames::Exact(cell, inputs), cell), OutputOf(names, whole));
}

TEST(EdgeNames, BlindNamesLeaveOutTheValuesOfWeights) {
  const auto scaled = [](std::string_view weight) {
    return TestGraph(fmt::format("input x f32[8]\noutput y = mul(x, const {})\n", weight));
  };
  const auto blind = [](const Graph& graph) { return OutputOf(EdgeNames::Blind(graph), graph); };
  EXPECT_EQ(blind(scaled("f32[8] seed 1")), blind(scaled("f32[8] seed 2")));
  EXPECT_NE(blind(scaled("f32[8] seed 1")), blind(scaled("f32[1] seed 1")));
  EXPECT_NE(blind(scaled("f32 {2}")), blind(scaled("f32 {3}")));  // A rule may look at them.
}

}  // namespace
}  // namespace ag

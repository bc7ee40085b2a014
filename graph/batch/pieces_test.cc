#include "graph/batch/pieces.h"

#include <gtest/gtest.h>

#include <map>

#include "graph/operators_of.h"
#include "graph/reference/evaluate.h"
#include "graph/text_form.h"

namespace ag {
namespace {

// Reads of the first piece and of the input, by constants and a recipe of its own.
constexpr std::string_view kText =
    "input x f32[2,4]\ninput z f32[2,4]\nc = const f32[4] seed 1\n"
    "a = softmax(add(x, neg(c))) axis=1\nb = relu(a)\n"
    "output \"first\" = exp(b)\noutput \"last\" = add(mul(b, neg(c)), sub(a, z))\n";

TEST(PieceOf, ComputesWhatTheWholeComputes) {
  MemoryWeights weights;
  const Graph graph = *ParseGraph(kText, &weights);
  const std::vector<NodeId> nodes = OperatorsOf(graph);
  std::vector<Tensor> inputs;
  for (const NodeId id : graph.inputs()) {
    inputs.push_back(RandomTensor(graph.type({id, 0}), 3 + inputs.size()));
  }
  const std::vector<Tensor> expected = *Evaluate(graph, inputs, weights);
  for (size_t cut = 1; cut < nodes.size(); ++cut) {
    const std::span<const NodeId> all(nodes);
    std::map<Edge, Tensor> values;
    for (size_t i = 0; i < inputs.size(); ++i) values[{graph.inputs()[i], 0}] = inputs[i];
    for (const auto& part : {all.subspan(0, cut), all.subspan(cut)}) {
      const GraphPiece piece = PieceOf(graph, part);
      ASSERT_EQ(piece.inputs.size(), piece.graph.inputs().size());
      ASSERT_EQ(piece.outputs.size(), piece.graph.outputs().size());
      std::vector<Tensor> given;
      for (const Edge edge : piece.inputs) given.push_back(values.at(edge));
      const std::vector<Tensor> made = *Evaluate(piece.graph, given, weights);
      for (size_t i = 0; i < made.size(); ++i) values[piece.outputs[i]] = made[i];
    }
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(values.at(graph.outputs()[i].edge).bytes(), expected[i].bytes()) << cut;
    }
  }
}

TEST(PieceOf, OfAllOperatorsIsTheGraph) {
  MemoryWeights weights;
  const Graph graph = *ParseGraph(kText, &weights);
  const std::vector<NodeId> nodes = OperatorsOf(graph);
  const GraphPiece whole = PieceOf(graph, nodes);
  EXPECT_TRUE(whole.graph.SharesAll(graph));
  EXPECT_EQ(whole.inputs.size(), 2U);
  const GraphPiece first = PieceOf(graph, std::span(nodes).subspan(0, 2));
  EXPECT_EQ(first.graph.input_name(0), "x");
}

}  // namespace
}  // namespace ag

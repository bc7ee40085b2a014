#include "graph/patch.h"

#include <gtest/gtest.h>

#include "graph/text_form.h"

namespace ag {
namespace {

std::string TextOf(const StatusOr<Graph>& graph) {
  return graph.ok() ? FormatGraph(*graph) : ToString(graph.status());
}

constexpr std::string_view kGraphs[] = {
    "input x f32[4]\noutput neg(relu(exp(x)))\n",
    "input x f32[4]\ninput y f32[4]\na = add(exp(x), y)\nb = mul(a, a)\n"
    "output relu(b)\noutput sub(a, tanh(b))\noutput x\n",
    "input x f32[8]\nc = const f32[4] {1, 2, 3, 4}\np, q = split(x) axis=0 sizes=[4,4]\n"
    "s = add(q, neg(c))\noutput concat(mul(p, s), s) axis=0\noutput exp(p)\noutput dead = q\n",
};

// Every edge replaced by a new operator of every edge, in the patch and in the builder.
TEST(GraphPatch, MeansWhatTheBuilderMeans) {
  int built = 0, cycles = 0;
  for (const std::string_view text : kGraphs) {
    const Graph graph = ParseGraph(text).value();
    std::vector<Edge> edges;
    for (NodeId id = 0; id < graph.size(); ++id) {
      for (size_t i = 0; i < graph.node(id).outputs.size(); ++i) {
        edges.push_back({id, static_cast<int32_t>(i)});
      }
    }
    GraphPatch patch(graph);
    for (const Edge from : edges) {
      for (const Edge of : edges) {
        SCOPED_TRACE(fmt::format("{}replace {}:{} by sigmoid({}:{})", text, from.node, from.output,
                                 of.node, of.output));
        GraphBuilder builder(graph);
        patch.Clear();
        const StatusOr<NodeId> there = builder.Add(OpKind::kSigmoid, std::span(&of, 1));
        const StatusOr<NodeId> here = patch.Add(OpKind::kSigmoid, std::span(&of, 1));
        ASSERT_TRUE(there.ok() && here.ok());
        ASSERT_EQ(*there, *here);
        ASSERT_EQ(ToString(patch.Replace(from, {*here, 0})),
                  ToString(builder.Replace(from, {*there, 0})));
        std::vector<NodeId> place;
        const StatusOr<Graph> changed = patch.Build(&place);
        ASSERT_EQ(TextOf(changed), TextOf(builder.Build()));
        const StatusOr<StructureHash> hash = patch.Hash();
        EXPECT_EQ(hash.ok(), changed.ok());
        cycles += !changed.ok();
        if (!changed.ok()) continue;
        ++built;
        EXPECT_EQ(*hash, HashOfStructure(*changed));
        int alive = 0;
        for (NodeId id = 0; id < patch.size(); ++id) {
          if (place[id] < 0) continue;
          ++alive;
          EXPECT_EQ(changed->node(place[id]).op, patch.node(id).op);
        }
        EXPECT_EQ(alive, changed->size());
      }
    }
  }
  EXPECT_GT(built, 60);
  EXPECT_GT(cycles, 20);
}

}  // namespace
}  // namespace ag

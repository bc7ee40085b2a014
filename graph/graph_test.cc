#include "graph/graph.h"

#include <gtest/gtest.h>

#include <thread>

#include "graph/codec.h"
#include "graph/testing/random_graph.h"
#include "graph/text_form.h"

namespace ag {
namespace {

const TensorType kVector{DType::kFloat32, {4}};

Edge Unary(GraphBuilder* builder, OpKind op, Edge x) { return builder->Add1(op, {x}).value(); }

std::string Text(const GraphBuilder& builder) {
  const StatusOr<Graph> graph = builder.Build();
  return graph.ok() ? FormatGraph(*graph) : ToString(graph.status());
}

TEST(GraphTest, TheOrderOfBuildingDoesNotMatter) {
  GraphBuilder first, second;
  const Edge x = first.Input("x", kVector), y = second.Input("x", kVector);
  const Edge a = Unary(&first, OpKind::kRelu, x), b = Unary(&first, OpKind::kTanh, x);
  const Edge c = Unary(&second, OpKind::kTanh, y);
  Unary(&second, OpKind::kExp, c);  // Dead.
  const Edge d = Unary(&second, OpKind::kRelu, y);
  first.Output(first.Add1(OpKind::kSub, {a, b}).value(), "z");
  second.Output(second.Add1(OpKind::kSub, {d, c}).value(), "z");
  const Graph g = first.Build().value(), h = second.Build().value();
  EXPECT_EQ(FormatGraph(g), FormatGraph(h));
  EXPECT_EQ(g.digest(), h.digest());
  EXPECT_EQ(g.size(), 4);
}

TEST(GraphTest, NamesAreNotPartOfTheDigest) {
  const Graph g = ParseGraph("input a f32[2]\noutput \"p\" = relu(a)").value();
  const Graph h = ParseGraph("input b f32[2]\noutput \"q\" = relu(b)").value();
  EXPECT_EQ(g.digest(), h.digest());
  EXPECT_FALSE(EncodeGraph(g) == EncodeGraph(h));
}

TEST(GraphTest, UsesOutputsAndConstants) {
  const Graph g = ParseGraph(
                      "input x f32[2]\ninput unused f32[2]\n"
                      "c = neg(const f32[2] {1, 2})\ny = add(x, c)\nz = mul(y, y)\n"
                      "output y\noutput \"again\" = y\noutput z")
                      .value();
  EXPECT_EQ(g.inputs().size(), 2u);
  EXPECT_EQ(g.input_name(1), "unused");
  const Edge y = g.outputs()[0].edge, z = g.outputs()[2].edge;
  ASSERT_EQ(g.uses(y).size(), 2u);
  EXPECT_EQ(g.uses(y)[0], (Use{z.node, 0}));
  EXPECT_EQ(g.uses(y)[1], (Use{z.node, 1}));
  EXPECT_TRUE(g.uses(z).empty());
  EXPECT_TRUE(g.is_output(y));
  EXPECT_FALSE(g.is_output({g.inputs()[0], 0}));
  EXPECT_TRUE(g.is_constant(g.node(y.node).inputs[1].node));
  EXPECT_FALSE(g.is_constant(y.node));
}

TEST(GraphBuilderTest, ReplaceMovesReadersAndOutputs) {
  const Graph g = ParseGraph("input x f32[4]\ny = relu(x)\nz = exp(y)\noutput y\noutput z").value();
  GraphBuilder builder(g);
  const Edge y = g.outputs()[0].edge;
  const Edge made = Unary(&builder, OpKind::kTanh, Edge{g.inputs()[0], 0});
  ASSERT_TRUE(builder.Replace(y, made).ok());
  EXPECT_EQ(Text(builder),
            "input x f32[4]\nv1 = tanh(x)\nv2 = exp(v1)\noutput \"y\" = v1\noutput \"z\" = v2\n");
}

TEST(GraphBuilderTest, ReplacementsChainInAnyOrder) {
  const std::string expected = "input x f32[4]\nv1 = exp(x)\nv2 = neg(v1)\noutput \"z\" = v2\n";
  const Graph g = ParseGraph("input x f32[4]\nz = neg(relu(x))\noutput z").value();
  const Edge x{g.inputs()[0], 0}, relu{1, 0};
  for (const bool forward : {true, false}) {
    GraphBuilder builder(g);
    const Edge a = Unary(&builder, OpKind::kTanh, x), b = Unary(&builder, OpKind::kExp, x);
    ASSERT_TRUE((forward ? builder.Replace(relu, a) : builder.Replace(a, b)).ok());
    ASSERT_TRUE((forward ? builder.Replace(a, b) : builder.Replace(relu, a)).ok());
    EXPECT_EQ(Text(builder), expected);
  }
}

TEST(GraphBuilderTest, ReplacingBackAndForthEnds) {
  const Graph g = ParseGraph("input x f32[4]\nz = neg(relu(x))\noutput z").value();
  GraphBuilder builder(g);
  const Edge relu{1, 0}, made = Unary(&builder, OpKind::kExp, {g.inputs()[0], 0});
  ASSERT_TRUE(builder.Replace(relu, made).ok());
  ASSERT_TRUE(builder.Replace(made, relu).ok());
  EXPECT_EQ(Text(builder), "input x f32[4]\nv1 = exp(x)\nv2 = neg(v1)\noutput \"z\" = v2\n");
}

TEST(GraphBuilderTest, NodesAddedLaterMayReadWhatWasReplaced) {
  const Graph g = ParseGraph("input x f32[4]\nz = neg(relu(x))\noutput z").value();
  GraphBuilder builder(g);
  const Edge relu{1, 0};
  const Edge place = Unary(&builder, OpKind::kExp, {g.inputs()[0], 0});
  ASSERT_TRUE(builder.Replace(relu, place).ok());
  ASSERT_TRUE(builder.Replace(place, Unary(&builder, OpKind::kTanh, relu)).ok());
  EXPECT_EQ(Text(builder),
            "input x f32[4]\nv1 = relu(x)\nv2 = tanh(v1)\nv3 = neg(v2)\noutput \"z\" = v3\n");
}

TEST(GraphBuilderTest, SaysWhatIsWrong) {
  const Graph g = ParseGraph("input x f32[4]\nz = neg(relu(x))\noutput z").value();
  GraphBuilder builder(g);
  const Edge x{g.inputs()[0], 0}, relu{1, 0};
  EXPECT_EQ(ToString(builder.Replace(relu, builder.Input("y", {DType::kFloat32, {5}}))),
            "INVALID_ARGUMENT: replace relu: expected f32[4], got f32[5]");
  ASSERT_TRUE(builder.Replace(x, Edge{2, 0}).ok());
  EXPECT_EQ(Text(builder), "INVALID_ARGUMENT: graph: a cycle goes through node 2, neg");
  EXPECT_EQ(Text(GraphBuilder()), "INVALID_ARGUMENT: graph: has no output");
  GraphBuilder forgetful(g);
  forgetful.ForgetInput(x);
  EXPECT_EQ(Text(forgetful), "INVALID_ARGUMENT: graph: reads node 0, a forgotten input");
}

TEST(GraphBuilderTest, DeepGraphsDoNotOverflowTheStack) {
  GraphBuilder builder;
  Edge e = builder.Input("x", kVector);
  for (int i = 0; i < 100'000; ++i) e = Unary(&builder, OpKind::kRelu, e);
  builder.Output(e, "y");
  const Graph g = builder.Build().value();
  EXPECT_EQ(g.size(), 100'001);
  EXPECT_EQ(DecodeGraph(EncodeGraph(g)).value().digest(), g.digest());
}

TEST(GraphBuilderTest, CopyingAGraphGivesTheSameGraph) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const Graph g = RandomGraph(seed, nullptr, {.opaque = true});
    EXPECT_TRUE(EncodeGraph(GraphBuilder(g).Build().value()) == EncodeGraph(g)) << "seed " << seed;
  }
}

TEST(GraphTest, DigestIsSafeToAskForFromManyThreads) {
  const Graph g = RandomGraph(1, nullptr, {.nodes = 100});
  std::vector<Digest> digests(4);
  std::vector<std::thread> threads;
  for (Digest& digest : digests) threads.emplace_back([&] { digest = g.digest(); });
  for (std::thread& thread : threads) thread.join();
  for (const Digest& digest : digests) EXPECT_EQ(digest, Sha256(CanonicalBytes(g)));
}

}  // namespace
}  // namespace ag

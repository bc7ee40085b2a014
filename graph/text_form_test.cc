#include "graph/text_form.h"

#include <gtest/gtest.h>

#include "graph/codec.h"
#include "graph/testing/random_graph.h"

namespace ag {
namespace {

TEST(TextFormTest, ReadsTheExampleOfTheDocs) {
  MemoryWeights weights;
  const StatusOr<Graph> g = ParseGraph(R"(
    input x f32[1,3,8,8]
    w = const f32[4,3,3,3] seed 7          // synthetic data
    b = const f32[4] {0, 0.5, 1, -1}       # inline values
    y = conv(x, w, b) strides=[1,1] pads=[1,1,1,1] dilations=[1,1] group=1
    p, q = split(y) axis=1 sizes=[2,2]
    output "logits" = relu(p)
    output q
  )",
                                       &weights);
  ASSERT_TRUE(g.ok()) << ToString(g.status());
  EXPECT_EQ(g->outputs()[0].name, "logits");
  EXPECT_EQ(g->outputs()[1].name, "q");
  EXPECT_EQ(g->type(g->outputs()[1].edge).ToString(), "f32[1,2,8,8]");
  for (const Node& node : g->nodes()) {
    if (node.op != OpKind::kConstant) continue;
    EXPECT_TRUE(weights.Get(node.constant->digest, node.outputs[0]).ok());
  }
}

TEST(TextFormTest, FormatsOneWay) {
  const std::string text =
      "input x f32[2,2]\n"
      "input \"a b\" i64[]\n"
      "v2 = cast(\"a b\") to=f32\n"
      "v3 = add(x, v2)\n"
      "v4 = const f32[3] {0.1, -inf, 1e-05}\n"
      "v5 = leaky_relu(v4) alpha=0.5\n"
      "v6 = const bool[2] {1, 0}\n"
      "v7 = const i64[1] {9223372036854775807}\n"
      "v8.0, v8.1 = split(v3) axis=0 sizes=[1,1]\n"
      "v9 = gelu(v8.1) approximate=tanh\n"
      "v10.0, v10.1 = opaque(v9, v6, v7) domain=\"com.x\\x01\" onnx_node=\"\\\"\" -> f32[1,2], "
      "string[]\n"
      "output \"p\" = v5\n"
      "output \"q\" = v10.0\n";
  const StatusOr<Graph> g = ParseGraph(text);
  ASSERT_TRUE(g.ok()) << ToString(g.status());
  const std::string formatted = FormatGraph(*g);
  const StatusOr<Graph> again = ParseGraph(formatted);
  ASSERT_TRUE(again.ok()) << ToString(again.status()) << "\n" << formatted;
  EXPECT_EQ(FormatGraph(*again), formatted);
  EXPECT_TRUE(EncodeGraph(*again) == EncodeGraph(*g));
  EXPECT_NE(formatted.find("const f32[3] {0.1, -inf, 1e-05}"), std::string::npos) << formatted;
  EXPECT_NE(formatted.find("{9223372036854775807}"), std::string::npos) << formatted;
}

TEST(TextFormTest, RandomGraphsReadBack) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const Graph g = RandomGraph(seed, nullptr, {.opaque = true});
    const StatusOr<Graph> again = ParseGraph(FormatGraph(g));
    ASSERT_TRUE(again.ok()) << "seed " << seed << ": " << ToString(again.status());
    EXPECT_EQ(again->digest(), g.digest()) << "seed " << seed;
  }
}

TEST(TextFormTest, OneValueFillsAConstant) {
  MemoryWeights weights;
  const Graph g = ParseGraph("output \"y\" = const f32[3] {2}", &weights).value();
  const Node& node = g.node(0);
  const Tensor tensor = weights.Get(node.constant->digest, node.outputs[0]).value();
  EXPECT_EQ(tensor.ToDoubles(), (std::vector<double>{2, 2, 2}));
}

TEST(TextFormTest, MistakesHaveAPlace) {
  const std::pair<std::string, std::string> cases[] = {
      {"input x f32[2]\ny = rleu(x)\noutput y",
       "line 2:5: no operator is called 'rleu'; did you mean 'relu'?"},
      {"input x f32[2]\ny = relu(z)", "line 2:10: 'z' is not defined"},
      {"input x f33[2]", "line 1:9: unknown element type 'f33'"},
      {"input x f32[2", "line 1:14: expected ',', got the line's end"},
      {"input x f32[2] y", "line 1:16: expected the line's end"},
      {"input x f32[2]\nx = relu(x)", "line 2:1: 'x' is defined already"},
      {"input x f32[-2]", "line 1:9: negative size in f32[-2]"},
      {"input x f32[2]\na, b = relu(x)", "line 2:7: expected 2 values, got 1"},
      {"input x f32[2]\ny = add(x, split(x) axis=0 sizes=[1,1])",
       "line 2:12: expected 1 value, got 2"},
      {"input x f32[2]\ny = relu(x) alpha=1", "line 2:13: relu: unknown attribute 'alpha'"},
      {"input x f32[2]\ny = softmax(x) axis=0.5", "line 2:21: expected an integer, got '0.5'"},
      {"c = const f32[2] {1, 2, 3}", "line 1:18: f32[2]: expected 2 values, got 3"},
      {"c = const f32[2] {1, x}", "line 1:22: expected a number, got 'x'"},
      {"c = const f32[2] 5", "line 1:18: expected {values}, seed or sha256:"},
      {"c = const string[2] {1}", "line 1:21: string[2] cannot be written as data"},
      {"input \"x", "line 1:9: expected '\"', got the line's end"},
      {"input x f32[2]\ny = conv(x, x, x)", "line 2:5: conv: attribute 'dilations' is missing"},
      {"input x f32[2]", "graph: has no output"},
  };
  for (const auto& [text, expected] : cases) {
    EXPECT_EQ(ToString(ParseGraph(text).status()), "INVALID_ARGUMENT: " + expected) << text;
  }
}

TEST(TextFormTest, DeepNestingIsRefused) {
  std::string text = "input x f32\noutput \"y\" = ";
  for (int i = 0; i < 100'000; ++i) text += "relu(";
  EXPECT_EQ(Message(ParseGraph(text).status()), "line 2:1014: calls are nested too deep");
}

}  // namespace
}  // namespace ag

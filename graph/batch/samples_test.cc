#include "graph/batch/samples.h"

#include <gtest/gtest.h>

#include "graph/text_form.h"
#include "rules/match/rule_clean_up.h"
#include "rules/sets/built_in_rules.h"
#include "zoo/zoo.h"

namespace ag {
namespace {

std::string WhyNot(const std::string& text, int64_t parts = 1) {
  return ToString(FindSamples(*ParseGraph(text), parts).status());
}

TEST(Samples, LieWhereTransposesPutThem) {
  const Graph graph = *ParseGraph(
      "input x f32[4,6,8]\nt = transpose(x) perm=[1,0,2]\nw = const f32[8,8] seed 1\n"
      "output y = matmul(t, w)\n");
  const auto samples = FindSamples(graph, 2);
  ASSERT_EQ(ToString(samples.status()), "OK");
  EXPECT_EQ(samples->batch, 4);
  EXPECT_EQ(samples->axis_of[graph.outputs()[0].edge.node], 1);
}

TEST(Samples, OfModelsAreIndependent) {
  for (const char* name : {"tiny_resnet", "tiny_bert", "tiny_vit", "tiny_inception"}) {
    MemoryWeights weights;
    const auto graph = BuildZooModel(name, {.batch = 8}, &weights);
    ASSERT_TRUE(graph.ok());
    const auto clean = CleanUp(*graph, BuiltInRules());
    ASSERT_TRUE(clean.ok());
    EXPECT_EQ(ToString(FindSamples(*clean, 4).status()), "OK") << name;
  }
}

TEST(Samples, AreRefusedByName) {
  const std::string x = "input x f32[4,8]\n";
  const struct {
    std::string text, status;
  } kCases[] = {
      {x + "output y = reduce_mean(x) axes=[0]\n",
       "UNIMPLEMENTED: reduce_mean (node 1) -> f32[1,8]: mixes the samples of the batch"},
      {x + "output y = softmax(x) axis=0\n",
       "UNIMPLEMENTED: softmax (node 1) -> f32[4,8]: mixes the samples of the batch"},
      {x + "t = transpose(x) perm=[1,0]\noutput y = matmul(x, t)\n",
       "UNIMPLEMENTED: matmul (node 2) -> f32[4,4]: mixes the samples of the batch"},
      {x + "output y = reshape(x) shape=[32]\noutput z = relu(x)\n", "OK"},
      {x + "output y = reshape(x) shape=[2,16]\n",
       "UNIMPLEMENTED: reshape (node 1) -> f32[2,16]: mixes the samples of the batch"},
      {x + "output y = opaque(x) domain=\"\" onnx_node=\"BatchNormalization\" -> f32[4,8]\n",
       "UNIMPLEMENTED: opaque (node 1) -> f32[4,8]: mixes the samples of the batch"},
      {x + "c = const f32[4,8] seed 1\noutput y = add(x, c)\n",
       "UNIMPLEMENTED: add (node 2) -> f32[4,8]: its batch is fixed by a constant"},
      {x + "c = const f32[1,8] seed 1\noutput y = add(x, c)\n", "OK"},
      {x + "c = const f32[1,8] seed 1\ne = expand(c) shape=[4,8]\noutput y = concat(x, e) axis=1\n",
       "OK"},
      {"input x f32[4,8]\ninput z f32[2,8]\noutput y = relu(x)\noutput u = relu(z)\n",
       "INVALID_ARGUMENT: inputs x and z: batches of 4 and 2"},
      {"input x f32\noutput y = relu(x)\n", "INVALID_ARGUMENT: input x: no axis for the batch"},
      {"input x f32[1,8]\noutput y = reduce_mean(x) axes=[0]\n", "OK"},
      {"input x f32[0,8]\noutput y = relu(x)\n", "OK"},
      {"c = const f32[2,8] seed 1\noutput y = relu(c)\n", "OK"},
  };
  for (const auto& c : kCases) EXPECT_EQ(WhyNot(c.text), c.status) << c.text;
  EXPECT_EQ(WhyNot("input x f32[6,8]\noutput y = relu(x)\n", 4),
            "INVALID_ARGUMENT: batch 6: not a multiple of 4");
}

}  // namespace
}  // namespace ag

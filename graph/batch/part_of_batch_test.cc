#include "graph/batch/part_of_batch.h"

#include <gtest/gtest.h>

#include "graph/reference/evaluate.h"
#include "graph/text_form.h"
#include "rules/match/rule_clean_up.h"
#include "rules/sets/built_in_rules.h"
#include "zoo/zoo.h"

namespace ag {
namespace {

TEST(PartOfBatch, HasTheSizesOfThePart) {
  const Graph graph = *ParseGraph(
      "input x f32[8,6]\nc = const f32[1,6] seed 1\ne = expand(c) shape=[8,6]\n"
      "r = reshape(concat(x, e) axis=1) shape=[8,3,4]\n"
      "output y = reshape(transpose(r) perm=[1,0,2]) shape=[3,32]\n");
  EXPECT_EQ(ToString(PartOfBatch(graph, 2).status()),
            "UNIMPLEMENTED: output y: its samples are not its first axis");
  const Graph kept = *ParseGraph(
      "input x f32[8,6]\nc = const f32[1,6] seed 1\ne = expand(c) shape=[8,6]\n"
      "r = reshape(concat(x, e) axis=1) shape=[8,3,4]\noutput y = reshape(r) shape=[24,4]\n");
  const auto part = PartOfBatch(kept, 4);
  ASSERT_EQ(ToString(part.status()), "OK");
  EXPECT_EQ(FormatGraph(*part),
            FormatGraph(*ParseGraph("input x f32[2,6]\nc = const f32[1,6] seed 1\n"
                                    "e = expand(c) shape=[2,6]\n"
                                    "r = reshape(concat(x, e) axis=1) shape=[2,3,4]\n"
                                    "output y = reshape(r) shape=[6,4]\n")));
  EXPECT_EQ(Message(PartOfBatch(kept, 3).status()), "batch 8: not a multiple of 3");
}

// The reference kernels on the parts give the bytes that they give on the whole.
TEST(PartOfBatch, ComputesTheSameSampleBySample) {
  for (const char* name : {"tiny_resnet", "tiny_bert", "tiny_vit", "tiny_nasnet"}) {
    MemoryWeights weights;
    const auto model = BuildZooModel(name, {.batch = 4}, &weights);
    ASSERT_TRUE(model.ok());
    const Graph graph = *CleanUp(*model, BuiltInRules());
    const auto part = PartOfBatch(graph, 2);
    ASSERT_EQ(ToString(part.status()), "OK") << name;
    std::vector<Tensor> inputs, halves[2];
    for (size_t i = 0; i < graph.inputs().size(); ++i) {
      inputs.push_back(RandomTensor(graph.node(graph.inputs()[i]).outputs[0], i + 1));
      const TensorType type = part->node(part->inputs()[i]).outputs[0];
      for (size_t half = 0; half < 2; ++half) {
        const auto size = static_cast<size_t>(type.Bytes());
        halves[half].push_back(
            Tensor::FromBytes(type, inputs.back().bytes().substr(half * size, size)));
      }
    }
    const auto whole = Evaluate(graph, inputs, weights);
    ASSERT_TRUE(whole.ok()) << name;
    for (size_t half = 0; half < 2; ++half) {
      const auto outputs = Evaluate(*part, halves[half], weights);
      ASSERT_EQ(ToString(outputs.status()), "OK") << name;
      for (size_t i = 0; i < outputs->size(); ++i) {
        const std::string_view bytes = (*outputs)[i].bytes();
        EXPECT_EQ(bytes, (*whole)[i].bytes().substr(half * bytes.size(), bytes.size())) << name;
      }
    }
  }
}

}  // namespace
}  // namespace ag

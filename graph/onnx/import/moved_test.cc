// Movements on bytes, compared with the reference kernels.
#include "graph/onnx/import/moved.h"

#include <gtest/gtest.h>

#include "graph/reference/evaluate.h"
#include "graph/text_form.h"
#include "graph/weights.h"

namespace ag {
namespace {

struct MovedCase {
  const char* name;
  Shape shape;
  const char* text;  // Of the operator over x.
};

constexpr DType kMovedTypes[] = {DType::kFloat32, DType::kInt64, DType::kUInt8, DType::kFloat16};

TEST(Moved, AsTheReferenceKernels) {
  const MovedCase cases[] = {
      {"reshape", {2, 6}, "reshape(x) shape=[3,4]"},
      {"slice of rows", {4, 6}, "slice(x) axes=[0] starts=[1] ends=[3] steps=[1]"},
      {"slice with steps", {4, 6}, "slice(x) axes=[0,1] starts=[0,1] ends=[4,6] steps=[2,2]"},
      {"slice backwards", {5}, "slice(x) axes=[0] starts=[4] ends=[-6] steps=[-1]"},
      {"slice of one", {3, 1, 4}, "slice(x) axes=[2] starts=[3] ends=[4] steps=[1]"},
      {"slice of none", {3, 4}, "slice(x) axes=[1] starts=[2] ends=[2] steps=[1]"},
      {"transpose", {2, 3, 4}, "transpose(x) perm=[2,0,1]"},
      {"transpose of outer axes", {2, 3, 4}, "transpose(x) perm=[1,0,2]"},
      {"expand", {3, 1, 2}, "expand(x) shape=[2,3,4,2]"},
      {"expand of a scalar", {}, "expand(x) shape=[2,3]"},
      {"expand of rows", {1, 4}, "expand(x) shape=[3,4]"},
  };
  for (const MovedCase& c : cases) {
    for (const DType dtype : kMovedTypes) {
      const TensorType type{dtype, c.shape};
      const auto graph =
          ParseGraph(fmt::format("input x {}\noutput \"y\" = {}\n", type.ToString(), c.text));
      ASSERT_TRUE(graph.ok()) << c.name << ": " << ToString(graph.status());
      const Tensor x = RandomTensor(type, 3, 100);
      const auto expected = Evaluate(*graph, {x}, MemoryWeights());
      ASSERT_TRUE(expected.ok()) << c.name << ": " << ToString(expected.status());
      const std::optional<Tensor> moved = Moved(graph->node(graph->outputs()[0].edge.node), x);
      ASSERT_TRUE(moved.has_value()) << c.name;
      EXPECT_EQ(moved->type(), (*expected)[0].type()) << c.name;
      EXPECT_EQ(moved->bytes(), (*expected)[0].bytes()) << c.name << " " << type.ToString();
    }
  }
}

TEST(Moved, NotWhatComputes) {
  const auto graph = ParseGraph("input x f32[2]\noutput \"y\" = relu(x)\n");
  ASSERT_TRUE(graph.ok());
  const Tensor x = Tensor::Zeros({DType::kFloat32, {2}});
  EXPECT_FALSE(Moved(graph->node(graph->outputs()[0].edge.node), x).has_value());
}

}  // namespace
}  // namespace ag

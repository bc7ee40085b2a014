#include "device/cuda/packed_constant.h"

#include <cstring>

#include <gtest/gtest.h>

#include "device/cuda/testing/testing.h"
#include "graph/half.h"

namespace ag::cuda {
namespace {

template <class T>
std::vector<T> As(const std::vector<std::byte>& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

TEST(PackConstant, RefusesWhatIsNoFloat) {
  MemoryWeights weights;
  const Graph graph = *ParseGraph(
      "input x f32[2]\na = const i64[2] {1, 2}\nb = const f32[2] {1, 2}\n"
      "output y = add(x, b)\noutput z = cast(a) to=f32\n",
      &weights);
  Constants constants(graph, weights);
  NodeId integers = 0, floats = 0;
  for (NodeId id = 0; id < graph.size(); ++id) {
    if (graph.node(id).op != OpKind::kConstant) continue;
    (IsFloat(graph.type({id, 0}).dtype) ? floats : integers) = id;
  }
  EXPECT_EQ(ToString(PackConstant({.sum = {{integers, 0}}, .shape = {2}}, constants).status()),
            "UNIMPLEMENTED: constant i64[2]: cannot be stored as f32");
  EXPECT_EQ(ToString(PackConstant({.sum = {{floats, 0}}, .shape = {2}, .stored = DType::kFloat64},
                                  constants)
                         .status()),
            "UNIMPLEMENTED: constant f32[2]: cannot be stored as f64");
}

TEST(PackConstant, AddsVectorsAndScalarsAndRoundsOnce) {
  MemoryWeights weights;
  const Graph graph = *ParseGraph(R"(
input x f32[1,2]
a = const f32[1,2] {1, 2}
b = const f32[] {0.000732421875}
c = const f32[2] {0, 0.25}
output y = add(add(add(x, a), b), c)
)",
                                  &weights);
  Constants constants(graph, weights);
  std::vector<Edge> edges;
  for (NodeId id = 0; id < graph.size(); ++id) {
    if (graph.node(id).op == OpKind::kConstant) edges.push_back({id, 0});
  }
  ASSERT_EQ(edges.size(), 3u);
  const ConstantRecipe recipe{.sum = edges, .shape = {2}, .stored = DType::kFloat16};
  // 1.000732 in f16 is 1 + 2^-10 when rounded once; 2.250732 is closer to 2.25 + 2^-9 / 2.
  const std::vector<uint16_t> expected = {FloatToHalf(1.000732421875f),
                                          FloatToHalf(2.250732421875f)};
  EXPECT_EQ(As<uint16_t>(*PackConstant(recipe, constants)), expected);
  ConstantRecipe padded = recipe;
  padded.padded = {4};
  EXPECT_EQ(As<uint16_t>(*PackConstant(padded, constants)),
            (std::vector<uint16_t>{expected[0], expected[1], 0, 0}));
}

}  // namespace
}  // namespace ag::cuda

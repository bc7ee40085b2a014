#include "device/cuda/packed_constant.h"

#include <gtest/gtest.h>

#include "device/cuda/testing.h"
#include "graph/half.h"

namespace ag::cuda {
namespace {

template <class T>
std::vector<T> As(const std::vector<std::byte>& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

TEST(PackTensor, OrdersAxes) {
  const std::vector<float> values = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  const Tensor tensor = Tensor::FromFloats({1, 2, 3, 2}, values);
  const struct {
    std::vector<int> order;
    std::vector<float> packed;
  } cases[] = {
      {{}, values},
      {{0, 1, 2, 3}, values},
      {{0, 2, 3, 1}, {0, 6, 1, 7, 2, 8, 3, 9, 4, 10, 5, 11}},  // Channels last.
      {{3, 2, 1, 0}, {0, 6, 2, 8, 4, 10, 1, 7, 3, 9, 5, 11}},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(As<float>(*PackTensor(tensor, DType::kFloat32, c.order)), c.packed);
  }
}

TEST(PackTensor, RoundsToNearestEven) {
  // 1 + 2^-11 lies halfway between two f16 values, 1 + 2^-8 between two of bf16: to even is down.
  const std::vector<float> values = {1.0f, 1.00048828125f, 1.00146484375f, 1.00390625f, 70000.0f};
  const Tensor tensor = Tensor::FromFloats({5}, values);
  EXPECT_EQ(As<uint16_t>(*PackTensor(tensor, DType::kFloat16, {})),
            (std::vector<uint16_t>{0x3c00, 0x3c00, 0x3c02, 0x3c04, 0x7c00}));
  EXPECT_EQ(As<uint16_t>(*PackTensor(tensor, DType::kBFloat16, {})),
            (std::vector<uint16_t>{0x3f80, 0x3f80, 0x3f80, 0x3f80, 0x4789}));
}

TEST(PackTensor, RefusesWhatIsNoFloat) {
  EXPECT_EQ(
      ToString(PackTensor(Tensor::FromInts({2}, std::vector<int64_t>{1, 2}), DType::kFloat16, {})
                   .status()),
      "UNIMPLEMENTED: constant i64[2]: cannot be stored as f16");
  EXPECT_EQ(
      ToString(
          PackTensor(Tensor::FromFloats({1}, std::vector<float>{1}), DType::kFloat64, {}).status()),
      "UNIMPLEMENTED: constant [1]: cannot be stored as f64");
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
  // 1.000732 in f16 is 1 + 2^-10 by rounding once; 2.250732 lies closer to 2.25 + 2^-9 / 2.
  const std::vector<uint16_t> expected = {FloatToHalf(1.000732421875f),
                                          FloatToHalf(2.250732421875f)};
  EXPECT_EQ(As<uint16_t>(*PackConstant(recipe, constants)), expected);
}

}  // namespace
}  // namespace ag::cuda

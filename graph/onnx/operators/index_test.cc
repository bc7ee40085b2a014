// What ONNX's node tests leave out of the operators that choose, place or move elements.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "graph/onnx/operators/testing_node.h"

namespace ag {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();

Tensor Longs(Shape shape, std::vector<int64_t> values) {
  return Tensor::FromInts(std::move(shape), values);
}
Tensor Typed(DType dtype, Shape shape, std::vector<double> values) {
  return Tensor::FromDoubles({dtype, std::move(shape)}, values);
}

TEST(IndexOperators, TopKPutsNanFirstAndEarlierBeforeLater) {
  const Tensor x = Tensor::FromFloats({5}, std::vector<float>{1, NAN, 3, 3, 2});
  const auto y = RunNode({.op_type = "TopK", .outputs = 2}, {x, Longs({1}, {3})});
  ASSERT_TRUE(y.ok()) << ToString(y.status());
  EXPECT_TRUE(std::isnan((*y)[0].At(0)));
  EXPECT_EQ(Numbers((*y)[1]), (std::vector<double>{1, 2, 3}));
}

TEST(IndexOperators, TopKOfOldOpsets) {
  TestNode node{.op_type = "TopK", .opset = 9, .outputs = 2};
  node.ints = {{"k", 2}, {"axis", 0}};
  const auto y = RunNode(node, {Typed(DType::kFloat16, {3, 1}, {1, 5, 4})});
  ASSERT_TRUE(y.ok()) << ToString(y.status());
  EXPECT_EQ((*y)[0].type().ToString(), "f16[2,1]");
  EXPECT_EQ(Numbers((*y)[1]), (std::vector<double>{1, 2}));
}

TEST(IndexOperators, PadsOfEveryMode) {
  struct Case {
    std::string mode;
    Ints pads;
    std::vector<double> expected;
  };
  for (const Case& c : {
           Case{"constant", {2, -1}, {7, 7, 1, 2}},
           Case{"edge", {1, 2}, {1, 1, 2, 3, 3, 3}},
           Case{"reflect", {3, 2}, {2, 3, 2, 1, 2, 3, 2, 1}},
           Case{"wrap", {4, 1}, {3, 1, 2, 3, 1, 2, 3, 1}},
       }) {
    TestNode node{.op_type = "Pad", .opset = 19};
    node.strings = {{"mode", c.mode}};
    const auto y = RunNode(node, {Typed(DType::kInt8, {3}, {1, 2, 3}), Longs({2}, c.pads),
                                  Typed(DType::kInt8, {}, {7})});
    ASSERT_TRUE(y.ok()) << c.mode << ToString(y.status());
    EXPECT_EQ(Numbers((*y)[0]), c.expected) << c.mode;
  }
}

TEST(IndexOperators, UniqueRows) {
  TestNode node{.op_type = "Unique", .outputs = 4};
  node.ints = {{"axis", 0}, {"sorted", 0}};
  const auto y = RunNode(node, {Longs({3, 2}, {5, 6, 1, 2, 5, 6})});
  ASSERT_TRUE(y.ok()) << ToString(y.status());
  EXPECT_EQ(Numbers((*y)[0]), (std::vector<double>{5, 6, 1, 2}));
  EXPECT_EQ(Numbers((*y)[1]), (std::vector<double>{0, 1}));
  EXPECT_EQ(Numbers((*y)[2]), (std::vector<double>{0, 1, 0}));
  EXPECT_EQ(Numbers((*y)[3]), (std::vector<double>{2, 1}));
}

TEST(IndexOperators, RangeCountsLargeIntegersExactly) {
  const int64_t low = kLeast;
  const auto y =
      RunNode({.op_type = "Range"}, {Longs({}, {low}), Longs({}, {low + 3}), Longs({}, {2})});
  ASSERT_TRUE(y.ok()) << ToString(y.status());
  EXPECT_EQ((*y)[0].As<int64_t>()[1], low + 2);
  EXPECT_EQ((*y)[0].type().ToString(), "i64[2]");
}

TEST(IndexOperators, ScatterWrapsIntegersAndJoinsBools) {
  TestNode node{.op_type = "ScatterElements", .opset = 18};
  node.strings = {{"reduction", "add"}};
  const Tensor at = Longs({2}, {0, 0});
  auto y = RunNode(node, {Typed(DType::kInt8, {1}, {100}), at, Typed(DType::kInt8, {2}, {20, 20})});
  ASSERT_TRUE(y.ok()) << ToString(y.status());
  EXPECT_EQ(Numbers((*y)[0]), std::vector<double>{-116});
  y = RunNode(node, {Typed(DType::kBool, {1}, {0}), at, Typed(DType::kBool, {2}, {1, 1})});
  ASSERT_TRUE(y.ok()) << ToString(y.status());
  EXPECT_EQ(Numbers((*y)[0]), std::vector<double>{1});
}

TEST(IndexOperators, SayWhatDoesNotFit) {
  struct Case {
    TestNode node;
    std::vector<Tensor> inputs;
    std::string message;
  };
  const Tensor x = Longs({2, 3}, {1, 2, 3, 4, 5, 6});
  const std::vector<Case> cases = {
      {{.op_type = "Gather"},
       {x, Longs({1}, {2})},
       "OUT_OF_RANGE: operator \"Gather\": index 2 is outside [-2, 2)"},
      {{.op_type = "GatherElements"},
       {x, Longs({1, 1}, {-3})},
       "OUT_OF_RANGE: operator \"GatherElements\": index -3 is outside [-2, 2)"},
      {{.op_type = "GatherND"},
       {x, Longs({1, 3}, {0, 0, 0})},
       "INVALID_ARGUMENT: operator \"GatherND\": indices [1,3] do not fit [2,3]"},
      {{.op_type = "ScatterND"},
       {x, Longs({1, 1}, {5}), Longs({1, 3}, {0, 0, 0})},
       "OUT_OF_RANGE: operator \"ScatterND\": index 5 is outside [-2, 2)"},
      {{.op_type = "TopK"},
       {x, Longs({1}, {4})},
       "INVALID_ARGUMENT: operator \"TopK\": k is 4, axis 1 of i64[2,3]"},
      {{.op_type = "Reshape"},
       {x, Longs({2}, {4, -1})},
       "INVALID_ARGUMENT: operator \"Reshape\": i64[2,3] does not reshape to [4,1]"},
      {{.op_type = "Tile"},
       {x, Longs({2}, {1 << 30, int64_t{1} << 62})},
       "INVALID_ARGUMENT: operator \"Tile\": axis 1: 4611686018427387904 repeats"},
      {{.op_type = "Expand"},
       {x, Longs({3}, {1 << 30, 2, 3})},
       "RESOURCE_EXHAUSTED: operator \"Expand\": output 0: i64[1073741824,2,3] has 51539607552 "
       "bytes, the limit is 4294967296"},
      {{.op_type = "Pad"},
       {x, Longs({4}, {kLeast, 0, kMost, 0})},
       "INVALID_ARGUMENT: operator \"Pad\": axis 0 of [2,3]: pads -9223372036854775808 and "
       "9223372036854775807"},
      {{.op_type = "Transpose", .int_lists = {{"perm", {}}}},
       {x},
       "INVALID_ARGUMENT: operator \"Transpose\": perm does not permute the axes of i64[2,3]"},
      {{.op_type = "Transpose", .int_lists = {{"perm", {1, 1}}}},
       {x},
       "INVALID_ARGUMENT: operator \"Transpose\": perm does not permute the axes of i64[2,3]"},
      {{.op_type = "Transpose", .int_lists = {{"perm", {0, 1, 2}}}},
       {x},
       "INVALID_ARGUMENT: operator \"Transpose\": perm does not permute the axes of i64[2,3]"},
      {{.op_type = "Range"},
       {Longs({}, {0}), Longs({}, {5}), Longs({}, {0})},
       "INVALID_ARGUMENT: operator \"Range\": a range by 0 has no end"},
      {{.op_type = "Split", .outputs = 2},
       {x, Longs({2}, {1, 2})},
       "INVALID_ARGUMENT: operator \"Split\": an axis of 2 does not split into 2 such parts"},
      {{.op_type = "Split", .opset = 13, .outputs = 3},  // Parts of 1, 1 and less than nothing.
       {Longs({1}, {7})},
       "INVALID_ARGUMENT: operator \"Split\": an axis of 1 does not split into 3 such parts"},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(ToString(RunNode(c.node, c.inputs).status()), c.message);
  }
}

TEST(IndexOperators, EmptyTensors) {
  const Tensor none = Longs({0, 3}, {});
  for (const TestNode& node : {TestNode{.op_type = "Transpose"}, TestNode{.op_type = "NonZero"},
                               TestNode{.op_type = "Unique"}, TestNode{.op_type = "Identity"},
                               TestNode{.op_type = "Trilu"}}) {
    const auto y = RunNode(node, {none});
    ASSERT_TRUE(y.ok()) << node.op_type << ToString(y.status());
    EXPECT_EQ((*y)[0].type().NumElements(), 0) << node.op_type;
  }
}

TEST(IndexOperators, RowsGoIntoACacheAroundItsEnd) {
  const Tensor cache = F32({2, 3, 1}, {0, 0, 0, 0, 0, 0}), rows = F32({2, 2, 1}, {1, 2, 3, 4});
  TestNode node{.op_type = "TensorScatter", .opset = 24};
  EXPECT_EQ(CodeOf(node, {cache, rows, I64({2}, {0, 2})}), StatusCode::kOutOfRange);
  node.strings = {{"mode", "circular"}};
  const auto y = RunNode(node, {cache, rows, I64({2}, {0, 2})});
  ASSERT_TRUE(y.ok()) << ToString(y.status());
  EXPECT_EQ(Numbers((*y)[0]), (std::vector<double>{1, 2, 0, 4, 0, 3}));
}

}  // namespace
}  // namespace ag

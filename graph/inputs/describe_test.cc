#include "graph/inputs/describe.h"

#include <gtest/gtest.h>

#include "graph/inputs/make_inputs.h"
#include "graph/onnx/import/import.h"
#include "graph/onnx/testing/onnx_testing.h"
#include "graph/reference/evaluate.h"

namespace ag {
namespace {

constexpr const char* kBounded =
    "<float[9,2] t = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, int64 two = {2}, "
    "int64[1] zero = {0}, int64[1] one = {1}, int64[1] twos = {2}, int64 axis = {1}, "
    "int64[2] pair = {1, 6}>";

class DescribeTest : public ::testing::Test {
 protected:
  Graph Import(const std::string& signature, const std::string& nodes) {
    const std::string text = fmt::format("g {} {} {{ {} }}", signature, kBounded, nodes);
    auto model = ImportOnnx(testing::ModelFromText(text), {}, *blobs_);
    EXPECT_TRUE(model.ok()) << ToString(model.status());
    return model.ok() ? model->graph : Graph();
  }

  // The graph runs on every kind of data.
  void ExpectRuns(const Graph& graph) {
    const std::vector<InputSpec> specs = DescribeInputs(graph);
    for (int kind = 0; kind < kInputKinds; ++kind) {
      for (uint64_t seed = 1; seed <= 5; ++seed) {
        const auto outputs = Evaluate(graph, MakeInputs(specs, static_cast<InputKind>(kind), seed),
                                      BlobWeights(blobs_));
        EXPECT_EQ(ToString(outputs.status()), "OK") << InputKindName(static_cast<InputKind>(kind));
      }
    }
  }

  std::shared_ptr<BlobDir> blobs_ = testing::NewBlobs();
};

TEST_F(DescribeTest, ATableBoundsWhatChoosesItsRows) {
  const struct {
    const char* name;
    const char* nodes;
    int64_t low, high;
  } kCases[] = {
      {"directly", "r = Gather(t, x)", 0, 8},
      {"another axis", "r = Gather<axis = 1>(t, x)", 0, 1},
      {"after a cast", "a = Cast<to = 6>(x) r = Gather(t, a)", 0, 8},
      {"after a reshape", "a = Reshape(x, pair) r = Gather(t, a)", 0, 8},
      {"after a sum", "a = Add(x, two) r = Gather(t, a)", 0, 6},
      {"after a sum from the left", "a = Add(two, x) r = Gather(t, a)", 0, 6},
      {"after a difference", "a = Sub(x, two) r = Gather(t, a)", 2, 10},
      {"after a difference from a number", "a = Sub(two, x) r = Gather(t, a)", 0, 2},
      {"after a product", "a = Mul(x, two) r = Gather(t, a)", 0, 4},
      {"of some of them", "a = Gather<axis = 1>(x, one) r = Gather(t, a)", 0, 8},
      {"by elements", "r = GatherElements(t, x)", 0, 8},
      {"the smaller of two",
       "a = Gather(t, x) b = Gather<axis = 1>(t, x) c = ReduceMean(a) "
       "d = ReduceMean(b) r = Add(c, d)",
       0, 1},
      {"not at all", "a = Cast<to = 1>(x) r = Relu(a)", 0, 1},
  };
  for (const auto& c : kCases) {
    SCOPED_TRACE(c.name);
    const Graph graph = Import("(int64[3,2] x) => (float y)",
                               std::string(c.nodes) + " y = ReduceMean<keepdims = 0>(r)");
    if (graph.inputs().empty()) continue;
    const InputSpec spec = DescribeInputs(graph).at(0);
    EXPECT_EQ(spec.low, c.low);
    EXPECT_EQ(spec.high, c.high);
    EXPECT_EQ(spec.role,
              std::string(c.name) == "not at all" ? InputRole::kIntegers : InputRole::kTokens);
    ExpectRuns(graph);
  }
}

// OPT: positions are counts of the mask's ones, and the table of positions ends before the
// sequence does.
TEST_F(DescribeTest, PositionsThatFollowFromAMaskBoundItsOnes) {
  const Graph graph =
      Import("(int64[2,32] input_ids, int64[2,32] attention_mask) => (float[2,32,2] y)",
             "w = Gather(t, input_ids) c = CumSum(attention_mask, axis) m = Mul(c, attention_mask) "
             "s = Sub(m, one) i = Add(s, two) p = Gather(t, i) y = Add(w, p)");
  const std::vector<InputSpec> specs = DescribeInputs(graph);
  EXPECT_EQ(specs.at(0).high, 8);
  EXPECT_EQ(specs.at(1).role, InputRole::kMask);
  EXPECT_EQ(specs.at(1).ones_max, 7) << "7 - 1 + 2 is the last row";
  ExpectRuns(graph);
}

TEST_F(DescribeTest, ALastTokenThatIsChosenByALength) {
  const Graph graph = Import("(int64[1,9] attention_mask) => (float[1,2] y)",
                             "n = ReduceSum<keepdims = 0>(attention_mask, one) l = Sub(n, one) "
                             "y = Gather(t, l)");
  ExpectRuns(graph);
}

// BERT: three inputs of ids, each with a table of its own.
TEST_F(DescribeTest, ABertLikeGraphRuns) {
  const Graph graph = Import(
      "(int64[2,8] input_ids, int64[2,8] token_type_ids, int64[1,8] position_ids, "
      "int64[2,8] attention_mask) => (float[2,8,2] y)",
      "w = Gather(t, input_ids) k = Slice(t, zero, twos) s = Gather(k, token_type_ids) "
      "p = Gather(t, position_ids) a = Add(w, s) b = Add(a, p) f = Cast<to = 1>(attention_mask) "
      "u = Unsqueeze(f, twos) y = Mul(b, u)");
  if (graph.inputs().empty()) return;
  const std::vector<InputSpec> specs = DescribeInputs(graph);
  EXPECT_EQ(specs.at(0).role, InputRole::kTokens);
  EXPECT_EQ(specs.at(1).role, InputRole::kTokenTypes);
  EXPECT_EQ(specs.at(1).high, 1);
  EXPECT_EQ(specs.at(2).role, InputRole::kPositions);
  EXPECT_EQ(specs.at(2).high, 8);
  EXPECT_EQ(specs.at(3).role, InputRole::kMask);
  ExpectRuns(graph);
}

TEST_F(DescribeTest, LengthsAreThoseOfTheSequenceBesideThem) {
  const Graph graph = Import("(float[2,5,3] x, int64[2] lengths) => (float[2,5,3] y)",
                             "a = Cast<to = 1>(lengths) b = ReduceMean(a) y = Add(x, b)");
  const InputSpec lengths = DescribeInputs(graph).at(1);
  EXPECT_EQ(lengths.low, 1);
  EXPECT_EQ(lengths.high, 5);
}

TEST_F(DescribeTest, BytesHaveTheWholeRange) {
  const InputSpec picture = DescribeInput("x", {DType::kUInt8, {1, 8, 8, 3}});
  EXPECT_EQ(picture.low, 0);
  EXPECT_EQ(picture.high, 255);
  EXPECT_EQ(DescribeInput("x", {DType::kInt8, {2, 2}}).low, -128);
  EXPECT_EQ(DescribeInput("x", {DType::kInt8, {}}).high, 1) << "a number of something";
}

}  // namespace
}  // namespace ag

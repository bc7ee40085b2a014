// Sequences, optionals and strings: what leaves no node, what runs behind the graph, what is
// refused.
#include <gtest/gtest.h>

#include "base/blobs.h"
#include "graph/onnx/export/export.h"
#include "graph/onnx/import/dynamic_program.h"
#include "graph/onnx/import/import.h"
#include "graph/onnx/testing/onnx_testing.h"
#include "graph/text_form.h"

namespace ag {
namespace {

std::string ShownValue(const ModelValue& value) {
  std::vector<std::string> parts;
  for (const ModelValue& item : value.items) parts.push_back(ShownValue(item));
  if (value.kind != OnnxKind::kTensor) return fmt::format("({})", fmt::join(parts, " "));
  if (value.tensor.type().dtype == DType::kString) {
    for (const std::string_view word : value.tensor.Strings()) parts.emplace_back(word);
  } else {
    for (const double number : value.tensor.ToDoubles())
      parts.push_back(fmt::format("{:g}", number));
  }
  return fmt::format("[{}]", fmt::join(parts, " "));
}

class SequenceTest : public ::testing::Test {
 protected:
  // The inputs and outputs of these names are sequences.
  StatusOr<ImportedModel> Import(std::string_view text,
                                 const std::multiset<std::string>& sequences = {}, int opset = 17) {
    return ImportOnnx(testing::SequenceModelFromText(text, sequences, opset), {}, *blobs_);
  }
  std::string ErrorOf(std::string_view text, const std::multiset<std::string>& sequences = {}) {
    return ToString(Import(text, sequences).status());
  }

  // Returns the outputs of the model; those of its export are the same.
  std::string Run(const ImportedModel& model, const std::vector<ModelValue>& inputs) {
    const std::string shown = Shown(model, inputs);
    const BlobWeights weights(blobs_);
    const auto bytes = ExportOnnx(model.graph, model.origin, weights);
    EXPECT_TRUE(bytes.ok()) << ToString(bytes.status());
    if (!bytes.ok()) return shown;
    const auto again = ImportOnnx(*bytes, {}, *blobs_);
    EXPECT_TRUE(again.ok()) << ToString(again.status());
    if (again.ok()) {
      EXPECT_EQ(Shown(*again, inputs), shown);
    }
    return shown;
  }

  std::string Shown(const ImportedModel& model, const std::vector<ModelValue>& inputs) {
    const auto outputs = EvaluateModel(model.graph, model.origin, inputs, BlobWeights(blobs_));
    if (!outputs.ok()) return ToString(outputs.status());
    std::vector<std::string> texts;
    for (const ModelValue& value : *outputs) texts.push_back(ShownValue(value));
    return fmt::format("{}", fmt::join(texts, " "));
  }

  std::shared_ptr<BlobDir> blobs_ = testing::NewBlobs();
};

Tensor FloatRow(const std::vector<float>& values) {
  return Tensor::FromFloats({static_cast<int64_t>(values.size())}, values);
}

Tensor WordRow(const std::vector<std::string>& words) {
  return Tensor::FromStrings({static_cast<int64_t>(words.size())}, words);
}

TEST_F(SequenceTest, KnownPositionsLeaveNoNode) {
  const auto model = Import(
      "g (float[6] x) => (float[2] y, int64 n) <int64 two = {2}, int64 last = {-1}> {"
      "parts = SplitToSequence<axis = 0>(x, two) a = Relu(x) more = SequenceInsert(parts, a)"
      "less = SequenceErase(more, two) n = SequenceLength(less)"
      "some = Optional(less) got = OptionalGetElement(some) one = Constant<value_int = 1>()"
      "y = SequenceAt(got, one) }");
  ASSERT_TRUE(model.ok()) << ToString(model.status());
  EXPECT_TRUE(model->origin.dynamic.empty());
  EXPECT_EQ(Run(*model, {FloatRow({1, 2, 3, 4, 5, 6})}), "[3 4] [3]");
}

TEST_F(SequenceTest, AnUnknownPositionRunsBehindTheGraph) {
  const auto model = Import(
      "g (float[4] x, int64 at) => (float[2] y, float[4] z) <int64 two = {2}> {"
      "e = Exp(x) z = Log(e) parts = SplitToSequence<axis = 0>(z, two) y = SequenceAt(parts, at) "
      "}");
  ASSERT_TRUE(model.ok()) << ToString(model.status());
  // The maker of the sequence comes along.
  EXPECT_EQ(model->origin.dynamic.nodes.size(), 2u);
  const auto at = [](int64_t i) { return Tensor::FromInts({}, {&i, 1}); };
  EXPECT_EQ(Run(*model, {FloatRow({1, 2, 3, 4}), at(1)}), "[3 4] [1 2 3 4]");
  EXPECT_EQ(Run(*model, {FloatRow({1, 2, 3, 4}), at(2)}),
            "INVALID_ARGUMENT: node 1 (SequenceAt): position 2 is outside a sequence of 2");
}

TEST_F(SequenceTest, ALoopGathersASequence) {
  const auto model = Import(
      "g (float[2] x, int64 n) => (float[2] y) <bool c = {1}> {"
      "none = SequenceEmpty() y = Loop<body = b (int64 i, bool go, float[2] s)"
      "=> (bool go2, float[2] t) { f = Cast<to = 1>(i) v = Add(x, f)"
      "t = SequenceInsert(s, v) go2 = Identity(go) }>(n, c, none) }",
      {"y", "s", "t"});
  ASSERT_TRUE(model.ok()) << ToString(model.status());
  const int64_t count = 2;
  EXPECT_EQ(Run(*model, {FloatRow({1, 5}), Tensor::FromInts({}, {&count, 1})}), "([1 5] [2 6])");
}

TEST_F(SequenceTest, SequencesAndStringsAreInputsBehindTheGraph) {
  const auto model = Import(
      "g (float[2] s, float[2] x, string[3] w) => (float[n] y, string[m] v) {"
      "r = Relu(x) more = SequenceInsert(s, r) y = ConcatFromSequence<axis = 0>(more)"
      "v = StringNormalizer<case_change_action = \"LOWER\", stopwords = [\"no\"]>(w) }",
      {"s"});
  ASSERT_TRUE(model.ok()) << ToString(model.status());
  EXPECT_EQ(FormatGraph(model->graph), "input x f32[2]\nv1 = relu(x)\noutput \"r\" = v1\n");
  EXPECT_EQ(model->warnings,
            (std::vector<std::string>{"3 of 4 nodes run one by one behind the plan; input \"s\" is "
                                      "no tensor of numbers"}));
  const ModelValue sequence(OnnxKind::kSequence, {FloatRow({1, 2})});
  EXPECT_EQ(Run(*model, {sequence, FloatRow({-3, 4}), WordRow({"No", "Way", "\xC3\x89t\xC3\xA9"})}),
            "[1 2 0 4] [way \xC3\xA9t\xC3\xA9]");
}

TEST_F(SequenceTest, AModelOfStringsAlone) {
  const auto model = Import(
      "g (string[2,2] x) => (string[2,2] y, bool[2,2] same) {"
      "c = Constant<value_strings = [\"a\", \"z\"]>() y = Transpose<perm = [1, 0]>(x)"
      "same = Equal(y, c) }",
      {}, 19);
  ASSERT_TRUE(model.ok()) << ToString(model.status());
  EXPECT_EQ(model->graph.inputs().size(), 0u);
  EXPECT_EQ(
      Run(*model, {Tensor::FromStrings({2, 2}, std::vector<std::string>{"a", "b", "c", "d"})}),
      "[a c b d] [1 0 0 0]");
}

TEST_F(SequenceTest, ConstantStringsAreWeightsOfTheDynamicPart) {
  const auto model = Import(
      "g (float[2] x) => (string[2] y) <string[2] w = {\"no\", \"yes\"}> {"
      "z = Constant<value_float = 0.0>() more = Greater(x, z) i = Cast<to = 7>(more)"
      "y = Gather(w, i) }");
  ASSERT_TRUE(model.ok()) << ToString(model.status());
  ASSERT_EQ(model->origin.dynamic.weights.size(), 1u);
  EXPECT_EQ(Run(*model, {FloatRow({1, -1})}), "[yes no]");
}

TEST_F(SequenceTest, Refused) {
  EXPECT_EQ(ErrorOf("g (float[2] s) => (int64 y) { y = SequenceLength(s) }", {"s", "s"}),
            "UNIMPLEMENTED: input \"s\" is neither a tensor nor a sequence or an optional of "
            "tensors");
  EXPECT_EQ(ErrorOf("g (float[2] x) => (int64 y) { s = SequenceConstruct(x)"
                    "t = SequenceConstruct(s) y = SequenceLength(t) }"),
            "INVALID_ARGUMENT: node 1 (SequenceConstruct): input 0 is a sequence, the operator "
            "takes tensors");
  EXPECT_EQ(ErrorOf("g (float[2] x) => (float[2] y) { s = SequenceConstruct(x) y = Relu(s) }"),
            "INVALID_ARGUMENT: node 1 (Relu): input 0 is a sequence, the operator takes tensors");
  EXPECT_EQ(ErrorOf("g (float[2] x, int64[2] k) => (int64 y) { s = SequenceConstruct(x, k)"
                    "y = SequenceLength(s) }"),
            "INVALID_ARGUMENT: node 0 (SequenceConstruct): a sequence of f32 gets an item of i64");
  EXPECT_EQ(ErrorOf("g (float[2] x) => (float[2] y) { s = Optional()"
                    "y = OptionalGetElement(s) }"),
            "INVALID_ARGUMENT: node 1 (OptionalGetElement): the optional is empty");
  EXPECT_EQ(ErrorOf("g (string[1099511627776] x) => (string[n] y) { y = Identity(x) }"),
            "RESOURCE_EXHAUSTED: input \"x\": string[1099511627776] has 1099511627776 elements");
}

// Every insertion makes a sequence anew: they are counted together.
TEST_F(SequenceTest, SequencesThatGrowAreEnded) {
  const auto model = Import(
      "g (bool c) => (bool y) <int64 n = {9000000000}> { none = SequenceEmpty<dtype = 9>()"
      "y = Loop<body = b (int64 i, bool go, bool s) => (bool go2, bool t) {"
      "t = SequenceInsert(s, go) go2 = Identity(c) }>(n, c, none) }",
      {"y", "s", "t"});
  ASSERT_TRUE(model.ok()) << ToString(model.status());
  Tensor yes = Tensor::Zeros({DType::kBool, {}});
  yes.Put(0, 1);
  const auto outputs = EvaluateModel(model->graph, model->origin, {yes}, BlobWeights(blobs_));
  EXPECT_EQ(ToString(outputs.status()),
            "RESOURCE_EXHAUSTED: node 1 (Loop): body: node 0 (SequenceInsert): all sequences "
            "together hold more than 67108864 tensors");
}

}  // namespace
}  // namespace ag

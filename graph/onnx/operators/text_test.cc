// What ONNX's node tests leave out of operators on strings and of narrow types.
#include <gtest/gtest.h>

#include "graph/narrow.h"
#include "graph/onnx/operators/testing_node.h"

namespace ag {
namespace {

using Texts = std::vector<std::string>;

Tensor Words(const Texts& words) {
  return Tensor::FromStrings({static_cast<int64_t>(words.size())}, words);
}

Texts TextsOf(const StatusOr<std::vector<Tensor>>& results) {
  if (!results.ok()) return {ToString(results.status())};
  const auto views = (*results)[0].Strings();
  return {views.begin(), views.end()};
}

TEST(TextOperators, LettersBeyondAsciiChangeTheirCase) {
  TestNode node{.op_type = "StringNormalizer", .strings = {{"case_change_action", "UPPER"}}};
  EXPECT_EQ(TextsOf(RunNode(node, {Words({"gr\xC3\xBC\xC3\x9F", "\xD0\xB6", "a\xFF\xC3"})})),
            (Texts{"GR\xC3\x9C\xC3\x9F", "\xD0\x96", "A\xFF\xC3"}));
  node.strings.emplace_back("locale", "tr_TR");
  EXPECT_EQ(CodeOf(node, {Words({"i"})}), StatusCode::kUnimplemented);
}

TEST(TextOperators, CastsWriteAndReadNumbers) {
  const auto cast = [](DType to, const Tensor& x) {
    return RunNode({.op_type = "Cast", .ints = {{"to", DTypeToOnnx(to)}}}, {x});
  };
  EXPECT_EQ(TextsOf(cast(DType::kString, F32({4}, {0.1, 1e-5, -3, INFINITY}))),
            (Texts{"0.1", "1e-05", "-3", "INF"}));
  EXPECT_EQ(TextsOf(cast(DType::kString, I64({2}, {INT64_MAX, INT64_MIN}))),
            (Texts{"9223372036854775807", "-9223372036854775808"}));
  const auto longs = cast(DType::kInt64, Words({"9223372036854775807", "-12", "2.5"}));
  ASSERT_TRUE(longs.ok()) << ToString(longs.status());
  EXPECT_EQ((*longs)[0].As<int64_t>()[0], INT64_MAX);
  EXPECT_EQ(Numbers(cast(DType::kFloat64, Words({"-inf", "1E8"})).value()[0]),
            (std::vector<double>{-INFINITY, 1e8}));
  EXPECT_EQ(ToString(cast(DType::kFloat32, Words({"ten"})).status()),
            "INVALID_ARGUMENT: operator \"Cast\": string \"ten\" is no number");
}

TEST(TextOperators, MovesWorkOnStrings) {
  const Tensor words = Words({"b", "", "a", "b"});
  EXPECT_EQ(TextsOf(RunNode({.op_type = "Unique", .outputs = 1}, {words})), (Texts{"", "a", "b"}));
  EXPECT_EQ(TextsOf(RunNode({.op_type = "ScatterElements", .opset = 18},
                            {words, I64({1}, {1}), Words({"new"})})),
            (Texts{"b", "new", "a", "b"}));
  const TestNode adds{.op_type = "ScatterElements", .opset = 18, .strings = {{"reduction", "add"}}};
  EXPECT_EQ(CodeOf(adds, {words, I64({1}, {1}), Words({"new"})}), StatusCode::kUnimplemented);
  EXPECT_EQ(CodeOf({.op_type = "Add"}, {words, words}), StatusCode::kUnimplemented);
}

TEST(TextOperators, PatternsTakeLinearTime) {
  const Tensor text = Words({std::string(100'000, 'a') + "b", std::string(100'000, 'a')});
  const auto matched = RunNode(
      {.op_type = "RegexFullMatch", .opset = 20, .strings = {{"pattern", "(a|aa)+(a*)*"}}}, {text});
  ASSERT_TRUE(matched.ok()) << ToString(matched.status());
  EXPECT_EQ(Numbers((*matched)[0]), (std::vector<double>{0, 1}));
  for (const char* pattern : {"(a", "((a{900}){900}){900}", "(?=a)"}) {
    const TestNode node{
        .op_type = "RegexFullMatch", .opset = 20, .strings = {{"pattern", pattern}}};
    EXPECT_EQ(CodeOf(node, {text}), StatusCode::kInvalidArgument) << pattern;
  }
}

TEST(TextOperators, SplitKeepsTheRest) {
  TestNode node{.op_type = "StringSplit", .opset = 20, .outputs = 2, .ints = {{"maxsplit", 1}}};
  EXPECT_EQ(TextsOf(RunNode(node, {Words({"  a  b c ", ""})})), (Texts{"a", "b c", "", ""}));
  node.strings = {{"delimiter", "--"}};
  EXPECT_EQ(TextsOf(RunNode(node, {Words({"1--2--3", "4"})})), (Texts{"1", "2--3", "4", ""}));
}

TEST(NarrowOperators, IntegersLoseTheirUpperBits) {
  const auto cut = RunNode({.op_type = "Cast", .opset = 21, .ints = {{"to", 22}}},
                           {OfType(DType::kInt8, {4}, {7, 8, -9, 100})});
  ASSERT_TRUE(cut.ok()) << ToString(cut.status());
  EXPECT_EQ((*cut)[0].type().ToString(), "i4[4]");
  EXPECT_EQ(Numbers((*cut)[0]), (std::vector<double>{7, -8, 7, 4}));
}

TEST(NarrowOperators, QuantizeRoundsToTheType) {
  const auto q = RunNode(
      {.op_type = "QuantizeLinear", .opset = 21, .ints = {{"output_dtype", 17}, {"saturate", 0}}},
      {F32({3}, {1, 33, 1000}), F32({}, {2})});
  ASSERT_TRUE(q.ok()) << ToString(q.status());
  EXPECT_EQ(Numbers((*q)[0])[0], 0.5);
  EXPECT_EQ(Numbers((*q)[0])[1], 16);
  EXPECT_TRUE(std::isnan(Numbers((*q)[0])[2]));
}

TEST(TextOperators, TensorsOfStringsAreBounded) {
  const std::vector<std::string> half = {std::string(size_t{300} << 20, 'x')};
  const Tensor x = Tensor::FromStrings({1}, half);
  EXPECT_EQ(ToString(RunNode({.op_type = "StringConcat", .opset = 20}, {x, x}).status()),
            "RESOURCE_EXHAUSTED: operator \"StringConcat\": output 0: its strings have 629145632 "
            "bytes, the limit is 536870912");
}

}  // namespace
}  // namespace ag

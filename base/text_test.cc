#include "base/text.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "base/random.h"

namespace ag {
namespace {

using Pieces = std::vector<std::string_view>;
using namespace std::string_view_literals;

TEST(TextTest, Split) {
  EXPECT_EQ(Split("a,,b", ','), Pieces({"a", "", "b"}));
  EXPECT_EQ(Split(",", ','), Pieces({"", ""}));
  EXPECT_EQ(Split("abc", ','), Pieces({"abc"}));
  EXPECT_EQ(Split("", ','), Pieces({""}));
}

TEST(TextTest, Trim) {
  EXPECT_EQ(Trim(" \ta b\r\n"), "a b");
  EXPECT_EQ(Trim("a"), "a");
  EXPECT_EQ(Trim(" \n "), "");
  EXPECT_EQ(Trim(""), "");
}

TEST(TextTest, Join) {
  EXPECT_EQ(Join(std::vector<int64_t>{1, 3, 224}, "x"), "1x3x224");
  EXPECT_EQ(Join(Pieces{"a", "b"}, ", "), "a, b");
  EXPECT_EQ(Join(Pieces{}, ", "), "");
}

TEST(TextTest, ParseInt) {
  EXPECT_EQ(ParseInt("0").value(), 0);
  EXPECT_EQ(ParseInt("-9223372036854775808").value(), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(ParseInt("9223372036854775807").value(), std::numeric_limits<int64_t>::max());
  const struct {
    std::string_view text;
    const char* expected;
  } cases[] = {
      {"", "INVALID_ARGUMENT: expected a whole number, got ''"},
      {"12x", "INVALID_ARGUMENT: expected a whole number, got '12x'"},
      {"1.5", "INVALID_ARGUMENT: expected a whole number, got '1.5'"},
      {" 1", "INVALID_ARGUMENT: expected a whole number, got ' 1'"},
      {"+1", "INVALID_ARGUMENT: expected a whole number, got '+1'"},
      {"0x10", "INVALID_ARGUMENT: expected a whole number, got '0x10'"},
      {"9223372036854775808",
       "INVALID_ARGUMENT: '9223372036854775808' is out of range for a whole number"},
      {"99999999999999999999x",
       "INVALID_ARGUMENT: expected a whole number, got '99999999999999999999x'"},
  };
  for (const auto& c : cases) EXPECT_EQ(ToString(ParseInt(c.text).status()), c.expected);
}

TEST(TextTest, ParseDouble) {
  EXPECT_EQ(ParseDouble("-1.5e3").value(), -1500);
  EXPECT_EQ(ParseDouble("inf").value(), std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(ParseDouble("nan").value()));
  const struct {
    std::string_view text;
    const char* expected;
  } cases[] = {
      {"", "INVALID_ARGUMENT: expected a number, got ''"},
      {"1.5s", "INVALID_ARGUMENT: expected a number, got '1.5s'"},
      {"1,5", "INVALID_ARGUMENT: expected a number, got '1,5'"},
      {"1e999", "INVALID_ARGUMENT: '1e999' is out of range for a number"},
  };
  for (const auto& c : cases) EXPECT_EQ(ToString(ParseDouble(c.text).status()), c.expected);
}

TEST(TextTest, ParseNamedSizes) {
  using Named = std::pair<std::string, std::vector<int64_t>>;
  const struct {
    const char* text;
    Named named;
  } kGood[] = {
      {"x=1x3x224x224", {"x", {1, 3, 224, 224}}},
      {"x=5", {"x", {5}}},
      {"x=0x3", {"x", {0, 3}}},
      {"a=b=2", {"a=b", {2}}},  // Names of inputs may contain any character.
  };
  for (const auto& c : kGood) {
    const auto named = ParseNamedSizes(c.text);
    ASSERT_EQ(ToString(named.status()), "OK") << c.text;
    EXPECT_EQ(*named, c.named) << c.text;
  }
  const struct {
    const char *text, *status;
  } kBad[] = {
      {"", "INVALID_ARGUMENT: : expected NAME=1x3x224x224"},
      {"x", "INVALID_ARGUMENT: x: expected NAME=1x3x224x224"},
      {"=1x2", "INVALID_ARGUMENT: =1x2: expected NAME=1x3x224x224"},
      {"x=", "INVALID_ARGUMENT: x=: \"\" is not a size"},
      {"x=1x", "INVALID_ARGUMENT: x=1x: \"\" is not a size"},
      {"x=1xN", "INVALID_ARGUMENT: x=1xN: \"N\" is not a size"},
      {"x=-1x2", "INVALID_ARGUMENT: x=-1x2: \"-1\" is not a size"},
      {"x=1,2", "INVALID_ARGUMENT: x=1,2: \"1,2\" is not a size"},
      {"x=99999999999999999999",
       "INVALID_ARGUMENT: x=99999999999999999999: \"99999999999999999999\" is not a size"},
  };
  for (const auto& c : kBad) EXPECT_EQ(ToString(ParseNamedSizes(c.text).status()), c.status);
}

TEST(TextTest, FormatDouble) {
  const struct {
    double value;
    const char* expected;
  } cases[] = {
      {0, "0"},
      {-0.0, "-0"},
      {1, "1"},
      {0.1, "0.1"},
      {1e30, "1e+30"},
      {-std::numeric_limits<double>::min(), "-2.2250738585072014e-308"},
      {-std::numeric_limits<double>::infinity(), "-inf"},
      {-std::nan("1"), "nan"},
  };
  for (const auto& c : cases) EXPECT_EQ(FormatDouble(c.value), c.expected);
}

TEST(TextTest, FormatDoubleComesBack) {
  Random random(11);
  for (int i = 0; i < 1000; ++i) {
    const double value = std::bit_cast<double>(random.Next());
    if (!std::isfinite(value)) continue;
    EXPECT_EQ(ParseDouble(FormatDouble(value)).value(), value);
  }
}

TEST(TextTest, EditDistance) {
  const struct {
    const char* a;
    const char* b;
    size_t expected;
  } cases[] = {
      {"", "", 0},          {"", "abc", 3},       {"relu", "relu", 0}, {"relu", "rely", 1},
      {"realu", "relu", 1}, {"relu", "rleu", 1},  {"ab", "ba", 1},     {"kitten", "sitting", 3},
      {"ca", "abc", 3},     {"matmul", "mul", 3},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(EditDistance(c.a, c.b), c.expected) << c.a << " " << c.b;
    EXPECT_EQ(EditDistance(c.b, c.a), c.expected) << c.b << " " << c.a;
  }
}

TEST(TextTest, Closest) {
  const std::vector<std::string> names = {"MatMul", "Relu", "Selu", "Elu", "Add", "Conv"};
  const struct {
    const char* word;
    const char* expected;
  } cases[] = {
      {"Relu", "Relu"}, {"relu", "Relu"}, {"Rely", "Relu"}, {"Melu", "Relu"}, {"Matmull", "MatMul"},
      {"Con", "Conv"},  {"Softmax", ""},  {"x", ""},        {"", ""},         {"Ad", "Add"},
  };
  for (const auto& c : cases) EXPECT_EQ(Closest(c.word, names), c.expected) << c.word;
  EXPECT_EQ(Closest("Relu", {}), "");
  EXPECT_EQ(DidYouMean("Covn", names), "; did you mean 'Conv'?");
  EXPECT_EQ(DidYouMean("Softmax", names), "");
}

}  // namespace
}  // namespace ag

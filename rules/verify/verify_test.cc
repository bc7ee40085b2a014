#include "rules/verify/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>

#include "base/file.h"
#include "rules/sets/built_in_rules.h"

namespace ag {
namespace {

Rule ParsedRule(const std::string& text) {
  const StatusOr<RuleSet> set = RuleSet::Parse(text, "f.rules");
  AG_CHECK(set.ok());
  return set->rules()[0];
}

TEST(Verify, TheCounterExampleIsSmallAndComplete) {
  const Rule rule = ParsedRule("w [exact]: sub(x, y) => sub(y, x)");
  const VerifyReport report = Verify(rule);
  EXPECT_EQ(report.counter_example,
            "input x0 f64[]\ninput x1 f64[]\nv2 = sub(x0, x1)\noutput \"o0\" = v2\n=>\n"
            "input x0 f64[]\ninput x1 f64[]\nv2 = sub(x1, x0)\noutput \"o0\" = v2\n"
            "output o0 element 0: -1 before, 1 after\nx0 = {-1}\nx1 = {0}\nseed 1\n");
  EXPECT_EQ(Verify(rule).counter_example, report.counter_example);
}

// The first refused case of a convolution is too large to read.
TEST(Verify, ShrinksSizesAttributesRootsAndValues) {
  const VerifyReport report = Verify(
      ParsedRule("w [exact]: each i: relu(conv.c(x, w[i], b[i]; group=1)) => "
                 "split(conv.c(x, concat(w[i]...; axis=0), concat(b[i]...; axis=0)); axis=1, "
                 "sizes=[dim(w[i], 0)...])[i] if k = shape_but(w[i], 0)"));
  EXPECT_THAT(
      report.counter_example,
      testing::StartsWith("input x0 f64[1,1,1,1]\ninput x1 f64[1,1,1,1]\ninput x2 f64[1]\n"
                          "input x3 f64[1,1,1,1]\ninput x4 f64[1]\n"
                          "v5 = conv(x0, x1, x2) dilations=[1,1] pads=[0,0,0,0] strides=[1,1]\n"
                          "v6 = relu(v5)\n"
                          "v7 = conv(x0, x3, x4) dilations=[1,1] pads=[0,0,0,0] strides=[1,1]\n"));
  EXPECT_THAT(report.counter_example,
              testing::HasSubstr("output o0 element 0: 0 before, -2 after"));
}

// {c} stands for a number near c: both the rule's constant and the graph's may be inexact.
TEST(Verify, ApproximateConstantsHaveAnErrorBound) {
  const auto gelu = [](const char* root) {
    return ParsedRule(fmt::format(
        "g [rounding]: mul(mul(x, 0.5), add(erf(div(x, {{{}}})), 1)) => gelu(x)", root));
  };
  const VerifyReport best = Verify(gelu("1.4142135623730951"));
  EXPECT_TRUE(best.proved) << best.counter_example;
  EXPECT_EQ(best.arithmetic, "field");
  EXPECT_LT(best.float_error_max, 1e-14);
  EXPECT_GT(best.constant_error_max, 1e-8);
  EXPECT_LT(best.constant_error_max, 1e-5);

  const VerifyReport off = Verify(gelu("1.414214"));  // By 3e-7, which the matcher accepts.
  EXPECT_TRUE(off.proved) << off.counter_example;
  EXPECT_EQ(off.arithmetic, "float64");
  EXPECT_GT(off.float_error_max, 1e-8);
  EXPECT_LT(off.float_error_max, 2e-6);

  for (const char* wrong : {"1.41422", "1.4143", "1.5", "0.7071067811865476"}) {
    const VerifyReport report = Verify(gelu(wrong));
    EXPECT_FALSE(report.proved) << wrong;
    EXPECT_THAT(report.counter_example, testing::HasSubstr("=>")) << wrong;
  }
  EXPECT_EQ(Verify(ParsedRule("r [exact]: relu(relu(x)) => relu(x)")).constant_error_max, 0);
}

// A rule that amplifies a small difference: the matcher would accept 1.0000009 for the constant.
TEST(Verify, RefusesRulesThatAmplifyAnApproximateConstant) {
  const VerifyReport report =
      Verify(ParsedRule("w [rounding]: sub(mul(x, {1000.3333333333}), mul(x, {1000.3})) => mul(x, "
                        "0.0333333333)"));
  EXPECT_FALSE(report.proved);
  EXPECT_THAT(report.counter_example,
              testing::HasSubstr("the rule's constants are off by 9e-07 here"));
}

// The doubles are as close as rounding allows; exact arithmetic still finds the difference.
TEST(Verify, ExactArithmeticIsFinalWhereItKnowsAllOperators) {
  const Rule rule = ParsedRule(
      "w [rounding]: add(x, mul(y, 0.0000000000009094947017729282)) => x "
      "if same_shape(x, y)");
  const VerifyReport report = Verify(rule);  // 2^-40 is exact in binary: no approximate constant.
  EXPECT_FALSE(report.proved);
}

TEST(Verify, AllOnSeveralThreadsIsTheSameInTheSameOrder) {
  std::vector<const Rule*> rules;
  for (const Rule& rule : BuiltInRules().rules()) rules.push_back(&rule);
  const VerifyOptions options{.instances_min = 10, .class_samples_max = 1000};
  std::vector<std::string> names;
  VerifyAll(rules, options, 3, [&](const Rule& rule, const VerifyReport& report) {
    EXPECT_EQ(rule.name, report.rule);
    EXPECT_EQ(report.instances, Verify(rule, options).instances);
    names.push_back(rule.name);
    return names.size() < 20;
  });
  ASSERT_EQ(names.size(), 20u);
  for (size_t i = 0; i < names.size(); ++i) EXPECT_EQ(names[i], rules[i]->name);
}

TEST(Verify, StopsInsideARule) {
  std::atomic<int> asked = 0;
  const VerifyOptions options{.instances_min = 2'000'000, .stop = [&] { return ++asked > 50; }};
  const Rule rule = ParsedRule("r [exact]: relu(relu(x)) => relu(x)");
  const VerifyReport report = Verify(rule, options);
  EXPECT_TRUE(report.stopped);
  EXPECT_FALSE(report.proved);
  EXPECT_EQ(report.counter_example, "");
  EXPECT_EQ(asked, 51);

  VerifyAll({&rule, &rule, &rule}, options, 2, [](const Rule&, const VerifyReport& done) {
    ADD_FAILURE() << done.rule << " was not done";
    return true;
  });
}

TEST(Verify, SeesTheCasesThatCatchOthers) {
  const VerifyReport report = Verify(*BuiltInRules().Find("conv-sum-same-input"));
  ASSERT_TRUE(report.proved) << report.counter_example;
  EXPECT_EQ(report.arithmetic, "field");
  std::vector<std::string> names;
  for (const auto& [name, count] : report.classes) {
    EXPECT_GE(count, 5) << name;
    names.push_back(name);
  }
  EXPECT_THAT(names, testing::IsSupersetOf({"asymmetric pads", "axis of size 1", "depthwise",
                                            "dilated", "group > 1", "strided"}));
}

// rules/sets/verified.txt has one line per built-in rule. AG_WRITE_DOCS=1 rules_verify_test writes
// it; then build again, because it is compiled in.
TEST(Verify, TheBuiltInVerdictsAreUpToDate) {
  std::string text;
  for (const Rule& rule : BuiltInRules().rules()) {
    const VerifyReport report = Verify(rule);
    EXPECT_TRUE(report.proved) << rule.name << "\n" << report.counter_example;
    EXPECT_GE(report.instances, 200) << rule.name;
    EXPECT_LE(report.constant_error_max, 1e-5) << rule.name;
    if (!report.proved) continue;
    text += fmt::format("{} {} {} {}\n", Sha256(rule.text).Hex(), rule.name, report.arithmetic,
                        report.instances);
  }
  const std::string path = std::string(AG_SOURCE_DIR) + "/rules/sets/verified.txt";
  if (std::getenv("AG_WRITE_DOCS") != nullptr) {
    ASSERT_TRUE(WriteFileAtomically(path, text).ok());
    return;
  }
  EXPECT_EQ(*ReadFile(path), text)
      << "AG_WRITE_DOCS=1 rules_verify_test writes rules/sets/verified.txt anew";
  for (const Rule& rule : BuiltInRules().rules())
    EXPECT_TRUE(ProofOf(rule).has_value()) << rule.name;
  EXPECT_TRUE(RequireVerified(BuiltInRules()).ok());
}

}  // namespace
}  // namespace ag

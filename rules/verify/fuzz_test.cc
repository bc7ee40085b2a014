// A short run of the fuzzer; tests/long/rules.sh makes a long one. AG_FUZZ_REWRITES sets its
// length, AG_FUZZ_SEED the first seed; the seed of a difference reproduces it.
#include "rules/testing/fuzz.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "graph/text_form.h"
#include "rules/sets/built_in_rules.h"
#include "rules/verify/compare.h"

namespace ag {
namespace {

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

TEST(Fuzz, RewritesOfRandomGraphsChangeNothing) {
  const FuzzOptions options{.seed = FromEnvironment("AG_FUZZ_SEED", 1),
                            .rewrites = static_cast<int>(FromEnvironment("AG_FUZZ_REWRITES", 600))};
  const FuzzReport report = Fuzz(BuiltInRules(), options);
  EXPECT_EQ(report.difference, "") << "AG_FUZZ_SEED=" << report.seed;
  fmt::print(
      "{} rewrites of {} graphs, seeds {} to {}: {} comparisons exact, {} undecided; {} refused\n",
      report.rewrites, report.graphs, options.seed, report.seed, report.exact, report.undecided,
      report.refused);
  EXPECT_GE(report.rewrites, options.rewrites);
  EXPECT_GE(report.exact, report.rewrites / 2) << "too much is compared in double only";
  EXPECT_LE(report.undecided, report.rewrites / 10);
  if (report.rewrites < 20'000) return;
  for (const Rule& rule : BuiltInRules().rules()) {
    EXPECT_GE(report.by_rule.contains(rule.name) ? report.by_rule.at(rule.name) : 0, 5)
        << rule.name;
  }
}

// A rule that is not exact may differ when an inner value is Inf or NaN.
TEST(Fuzz, KnowsWhereSomethingIsNotFinite) {
  constexpr const char* kInputs = "input x f64[2]\nz = sub(x, x)\ni = reciprocal(z)\n";
  const struct {
    const char* name;
    const char* before;
    const char* after;
    bool non_finite;
  } kCases[] = {
      {"an output", "output o = neg(i)", "output o = div(z, z)", true},
      {"what an output does not show", "output o = sigmoid(i)", "output o = relu(x)", true},
      {"the other side alone", "output o = relu(x)", "output o = neg(i)", false},
      {"a plain difference", "output o = relu(x)", "output o = neg(x)", false},
  };
  for (const auto& c : kCases) {
    const bool reads = std::string_view(c.before).find("(i)") != std::string_view::npos;
    const std::string inputs = reads ? kInputs : "input x f64[2]\n";
    const auto before = ParseGraph(inputs + c.before);
    const auto after = ParseGraph(kInputs + std::string(c.after));
    ASSERT_TRUE(before.ok() && after.ok()) << c.name;
    const Comparison comparison = Compare(*before, *after, 1);
    EXPECT_FALSE(comparison.equal) << c.name;
    EXPECT_EQ(comparison.non_finite, c.non_finite) << c.name;
  }
}

TEST(Fuzz, FindsAWrongRuleAndItsSeedFindsItAgain) {
  const RuleSet wrong = *RuleSet::Join(
      BuiltInRules(), *RuleSet::Parse("w [rounding]: relu(add(x, y)) => add(relu(x), relu(y))\n"
                                      "v [exact]: concat(relu(x), y; axis=a) => "
                                      "relu(concat(x, y; axis=a))\n",
                                      "wrong"));
  const FuzzReport report = Fuzz(wrong, {.rewrites = 5000});
  EXPECT_THAT(report.difference,
              testing::AnyOf(testing::StartsWith("w\n"), testing::StartsWith("v\n")));
  EXPECT_EQ(Fuzz(wrong, {.seed = report.seed, .rewrites = 1}).difference, report.difference);
}

}  // namespace
}  // namespace ag

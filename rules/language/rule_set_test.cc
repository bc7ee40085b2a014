#include "rules/language/rule_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "rules/sets/built_in_rules.h"

namespace ag {
namespace {

struct ErrorCase {
  const char* name;
  const char* text;
  const char* message;  // The whole message.
};

const ErrorCase kErrorCases[] = {
    {"no name", "[exact]: relu(x) => x",
     "f.rules:1:1: expected a rule name in kebab-case\n  [exact]: relu(x) => x\n  ^"},
    {"no class", "a [fast]: relu(x) => x",
     "f.rules:1:4: expected exact, rounding or finite\n  a [fast]: relu(x) => x\n     ^"},
    {"no arrow", "a [exact]: relu(x) = x",
     "f.rules:1:20: expected '=>'\n  a [exact]: relu(x) = x\n                     ^"},
    {"operator", "a [exact]: rely(x) => x",
     "f.rules:1:12: unknown operator 'rely'\n  a [exact]: rely(x) => x\n             ^"},
    {"input is no operator", "a [exact]: input(x) => x",
     "f.rules:1:12: unknown operator 'input'\n  a [exact]: input(x) => x\n             ^"},
    {"attribute", "a [exact]: concat(x, y; axes=1) => x",
     "f.rules:1:25: concat has no attribute 'axes'\n  a [exact]: concat(x, y; axes=1) => x\n"
     "                          ^"},
    {"attribute that not all of a class have", "a [exact]: pool.p(x; count_include_pad=1) => x",
     "f.rules:1:22: pool has no attribute 'count_include_pad'\n"
     "  a [exact]: pool.p(x; count_include_pad=1) => x\n                       ^"},
    {"operator in a guard", "a [exact]: unary.f(x) => x if is(f, \"relu\", \"rely\")",
     "f.rules:1:45: unknown operator 'rely'\n  a [exact]: unary.f(x) => x if is(f, \"relu\", "
     "\"rely\")\n                                              ^"},
    {"guard", "a [exact]: relu(x) => x if even(x)",
     "f.rules:1:28: unknown guard or function 'even'\n  a [exact]: relu(x) => x if even(x)\n"
     "                             ^"},
    {"arity of a guard", "a [exact]: relu(x) => x if const(x, x)",
     "f.rules:1:28: const takes other arguments than 2: const(x)\n"
     "  a [exact]: relu(x) => x if const(x, x)\n                             ^"},
    {"unbound variable", "a [exact]: relu(x) => y",
     "f.rules:1:23: unbound variable 'y'\n  a [exact]: relu(x) => y\n                        ^"},
    {"unbound in a guard", "a [exact]: relu(x) => x if const(y)",
     "f.rules:1:34: unbound variable 'y'\n  a [exact]: relu(x) => x if const(y)\n"
     "                                   ^"},
    {"unbound label", "a [exact]: relu(x) => unary.f(x)",
     "f.rules:1:23: unbound label 'f'\n  a [exact]: relu(x) => unary.f(x)\n                        "
     "^"},
    {"arity", "a [exact]: add(x) => x",
     "f.rules:1:12: add takes 2 operands, not 1\n  a [exact]: add(x) => x\n             ^"},
    {"incomplete target", "a [exact]: relu(x) => concat(x, x)",
     "f.rules:1:23: concat needs attribute 'axis'\n  a [exact]: relu(x) => concat(x, x)\n"
     "                        ^"},
    {"number of targets", "a [exact]: relu(x), tanh(x) => x",
     "f.rules:1:32: 2 sources but 1 targets\n  a [exact]: relu(x), tanh(x) => x\n"
     "                                 ^"},
    {"roots share nothing", "a [exact]: relu(x), relu(y) => y, x",
     "f.rules:1:21: shares no variable with the roots before it\n"
     "  a [exact]: relu(x), relu(y) => y, x\n                      ^"},
    {"several outputs", "a [exact]: relu(split(x; axis=a, sizes=s)) => x",
     "f.rules:1:17: split has several outputs: say which, [0] or [i]\n"
     "  a [exact]: relu(split(x; axis=a, sizes=s)) => x\n                  ^"},
    {"index without a family", "a [exact]: relu(x[i]) => x[i]",
     "f.rules:1:17: index 'i' has no value here\n  a [exact]: relu(x[i]) => x[i]\n"
     "                  ^"},
    {"two kinds", "a [exact]: concat(x; axis=x) => x",
     "f.rules:1:27: 'x' stands for something of another kind\n"
     "  a [exact]: concat(x; axis=x) => x\n                            ^"},
    {"second line, continued", "# comment\n\na [exact]: \\\n  relu(x) => \\\n  frob(x)\n",
     "f.rules:5:3: unknown operator 'frob'\n    frob(x)\n    ^"},
    {"same name", "a [exact]: relu(x) => x\na [exact]: tanh(x) => x",
     "f.rules:2:1: rule 'a' stands in line 1 already\n  a [exact]: tanh(x) => x\n  ^"},
    {"a number that is too large", "a [exact]: pad(x; pads=[99999999999999999999]) => x",
     "f.rules:1:25: expected a number, a list, a name or a call\n"
     "  a [exact]: pad(x; pads=[99999999999999999999]) => x\n                          ^"},
    {"a float that is too large", "a [exact]: add(x, {1e999}) => x",
     "f.rules:1:20: expected a number, a list, a name or a call\n"
     "  a [exact]: add(x, {1e999}) => x\n                     ^"},
    {"half an output", "a [exact]: split(x)[1.5] => x",
     "f.rules:1:21: expected the number of an output\n  a [exact]: split(x)[1.5] => x\n"
     "                      ^"},
    {"string without an end", "a [exact]: pad(x; mode=\"edge) => x",
     "f.rules:1:24: expected a number, a list, a name or a call\n"
     "  a [exact]: pad(x; mode=\"edge) => x\n                         ^"},
    {"bracket without an end", "a [exact]: relu(x => x",
     "f.rules:1:19: expected ')'\n  a [exact]: relu(x => x\n                    ^"},
    {"tabs stay tabs, so that the caret fits", "a\t[exact]:\trely(x) => x",
     "f.rules:1:12: unknown operator 'rely'\n  a\t[exact]:\trely(x) => x\n   \t        \t^"},
    {"line ends of Windows", "a [exact]: rely(x) => x\r\n",
     "f.rules:1:12: unknown operator 'rely'\n  a [exact]: rely(x) => x\n             ^"},
    {"rest", "a [exact]: relu(x) => x relu",
     "f.rules:1:25: expected ',' or the end of the rule\n  a [exact]: relu(x) => x relu\n"
     "                          ^"},
};

TEST(RuleSet, RefusesBadFilesWithPlaceLineAndCaret) {
  for (const ErrorCase& c : kErrorCases) {
    const StatusOr<RuleSet> set = RuleSet::Parse(c.text, "f.rules");
    EXPECT_EQ(set.status().code(), StatusCode::kInvalidArgument) << c.name;
    EXPECT_EQ(Message(set.status()), c.message) << c.name;
  }
}

// No file may end the process, whatever its depth or its broken bytes.
TEST(RuleSet, SurvivesDeepAndBrokenText) {
  const auto repeated = [](const char* text, int n) {
    std::string out;
    for (int i = 0; i < n; ++i) out += text;
    return out;
  };
  const std::string deep[] = {
      "a [exact]: " + repeated("relu(", 100000) + "x",
      "a [exact]: relu(x) => x if " + repeated("(", 100000),
      "a [exact]: relu(x) => x if " + repeated("-", 100000) + "1",
      "a [exact]: relu(x) => x if " + repeated("sum(", 100000),
      "a [exact]: relu(x) => x if 1" + repeated(" + 1", 100000),
  };
  for (const std::string& text : deep) {
    EXPECT_EQ(RuleSet::Parse(text, "f").status().code(), StatusCode::kInvalidArgument);
  }
  EXPECT_TRUE(
      RuleSet::Parse("a [exact]: " + repeated("relu(", 90) + "x" + repeated(")", 90) + " => x", "f")
          .ok());

  Random random(1);
  std::string all;
  for (const Rule& rule : BuiltInRules().rules()) all += rule.text + "\n";
  static constexpr std::string_view kBytes = "()[]{}.,;:=>+-*/ \"\\#\n\t019aix\xff";
  for (int i = 0; i < 3000; ++i) {
    std::string text = all.substr(random.Below(all.size()), 1 + random.Below(200));
    for (uint64_t n = random.Below(4); n > 0; --n) {
      text[random.Below(text.size())] = kBytes[random.Below(kBytes.size())];
    }
    const Status status = RuleSet::Parse(text, "f").status();
    EXPECT_TRUE(status.ok() || (status.code() == StatusCode::kInvalidArgument &&
                                Message(status).starts_with("f:")))
        << text << "\n"
        << ToString(status);
  }
}

TEST(RuleSet, CanonicalTextLeavesOutCommentsAndContinuations) {
  const StatusOr<RuleSet> set = RuleSet::Parse(
      "# why\na  [finite, clean-up]: \\\n   relu(relu(x))   => relu(x)  # end\n", "f");
  ASSERT_TRUE(set.ok()) << ToString(set.status());
  ASSERT_EQ(set->rules().size(), 1u);
  const Rule& rule = set->rules()[0];
  EXPECT_EQ(rule.text, "a [finite, clean-up]: relu(relu(x)) => relu(x)");
  EXPECT_EQ(rule.line, 2);
  EXPECT_TRUE(rule.clean_up);
  EXPECT_EQ(rule.rule_class, RuleClass::kFinite);
}

TEST(RuleSet, JoinRefusesTheSameNameAndWithoutLeavesOut) {
  const RuleSet a = *RuleSet::Parse("a [exact]: relu(relu(x)) => relu(x)", "f");
  const RuleSet b = *RuleSet::Parse("b [finite]: relu(relu(x)) => relu(x)", "g");
  EXPECT_EQ(Message(RuleSet::Join(a, a).status()), "rule 'a' stands in f:1 and in f:1");
  const RuleSet both = *RuleSet::Join(a, b);
  EXPECT_EQ(both.rules().size(), 2u);
  EXPECT_NE(both.digest(), a.digest());
  EXPECT_EQ(both.Without({"a"}, false).rules().size(), 1u);
  EXPECT_EQ(both.Without({}, true).rules()[0].name, "a");
  EXPECT_EQ(both.Find("c"), nullptr);
}

}  // namespace
}  // namespace ag

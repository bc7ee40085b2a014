#include "lab/generate/known.h"

#include <gtest/gtest.h>

namespace ag::generate {
namespace {

constexpr Ways kBack = {.back = true};

// Returns relu applied `count` times to x.
Graph Relus(int count) {
  GraphBuilder builder;
  Edge edge = builder.Input("x", {DType::kFloat64, {2}});
  for (int i = 0; i < count; ++i) edge = *builder.Add1(OpKind::kRelu, {edge});
  builder.Output(edge, "o");
  return *builder.Build();
}

// Returns the equation of one relu and `count` relus, with the rule `body`.
KnownEquation RelusToOne(int count, const std::string& body) {
  auto rule = RuleSet::Parse("rule " + body, "test");
  EXPECT_TRUE(rule.ok()) << Message(rule.status());
  KnownEquation equation{.left = Relus(1), .right = Relus(count), .rules = {}};
  equation.rules.push_back({.body = body,
                            .name = "rule",
                            .rule = *rule,
                            .forward = false,
                            .ops = MaskOf(OpKind::kRelu)});
  return equation;
}

std::vector<std::string> BodiesOf(KnownRules* known) {
  std::vector<std::string> bodies;
  for (const FoundRule* rule : known->rules()) bodies.push_back(rule->body);
  return bodies;
}

TEST(KnownRules, WhatIsRedundantComesBackWhenWhatImpliedItFalls) {
  const std::string two = "[exact]: relu(relu(x)) => relu(x)";
  const std::string three = "[exact]: relu(relu(relu(x))) => relu(x)";
  KnownRules known;
  EXPECT_FALSE(known.Imply(Relus(1), Relus(3), kBack).back);
  known.Add(RelusToOne(2, two));
  EXPECT_TRUE(known.Imply(Relus(1), Relus(3), kBack).back);
  known.Add(RelusToOne(3, three));
  known.Reduce();
  EXPECT_EQ(BodiesOf(&known), std::vector{two});
  known.Restore();
  EXPECT_EQ(BodiesOf(&known), (std::vector{two, three}));
  known.Reduce();
  known.Remove({known.rules()[0]});
  EXPECT_TRUE(known.rules().empty());
  known.Restore();
  known.Reduce();
  EXPECT_EQ(BodiesOf(&known), std::vector{three});
  EXPECT_FALSE(known.Imply(Relus(1), Relus(2), kBack).back);
}

// The equation relu(x) = relu(relu(x)) is known, with a rule only for the direction that makes the
// graph smaller. A case asks which directions then count as known.
struct OneWay {
  const char* name;
  Ways grows;
  Ways asked;
  bool forward, back;  // What is then known about relu(x) and relu(relu(relu(x))).
};

TEST(KnownRules, AnEquationWithOneRuleLeadsOneWay) {
  const OneWay kCases[] = {
      {"what is asked for is there", {}, {.back = true}, false, true},
      {"the other way is not", {}, {.forward = true}, false, true},
      {"either way will do", {}, {}, false, true},
      {"it only grows", {.forward = true}, {.forward = true, .back = true}, true, true},
  };
  for (const OneWay& c : kCases) {
    SCOPED_TRACE(c.name);
    KnownRules known;
    known.Add(RelusToOne(2, "[exact]: relu(relu(x)) => relu(x)"));
    KnownRules grown;
    KnownEquation equation = known.equations()[0];
    equation.grows = c.grows;
    grown.Add(std::move(equation));
    const Ways ways = grown.Imply(Relus(1), Relus(3), c.asked);
    EXPECT_EQ(ways.forward, c.forward);
    EXPECT_EQ(ways.back, c.back);
    EXPECT_EQ(ways.Answer(c.asked), c.forward || !c.asked.forward);
  }
}

// Returns concat(x, concat(y, z)) or concat(concat(x, y), z).
Graph Concats(bool right) {
  GraphBuilder builder;
  std::vector<Edge> x;
  for (const char* name : {"x", "y", "z"}) {
    x.push_back(builder.Input(name, {DType::kFloat64, {2, 3}}));
  }
  const auto join = [&](Edge a, Edge b) {
    return *builder.Add1(OpKind::kConcat, {a, b}, {{"axis", int64_t{0}}});
  };
  builder.Output(right ? join(x[0], join(x[1], x[2])) : join(join(x[0], x[1]), x[2]), "o");
  return *builder.Build();
}

TEST(KnownRules, GroupingMatters) {
  const std::string right = "concat(x, concat(y, z; axis=axis); axis=axis)";
  const std::string left = "concat(concat(x, y; axis=axis), z; axis=axis)";
  for (const bool both : {false, true}) {
    KnownEquation equation{.left = Concats(true), .right = Concats(false), .rules = {}};
    for (const bool forward : {true, false}) {
      if (!forward && !both) continue;
      const std::string body =
          "[exact]: " + (forward ? right + " => " + left : left + " => " + right);
      const auto rule = RuleSet::Parse("rule " + body, "test");
      ASSERT_TRUE(rule.ok()) << Message(rule.status());
      equation.rules.push_back({.body = body,
                                .name = "rule",
                                .rule = *rule,
                                .forward = forward,
                                .ops = MaskOf(OpKind::kConcat)});
    }
    KnownRules known;
    known.Add(std::move(equation));
    EXPECT_EQ(known.equations()[0].groups, both);  // One way is not enough.
    const Ways ways{.forward = true, .back = true};
    EXPECT_EQ(known.Imply(Concats(true), Concats(false), ways).Answer(ways), both);
  }
}

// The rule for two relus implies the way back for three. When the rule for two is removed, that way
// is removed too.
TEST(KnownRules, WhatFallsTakesAlongTheWaysThatItImplied) {
  KnownRules known;
  known.Add(RelusToOne(2, "[exact]: relu(relu(x)) => relu(x)"));
  KnownEquation three = RelusToOne(3, "[exact]: relu(relu(relu(x))) => relu(relu(x))");
  three.left = Relus(2);
  three.implied.back = true;
  three.rules[0].forward = true;
  known.Add(std::move(three));
  EXPECT_TRUE(known.equations()[1].two_way());
  known.Remove({known.rules()[0]});
  ASSERT_EQ(known.equations().size(), 1u);
  EXPECT_FALSE(known.equations()[0].two_way());
}

}  // namespace
}  // namespace ag::generate

#include "rules/generate/known.h"

#include <gtest/gtest.h>

namespace ag::generate {
namespace {

// relu of relu of ... x, so often.
Graph Relus(int count) {
  GraphBuilder builder;
  Edge edge = builder.Input("x", {DType::kFloat64, {2}});
  for (int i = 0; i < count; ++i) edge = *builder.Add1(OpKind::kRelu, {edge});
  builder.Output(edge, "o");
  return *builder.Build();
}

// `body` joins so many relus to one.
KnownEquation RelusToOne(int count, const std::string& body) {
  auto rule = RuleSet::Parse("rule " + body, "test");
  EXPECT_TRUE(rule.ok()) << Message(rule.status());
  KnownEquation equation{.left = Relus(1), .right = Relus(count), .rules = {}};
  equation.rules.push_back(
      {.body = body, .name = "rule", .rule = *rule, .ops = MaskOf(OpKind::kRelu)});
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
  EXPECT_FALSE(known.Imply(Relus(1), Relus(3)));
  known.Add(RelusToOne(2, two));
  EXPECT_TRUE(known.Imply(Relus(1), Relus(3)));
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
  EXPECT_FALSE(known.Imply(Relus(1), Relus(2)));
}

}  // namespace
}  // namespace ag::generate

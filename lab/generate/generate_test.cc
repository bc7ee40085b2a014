#include "lab/generate/generate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <set>

#include "base/digest.h"
#include "base/text.h"
#include "rules/language/rule_set.h"
#include "rules/verify/verify.h"

namespace ag::generate {
namespace {

// Runs with short proofs; `scripts/test.sh --long generate` runs long ones.
GenerateReport Found(GenerateOptions options) {
  options.proofs = 1;
  options.proof_instances = 30;
  const auto report = Generate(options);
  EXPECT_TRUE(report.ok()) << Message(report.status());
  return report.ok() ? *report : GenerateReport();
}

RuleSet Parsed(const GenerateReport& report) {
  auto rules = RuleSet::Parse(report.text, "generated.rules");
  EXPECT_TRUE(rules.ok()) << Message(rules.status());
  return rules.ok() ? *rules : RuleSet();
}

// Returns "[class]: source => target if guard" of each rule.
std::set<std::string> Bodies(const GenerateReport& report) {
  std::set<std::string> bodies;
  for (const std::string_view line : Split(report.text, '\n')) {
    if (line.starts_with("found-")) bodies.insert(std::string(line.substr(line.find(' ') + 1)));
  }
  return bodies;
}

constexpr World kPair = {.name = "pair",
                         .sizes = "A=2,3 B=3,4 C=4,2",
                         .leaves = "x:A,B y:C,B",
                         .ops = "concat split softmax"};

constexpr World kRows = {.name = "rows",
                         .sizes = "A=2,3 B=3,4 C=4,2 T=4,6",
                         .leaves = "x:A,B y:A,B w:B,C t:T,B",
                         .ops = "matmul concat split"};

World Named(std::string_view name) {
  const auto worlds = DefaultWorlds();
  for (const World& world : {kPair, kRows}) {
    if (name == world.name) return world;
  }
  return *std::find_if(worlds.begin(), worlds.end(),
                       [&](const World& world) { return world.name == name; });
}

struct SmallList {
  const char* name;
  const char* world;
  std::vector<std::string> ops;
  int ops_max;
  std::vector<std::string> found;   // Among others.
  std::vector<std::string> absent;  // Implied or wrong.
  const char* counts;
};

// Returns the numbers of the report, and a digest of what it says.
std::string CountsOf(const GenerateReport& r, const std::set<std::string>& bodies) {
  return fmt::format("{} graphs, {} equations, {} implied, {} growing, {} unproved, {} rules {}",
                     r.graphs, r.equations, r.implied, r.growing, r.unproved, r.rules,
                     Sha256(Join(bodies, "\n")).Short());
}

const SmallList kSmallLists[] = {
    {"transpose and relu",
     "cube",
     {"transpose", "relu"},
     2,
     {"[exact]: transpose(transpose(x; perm=perm); perm=perm2) => "
      "transpose(x; perm=compose(perm, perm2))",
      "[exact]: unary.f(transpose(x; perm=perm)) => transpose(unary.f(x); perm=perm)",
      "[exact]: transpose(unary.f(x); perm=perm) => unary.f(transpose(x; perm=perm))"},
     {"[exact]: transpose(transpose(x; perm=perm); perm=perm2) => "
      "transpose(x; perm=compose(perm2, perm))"},
     "84 graphs, 30 equations, 27 implied, 2 growing, 0 unproved, 5 rules fb4381c90ade"},
    {"relu in order arithmetic",
     "order",
     {"relu"},
     2,
     {"[exact]: relu(relu(x)) => relu(x)"},
     {},
     "6 graphs, 1 equations, 0 implied, 1 growing, 0 unproved, 1 rules b4a619c95324"},
    {"concat and split, unequal parts",
     "pair",
     {"concat", "split"},
     2,
     {"[exact]: each i: split(concat(x[i]...; axis=axis); axis=axis, "
      "sizes=[dim(x[i], axis)...])[i] => x[i]"},
     {"[exact]: split(concat(x, y; axis=axis); axis=axis, sizes=[dim(x, axis), dim(y, axis)])[0] "
      "=> x"},
     "46 graphs, 24 equations, 16 implied, 4 growing, 2 unproved, 7 rules 18e47dfde5b7"},
    {"add and mul",
     "pointwise",
     {"add", "mul"},
     3,
     {"[rounding]: add(mul(x, y), mul(x, z)) => mul(x, add(y, z))",
      "[rounding]: mul(x, add(y, z)) => add(mul(x, y), mul(x, z))",
      "[rounding]: add(x, add(y, z)) => add(y, add(x, z))"},
     {"[exact]: add(x, y) => add(y, x)", "[exact]: mul(x, y) => mul(y, x)"},
     "2328 graphs, 168 equations, 165 implied, 0 growing, 0 unproved, 4 rules fd6d88dd183c"},
    {"differences end in finite numbers only",
     "order",
     {"add", "sub"},
     2,
     {"[finite]: add(x, sub(y, x)) => y if same_shape(x, y)"},
     {"[rounding]: add(x, sub(y, x)) => y if same_shape(x, y)"},
     "147 graphs, 22 equations, 13 implied, 4 growing, 0 unproved, 8 rules c1094c93f7c4"},
    {"the axis is guarded",
     "pair",
     {"softmax", "concat"},
     3,
     {"[exact]: concat(softmax(x[i]; axis=axis)...; axis=axis2) => "
      "softmax(concat(x[i]...; axis=axis2); axis=axis) if axis != axis2"},
     {"[exact]: concat(softmax(x[i]; axis=axis)...; axis=axis2) => "
      "softmax(concat(x[i]...; axis=axis2); axis=axis)"},
     "750 graphs, 199 equations, 188 implied, 0 growing, 2 unproved, 6 rules dff875a36add"},
    // A merge of two roots leads from the right side to the left one; no rule leads back.
    {"a product of a concat is a concat of products",
     "rows",
     {"matmul", "concat", "split"},
     3,
     {"[exact]: matmul(concat(x, y; axis=axis), z) => "
      "concat(matmul(x, z), matmul(y, z); axis=axis) if rank(y) == rank(z), axis < rank(z) - 1"},
     {},
     "1105 graphs, 406 equations, 344 implied, 17 growing, 22 unproved, 41 rules f6e26cc81327"},
    {"where a transpose puts an axis, its own inverse or not",
     "cube",
     {"softmax", "transpose"},
     2,
     {"[exact]: transpose(softmax(x; axis=axis); perm=perm) => "
      "softmax(transpose(x; perm=perm); axis=find(perm, axis))",
      "[exact]: transpose(transpose(x; perm=perm); perm=perm2) => x "
      "if compose(perm, perm2) == range(0, length(perm))"},
     {"[exact]: transpose(softmax(x; axis=axis); perm=perm) => "
      "softmax(transpose(x; perm=perm); axis=at(perm, axis)) "
      "if compose(perm, perm) == range(0, length(perm))"},
     "144 graphs, 40 equations, 37 implied, 2 growing, 0 unproved, 5 rules 803f1492ec95"},
};

class SmallLists : public ::testing::TestWithParam<SmallList> {};

TEST_P(SmallLists, FindTheirRules) {
  const SmallList& list = GetParam();
  const GenerateReport report =
      Found({.ops_max = list.ops_max, .ops = list.ops, .worlds = {Named(list.world)}});
  const std::set<std::string> bodies = Bodies(report);
  for (const std::string& body : list.found) EXPECT_THAT(bodies, ::testing::Contains(body));
  for (const std::string& body : list.absent) {
    EXPECT_THAT(bodies, ::testing::Not(::testing::Contains(body)));
  }
  EXPECT_EQ(CountsOf(report, bodies), list.counts);
}

INSTANTIATE_TEST_SUITE_P(All, SmallLists, ::testing::ValuesIn(kSmallLists),
                         [](const auto& info) { return std::to_string(info.index); });

TEST(Generate, EveryRuleIsProvedWithOtherSeedsToo) {
  const auto found = Generate({.ops_max = 2,
                               .ops = {"relu", "max", "max_pool"},
                               .proofs = 12,
                               .worlds = {Named("order"), Named("pool")}});
  ASSERT_TRUE(found.ok()) << Message(found.status());
  const GenerateReport& report = *found;
  EXPECT_GT(report.rules, 3);
  const RuleSet rules = Parsed(report);
  EXPECT_EQ(static_cast<int>(rules.rules().size()), report.rules);
  for (const Rule& rule : rules.rules()) {
    const VerifyReport verified = Verify(rule, {.seed = 77});
    EXPECT_TRUE(verified.proved) << rule.text << "\n" << verified.counter_example;
  }
}

TEST(Generate, TheSameFileWhateverTheThreads) {
  GenerateOptions options{
      .ops_max = 2, .ops = {"add", "relu", "transpose"}, .worlds = {Named("cube"), Named("order")}};
  options.threads = 1;
  const std::string one = Found(options).text;
  options.threads = 3;
  EXPECT_EQ(Found(options).text, one);
  options.seed = 5;
  EXPECT_EQ(Bodies(Found(options)).size() > 5, true);
}

TEST(Generate, OneRuleForAllRenamings) {
  const std::set<std::string> bodies =
      Bodies(Found({.ops = {"add", "mul"}, .worlds = {Named("pointwise")}}));
  const auto distributes = [](const std::string& body) {
    return body.find("=> mul(") != std::string::npos && body.find("[rounding]: add(mul(") == 0;
  };
  EXPECT_EQ(std::count_if(bodies.begin(), bodies.end(), distributes), 1) << Join(bodies, "\n");
}

Residue Negate(Residue x, Residue) { return Residue{} - x; }
Residue Blend(Residue x, Residue y) { return x * y + Residue{3, 3} * (x + y); }

TEST(Generate, PlantedIdentitiesOfAnAddedOperator) {
  const GenerateReport report = Found({.ops_max = 3,
                                       .ops = {"add"},
                                       .extra = {{"flip", 1, Negate}, {"blend", 2, Blend}},
                                       .worlds = {Named("pointwise")}});
  const std::set<std::string> equations(report.extra_equations.begin(),
                                        report.extra_equations.end());
  for (const char* planted : {"flip(flip(x)) => x", "flip(add(x, flip(y))) => add(y, flip(x))",
                              "blend(x, y) => blend(y, x)"}) {
    EXPECT_THAT(equations, ::testing::Contains(planted)) << Join(equations, "\n");
  }
  EXPECT_EQ(report.text.find("flip"), std::string::npos);  // Verify does not know it.
  EXPECT_EQ(report.text.find("blend"), std::string::npos);
}

TEST(Generate, WhatOnlyGrowsIsLeftOut) {
  const GenerateReport report = Found({.ops_max = 2, .ops = {"relu"}, .worlds = {Named("order")}});
  EXPECT_THAT(Bodies(report), ::testing::ElementsAre("[exact]: relu(relu(x)) => relu(x)"));
  EXPECT_EQ(report.growing, 1);
}

TEST(Generate, OtherOperatorsOfTheTable) {
  EXPECT_THAT(Bodies(Found({.ops_max = 2, .ops = {"neg"}, .worlds = {Named("pointwise")}})),
              ::testing::Contains("[exact]: neg(neg(x)) => x"));
}

TEST(Generate, StoppedItKeepsWhatItHas) {
  std::atomic<int> asked = 0;
  const std::vector<World> worlds = {Named("order"), Named("pointwise")};
  const GenerateReport all = Found({.ops_max = 2, .worlds = worlds});
  const GenerateReport some =
      Found({.ops_max = 2, .worlds = worlds, .stop = [&] { return ++asked > 2; }});
  EXPECT_TRUE(all.complete);
  EXPECT_FALSE(some.complete);
  EXPECT_LT(some.rules, all.rules);
  EXPECT_EQ(static_cast<int>(Parsed(some).rules().size()), some.rules);
}

TEST(Generate, MemoryIsBounded) {
  const GenerateReport report =
      Found({.ops = {"add", "mul", "sub"}, .bytes_max = 1, .worlds = {Named("pointwise")}});
  EXPECT_FALSE(report.complete);
}

struct BadOptions {
  const char* name;
  GenerateOptions options;
  const char* message;
};

TEST(Generate, RefusesWhatItCannotDo) {
  const BadOptions cases[] = {
      {"no operators", {.ops_max = 0}, "max-ops: expected 1 to 4, got 0"},
      {"too many", {.ops_max = 5}, "max-ops: expected 1 to 4, got 5"},
      {"unknown operator",
       {.ops = {"softmaxx"}},
       "no operator is called 'softmaxx'; did you mean 'softmax'?"},
      {"no operands", {.ops = {"where"}}, "operator where: the generator has no operands for it"},
  };
  for (const BadOptions& c : cases) {
    const auto report = Generate(c.options);
    const bool unknown = std::string_view(c.name) == "unknown operator";
    EXPECT_EQ(report.status().code(),
              unknown ? StatusCode::kNotFound : StatusCode::kInvalidArgument)
        << c.name;
    EXPECT_EQ(Message(report.status()), c.message) << c.name;
  }
}

}  // namespace
}  // namespace ag::generate

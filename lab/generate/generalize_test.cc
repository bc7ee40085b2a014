// Single equations of the enumeration, and their rules.
#include "lab/generate/generalize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "lab/generate/enumerate.h"
#include "lab/generate/extra.h"

namespace ag::generate {
namespace {

constexpr World kConvs = {.name = "convs",
                          .sizes = "N=1,2 C=2,4 M=4,2 H=4,3 W=3,4",
                          .leaves = "x:N,C,H,W y:N,C,H,W w:M,C,3,3 v:M,C,3,3",
                          .ops = "conv add concat split",
                          .elements_max = 192};
constexpr World kSiblings = {.name = "siblings",
                             .sizes = "A=2,3 B=3,4 C=4,2 D=3,5",
                             .leaves = "x:A,B w:B,C v:B,D",
                             .ops = "matmul concat split"};
constexpr World kProducts = {.name = "products",
                             .sizes = "A=2,3 B=3,4 C=4,2",
                             .leaves = "x:A,B y:A,B w:B,C v:B,C",
                             .ops = "matmul add concat"};
constexpr World kCube = {.name = "cube",
                         .sizes = "A=2,3 B=3,4 C=4,2",
                         .leaves = "x:A,B,C y:A,B,C",
                         .ops = "concat split transpose reduce_sum"};
Enumeration EquationsOf(const World& world, int ops_max) {
  const auto universe = ReadWorld(world);
  EXPECT_TRUE(universe.ok()) << Message(universe.status());
  return Enumerate(*universe, {.ops_max = ops_max});
}

// An equation by the begin of its source and target in plain text.
struct OneEquation {
  const char* name;
  World world;
  int ops_max;
  const char* source;
  const char* target;
  const char* rule;  // "[class]: source => target if guard".
};

const OneEquation kEquations[] = {
    {"a sum of convolutions is one convolution, and its bias a sum", kConvs, 3,
     "add(conv.c(x, y, z), conv.c(w, v, u))", "conv.c(concat(x, w; axis=1), concat(y, v; axis=1)",
     "[rounding]: add(conv.c(x, y, z; group=1), conv.c(w, v, u; group=1)) => "
     "conv.c(concat(x, w; axis=1), concat(y, v; axis=1), add(z, u)) "
     "if shape_but(x, 1) == shape_but(w, 1), shape_but(y, 1) == shape_but(v, 1)"},
    {"convolutions of one input are one convolution, and its bias a concat", kConvs, 3,
     "conv.c(x, y, z), conv.c(x, w, v)", "split(m1:conv.c(x, concat(y, w; axis=0)",
     "[exact]: each i: conv.c(x, y[i], z[i]; group=1) => "
     "split(conv.c(x, concat(y[i]...; axis=0), concat(z[i]...; axis=0)); axis=1, "
     "sizes=[dim(y[i], 0)...])[i] if yk0 = shape_but(y[i], 0)"},
    {"any number of operands, and where a transpose puts an axis", kCube, 3,
     "transpose(concat(x, y; axis=0); perm=[1, 2, 0])", "concat(transpose(x",
     "[exact]: transpose(concat(x[i]...; axis=axis); perm=perm) => "
     "concat(transpose(x[i]; perm=perm)...; axis=find(perm, axis))"},
    {"roots that share an input", kSiblings, 3, "matmul(x, y), matmul(x, z)",
     "split(m1:matmul(x, concat(y, z; axis=1))",
     "[exact]: each i: matmul(x, y[i]) => split(matmul(x, concat(y[i]...; axis=rank(x) - 1)); "
     "axis=rank(x) - 1, sizes=[dim(y[i], -1)...])[i] if rank(x) == rank(y[i])"},
    {"what a concat joins may differ along its axis, though it did not where it was found",
     kProducts, 3, "add(matmul(x, y), matmul(z, w))",
     "matmul(concat(x, z; axis=1), concat(y, w; axis=0))",
     "[rounding]: add(matmul(x, y), matmul(z, w)) => "
     "matmul(concat(x, z; axis=rank(x) - 1), concat(y, w; axis=rank(x) - 2)) "
     "if shape_but(x, -1) == shape_but(z, -1), shape_but(y, -2) == shape_but(w, -2), "
     "rank(z) == rank(w)"},
};

class Equations : public ::testing::TestWithParam<OneEquation> {};

TEST_P(Equations, BecomeRules) {
  const OneEquation& wanted = GetParam();
  const Enumeration found = EquationsOf(wanted.world, wanted.ops_max);
  const Wording plain{.axes = Wording::Axes::kLiteral, .lists = false};
  std::vector<std::string> bodies;
  for (const Equation& e : found.equations) {
    for (const auto& [source, target] : {std::pair(e.left, e.right), std::pair(e.right, e.left)}) {
      const auto phrases = Say(*e.table, source, target, plain);
      if (phrases.empty() || phrases[0].With({}).find(" => ") == std::string::npos) continue;
      const std::string text = phrases[0].With({});
      const std::string head = std::string(wanted.source) + " => " + wanted.target;
      if (!text.starts_with(head)) continue;
      const auto rule = Generalize(*e.table, source, target, {.rounds = 1, .instances = 30});
      bodies.push_back(rule ? rule->body : "nothing for " + text);
    }
  }
  EXPECT_THAT(bodies, ::testing::Contains(wanted.rule)) << wanted.name;
}

INSTANTIATE_TEST_SUITE_P(All, Equations, ::testing::ValuesIn(kEquations),
                         [](const auto& info) { return std::to_string(info.index); });

TEST(Generalize, ATextThatWasRefusedIsNotTriedAgain) {
  constexpr World kOrder = {
      .name = "order", .rationals = true, .sizes = "A=2,3", .leaves = "x:A", .ops = "relu"};
  const Enumeration found = EquationsOf(kOrder, 2);
  ASSERT_EQ(found.equations.size(), 1u);
  const Equation& e = found.equations[0];
  Verdicts screened, unproved;
  const ProofOptions options{
      .rounds = 1, .instances = 30, .screened = &screened, .unproved = &unproved};
  const auto rule = Generalize(*e.table, e.right, e.left, options);
  ASSERT_TRUE(rule.has_value());
  EXPECT_EQ(rule->body, "[exact]: relu(relu(x)) => relu(x)");
  EXPECT_EQ(screened.Find("relu(relu(x)) => relu(x)"), true);
  EXPECT_EQ(screened.Find("unary.f(unary.f(x)) => unary.f(x)"), false);
  EXPECT_EQ(unproved.Find(rule->body), std::nullopt);  // It was proved.
  unproved.Add(rule->body, true);
  EXPECT_FALSE(Generalize(*e.table, e.right, e.left, options).has_value());
}

Residue Flip(Residue x, Residue) { return Residue{} - x; }

TEST(Extra, HoldsAgainOnFreshValues) {
  const ExtraOperator extra[] = {{"flip", 1, Flip}};
  const auto universe =
      ReadWorld({.name = "line", .sizes = "A=2,3", .leaves = "x:A y:A", .ops = "add"});
  ASSERT_TRUE(universe.ok()) << Message(universe.status());
  const Enumeration found = Enumerate(*universe, {.ops_max = 2, .extra = extra});
  ASSERT_FALSE(found.equations.empty());
  for (const Equation& e : found.equations) {
    EXPECT_TRUE(HoldsAgain(*e.table, e.left[0], e.right[0], 5));
    // The two leaves are the first terms.
    EXPECT_FALSE(HoldsAgain(*e.table, 0, 1, 5));
  }
}

}  // namespace
}  // namespace ag::generate

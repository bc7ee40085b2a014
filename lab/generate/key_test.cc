#include "lab/generate/key.h"

#include <gtest/gtest.h>

#include "graph/text_form.h"

namespace ag::generate {
namespace {

// Two graphs over x, y and z; whether their keys are the same, without and with groupings.
struct TwoGraphs {
  const char* name;
  const char* a;
  const char* b;
  bool same, grouped;
};
const TwoGraphs kTwoGraphs[] = {
    {"order of a sum", "add(x, y)", "add(y, x)", true, true},
    {"order of a difference", "sub(x, y)", "sub(y, x)", false, false},
    {"another input", "relu(x)", "relu(y)", false, false},
    {"another operator", "relu(x)", "exp(x)", false, false},
    {"a sum grouped otherwise", "add(x, add(y, z))", "add(add(z, x), y)", false, true},
    {"another sum", "add(x, add(y, z))", "add(add(z, z), y)", false, false},
    {"a join grouped otherwise", "concat(x, concat(y, z) axis=0) axis=0",
     "concat(concat(x, y) axis=0, z) axis=0", false, true},
    {"a join in another order", "concat(x, concat(y, z) axis=0) axis=0",
     "concat(concat(y, x) axis=0, z) axis=0", false, false},
    {"joins along two axes", "concat(concat(x, y) axis=0, concat(z, z) axis=0) axis=1",
     "concat(concat(x, y) axis=0, concat(z, z) axis=0) axis=0", false, false},
    {"a product is not grouped", "mul(x, mul(y, z))", "mul(mul(x, y), z)", false, false},
    {"another attribute", "softmax(x) axis=0", "softmax(x) axis=1", false, false},
    {"another number", "leaky_relu(x) alpha=0.5", "leaky_relu(x) alpha=0.25", false, false},
    {"another list", "transpose(concat(x, y) axis=0) perm=[1,0]",
     "transpose(concat(x, y) axis=0) perm=[0,1]", false, false},
    {"zeros", "sub(x, x)", "sub(y, y)", true, true},
    {"a sum of zeros", "add(sub(x, x), sub(y, y))", "sub(z, z)", true, true},
    {"a product with zeros is computed", "mul(sub(x, x), y)", "sub(z, z)", false, false},
    {"zeros of another shape", "concat(sub(x, x), sub(y, y)) axis=0", "sub(z, z)", false, false},
};

Graph GraphOfText(const std::string& text) {
  return ParseGraph("input x f64[2,2]\ninput y f64[2,2]\ninput z f64[2,2]\noutput o = " + text +
                    "\n")
      .value();
}

TEST(KeyOf, TellsGraphsApart) {
  for (const TwoGraphs& c : kTwoGraphs) {
    const Graph a = GraphOfText(c.a), b = GraphOfText(c.b);
    EXPECT_EQ(KeyOf(a) == KeyOf(b), c.same) << c.name;
    const OpMask grouped = MaskOf(OpKind::kAdd) | MaskOf(OpKind::kConcat);
    EXPECT_EQ(KeyOf(a, grouped) == KeyOf(b, grouped), c.grouped) << c.name;
  }
}

// A long key is a digest.
TEST(KeyOf, StaysShort) {
  std::string text = "relu(x)";
  for (int i = 0; i < 12; ++i) text = "add(" + text + ", exp(" + text + "))";
  EXPECT_LT(KeyOf(GraphOfText(text)).size(), 1000u);
}

TEST(KeyOf, TellsTheOutputsOfAnOperatorApart) {
  const auto key = [](const char* first, const char* second) {
    return KeyOf(ParseGraph(std::string("input x f64[4]\np, q = split(x) axis=0 sizes=[2,2]\n") +
                            "output a = relu(" + first + ")\noutput b = exp(" + second + ")\n")
                     .value());
  };
  EXPECT_NE(key("p", "q"), key("q", "p"));
  EXPECT_NE(key("p", "p"), key("q", "q"));
}

}  // namespace
}  // namespace ag::generate

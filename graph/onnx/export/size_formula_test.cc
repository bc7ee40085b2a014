#include "graph/onnx/export/size_formula.h"

#include <gtest/gtest.h>

#include "absl/strings/str_join.h"

namespace ag {
namespace {

// Batch, sequence, height and a size behind two strides of two.
const std::vector<KnownSize> kSizes = {
    {{{0, 0}, 0}, {3, 5, 7}},
    {{{0, 0}, 1}, {125, 123, 117}},
    {{{1, 0}, 2}, {221, 219, 213}},
};

// Returns "2*b*s + 1", "h/4", ... or "none".
std::string Text(const std::optional<SizeFormula>& formula) {
  if (!formula) return "none";
  std::vector<std::string> terms;
  for (const SizeFormula::Term& term : formula->terms) {
    std::string text = term.times == 1 ? "" : fmt::format("{}*", term.times);
    text += absl::StrJoin(term.sizes, "*", [](std::string* out, const SizePlace& place) {
      *out += place.edge.node == 1 ? "h" : place.axis == 0 ? "b" : "s";
    });
    terms.push_back(text);
  }
  if (formula->plus != 0 || terms.empty()) terms.push_back(fmt::format("{}", formula->plus));
  std::string text = absl::StrJoin(terms, " + ");
  return formula->divide == 1 ? text : fmt::format("({}) / {}", text, formula->divide);
}

TEST(SizeFormula, IsTheSimplestThatGivesAllExamples) {
  struct Case {
    std::vector<int64_t> values;
    const char* formula;
  };
  const Case kCases[] = {
      {{4, 4, 4}, "4"},
      {{3, 5, 7}, "b"},
      {{36, 60, 84}, "12*b"},
      {{126, 124, 118}, "s + 1"},
      {{375, 615, 819}, "b*s"},
      {{3000, 4920, 6552}, "8*b*s"},
      {{82875, 134685, 174447}, "b*s*h"},
      {{376, 616, 820}, "b*s + 1"},
      {{128, 128, 124}, "b + s"},
      {{129, 129, 125}, "b + s + 1"},
      {{56, 55, 54}, "(h + 3) / 4"},
      {{55, 54, 53}, "(h) / 4"},
      {{8, 16, 23}, "none"},
  };
  for (const Case& c : kCases) {
    EXPECT_EQ(Text(FindFormula(c.values, kSizes)), c.formula) << c.formula;
  }
}

TEST(SizeFormula, NeedsASizeThatDiffers) {
  const std::vector<KnownSize> same = {{{{0, 0}, 0}, {4, 4, 4}}};
  EXPECT_EQ(Text(FindFormula(std::vector<int64_t>{1, 2, 3}, same)), "none");
  EXPECT_EQ(Text(FindFormula(std::vector<int64_t>{9, 9, 9}, {})), "9");
}

}  // namespace
}  // namespace ag

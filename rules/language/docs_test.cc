// The worked example of docs/rules.md parses and is the built-in rule.
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/text.h"
#include "rules/language/rule_set.h"
#include "rules/sets/built_in_rules.h"

namespace ag {
namespace {

// Returns the indented lines below `heading`, up to the next heading, without indentation.
std::string BlockBelow(const std::string& page, const std::string& heading) {
  std::string block;
  bool below = false;
  for (const std::string_view line : Split(page, '\n')) {
    if (line.starts_with("#")) below = line == heading;
    if (below && line.starts_with("    ")) block += std::string(line.substr(4)) + "\n";
  }
  return block;
}

TEST(Docs, TheWorkedExampleIsTheBuiltInRule) {
  const std::string page = *ReadFile(std::string(AG_SOURCE_DIR) + "/docs/rules.md");
  const StatusOr<RuleSet> shown =
      RuleSet::Parse(BlockBelow(page, "## A worked example"), "rules.md");
  ASSERT_TRUE(shown.ok()) << ToString(shown.status());
  ASSERT_EQ(shown->rules().size(), 1u);
  const Rule& rule = shown->rules()[0];
  const Rule* built_in = BuiltInRules().Find(rule.name);
  ASSERT_NE(built_in, nullptr) << rule.name;
  EXPECT_EQ(rule.text, built_in->text);
}

// Every form of "The parts", each in a rule of its own.
TEST(Docs, ThePartsParse) {
  const struct {
    const char* written;  // As in the table.
    const char* rule;
  } kCases[] = {
      {"`x`, `w[i]`", "a [exact]: each i: add(x, w[i]) => add(w[i], x)"},
      {"`relu(t)`, `conv(x, w, b; group=g)`",
       "a [exact]: relu(conv(x, w, b; group=g)) => relu(relu(conv(x, w, b; strides=[1, 1], "
       "pads=[0, 0, 0, 0], dilations=[1, 1], group=g)))"},
      {"`unary.f(t)`, `zero_unary.f(t)`, `binary.f(s, t)`",
       "a [exact]: binary.f(unary.g(x), zero_unary.h(y)) => binary.f(unary.g(x), zero_unary.h(y))"},
      {"`reduction.r(t; axes=a)`",
       "a [exact]: reduction.r(x; axes=a) => reduction.r(x) if count(a) == 1"},
      {"`pool.p(t; strides=s)`", "a [exact]: pool.p(x; strides=s) => pool.p(x; strides=s)"},
      {"`conv.c(...)`", "a [exact]: conv.c(x, w, b) => conv.c(x, w, b; group=1)"},
      {"`; axis=a`", "a [exact]: concat(x, y; axis=a) => concat(x, y; axis=a)"},
      {"`; sizes=[dim(x, 0) - 2, 2]`",
       "a [exact]: split(x; axis=0, sizes=[dim(x, 0) - 2, 2])[0] => x"},
      {"`y:conv(...)`", "a [exact]: relu(y:conv(x, w, b)) => y"},
      {"`{e}`, `{0.5}`, `2`", "a [exact]: mul(add(x, {e}), add({0.5}, 2)) => add(x, {e})"},
      {"`t...`", "a [exact]: concat(relu(x[i])...; axis=a) => relu(concat(x[i]...; axis=a))"},
      {"`split(...)[i]`, `split(...)[0]`",
       "a [exact]: each i: split.s(relu(x))[i] => relu(split.s(x)[i])"},
      {"`s, t => u, v`", "a [exact]: relu(x), tanh(x) => x, x"},
  };
  const std::string page = *ReadFile(std::string(AG_SOURCE_DIR) + "/docs/rules.md");
  for (const auto& c : kCases) {
    EXPECT_NE(page.find(fmt::format("\n| {}", c.written)), std::string::npos) << c.written;
    const StatusOr<RuleSet> set = RuleSet::Parse(c.rule, "f.rules");
    EXPECT_TRUE(set.ok()) << c.written << ": " << ToString(set.status());
  }
}

}  // namespace
}  // namespace ag

// Tests of rules list and verify: verdicts, the verdict cache, and files that cannot be
// loaded.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "client/cli/testing/testing.h"
#include "client/cli/verbs.h"
#include "rules/language/rule_set.h"
#include "rules/sets/built_in_rules.h"

namespace ag {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kMixed =
    "right [exact]: relu(relu(x)) => relu(x)\n"
    "wrong [exact]: relu(neg(x)) => relu(x)\n"
    "conv [rounding]: add(conv.c(x, w, b), conv.c(x, v, d)) => conv.c(x, add(w, v), add(b, d)) \\\n"
    "  if same_shape(w, v)\n";

class RulesTest : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const { return folder_.path() + "/" + name; }
  std::string Write(const std::string& name, const std::string& text) {
    AG_CHECK(WriteFileAtomically(Path(name), text).ok());
    return Path(name);
  }
  Ran Verify(const RulesFlags& flags, CommonFlags common = {}) const {
    common.data_dir = Path("data");
    Context context(common);
    return Capture([&] { return context.CodeOf(RunRulesVerify(context, flags)); });
  }
  static Ran List(bool json, const RulesFlags& flags) {
    Context context({.json = json});
    return Capture([&] { return context.CodeOf(RunRulesList(context, flags)); });
  }
  const TempDir folder_ = *TempDir::Make("rules-verb-test");
};

TEST_F(RulesTest, AreListed) {
  const Ran built_in = List(true, RulesFlags());
  EXPECT_EQ(built_in.json().size(), BuiltInRules().rules().size());
  const Ran own =
      List(false, {.file = Write("a.rules", "twice [exact]: relu(relu(x)) => relu(x)\n")});
  EXPECT_EQ(own.code, kExitOk) << own.err;
  EXPECT_EQ(own.out,
            "twice                                exact     search    " + Path("a.rules") + "\n");
  EXPECT_EQ(List(false, {.file = "/none"}).err,
            "autograph: read /none: No such file or directory\n");
}

TEST_F(RulesTest, AWrongRuleIsRefusedWithItsSmallestCase) {
  const RulesFlags flags{.file = Write("a.rules", kMixed), .instances = 5};
  const Ran ran = Verify(flags, {.verbose = true});
  EXPECT_EQ(ran.code, kExitFailed) << ran.err;
  EXPECT_THAT(ran.out, StartsWith("proved   right                                   5 instances  "
                                  "rationals\n         axis of size 1 "));
  EXPECT_THAT(ran.out, HasSubstr("\nREFUSED  wrong "));
  EXPECT_THAT(ran.out, HasSubstr("output o0 element 0: 1 before, 0 after\nx0 = {-1}\nseed 1\n"));
  EXPECT_THAT(ran.out, HasSubstr("\n2 proved, 1 refused; 0 known from before; "));
  const auto json = Verify(flags, {.json = true}).json();
  EXPECT_EQ(json[0]["proved"], true);
  EXPECT_EQ(json[1]["proved"], false);
  EXPECT_EQ(json[1]["line"], 2);
  EXPECT_NE(json[1]["counter_example"], "");
  EXPECT_EQ(json[2]["arithmetic"], "field");
  EXPECT_GE(json[2]["classes"]["depthwise"], 1);
}

TEST_F(RulesTest, VerdictsAreRememberedByTextOptionsAndVersion) {
  RulesFlags flags{.file = Write("a.rules", kMixed), .instances = 5, .jobs = 2};
  const auto cached = [&](const RulesFlags& f) {
    std::vector<bool> out;
    const nlohmann::json json = Verify(f, {.json = true}).json();
    for (const auto& verdict : json) out.push_back(verdict["cached"]);
    return out;
  };
  using Flags = std::vector<bool>;
  EXPECT_EQ(cached(flags), Flags({false, false, false}));
  EXPECT_EQ(cached(flags), Flags({true, true, true}));
  auto before = Verify(flags, {.json = true}).json();
  RulesFlags anew = flags;
  anew.no_cache = true;
  EXPECT_EQ(cached(anew), Flags({false, false, false}));
  auto again = Verify(anew, {.json = true}).json();
  for (size_t i = 0; i < again.size(); ++i) {
    EXPECT_EQ(again[i]["cached"], false);
    again[i]["cached"] = true;
    EXPECT_EQ(again[i], before[i]) << "a remembered verdict is the one that was reached";
  }
  RulesFlags other = flags;
  other.seed = 2;
  EXPECT_EQ(cached(other), Flags({false, false, false}));
  // Another name makes another rule; the others stay known.
  Write("a.rules", std::string("new [exact]: tanh(x) => tanh(x)\n") + kMixed);
  EXPECT_EQ(cached(flags), Flags({false, true, true, true}));
}

TEST_F(RulesTest, DamagedVerdictsAreProvedAgain) {
  const RulesFlags flags{.file = Write("a.rules", "r [exact]: relu(relu(x)) => relu(x)\n"),
                         .instances = 5};
  EXPECT_EQ(Verify(flags).code, kExitOk);
  const std::string good = *ReadFile(Path("data/verdicts.jsonl"));
  const std::string key = good.substr(0, good.find(','));
  for (const std::string& text :
       {std::string("{"), std::string(), key + "}\n", key + ",\"proved\":true}\n",
        std::string("[1]\n3\nnull\n"), key + R"(,"rule":1,"proved":"yes"})" + "\n"}) {
    Write("data/verdicts.jsonl", text);
    const Ran ran = Verify(flags);
    EXPECT_EQ(ran.code, kExitOk);
    EXPECT_THAT(ran.out, HasSubstr("0 known from before")) << text;
    EXPECT_THAT(Verify(flags).out, HasSubstr("1 known from before")) << text;
  }
}

TEST_F(RulesTest, AFolderThatCannotBeWrittenIsNoFailure) {
  Write("data", "a file, not a folder");
  const Ran ran =
      Verify({.file = Write("a.rules", "r [exact]: relu(relu(x)) => relu(x)\n"), .instances = 5});
  EXPECT_EQ(ran.code, kExitOk);
  EXPECT_THAT(ran.err, StartsWith("verdicts are not remembered: "));
}

struct BadFile {
  const char* kind;
  const char* rule;
  const char* place;  // line:column.
  const char* what;   // The rest of the message.
};

// Every kind of bad rule after a good one: the whole file is refused.
TEST_F(RulesTest, BadFilesAreRefusedWithPlaceLineAndCaret) {
  const BadFile kCases[] = {
      {"syntax", "b [exact]: relu(x) = x", "2:20", "expected '=>'"},
      {"no class", "b: relu(x) => x", "2:2", "expected '['"},
      {"unbound variable", "b [exact]: relu(x) => y", "2:23", "unbound variable 'y'"},
      {"unbound in a guard", "b [exact]: relu(x) => x if const(y)", "2:34", "unbound variable 'y'"},
      {"wrong arity", "b [exact]: add(x) => x", "2:12", "add takes 2 operands, not 1"},
      {"unknown operator", "b [exact]: rely(x) => x", "2:12", "unknown operator 'rely'"},
      {"unknown attribute", "b [exact]: concat(x, y; axes=1) => x", "2:25",
       "concat has no attribute 'axes'"},
      {"unknown guard", "b [exact]: relu(x) => x if even(x)", "2:28",
       "unknown guard or function 'even'"},
      {"shape-changing right side", "b [exact]: reduce_sum(x; axes=a, keepdims=1) => x", "2:49",
       "rule 'b': the target has type f64["},
      {"type-changing right side", "b [exact]: equal(x, y) => x if same_shape(x, y)", "2:27",
       "rule 'b': the target has type f64"},
      {"ill-typed right side", "b [exact]: relu(x) => matmul(x, x) if rank(x) != 2", "2:23",
       "rule 'b': matmul: "},
      {"duplicate name", "a [exact]: tanh(x) => x", "2:1", "rule 'a' stands in line 1 already"},
  };
  for (const BadFile& c : kCases) {
    SCOPED_TRACE(c.kind);
    const std::string file =
        Write("bad.rules", fmt::format("a [exact]: relu(relu(x)) => relu(x)\n{}\n", c.rule));
    const Ran ran = Verify({.file = file, .instances = 5});
    EXPECT_EQ(ran.code, kExitInput);
    EXPECT_EQ(ran.out, "") << "nothing of the file is proved";
    EXPECT_THAT(ran.err, StartsWith(fmt::format("autograph: {}:{}: {}", file, c.place, c.what)));
    const int column = std::stoi(std::string(c.place).substr(2));
    EXPECT_THAT(ran.err, HasSubstr(fmt::format("\n  {}\n  {}^\n", c.rule,
                                               std::string(static_cast<size_t>(column - 1), ' '))));
    EXPECT_FALSE(FileExists(Path("data")));
  }
}

}  // namespace
}  // namespace ag

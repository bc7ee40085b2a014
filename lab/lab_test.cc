// Tests of the lab's verbs: what generate and import write is what verify proves; walks; bad files;
// help.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "autograph/v1/taso.pb.h"
#include "base/file.h"
#include "client/cli/testing/testing.h"
#include "client/cli/verbs.h"
#include "graph/onnx/testing/onnx_testing.h"
#include "lab/commands.h"
#include "lab/verbs.h"

namespace ag {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

template <class Verb, class Flags>
Ran RunVerb(bool json, Verb verb, const Flags& flags) {
  Context context({.json = json});
  return Capture([&] { return context.CodeOf(verb(context, flags)); });
}

class LabTest : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const { return folder_.path() + "/" + name; }

  std::string Write(const std::string& name, const std::string& text) {
    AG_CHECK(WriteFileAtomically(Path(name), text).ok());
    return Path(name);
  }

  static Ran Call(std::vector<std::string> words) {
    words.insert(words.begin(), "autograph-lab");
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    return Capture([&] { return LabMain(static_cast<int>(argv.size()), argv.data()); });
  }

 private:
  const TempDir folder_ = *TempDir::Make("lab-test-");
};

TEST_F(LabTest, GenerateWritesWhatVerifyProves) {
  const std::string file = Path("found.rules");
  const Ran ran = Call({"generate", "-o", file, "--max-ops", "2", "--ops", "relu,transpose",
                        "--proofs", "1", "--json"});
  ASSERT_EQ(ran.code, kExitOk) << ran.err;
  const auto json = ran.json();
  EXPECT_EQ(json["complete"], true);
  EXPECT_GT(json["rules"], 3);
  EXPECT_GT(json["graphs"], 100);
  CommonFlags common{.json = true};
  common.data_dir = Path("data");
  Context context(common);
  const Ran verified =
      Capture([&] { return context.CodeOf(RunRulesVerify(context, {.file = file, .seed = 4})); });
  EXPECT_EQ(verified.code, kExitOk) << verified.out;
  EXPECT_EQ(verified.json().size(), json["rules"]);
}

TEST_F(LabTest, GenerateRefuses) {
  EXPECT_EQ(Call({"generate", "-o", Path("no/such/folder.rules")}).code, kExitInput);
  const Ran unknown = Call({"generate", "-o", Path("a.rules"), "--ops", "softmaxx"});
  EXPECT_EQ(unknown.code, kExitInput);
  EXPECT_THAT(unknown.err, StartsWith("autograph-lab: "));
  EXPECT_THAT(unknown.err, HasSubstr("no operator is called 'softmaxx'"));
  EXPECT_EQ(Call({"generate", "-o", Path("a.rules"), "--max-ops", "5"}).code, kExitUsage);
}

// relu(relu(x1)) => relu(x1), and relu(x1) => tanh(x1), in TASO's format.
std::string TasoBytes() {
  const auto add = [](auto* side, int type, int input) {
    auto* op = side->Add();
    op->set_type(type);
    op->add_input()->set_op(input);
    op->mutable_input(0)->set_output(0);
  };
  autograph::v1::TasoRuleFile file;
  auto* twice = file.add_rule();
  add(twice->mutable_source(), 8, -1);
  add(twice->mutable_source(), 8, 0);
  add(twice->mutable_target(), 8, -1);
  twice->add_mapping()->set_source_op(1);
  auto* wrong = file.add_rule();
  add(wrong->mutable_source(), 8, -1);
  add(wrong->mutable_target(), 10, -1);
  wrong->add_mapping();
  return file.SerializeAsString();
}

TEST_F(LabTest, CoverageSaysWhatIsUnknown) {
  const TasoFlags flags{.file = Write("a.pb", TasoBytes())};
  const Ran ran = RunVerb(false, RunCoverage, flags);
  EXPECT_EQ(ran.code, kExitFailed) << ran.err;
  EXPECT_TRUE(ran.out.starts_with("0                        implied   relu-idempotent\n"))
      << ran.out;
  EXPECT_TRUE(ran.out.ends_with("\n9 implied, 10 repaired, 0 noise, 1 unknown\n")) << ran.out;
  const auto json = RunVerb(true, RunCoverage, flags).json();
  EXPECT_EQ(json["rules"].size(), 20u);
  EXPECT_EQ(json["rules"][1]["verdict"], "unknown");
  EXPECT_EQ(json["summary"], "9 implied, 10 repaired, 0 noise, 1 unknown");
  TasoFlags by = flags;  // Other rules than the built-in ones.
  by.rules = Write("none.rules", "neg-twice [exact]: neg(neg(x)) => x\n");
  EXPECT_TRUE(RunVerb(false, RunCoverage, by).out.starts_with("0                        unknown"));
  by.rules = Path("no.rules");
  EXPECT_EQ(RunVerb(false, RunCoverage, by).code, kExitInput);
  EXPECT_EQ(RunVerb(false, RunCoverage, TasoFlags{.file = Path("none.pb")}).code, kExitInput);
  const std::string damaged = Write("b.pb", TasoBytes().substr(0, 9));
  const Ran cut = RunVerb(false, RunCoverage, TasoFlags{.file = damaged});
  EXPECT_EQ(cut.code, kExitInput);
  EXPECT_EQ(cut.err, "autograph: " + damaged + ": byte 0: rule 0 is cut off: 7 bytes are left\n");
}

TEST_F(LabTest, ImportWritesWhatIsProvedAndCommentsOutTheRest) {
  const TasoFlags flags{.file = Write("a.pb", TasoBytes()), .output = Path("a.rules")};
  const Ran ran = RunVerb(false, RunImport, flags);
  EXPECT_EQ(ran.code, kExitOk) << ran.err;
  EXPECT_EQ(ran.out, flags.output + ": 1 of 2 rules proved, the others commented out\n");
  const std::string text = *ReadFile(flags.output);
  EXPECT_NE(text.find("\ntaso-0 [exact]: relu(relu(x1)) => relu(x1)\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\n# taso-1 [rounding]: relu(x1) => tanh(x1)\n"), std::string::npos) << text;
  EXPECT_NE(text.find("#   output o0 element "), std::string::npos) << text;
  const Ran verified = RunVerb(false, RunRulesVerify, RulesFlags{.file = flags.output});
  EXPECT_EQ(verified.code, kExitOk) << verified.out;
  EXPECT_EQ(RunVerb(true, RunImport, flags).json()["proved"], 1);
  EXPECT_EQ(RunVerb(false, RunImport, TasoFlags{.file = flags.file, .output = "/none/x"}).code,
            kExitInput);
}

// A wrong command line and a wrong file print a document as well.
TEST_F(LabTest, EveryErrorIsADocument) {
  const std::string text = Write("text.pb", "this is not a rule file"), gone = Path("none/o");
  const struct {
    std::vector<std::string> words;
    int exit, code;
  } cases[] = {
      {{"covrage", text}, 2, 3},
      {{"coverage", text}, 3, 3},
      {{"import", gone, "-o", Path("o")}, 3, 5},
      {{"generate", "-o", gone}, 3, 9},
  };
  for (const auto& c : cases) {
    std::vector<std::string> words = c.words;
    words.push_back("--json");
    const Ran ran = Call(words);
    EXPECT_EQ(ran.code, c.exit) << c.words[0] << ": " << ran.err;
    EXPECT_EQ(ran.json()["error"]["code"], c.code) << c.words[0];
    EXPECT_THAT(ran.err, HasSubstr(ran.json()["error"]["message"].get<std::string>()));
  }
}

// A model is rewritten, a broken one is refused with the reason, and a second run leaves both out.
TEST_F(LabTest, WalkRewritesAFolder) {
  Write("broken.onnx", "no model");
  Write("notes.txt", "not looked at");
  Write("net.onnx", testing::ModelFromText("net (float[2,8] x, float[8,4] w) => (float[2,4] y) {"
                                           "a = MatMul (x, w) b = Relu (a) c = Identity (b) "
                                           "y = Relu (c) }",
                                           13));
  const Ran ran = Call({"walk", Path("."), "--steps", "3", "--seed", "2"});
  EXPECT_EQ(ran.code, kExitOk) << ran.err;
  EXPECT_EQ(ran.out, "1 rewritten, 1 refused\n");
  const std::string before = *ReadFile(Path("net.onnx")), after = *ReadFile(Path("net.rewritten"));
  EXPECT_THAT(before, HasSubstr("Identity"));
  EXPECT_THAT(after, Not(HasSubstr("Identity")));
  EXPECT_THAT(*ReadFile(Path("broken.refused")), HasSubstr("not ONNX"));
  EXPECT_EQ(Call({"walk", Path(".")}).out, "0 rewritten, 0 refused\n");
  const Ran missing = Call({"walk", Path("nowhere")});
  EXPECT_NE(missing.code, kExitOk);
  EXPECT_THAT(missing.err, HasSubstr("nowhere"));
}

TEST_F(LabTest, HelpNamesTheVerbs) {
  const std::string help = Call({"--help"}).out;
  for (const char* verb : {"generate", "coverage", "import", "walk"})
    EXPECT_THAT(help, HasSubstr(verb));
  EXPECT_THAT(Call({"--version"}).out, StartsWith("autograph-lab "));
}

}  // namespace
}  // namespace ag

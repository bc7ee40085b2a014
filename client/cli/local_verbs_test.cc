// Tests of the verbs that need neither server nor embedded service: zoo, bench, plan show.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "autograph/v1/taso.pb.h"
#include "base/digest.h"
#include "base/file.h"
#include "bench/zoo/zoo.h"
#include "client/cli/testing.h"
#include "client/cli/verbs.h"

namespace ag {
namespace {

template <class Verb, class Flags>
Ran Call(bool json, Verb verb, const Flags& flags) {
  Context context({.json = json});
  return Capture([&] { return verb(context, flags); });
}

class LocalVerbsTest : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const { return folder_.path() + "/" + name; }
  std::string Write(const std::string& name, const std::string& text) {
    AG_CHECK(WriteFileAtomically(Path(name), text).ok());
    return Path(name);
  }
  Ran Show(bool json, const ModelFlags& model) const {
    Context context({.data_dir = Path("data"), .json = json});
    return Capture([&] { return RunPlanShow(context, {.model = model}); });
  }
  ModelFlags Tiny() {
    return {.model = Write("tiny.onnx", *ZooModelOnnx("tiny_cnn")), .device = "sim:small"};
  }
  const TempDir folder_ = *TempDir::Make("local-verbs-test");
};

TEST_F(LocalVerbsTest, TheZooWritesItsModels) {
  EXPECT_EQ(Call(true, RunZoo, ZooFlags{.list = true}).json().size(), Zoo().size());
  const ZooFlags flags{.name = "tiny_cnn", .output = Path("m.onnx"), .batch = 2, .seed = 3};
  const Ran ran = Call(true, RunZoo, flags);
  EXPECT_EQ(ran.code, kExitOk) << ran.err;
  const std::string bytes = *ReadFile(flags.output);
  EXPECT_EQ(bytes, *ZooModelOnnx("tiny_cnn", {.batch = 2, .seed = 3}));
  EXPECT_EQ(ran.json()["sha256"], Sha256(bytes).Hex());
  EXPECT_EQ(Call(false, RunZoo, ZooFlags{.name = "tiny_cn", .output = Path("n")}).code, kExitInput);
  EXPECT_FALSE(FileExists(Path("n")));
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

TEST_F(LocalVerbsTest, CoverageSaysWhatIsUnknown) {
  const TasoFlags flags{.file = Write("a.pb", TasoBytes())};
  const Ran ran = Call(false, RunRulesCoverage, flags);
  EXPECT_EQ(ran.code, kExitFailed) << ran.err;
  EXPECT_TRUE(ran.out.starts_with("0                        implied   relu-idempotent\n"))
      << ran.out;
  EXPECT_TRUE(ran.out.ends_with("\n9 implied, 10 repaired, 0 noise, 1 unknown\n")) << ran.out;
  const auto json = Call(true, RunRulesCoverage, flags).json();
  EXPECT_EQ(json["rules"].size(), 20u);
  EXPECT_EQ(json["rules"][1]["verdict"], "unknown");
  EXPECT_EQ(json["summary"], "9 implied, 10 repaired, 0 noise, 1 unknown");
  TasoFlags by = flags;  // Other rules than the shipped ones.
  by.rules = Write("none.rules", "neg-twice [exact]: neg(neg(x)) => x\n");
  EXPECT_TRUE(
      Call(false, RunRulesCoverage, by).out.starts_with("0                        unknown"));
  by.rules = Path("no.rules");
  EXPECT_EQ(Call(false, RunRulesCoverage, by).code, kExitInput);
  EXPECT_EQ(Call(false, RunRulesCoverage, TasoFlags{.file = Path("none.pb")}).code, kExitInput);
  const std::string damaged = Write("b.pb", TasoBytes().substr(0, 9));
  const Ran cut = Call(false, RunRulesCoverage, TasoFlags{.file = damaged});
  EXPECT_EQ(cut.code, kExitInput);
  EXPECT_EQ(cut.err, "autograph: " + damaged + ": byte 0: rule 0 is cut off: 7 bytes are left\n");
}

TEST_F(LocalVerbsTest, ImportWritesWhatIsProvedAndCommentsOutTheRest) {
  const TasoFlags flags{.file = Write("a.pb", TasoBytes()), .output = Path("a.rules")};
  const Ran ran = Call(false, RunRulesImport, flags);
  EXPECT_EQ(ran.code, kExitOk) << ran.err;
  EXPECT_EQ(ran.out, flags.output + ": 1 of 2 rules proved, the others commented out\n");
  const std::string text = *ReadFile(flags.output);
  EXPECT_NE(text.find("\ntaso-0 [exact]: relu(relu(x1)) => relu(x1)\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\n# taso-1 [rounding]: relu(x1) => tanh(x1)\n"), std::string::npos) << text;
  EXPECT_NE(text.find("#   output o0 element "), std::string::npos) << text;
  const Ran verified = Call(false, RunRulesVerify, RulesFlags{.file = flags.output});
  EXPECT_EQ(verified.code, kExitOk) << verified.out;
  EXPECT_EQ(Call(true, RunRulesImport, flags).json()["proved"], 1);
  EXPECT_EQ(Call(false, RunRulesImport, TasoFlags{.file = flags.file, .output = "/none/x"}).code,
            kExitInput);
}

TEST_F(LocalVerbsTest, BenchTimesInputAndEager) {
  const Ran ran = Call(true, RunBench, BenchFlags{.model = Tiny(), .streams = 2, .seconds = 0.01});
  ASSERT_EQ(ran.code, kExitOk) << ran.err;
  std::vector<std::string> names;
  const nlohmann::json json = ran.json();
  for (const auto& timing : json["timings"]) {
    names.push_back(timing["name"]);
    EXPECT_GT(timing["latency_ms"]["median"], 0.0);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"input", "eager", "input on 2 streams"}));
  EXPECT_EQ(json["simulated"], true);
  EXPECT_EQ(Call(false, RunBench, BenchFlags{.model = Tiny(), .seconds = 0.01}).err,
            "simulated device: every time is an estimate\n");
  EXPECT_EQ(
      Call(false, RunBench, BenchFlags{.model = {.model = "/none", .device = "sim:small"}}).err,
      "autograph: read /none: No such file or directory\n");
}

TEST_F(LocalVerbsTest, ThePlanIsShown) {
  const Ran ran = Show(false, Tiny());
  EXPECT_EQ(ran.code, kExitOk);
  EXPECT_EQ(ran.err,
            "the model carries no plan; as the input would run:\n"
            "none of its groups was measured here (optimize does)\n");
  const auto json = Show(true, Tiny()).json();
  EXPECT_EQ(json["carried"], false);
  EXPECT_EQ(json["text"].get<std::string>(), ran.out);
  EXPECT_GT(json["groups"], 1);
  EXPECT_FALSE(FileExists(Path("data"))) << "looking makes no store";
}

}  // namespace
}  // namespace ag

// Tests of the verbs that need neither server nor embedded service: zoo, bench, plan show.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/digest.h"
#include "base/file.h"
#include "client/cli/testing/testing.h"
#include "client/cli/verbs.h"
#include "zoo/zoo.h"

namespace ag {
namespace {

template <class Verb, class Flags>
Ran Call(bool json, Verb verb, const Flags& flags) {
  Context context({.json = json});
  return Capture([&] { return context.CodeOf(verb(context, flags)); });
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
    return Capture([&] { return context.CodeOf(RunPlanShow(context, {.model = model})); });
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

TEST_F(LocalVerbsTest, BenchTimesInputAndUnfused) {
  const Ran ran = Call(true, RunBench, BenchFlags{.model = Tiny(), .streams = 2, .seconds = 0.01});
  ASSERT_EQ(ran.code, kExitOk) << ran.err;
  std::vector<std::string> names;
  const nlohmann::json json = ran.json();
  for (const auto& timing : json["timings"]) {
    names.push_back(timing["name"]);
    EXPECT_GT(timing["latency"]["median_ns"], 0.0);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"input", "unfused", "input on 2 streams"}));
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

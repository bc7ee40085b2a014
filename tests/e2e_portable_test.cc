// Times in ONNX Runtime and models for it, end to end: shell scripts stand for Python.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "tests/cluster.h"

namespace ag {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

// An interpreter that answers what `body` writes to descriptor 3; $3 is the request.
std::string Python(Alone& place, const std::string& body) {
  const std::string path = place.Write("python", "#!/bin/sh\n" + body + "\n");
  EXPECT_EQ(chmod(path.c_str(), 0755), 0);
  place.variables["AUTOGRAPH_PYTHON"] = path;
  return path;
}

// Answers nine blocks in which the second model takes `second` of the first one's 100.
std::string Answer(const std::string& second) {
  return "block=\"[100,SECOND,SECOND,100]\"; one=\"[100]\"; "
         "case $3 in *onnx*,*onnx*) b=$(echo $block | sed s/SECOND/" +
         second +
         "/g);; *) b=$one;; esac; "
         "echo \"{\\\"version\\\":\\\"9.9\\\",\\\"blocks\\\":[$b,$b,$b,$b,$b,$b,$b,$b,$b]}\" >&3";
}

std::vector<std::string> Optimize(const Alone& place, const std::vector<std::string>& more) {
  std::vector<std::string> words = {
      "optimize", place.Zoo("tiny_sru"), "-o",    place.path("o.onnx"),
      "--device", "sim:small",           "--json"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

constexpr char kMissing[] = R"(echo '{"missing": "No module named onnxruntime"}' >&3)";

TEST(Elsewhere, TimesStandBesideTheAnswer) {
  Alone place;
  Python(place, Answer("80"));
  const CommandResult plain = place.Cli(Optimize(place, {}));
  EXPECT_EQ(plain.code, 0) << plain.err;
  EXPECT_FALSE(json::parse(plain.out).contains("onnxruntime")) << "a simulated device";
  const CommandResult asked = place.Cli(Optimize(place, {"--ort", "require"}));
  ASSERT_EQ(asked.code, 0) << asked.err;
  const json times = json::parse(asked.out)["onnxruntime"];
  EXPECT_EQ(times["version"], "9.9");
  EXPECT_EQ(times["verdict"], "FASTER");
  EXPECT_EQ(times["speedup"], 1.25);
  const CommandResult bench = place.Cli({"bench", place.path("o.onnx"), "--device", "sim:small",
                                         "--seconds", "0.01", "--ort", "require"});
  EXPECT_THAT(bench.out, HasSubstr("onnxruntime          model 0.000 ms  [9.9, "));
}

TEST(Elsewhere, WithoutItNothingFails) {
  Alone place;
  for (const char* body : {kMissing, "exit 7", "kill -9 $$", "echo nonsense >&3"}) {
    Python(place, body);
    const CommandResult bench = place.Cli(
        {"bench", place.Zoo("tiny_cnn"), "--device", "cpu:1", "--seconds", "0.01", "--json"});
    EXPECT_EQ(bench.code, 0) << body << bench.err;
    EXPECT_TRUE(json::parse(bench.out)["onnxruntime"].contains("error")) << body;
  }
  place.variables["AUTOGRAPH_PYTHON"] = "/none/python";
  const CommandResult text =
      place.Cli({"bench", place.Zoo("tiny_cnn"), "--device", "cpu:1", "--seconds", "0.01"});
  EXPECT_EQ(text.code, 0);
  EXPECT_EQ(text.err,
            "no times from ONNX Runtime: there is no /none/python to ask for ONNX Runtime\n");
}

// What cannot be done at the end is said at the beginning.
TEST(Elsewhere, WhatIsRequiredIsCheckedFirst) {
  Alone place;
  Python(place, kMissing);
  for (const std::vector<std::string>& flags :
       {std::vector<std::string>{"--ort", "require"}, {"--target", "portable"}}) {
    const CommandResult result = place.Cli(Optimize(place, flags));
    EXPECT_EQ(result.code, 4) << flags[0];
    EXPECT_THAT(result.err, HasSubstr("No module named onnxruntime"));
    EXPECT_THAT(result.err, HasSubstr("pip install onnxruntime"));
    EXPECT_EQ(result.out, "");
    EXPECT_FALSE(FileExists(place.path("o.onnx")));
    EXPECT_FALSE(FileExists(place.path("data"))) << "no store was opened, no job begun";
  }
}

TEST(Portable, KeepsWhatIsFasterThere) {
  Alone place;
  Python(place, Answer("80"));
  const CommandResult result = place.Cli(Optimize(place, {"--target", "portable"}));
  ASSERT_EQ(result.code, 0) << result.err;
  const json document = json::parse(result.out);
  const json portable = document["portable"];
  EXPECT_EQ(portable["is_input"], false) << portable.dump(2);
  EXPECT_EQ(portable["speedup"], 1.25);
  EXPECT_EQ(portable["steps"][0]["step"], "clean-up");
  EXPECT_GE(portable["steps"].size(), 2u);
  for (const json& step : portable["steps"]) {
    EXPECT_EQ(step["kept"], step.contains("speedup")) << step.dump();
  }
  EXPECT_EQ(portable["output_sha256"], DigestOfFile(place.path("o.onnx")));
  // Equivalent, and with no plan: it runs as any input would.
  EXPECT_EQ(place
                .Cli({"verify", place.path("tiny_sru.onnx"), "--against", place.path("o.onnx"),
                      "--device", "sim:small"})
                .code,
            0);
  EXPECT_THAT(*ReadFile(place.path("o.onnx")), Not(HasSubstr("autograph.plan")));
  EXPECT_EQ(json::parse(
                place.Cli({"plan", "show", place.path("o.onnx"), "--device", "sim:small", "--json"})
                    .out)["carried"],
            false);
}

TEST(Portable, GivesTheInputBackWhenNothingHelps) {
  Alone place;
  Python(place, Answer("120"));
  const CommandResult result = place.Cli(Optimize(place, {"--target", "portable"}));
  ASSERT_EQ(result.code, 0) << result.err;
  const json portable = json::parse(result.out)["portable"];
  EXPECT_EQ(portable["is_input"], true);
  EXPECT_EQ(portable["speedup"], 1.0);
  EXPECT_EQ(portable["steps"][0]["reason"], "SLOWER");
  EXPECT_EQ(DigestOfFile(place.path("o.onnx")), DigestOfFile(place.path("tiny_sru.onnx")));
}

// What wins once and not again is not handed out.
TEST(Portable, AWinThatIsNotRepeatedIsRefused) {
  Alone place;
  // The last comparison names no candidate.
  Python(place, "case $3 in *candidate*) " + Answer("80") + ";; *) " + Answer("100") + ";; esac");
  const CommandResult result = place.Cli(Optimize(place, {"--target", "portable"}));
  ASSERT_EQ(result.code, 0) << result.err;
  const json portable = json::parse(result.out)["portable"];
  EXPECT_EQ(portable["is_input"], true);
  EXPECT_EQ(portable["refusal"], "timed once more it is SAME (1.000x)");
  EXPECT_EQ(DigestOfFile(place.path("o.onnx")), DigestOfFile(place.path("tiny_sru.onnx")));
}

TEST(Portable, AModelThatOnnxRuntimeRefusesIsSaidFirst) {
  Alone place;
  Python(place, R"(case $3 in *onnx\"*) echo '{"error": "InvalidGraph"}' >&3;; )"
                R"(*) echo '{"version": "9.9"}' >&3;; esac)");
  const CommandResult result = place.Cli(Optimize(place, {"--target", "portable"}));
  EXPECT_EQ(result.code, 3);
  EXPECT_THAT(result.err, HasSubstr("tiny_sru.onnx: ONNX Runtime: InvalidGraph"));
  EXPECT_FALSE(FileExists(place.path("o.onnx")));
}

// Ctrl-C while ONNX Runtime is timed.
TEST(Portable, AnInterruptWritesNothing) {
  Alone place;
  Python(place, "case $3 in *candidate*) touch " + place.path("begun") + "; exec sleep 77;; *) " +
                    Answer("80") + ";; esac");
  std::vector<std::string> words = Optimize(place, {"--target", "portable"});
  Background command = place.CliInBackground(words, "portable.log");
  ASSERT_TRUE(Eventually([&] { return FileExists(place.path("begun")); })) << command.Log();
  command.Signal(SIGINT);
  EXPECT_EQ(command.Wait(), 130) << command.Log();
  EXPECT_FALSE(FileExists(place.path("o.onnx")));
}

// Through a server as well: the job is its, the times are of this machine.
TEST(Portable, WorksWithAServer) {
  Cluster cluster;
  Alone place;
  Python(place, Answer("80"));
  std::vector<std::string> words = Optimize(place, {"--target", "portable"});
  words.insert(words.end(), {"--server", cluster.address()});
  const CommandResult result = place.Cli(words);
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(json::parse(result.out)["portable"]["is_input"], false);
  words.push_back("--detach");
  const CommandResult detached = place.Cli(words);
  EXPECT_EQ(detached.code, 2);
  EXPECT_EQ(detached.err,
            "autograph: --target portable measures when the job is done: leave --detach out\n");
}

// Each group's kernels: of a job from its report, of a model file from what the store remembers.
TEST(PlanShow, NamesTheKernelsThatLost) {
  Cluster cluster("cpu:1");
  const std::string model = cluster.Zoo("tiny_cnn"), output = cluster.path("o.onnx");
  const json done = Optimized(cluster, model, output, {"--rounds", "1", "--ort", "off"}, "cpu:1");
  const std::string job = done["job"];
  const json shown = json::parse(cluster.Cli({"plan", "show", job, "--json"}).out);
  const json file =
      json::parse(cluster.Cli({"plan", "show", output, "--device", "cpu:1", "--json"}).out);
  for (const json& plan : {shown, file}) {
    ASSERT_FALSE(plan["kernels"].empty()) << plan.dump(2);
    int losers = 0;
    for (const json& group : plan["kernels"]) {
      EXPECT_GT(group["median_ms"], 0.0);
      for (const json& other : group["alternatives"]) {
        ++losers;
        EXPECT_GE(other["median_ms"], group["median_ms"]) << group.dump();
      }
    }
    EXPECT_GT(losers, 0) << plan.dump(2);
  }
  const CommandResult text = cluster.Cli({"plan", "show", job});
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr(" ms  fastest\n"));
  EXPECT_THAT(text.out, HasSubstr("x as long\n"));
  const CommandResult none = cluster.Cli({"plan", "show", "jobs/999"});
  EXPECT_EQ(none.code, 3);
  EXPECT_EQ(none.err, "autograph: no job jobs/999\n");
}

}  // namespace
}  // namespace ag

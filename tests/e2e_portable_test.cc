// ONNX Runtime as the baseline and models for it, end to end: shell scripts stand for Python.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <nlohmann/json.hpp>

#include "graph/onnx/testing/onnx_testing.h"
#include "tests/cluster.h"

namespace ag {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

void Python(Alone& place, const std::string& body) {
  FakePython(place.variables, place.path("python"), body);
}

std::vector<std::string> Optimize(const Alone& place, const std::vector<std::string>& more) {
  std::vector<std::string> words = {
      "optimize", place.path("tiny_sru.onnx"), "-o", place.path("o.onnx"), "--device", "sim:small",
      "--json"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

constexpr char kMissing[] = R"(echo 'missing No module named onnxruntime' >&3)";

TEST(Elsewhere, IsTheBaselineOnTheCpuAlone) {
  Alone place;
  const std::string model = place.Zoo("tiny_cnn");
  // So slow that whatever we do is faster.
  Python(place, "echo 'ready - 9.9' >&3; while read -r line <&3; do echo 1e9 >&3; done");
  const std::vector<std::string> words = {"optimize", model,      "-o", place.path("o.onnx"),
                                          "--json",   "--rounds", "1",  "--expansions",
                                          "2",        "--device"};
  const auto on = [&](const char* device, std::vector<std::string> more) {
    std::vector<std::string> all = words;
    all.push_back(device);
    all.insert(all.end(), more.begin(), more.end());
    return place.Cli(all);
  };
  const CommandResult cpu = on("cpu:1", {});
  ASSERT_EQ(cpu.code, 0) << cpu.err;
  const json beside = ResultIn(cpu.out);
  EXPECT_EQ(beside["baseline"], "ONNX Runtime 9.9");
  EXPECT_EQ(beside["verdict"], "FASTER");
  EXPECT_EQ(beside["output_runtime"], "AutoGraph");
  EXPECT_EQ(beside["input_latency"]["median_ns"], 1e9);
  EXPECT_EQ(beside["over_onnxruntime"]["median"], beside["speedup"]);
  // Where no plan gains, as on a busy machine, the output is the input, and there is nothing to
  // compare.
  EXPECT_EQ(beside.contains("over_untuned"), beside.value("carries_plan", false)) << cpu.out;

  const json without = ResultIn(on("cpu:1", {"--ort", "off"}).out);
  EXPECT_EQ(without["baseline"], "AutoGraph, untuned");
  EXPECT_FALSE(without.contains("over_onnxruntime"));
  EXPECT_EQ(ResultIn(on("sim:small", {}).out)["baseline"], "AutoGraph, untuned");
  const CommandResult required = on("sim:small", {"--ort", "require"});
  EXPECT_EQ(required.code, 3);
  EXPECT_THAT(required.err, HasSubstr("beside sim:small its times say nothing"));
  const CommandResult bench = place.Cli({"bench", model, "--device", "sim:small", "--seconds",
                                         "0.01", "--ort", "require", "--ort-seconds", "0.1"});
  EXPECT_THAT(bench.out, HasSubstr("onnxruntime          model 1000.000 ms  [9.9, "));
}

// What it refuses is compared with our own session, and that is said.
TEST(Elsewhere, AModelThatItRefusesIsComparedWithOurSession) {
  Alone place;
  const std::string model = place.Zoo("tiny_cnn");
  Python(place,
         R"(case $3 in {}) echo 'ready - 9.9' >&3;; *) echo 'error InvalidGraph' >&3;; esac)");
  const CommandResult result =
      place.Cli({"optimize", model, "-o", place.path("o.onnx"), "--json", "--rounds", "1",
                 "--expansions", "2", "--device", "cpu:1"});
  ASSERT_EQ(result.code, 0) << result.err;
  const json document = ResultIn(result.out);
  EXPECT_EQ(document["baseline"], "AutoGraph, untuned");
  EXPECT_FALSE(document.contains("over_onnxruntime"));
  EXPECT_EQ(document.contains("over_untuned"), document.value("carries_plan", false));
  EXPECT_THAT(document["warnings"].dump(),
              HasSubstr("ONNX Runtime on the input: ONNX Runtime: InvalidGraph"));
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
            "no times from ONNX Runtime: there is no /none/python to ask for ONNX Runtime "
            "(AUTOGRAPH_PYTHON names it)\n");
}

// A choice that does not work is told, and is an error where ONNX Runtime is required.
TEST(Elsewhere, APythonThatIsNotThereIsSaid) {
  Alone place;
  const std::string why = "there is no /none/python to ask for ONNX Runtime";
  place.variables["AUTOGRAPH_PYTHON"] = "/none/python";
  const std::vector<std::string> words = {"optimize", place.Zoo("tiny_cnn"),
                                          "-o",       place.path("o.onnx"),
                                          "--device", "cpu:1",
                                          "--rounds", "1"};
  for (const char* mode : {"auto", "require", "off"}) {
    std::vector<std::string> all = words;
    all.insert(all.end(), {"--ort", mode});
    const CommandResult result = place.Cli(all);
    EXPECT_EQ(result.code, mode == std::string("require") ? 4 : 0) << result.err;
    EXPECT_EQ(result.err.find(why) != std::string::npos, mode != std::string("off")) << result.err;
  }
}

// What cannot be done at the end is said at the beginning.
TEST(Elsewhere, WhatIsRequiredIsCheckedFirst) {
  Alone place;
  place.Zoo("tiny_sru");
  Python(place, kMissing);
  const CommandResult portable = place.Cli(Optimize(place, {"--target", "portable"}));
  const CommandResult required =
      place.Cli({"optimize", place.path("tiny_sru.onnx"), "-o", place.path("o.onnx"), "--device",
                 "cpu:1", "--ort", "require"});
  for (const CommandResult* result : {&portable, &required}) {
    EXPECT_EQ(result->code, 4);
    EXPECT_THAT(result->err, HasSubstr("there is no ONNX Runtime beside"));
    EXPECT_THAT(result->err, HasSubstr("pip install onnxruntime"));
    EXPECT_FALSE(FileExists(place.path("o.onnx")));
  }
  for (const std::vector<std::string>& flags :
       {std::vector<std::string>{"--keep-bytes"}, {"--ort", "off"}}) {
    std::vector<std::string> words = Optimize(place, {"--target", "portable"});
    words.insert(words.end(), flags.begin(), flags.end());
    EXPECT_EQ(place.Cli(words).code, 2) << flags[0];
  }
}

TEST(Portable, KeepsWhatIsFasterThere) {
  Alone place;
  const std::string model = place.Zoo("tiny_sru");
  FakeOnnxRuntime(place.variables, place.path("python"), model, "80");
  const CommandResult result = place.Cli(Optimize(place, {"--target", "portable"}));
  ASSERT_EQ(result.code, 0) << result.err;
  const json document = ResultIn(result.out);
  EXPECT_EQ(document["verdict"], "FASTER") << document.dump(2);
  EXPECT_EQ(document["baseline"], "ONNX Runtime 9.9");
  EXPECT_EQ(document["output_runtime"], "ONNX Runtime 9.9");
  EXPECT_EQ(document["output"], "REWRITTEN");
  EXPECT_EQ(document["speedup"], 1.25);
  EXPECT_EQ(document["portable"][0]["rule"], "clean-up");
  EXPECT_EQ(document["portable"][0]["kept"], true);
  EXPECT_EQ(document["portable"][0]["ratio"]["median"], 1.25);
  EXPECT_EQ(document["output_digest"], DigestOfFile(place.path("o.onnx")));
  // Equivalent, and with no plan: it runs as any input would.
  EXPECT_EQ(
      place.Cli({"verify", model, "--against", place.path("o.onnx"), "--device", "sim:small"}).code,
      0);
  EXPECT_THAT(*ReadFile(place.path("o.onnx")), Not(HasSubstr("autograph.plan")));
  EXPECT_EQ(json::parse(
                place.Cli({"plan", "show", place.path("o.onnx"), "--device", "sim:small", "--json"})
                    .out)["carried"],
            false);
}

TEST(Portable, GivesTheInputBackWhenNothingHelps) {
  Alone place;
  const std::string model = place.Zoo("tiny_sru");
  FakeOnnxRuntime(place.variables, place.path("python"), model, "120");
  const CommandResult result = place.Cli(Optimize(place, {"--target", "portable"}));
  ASSERT_EQ(result.code, 0) << result.err;
  const json document = ResultIn(result.out);
  EXPECT_EQ(document["verdict"], "NO_GAIN_FOUND");
  EXPECT_EQ(document["output"], "INPUT");
  EXPECT_EQ(document["portable"][0]["reason"], "NO_GAIN_FOUND");
  EXPECT_EQ(DigestOfFile(place.path("o.onnx")), DigestOfFile(model));
}

// Our runtime gains nothing, ONNX Runtime does: its gain is published, our plan beside it.
TEST(Portable, IsTriedWhenOurRuntimeGainsNothing) {
  Alone place;
  const std::string model = place.Zoo("tiny_sru");
  // Faster than anything of ours, so that only ONNX Runtime itself can gain; no rule but clean-up.
  FakeOnnxRuntime(place.variables, place.path("python"), model, "80");
  std::vector<std::string> words = {"optimize", model,      "-o",   place.path("o.onnx"),
                                    "--json",   "--device", "cpu:1"};
  for (const json& rule : json::parse(place.Cli({"rules", "list", "--json"}).out)) {
    if (rule["clean_up"]) continue;
    words.insert(words.end(), {"--without", rule["name"].get<std::string>()});
  }
  const CommandResult result = place.Cli(words);
  ASSERT_EQ(result.code, 0) << result.err;
  const json document = ResultIn(result.out);
  EXPECT_EQ(document["verdict"], "FASTER") << document.dump(2);
  EXPECT_EQ(document["output_runtime"], "ONNX Runtime 9.9");
  EXPECT_EQ(document["output"], "REWRITTEN");
  EXPECT_FALSE(document["portable"].empty());
  EXPECT_TRUE(document.contains("over_untuned")) << "our session runs it as well";
  EXPECT_THAT(*ReadFile(place.path("o.onnx")), HasSubstr("autograph.plan"));
}

// No kernel here runs the node, and nobody knows what it gives: the rest is optimized before it.
TEST(Portable, AnOperatorOfAnotherDomainStaysBehind) {
  Alone place;
  const std::string model = place.Write(
      "m.onnx", testing::ModelFromText("<ir_version: 8, opset_import: [\"\" : 17, \"my.dom\" : 1]> "
                                       "g (float[2,3] x) => (float[n,m] y)"
                                       "{ a = Relu(x) b = Relu(a) c = my.dom.Foo(b) y = Exp(c) }"));
  FakeOnnxRuntime(place.variables, place.path("python"), model, "80");
  const CommandResult result =
      place.Cli({"optimize", model, "-o", place.path("o.onnx"), "--device", "cpu:1", "--json"});
  ASSERT_EQ(result.code, 0) << result.err;
  const json document = ResultIn(result.out);
  EXPECT_EQ(document["verdict"], "FASTER") << document.dump(2);
  EXPECT_EQ(document["output"], "REWRITTEN");
  EXPECT_EQ(document["output_runtime"], "ONNX Runtime 9.9");
  EXPECT_THAT(document["warnings"].dump(), HasSubstr("node 2 (Foo) has no kernel here"));
  EXPECT_THAT(*ReadFile(place.path("o.onnx")), Not(HasSubstr("autograph.plan")));
  const CommandResult run = place.Cli({"run", place.path("o.onnx")});
  EXPECT_EQ(run.code, 3);
  EXPECT_THAT(run.err, HasSubstr("(Foo): no kernel here runs it"));
}

TEST(Portable, AModelThatOnnxRuntimeRefusesIsAnError) {
  Alone place;
  place.Zoo("tiny_sru");
  Python(place,
         R"(case $3 in {}) echo 'ready - 9.9' >&3;; *) echo 'error InvalidGraph' >&3;; esac)");
  const CommandResult result = place.Cli(Optimize(place, {"--target", "portable"}));
  EXPECT_EQ(result.code, 3);
  EXPECT_THAT(result.err, HasSubstr("ONNX Runtime: InvalidGraph"));
  EXPECT_FALSE(FileExists(place.path("o.onnx")));
}

// Through a server: the worker has ONNX Runtime, the client needs none; --detach works.
TEST(Portable, WorksWithAServer) {
  Alone place;
  const std::string model = place.Zoo("tiny_sru");
  ClusterOptions options;
  FakeOnnxRuntime(options.worker_variables, place.path("python"), model, "80");
  Cluster cluster(options);
  std::vector<std::string> words = Optimize(place, {"--target", "portable"});
  words.insert(words.end(), {"--server", cluster.address()});
  const CommandResult result = place.Cli(words);
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(ResultIn(result.out)["output"], "REWRITTEN");
}

// Each group's kernels: of a job from its report, of a model file from what the store remembers.
TEST(PlanShow, NamesTheKernelsThatLost) {
  Cluster cluster("cpu:1");
  const std::string model = cluster.Zoo("tiny_cnn"), output = cluster.path("o.onnx");
  Optimized(cluster, model, output, {"--rounds", "1", "--ort", "off"}, "cpu:1");
  const std::string job = "jobs/1";
  const json shown = json::parse(cluster.Cli({"plan", "show", job, "--json"}).out);
  const json file =
      json::parse(cluster.Cli({"plan", "show", output, "--device", "cpu:1", "--json"}).out);
  for (const json& plan : {shown, file}) {
    ASSERT_FALSE(plan["kernels"].empty()) << plan.dump(2);
    int losers = 0;
    for (const json& group : plan["kernels"]) {
      const json& measurement = group["measurement"];
      const double fastest_ns = measurement["latency"]["median_ns"];
      EXPECT_GT(fastest_ns, 0.0);
      for (const json& other : measurement["alternatives"]) {
        ++losers;
        EXPECT_GE(other["median_ns"], fastest_ns) << group.dump();
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

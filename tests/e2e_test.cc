// The whole way with real processes: coordinator, worker, executor, sandbox and command line over
// real sockets, on the small simulated device (and the CPU where a test says so). No GPU, no
// network beyond loopback.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "graph/onnx/testing/onnx_testing.h"
#include "tests/cluster.h"

namespace ag {
namespace {

using nlohmann::json;

TEST(EndToEnd, OptimizesAndAnswersAgainFromTheCache) {
  Cluster cluster("sim:small");
  const std::string model = cluster.Zoo("tiny_inception"), out = cluster.path("out.onnx");
  const json first = Optimized(cluster, model, out);
  ASSERT_TRUE(first.is_object());
  for (const char* field : {"verdict", "device", "input_latency", "output_latency",
                            "unfused_latency", "speedup", "errors", "rewrites", "groups", "streams",
                            "stop_reason", "seconds", "cache", "output_digest"}) {
    EXPECT_TRUE(first.contains(field)) << field;
  }
  EXPECT_FALSE(first["cache"]["model_hit"]);
  EXPECT_LE(first["errors"][0]["max_rel"], 1e-3);
  EXPECT_EQ(DigestOfFile(out), first["output_digest"]);

  const json again = Optimized(cluster, model, cluster.path("again.onnx"));
  EXPECT_TRUE(again["cache"]["model_hit"]);
  EXPECT_EQ(again["output_digest"], first["output_digest"]);
  const CommandResult verified = cluster.Cli({"verify", model, "--against", out});
  EXPECT_EQ(verified.code, 0) << verified.out << verified.err;
}

// Rounding to 16 bits at the groups' edges is within what the model's type allows, and beyond what
// an f32 model is allowed.
TEST(EndToEnd, AHalfPrecisionModelRunsOnTheCpu) {
  Alone place;
  const std::string in = place.Write(
      "half.onnx",
      testing::ModelFromText(
          "g (float16[1,8,16,16] x) => (float16[1,8,16,16] y) <float[8,8,3,3] w = {" +
          fmt::format("{}", fmt::join(std::vector<double>(8 * 8 * 9, 0.0625), ", ")) +
          "}> { h = Cast<to = 10>(w) a = Conv<pads = [1, 1, 1, 1]>(x, h) b = Sigmoid(a) "
          "y = Conv<pads = [1, 1, 1, 1]>(b, h) }"));
  const std::string out = place.path("out.onnx");
  const CommandResult done =
      place.Cli({"optimize", in, "-o", out, "--device", "cpu", "--ort", "off", "--json"});
  ASSERT_EQ(done.code, 0) << done.err;
  const json result = ResultIn(done.out);
  EXPECT_EQ(result["tolerance"], 0.01);
  EXPECT_EQ(result["groups_failed"], 0);
  EXPECT_NE(result["verdict"], "NOT_MEASURED");
  const CommandResult shown = place.Cli({"plan", "show", out, "--device", "cpu", "--json"});
  ASSERT_EQ(shown.code, 0) << shown.err;
  EXPECT_EQ(json::parse(shown.out)["carried"], result["output"] != "INPUT");
  const CommandResult run = place.Cli({"run", out, "--device", "cpu"});
  EXPECT_EQ(run.code, 0) << run.err;
}

TEST(EndToEnd, OneSeedGivesTheSameBytesTwice) {
  std::string digests[2];
  for (std::string& digest : digests) {
    Cluster cluster("sim:small");
    digest = Optimized(cluster, cluster.Zoo("tiny_inception"),
                       cluster.path("out.onnx"))["output_digest"];
  }
  EXPECT_EQ(digests[0], digests[1]);
}

TEST(EndToEnd, WithoutARewriteTheInputsBytesGetAPlan) {
  Cluster cluster("sim:small");
  const std::string model = cluster.Zoo("tiny_cnn"), out = cluster.path("out.onnx");
  // One candidate with no rewrites and one stream is the input again: it cannot win.
  std::vector<std::string> flags = {"--streams", "1"};
  const CommandResult rules = cluster.Cli({"rules", "list", "--json"});
  for (const json& rule : json::parse(rules.out)) {
    if (!rule["clean_up"])
      flags.insert(flags.end(), {"--without", rule["name"].get<std::string>()});
  }
  const json result = Optimized(cluster, model, out, flags);
  EXPECT_EQ(result["output"], "PLAN_ADDED");
  EXPECT_TRUE(result["rewrites"].empty() && result["clean_up"].empty());
  EXPECT_EQ(result["over_tuned_input"]["median"], 1);
  const std::string before = *ReadFile(model), after = *ReadFile(out);
  EXPECT_GT(after.size(), before.size());
  EXPECT_TRUE(after.starts_with(before));
  // A second time the entry is replaced: no key stands twice.
  const json again = Optimized(cluster, out, cluster.path("again.onnx"), flags);
  EXPECT_EQ(again["output"], "PLAN_ADDED") << again.dump(2);
  EXPECT_EQ(ReadFile(cluster.path("again.onnx"))->size(), after.size());
  flags.push_back("--keep-bytes");
  EXPECT_EQ(Optimized(cluster, model, out, flags)["output"], "INPUT");
  EXPECT_EQ(DigestOfFile(out), DigestOfFile(model));
}

}  // namespace
}  // namespace ag

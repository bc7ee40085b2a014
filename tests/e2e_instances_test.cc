// A plan that runs on parts of a batch, end to end by the command line: found, published, carried
// by the file, shown and run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "graph/onnx/testing/onnx_testing.h"
#include "tests/cluster.h"

namespace ag {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

// A device with the patterns of sim:small. Memory moves a byte a nanosecond, the cache 100; it
// holds the tensors of two of eight samples.
std::string CachedSpec() {
  std::string text =
      "name cached\ndtypes f32,f64,i64,i32,bool\ncores 1\nflops_per_second 1e12\n"
      "bytes_per_second 1e9\ncache_bytes_per_second 1e11\ncache_bytes 9000\nlaunch_ns 10\n"
      "memory_bytes 100000000\n";
  const std::string small = *ReadFile(AG_SOURCE_DIR "/deploy/devices/small.spec");
  return text + small.substr(small.find("pattern "));
}

std::string TwoSoftmaxes(int axis) {
  return testing::ModelFromText(fmt::format(
      R"(g (float[8,512] x) => (float[8,512] y) {{
  a = Softmax<axis = {0}>(x)
  y = Softmax<axis = {0}>(a)
}})",
      axis));
}

std::string Softmax(const std::string& batch, int axis) {
  return testing::ModelFromText(fmt::format(
      R"(g (float[{},512] x) => (float[{},512] y) {{
  y = Softmax<axis = {}>(x)
}})",
      batch, batch, axis));
}

TEST(Instances, AreFoundCarriedAndRun) {
  const Alone place;
  const std::string device = "sim:" + place.Write("cached.spec", CachedSpec());
  const std::string model = place.Write("m.onnx", TwoSoftmaxes(1)), output = place.path("o.onnx");
  const CommandResult ran = place.Cli({"optimize", model, "-o", output, "--device", device,
                                       "--data", place.path("data"), "--rounds", "1", "--json"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const json result = ResultIn(ran.out);
  EXPECT_EQ(result["instances"], 4) << ran.out;
  EXPECT_EQ(result["verdict"], "FASTER");
  const CommandResult shown =
      place.Cli({"plan", "show", output, "--device", device, "--data", place.path("data")});
  ASSERT_EQ(shown.code, 0) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("instances 4: each on an equal part of the batch"));
  EXPECT_THAT(shown.err, HasSubstr("the plan in the model:"));
  const CommandResult verified =
      place.Cli({"verify", model, "--against", output, "--device", device});
  EXPECT_EQ(verified.code, 0) << verified.out << verified.err;
}

// A model that leaves its batch open gets it from the request; what cannot be is refused by name.
TEST(Throughput, IsOfTheBatchThatIsAskedFor) {
  const Alone place;
  const std::string device = "sim:" + place.Write("cached.spec", CachedSpec());
  const std::string open = place.Write("open.onnx", Softmax("N", 1));
  const std::string fixed = place.Write("fixed.onnx", Softmax("4", 1));
  const std::string mixed = place.Write("mixed.onnx", Softmax("N", 0));
  const std::string sequence = place.Write("sequence.onnx", Softmax("seq_len", 1));
  const auto optimize = [&](const std::string& model, std::vector<std::string> flags) {
    std::vector<std::string> all = {"optimize", model,  "-o",     place.path("o.onnx"),
                                    "--device", device, "--data", place.path("data"),
                                    "--rounds", "1",    "--json"};
    all.insert(all.end(), flags.begin(), flags.end());
    return place.Cli(all);
  };
  const CommandResult ran = optimize(open, {"--batch", "8", "--objective", "throughput"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const json result = ResultIn(ran.out);
  EXPECT_EQ(result["batch"], "8") << ran.out;
  EXPECT_EQ(result["measured_at"], "x=8x512");
  const double ns = result["output_latency"]["median_ns"];
  EXPECT_NEAR(result["samples_per_second"], 8e9 / ns, 1e-3 * 8e9 / ns);
  const struct {
    std::string model;
    std::vector<std::string> flags;
    const char* message;
  } refused[] = {
      {open,
       {"--batch", "1", "--objective", "throughput"},
       "a batch of 1 has none but its latency"},
      {open, {"--objective", "throughput"}, "objective throughput: the batch is 1"},
      {fixed, {"--batch", "8"}, "batch 8: the model fixes the batch of x at 4"},
      {open, {"--batch", "8", "--shape", "x=4x512"}, "batch 8: shapes bind x to a batch of 4"},
      {sequence, {"--batch", "8"}, "batch 8: the first axis of x is seq_len"},
      {mixed, {"--batch", "8", "--objective", "throughput"}, "mixes the samples of the batch"},
  };
  for (const auto& c : refused) {
    const CommandResult answer = optimize(c.model, c.flags);
    EXPECT_NE(answer.code, 0) << c.message;
    EXPECT_THAT(answer.out + answer.err, HasSubstr(c.message));
  }
}

TEST(Instances, AModelThatMixesSamplesIsLeftWhole) {
  const Alone place;
  const std::string device = "sim:" + place.Write("cached.spec", CachedSpec());
  const std::string model = place.Write("m.onnx", TwoSoftmaxes(0));
  const CommandResult ran =
      place.Cli({"optimize", model, "-o", place.path("o.onnx"), "--device", device, "--data",
                 place.path("data"), "--rounds", "1", "--json"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ResultIn(ran.out)["instances"], 1) << ran.out;
}

}  // namespace
}  // namespace ag

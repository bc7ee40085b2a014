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

// How groups share a device is measured, remembered, recorded and predicted: end to end, by the
// command line, on a simulated GPU that shares its cores worse than its spec says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "plan/schedule/contention_model.h"
#include "tests/cluster.h"

namespace ag {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

// "small" with blocks that are dealt out to 16 cores, and what its simulation does besides.
std::string GpuSpec(const Alone& place, const std::string& name, const std::string& lines) {
  std::string spec = *ReadFile(std::string(AG_SOURCE_DIR) + "/deploy/devices/small.spec");
  const std::string cores = "\ncores 4\n";
  spec.replace(spec.find(cores), cores.size(), "\ncores 16\nblock_outputs 256\n");
  return "sim:" + place.Write(name + ".spec", spec + lines);
}

// The report of optimizing a network of parallel branches there, without rewrites.
json ReportOn(const Alone& place, const std::string& device, const std::string& data) {
  const std::string report = place.path(data + ".json");
  const CommandResult ran = place.Cli(
      {"optimize", place.Zoo("tiny_inception"), "-o", place.path("o.onnx"), "--device", device,
       "--data", place.path(data), "--graphs", "1", "--report", report, "--no-cache", "--json"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  return json::parse(*ReadFile(report), nullptr, false);
}

double OutputNs(const json& report) { return report["result"]["output_latency"]["median_ns"]; }
double EstimateNs(const json& report) { return report["result"]["estimate_ns"]; }

TEST(Sharing, IsFoundByPairsAndPredicted) {
  const Alone place;
  const json by_the_spec = ReportOn(place, GpuSpec(place, "spec", ""), "spec");
  EXPECT_EQ(by_the_spec["overlap"], 1.0);
  EXPECT_GT(by_the_spec["result"]["streams"], 1);

  const std::string device = GpuSpec(place, "truth", "overlap 0.6\n");
  const json report = ReportOn(place, device, "truth");
  EXPECT_NEAR(report["overlap"].get<double>(), 0.6, 0.011);
  EXPECT_EQ(report["pairs"], 8);
  EXPECT_GT(report["result"]["streams"], 1);
  EXPECT_GT(OutputNs(report), 1.05 * OutputNs(by_the_spec));
  EXPECT_NEAR(EstimateNs(report), OutputNs(report), 0.01 * OutputNs(report));

  // A restarted program remembers the pairs, and the recording takes them along.
  const json again = ReportOn(place, device, "truth");
  EXPECT_EQ(again["overlap"], report["overlap"]);
  EXPECT_EQ(again["result"]["cache"]["misses"], 0);
  const std::string recording = place.path("gpu.recording");
  const CommandResult exported =
      place.Cli({"cache", "export", recording, "--device", device, "--data", place.path("truth")});
  ASSERT_EQ(exported.code, 0) << exported.err;
  EXPECT_THAT(*ReadFile(recording), HasSubstr("\npair ns="));
  EXPECT_THAT(*ReadFile(recording), Not(HasSubstr("overlap")));
  const json replayed = ReportOn(place, "sim:" + recording, "replayed");
  EXPECT_NEAR(OutputNs(replayed), OutputNs(report), 0.01 * OutputNs(report));
  EXPECT_EQ(replayed["overlap"], report["overlap"]);

  // Imported, they are known and name the same environment.
  const CommandResult imported =
      place.Cli({"cache", "import", recording, "--data", place.path("truth"), "--json"});
  EXPECT_EQ(json::parse(imported.out)["added"], "0") << imported.err;
  EXPECT_EQ(json::parse(imported.out)["known"],
            json::parse(place.Cli({"cache", "stats", "--data", place.path("truth"), "--json"})
                            .out)["measurements"]);
}

}  // namespace
}  // namespace ag

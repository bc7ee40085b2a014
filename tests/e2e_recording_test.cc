// What one device measured, exported, is another device: end to end, by the command line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cluster.h"

namespace ag {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

json OptimizedOn(const Alone& place, const std::string& model, const std::string& device,
                 const std::string& data) {
  const CommandResult ran =
      place.Cli({"optimize", place.Zoo(model), "-o", place.path("o.onnx"), "--device", device,
                 "--data", place.path(data), "--rounds", "1", "--json"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  return ResultIn(ran.out);
}

TEST(Recordings, AnswerForTheDeviceTheyWereTakenOn) {
  const Alone place;
  const std::string recording = place.path("small.recording");
  const json taken = OptimizedOn(place, "tiny_cnn", "sim:small", "data");
  const CommandResult exported = place.Cli(
      {"cache", "export", recording, "--device", "sim:small", "--data", place.path("data")});
  ASSERT_EQ(exported.code, 0) << exported.err;

  // The same model: every group was recorded, so all comes out as it was, up to the nanosecond to
  // which each was rounded.
  const json again = OptimizedOn(place, "tiny_cnn", "sim:" + recording, "other");
  const double ns = taken["output_latency"]["median_ns"];
  EXPECT_NEAR(again["output_latency"]["median_ns"].get<double>(), ns, 10);
  // The untuned session's groups were not all recorded: what they take is estimated.
  EXPECT_NEAR(again["speedup"].get<double>(), taken["speedup"].get<double>(), 0.05);
  EXPECT_EQ(again["warnings"], json::array());
  EXPECT_EQ(again["simulated"], true);
  EXPECT_THAT(again["environment"].get<std::string>(), HasSubstr(";recording="));

  // Another model: what was estimated is counted.
  const json other = OptimizedOn(place, "tiny_sru", "sim:" + recording, "other");
  ASSERT_EQ(other["warnings"].size(), 1u);
  EXPECT_THAT(other["warnings"][0].get<std::string>(),
              HasSubstr("groups are not in the device's recording: their times are estimates"));

  // What is exported of that device says that it is simulated, and imports elsewhere.
  const std::string second = place.path("second.recording");
  ASSERT_EQ(place
                .Cli({"cache", "export", second, "--device", "sim:" + recording, "--data",
                      place.path("other")})
                .code,
            0);
  EXPECT_THAT(*ReadFile(second), HasSubstr(" simulated=1 "));
  const CommandResult imported =
      place.Cli({"cache", "import", second, "--data", place.path("third"), "--json"});
  EXPECT_EQ(json::parse(imported.out)["known"], "0");
}

TEST(Recordings, ABrokenOneIsOneMessage) {
  const Alone place;
  const std::string bad = place.Write("bad.recording", "autograph-measurements 4\ngroup ns=1\n");
  const CommandResult ran =
      place.Cli({"bench", place.Zoo("tiny_cnn"), "--device", "sim:" + bad, "--seconds", "0.01"});
  EXPECT_EQ(ran.code, 4);  // There is no such device.
  EXPECT_EQ(ran.err, "autograph: sim:" + bad + ": line 2: group: no environment was said before\n");
}

}  // namespace
}  // namespace ag

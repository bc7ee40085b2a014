// Tests of the forms of bench on a simulated device, whose times can be computed by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "client/cli/compare_models.h"
#include "client/cli/testing/testing.h"
#include "client/cli/verbs.h"
#include "graph/onnx/plan_metadata.h"
#include "graph/onnx/testing/onnx_testing.h"

namespace ag {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kShort = "g (float[64] x) => (float[64] y) { y = Relu(x) }";
constexpr std::string_view kLong =
    "g (float[64] x) => (float[64] y) { a = Relu(x) b = Softmax(a) y = Softmax(b) }";
constexpr std::string_view kTwoIn =
    "g (float[64] x, float[64] z) => (float[64] y) { y = Sub(x, z) }";
constexpr std::string_view kTwoInSwapped =
    "g (float[64] z, float[64] x) => (float[64] y) { y = Sub(x, z) }";
constexpr std::string_view kOtherOutput = "g (float[64] x) => (float[64] p) { p = Relu(x) }";
constexpr std::string_view kOtherType = "g (float[32] x) => (float[32] y) { y = Relu(x) }";

class BenchTest : public ::testing::Test {
 protected:
  std::string Model(const std::string& name, std::string_view text) {
    const std::string path = folder_.path() + "/" + name;
    AG_CHECK(WriteFileAtomically(path, testing::ModelFromText(text)).ok());
    return path;
  }
  static Ran Bench(const BenchFlags& flags, bool json = false) {
    Context context({.json = json});
    return Capture([&] { return context.CodeOf(RunBench(context, flags)); });
  }
  BenchFlags Compare(std::string_view before, std::string_view after) {
    BenchFlags flags{.model = {.model = Model("new.onnx", after), .device = "sim:small"}};
    flags.compare = Model("old.onnx", before);
    flags.seconds = 0.05;
    return flags;
  }
  BenchFlags Load(int clients) {
    BenchFlags flags{.model = {.model = Model("m.onnx", kShort), .device = "sim:small"}};
    flags.clients = clients;
    flags.runs = 20;
    return flags;
  }
  const TempDir folder_ = *TempDir::Make("bench-test");
};

TEST_F(BenchTest, TheExitCodeSaysWhoIsFaster) {
  const struct {
    const char* name;
    std::string_view before, after;
    bool no_verify;
    const char* verdict;
    int code;
  } kCases[] = {
      {"same", kShort, kShort, false, "SAME", kExitOk},
      {"slower", kShort, kLong, true, "SLOWER", kExitSlower},
      {"faster", kLong, kShort, true, "FASTER", kExitOk},
      {"slower and different", kShort, kLong, false, "SLOWER", kExitFailed},
      {"faster and different", kLong, kShort, false, "FASTER", kExitFailed},
      {"outputs that nobody compares", kShort, kOtherOutput, true, "SAME", kExitOk},
      {"inputs in another order", kTwoIn, kTwoInSwapped, false, "SAME", kExitOk},
  };
  for (const auto& c : kCases) {
    BenchFlags flags = Compare(c.before, c.after);
    flags.no_verify = c.no_verify;
    const Ran ran = Bench(flags, /*json=*/true);
    EXPECT_EQ(ran.code, c.code) << c.name << ran.err;
    const auto json = ran.json();
    EXPECT_EQ(json["verdict"], c.verdict) << c.name;
    EXPECT_EQ(json.contains("equivalent"), !c.no_verify) << c.name;
    EXPECT_EQ(json["timings"][0]["name"], "old") << c.name;
    EXPECT_GT(json["timings"][1]["latency"]["median_ns"], 0.0) << c.name;
    EXPECT_LE(json["speedup_low"], json["speedup"]) << c.name;
  }
}

TEST_F(BenchTest, ModelsWhoseSizesDependOnValuesAreTimed) {
  constexpr std::string_view kDynamic =
      "g (float[2,3] x) => (int64[2,n] at) { r = Relu(x) at = NonZero(r) }";
  const Ran ran = Bench(Compare(kDynamic, kDynamic), /*json=*/true);
  EXPECT_EQ(ran.code, kExitOk) << ran.err;
  EXPECT_EQ(ran.json()["verdict"], "SAME");
  EXPECT_EQ(ran.json()["equivalent"], true);
}

// As `run` says it.
TEST_F(BenchTest, ADamagedPlanIsSaid) {
  BenchFlags flags{.model = {.model = Model("m.onnx", kShort), .device = "sim:small"}};
  flags.seconds = 0.05;
  const std::string whole = *ReadFile(flags.model.model) + PlanEntry("k", "gar\x1b[31m\rbage");
  ASSERT_TRUE(WriteFileAtomically(flags.model.model, whole).ok());
  const Ran ran = Bench(flags);
  EXPECT_EQ(ran.code, kExitOk) << ran.err;
  EXPECT_EQ(ran.err.substr(0, ran.err.find('\n')),
            "warning: plan k ignored: not a plan: magic is 0x1b726167");
}

// A device whose caches hold all that the model moves.
TEST_F(BenchTest, ColdCachesTakeLonger) {
  DeviceSpec spec = *ParseDeviceSpec(*ReadFile(AG_SOURCE_DIR "/deploy/devices/small.spec"));
  spec.cache_bytes = 1'000'000;
  spec.cache_bytes_per_second = 1e12;
  const std::string path = folder_.path() + "/cached.spec";
  ASSERT_TRUE(WriteFileAtomically(path, FormatDeviceSpec(spec)).ok());
  BenchFlags flags = Compare(kLong, kShort);
  flags.no_verify = true;
  flags.model.device = "sim:" + path;
  const auto median = [&](const Ran& ran) {
    return ran.json()["timings"][0]["latency"]["median_ns"].get<double>();
  };
  const Ran warm = Bench(flags, /*json=*/true);
  EXPECT_EQ(warm.json()["cold_cache"], false);
  flags.cold_cache = true;
  const Ran cold = Bench(flags, /*json=*/true);
  EXPECT_EQ(cold.code, kExitOk) << cold.err;
  EXPECT_EQ(cold.json()["cold_cache"], true);
  EXPECT_GT(median(cold), median(warm));
  spec.can_evict = false;
  ASSERT_TRUE(WriteFileAtomically(path, FormatDeviceSpec(spec)).ok());
  EXPECT_THAT(Bench(flags).err, HasSubstr("small: cold_cache: its caches cannot be evicted"));
  BenchFlags load = Load(2);
  load.cold_cache = true;
  EXPECT_THAT(Bench(load).err, HasSubstr("--cold-cache does not go with --clients"));
}

// Too little time for nine blocks gives no sure verdict.
TEST_F(BenchTest, AmbiguousFailsOnlyWhenAskedTo) {
  BenchFlags flags = Compare(kShort, kShort);
  flags.seconds = 2e-4;
  const Ran open = Bench(flags);
  EXPECT_EQ(open.code, kExitOk) << open.err;
  EXPECT_THAT(open.out, HasSubstr("AMBIGUOUS"));
  flags.fail_ambiguous = true;
  EXPECT_EQ(Bench(flags).code, kExitSlower);
}

TEST_F(BenchTest, DifferencesOfOutputsAreSaid) {
  const Ran ran = Bench(Compare(kShort, kLong));
  EXPECT_EQ(ran.code, kExitFailed);
  EXPECT_THAT(ran.out, HasSubstr("DIFFERENT            output y: max abs "));
  EXPECT_THAT(ran.out, HasSubstr("SLOWER"));
  BenchFlags lax = Compare(kShort, kLong);
  lax.tolerance = 1e9;
  EXPECT_EQ(Bench(lax).code, kExitSlower);
}

TEST_F(BenchTest, ModelsThatCannotBeComparedAreSaid) {
  const struct {
    const char* name;
    std::string_view after;
    const char* message;
  } kCases[] = {
      {"type", kOtherType, "differ in their inputs, they cannot be compared: "},
      {"more inputs", kTwoIn, "x: f32[64], z: f32[64]\n"},
      {"output's name", kOtherOutput, "differ in their outputs, they cannot be compared: "},
  };
  for (const auto& c : kCases) {
    const Ran ran = Bench(Compare(kShort, c.after));
    EXPECT_EQ(ran.code, kExitInput) << c.name;
    EXPECT_THAT(ran.err, HasSubstr(c.message)) << c.name;
    EXPECT_EQ(ran.out, "") << c.name;
  }
}

TEST_F(BenchTest, ClientsStandBesideOneAlone) {
  const Ran ran = Bench(Load(3), /*json=*/true);
  ASSERT_EQ(ran.code, kExitOk) << ran.err;
  const auto json = ran.json();
  ASSERT_EQ(json["rows"].size(), 2u);
  const auto &alone = json["rows"][0], &load = json["rows"][1];
  EXPECT_EQ(alone["clients"], 1);
  EXPECT_EQ(alone["runs"], 20);
  EXPECT_EQ(load["clients"], 3);
  EXPECT_EQ(load["runs"], 60);
  EXPECT_EQ(load["each"].size(), 3u);
  // Each simulated client has its own device: three clients run three times as much.
  EXPECT_NEAR(json["throughput_gain"], 3, 0.01);
  EXPECT_LE(load["latency"]["p50_ns"], load["latency"]["p99_ns"]);
  const Ran text = Bench(Load(2));
  EXPECT_THAT(text.out, HasSubstr("1 client  "));
  EXPECT_THAT(text.out, HasSubstr("  client 2  "));
}

// On real cores each client gets an equal share, unless told otherwise.
TEST_F(BenchTest, CoresAreSharedOut) {
  BenchFlags flags = Load(2);
  flags.model.device = "cpu:1";
  flags.ort.mode = "off";
  const Ran ran = Bench(flags, /*json=*/true);
  ASSERT_EQ(ran.code, kExitOk) << ran.err;
  EXPECT_EQ(ran.json()["rows"][1]["cores_each"], 1);
  EXPECT_EQ(ran.json()["rows"][1]["runs"], 40);
  flags.cores_each = 100'000;
  EXPECT_EQ(Bench(flags).code, kExitUnavailable);
}

TEST_F(BenchTest, TimeEndsALoadTest) {
  BenchFlags flags = Load(1);
  flags.runs = 0;
  flags.seconds = 1e-4;
  const auto json = Bench(flags, /*json=*/true).json();
  EXPECT_GE(json["rows"][0]["runs"], 1);
  EXPECT_NEAR(json["rows"][0]["seconds"], 1e-4, 1e-4);
}

TEST_F(BenchTest, FlagsThatDoNotGoTogether) {
  const struct {
    const char* message;
    void (*set)(BenchFlags&);
  } kCases[] = {
      {"--compare and --clients are two different questions",
       [](BenchFlags& f) { f.compare = "x", f.clients = 2; }},
      {"--streams does not go with --compare or --clients",
       [](BenchFlags& f) { f.compare = "x", f.streams = 2; }},
      {"--streams does not go with --compare or --clients",
       [](BenchFlags& f) { f.clients = 2, f.streams = 2; }},
      {"--cores-each goes with --clients only", [](BenchFlags& f) { f.cores_each = 1; }},
      {"--runs goes with --clients only", [](BenchFlags& f) { f.runs = 1; }},
      {"--no-verify goes with --compare only", [](BenchFlags& f) { f.no_verify = true; }},
      {"--fail-ambiguous goes with --compare only", [](BenchFlags& f) { f.fail_ambiguous = true; }},
  };
  for (const auto& c : kCases) {
    BenchFlags flags{.model = {.model = "/none", .device = "sim:small"}};
    c.set(flags);
    const Ran ran = Bench(flags);
    EXPECT_EQ(ran.code, kExitUsage) << c.message;
    EXPECT_EQ(ran.err, fmt::format("autograph: {}\n", c.message));
  }
  BenchFlags many = Load(2000);
  EXPECT_EQ(Bench(many).err, "autograph: --clients 2000: at most 1024\n");
  BenchFlags cores = Load(2);
  cores.cores_each = 1;
  EXPECT_EQ(Bench(cores).err,
            "autograph: --cores-each goes with cpu devices, not with sim:small\n");
}

}  // namespace
}  // namespace ag

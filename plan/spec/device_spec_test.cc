#include "plan/spec/device_spec.h"

#include <gtest/gtest.h>

#include "graph/text_form.h"
#include "plan/spec/node_layouts.h"
#include "plan/spec/policy.h"
#include "plan/testing/testing.h"

namespace ag {
namespace {

constexpr std::string_view kHead =
    "name t\ndtypes f32\ncores 2\nflops_per_second 1e9\nbytes_per_second 1e9\n";

TEST(DeviceSpec, BuiltInSpecsParseBackAndCoverEveryOperator) {
  for (const char* name : {"cpu", "h200", "rtx2080ti", "small", "stcp920"}) {
    const DeviceSpec spec = LoadSpec(AG_SOURCE_DIR, name);
    EXPECT_EQ(spec.name, name);
    EXPECT_EQ(*ParseDeviceSpec(FormatDeviceSpec(spec)), spec) << name;
    const HomePatterns home = FindHomePatterns(spec);
    for (const OpInfo& info : AllOps()) {
      if ((info.traits & (kLeaf | kBarrier)) != 0) continue;
      EXPECT_NE(home[static_cast<size_t>(info.kind)], nullptr) << name << " " << info.name;
    }
  }
}

TEST(DeviceSpec, ReadsPatternsAndExtras) {
  const StatusOr<DeviceSpec> spec = ParseDeviceSpec(
      std::string(kHead) +
      "pattern conv = Conv [Add] [Relu|Clip] layouts blocked16,plain  # a comment\n"
      "pattern chain = {unary}+ max 3 layouts any\nnoise 0.01 heavy\nfault crash Conv\n");
  ASSERT_TRUE(spec.ok()) << ToString(spec.status());
  const GroupPattern& conv = spec->patterns[0];
  ASSERT_EQ(conv.steps.size(), 3u);
  EXPECT_FALSE(conv.steps[0].optional);
  EXPECT_TRUE(conv.steps[2].optional);
  EXPECT_EQ(conv.steps[2].ops, (std::vector<OpKind>{OpKind::kRelu, OpKind::kClip}));
  EXPECT_EQ(conv.layouts, (std::vector<Layout>{Layout::kBlocked16, Layout::kPlain}));
  EXPECT_TRUE(spec->FindPattern("chain")->steps[0].repeated);
  EXPECT_EQ(spec->FindPattern("chain")->nodes_max, 3);
  const StatusOr<DeviceSpec> forms = ParseDeviceSpec(
      std::string(kHead) + "pattern separable = {depthwise} [Relu] {pointwise} layouts plain\n");
  ASSERT_TRUE(forms.ok()) << ToString(forms.status());
  const GroupPattern& separable = forms->patterns[0];
  EXPECT_EQ(separable.steps[0].form, ConvolutionForm::kDepthwise);
  EXPECT_EQ(separable.steps[1].form, ConvolutionForm::kAny);
  EXPECT_EQ(separable.steps[2].form, ConvolutionForm::kPointwise);
  EXPECT_EQ(separable.steps[2].ops, std::vector<OpKind>{OpKind::kConv});
  const StatusOr<DeviceSpec> marks = ParseDeviceSpec(
      std::string(kHead) + "pattern marks = MatMul< [Add&] Softmax MatMul&< layouts plain\n");
  ASSERT_TRUE(marks.ok()) << ToString(marks.status());
  const std::vector<PatternStep>& steps = marks->patterns[0].steps;
  EXPECT_TRUE(steps[0].takes_movements && !steps[0].any_operands);
  EXPECT_TRUE(steps[1].any_operands && steps[1].optional && !steps[1].takes_movements);
  EXPECT_TRUE(steps[3].takes_movements && steps[3].any_operands);
  EXPECT_EQ(ParseDeviceSpec(FormatDeviceSpec(*marks))->patterns, marks->patterns);
  EXPECT_EQ(spec->extra[1], (std::pair<std::string, std::string>("fault", "crash Conv")));
}

TEST(DeviceSpec, RefusesWhatItDoesNotKnow) {
  const std::pair<const char*, const char*> cases[] = {
      {"speed 7", "line 6: unknown word 'speed'"},
      {"cores 3", "line 6: cores is given twice"},
      {"launch_ns -1", "line 6: launch_ns: expected a number from 0 to 1e+18, got '-1'"},
      {"streams_max 1.5",
       "line 6: streams_max: expected a whole number from 1 to 1e+06, got '1.5'"},
      {"pattern a", "line 6: pattern: expected 'name = step ...'"},
      {"pattern a = Konv", "line 6: unknown operator 'Konv'; did you mean 'Conv'?"},
      {"pattern a = [Conv]",
       "line 6: pattern: the first step is the anchor and may not be missing"},
      {"pattern a = {depthwise}|Relu", "line 6: unknown operator '{depthwise}'"},
      {"pattern view = Conv", "line 6: pattern: the name 'view' is taken"},
      {"pattern a = Conv layouts nchw",
       "line 6: layout: expected plain, blocked8, blocked16, channels_last or "
       "channels_last8, got 'nchw'"},
      {"pattern a = Conv max 0", "line 6: expected a whole number from 1 to 1000000, got '0'"},
      {"pattern a = Conv max", "line 6: pattern: unexpected 'max'"},
      {"launch_ns", "line 6: launch_ns: expected a value"},
      {"precision tf32", "line 6: precision: expected 'name flops_per_second'"},
      {"lacks bf16", "line 6: lacks: expected a precision and why"},
      {"cold_cache 1", "line 6: cold_cache: expected yes or no, got '1'"},
      {"precision tf32 none", "line 6: precision: expected a number from 1 to 1e18, got 'none'"},
      {"precision fp32 1e9",
       "line 6: precision: expected one of tf32, fp16, bf16, each once, got 'fp32'"},
      {"precision fp8 1e9",
       "line 6: precision: expected one of tf32, fp16, bf16, each once, got 'fp8'"},
      {"# nothing", "line 6: no pattern is given"},
  };
  for (const auto& [line, message] : cases) {
    EXPECT_EQ(Message(ParseDeviceSpec(std::string(kHead) + line).status()), message) << line;
  }
}

TEST(DeviceSpec, SaysWhichPrecisionsItOffers) {
  const DeviceSpec gpu = LoadSpec(AG_SOURCE_DIR, "h200");
  EXPECT_EQ(gpu.FlopsPerSecond("fp32"), 5e11);
  EXPECT_EQ(gpu.FlopsPerSecond("fp16"), 6e12);
  EXPECT_EQ(ToString(CheckOffers(gpu, "bf16")), "OK");
  EXPECT_EQ(Message(CheckOffers(LoadSpec(AG_SOURCE_DIR, "cpu"), "tf32")),
            "cpu: precision tf32; it offers fp32");
  EXPECT_EQ(Message(CheckOffers(gpu, "fp8")),
            "h200: precision fp8; it offers fp32, tf32, fp16, bf16");
  const DeviceSpec old =
      *ParseDeviceSpec(std::string(kHead) + "pattern a = Conv\nlacks bf16  no instructions\n");
  EXPECT_TRUE(Message(CheckOffers(old, "bf16"))
                  .ends_with(": precision bf16: no instructions; it offers fp32"));
  EXPECT_TRUE(Message(CheckOffers(old, "fp16")).ends_with(": precision fp16; it offers fp32"));
  EXPECT_EQ(*ParseDeviceSpec(FormatDeviceSpec(old)), old);
}

TEST(DeviceSpec, IsReadFromAFile) {
  const TempDir folder = *TempDir::Make("spec");
  const std::string path = folder.path() + "/a.spec";
  EXPECT_EQ(ReadDeviceSpec(path).status().code(), StatusCode::kNotFound);
  const DeviceSpec cpu = LoadSpec(AG_SOURCE_DIR, "cpu");
  ASSERT_TRUE(WriteFileAtomically(path, FormatDeviceSpec(cpu)).ok());
  EXPECT_EQ(*ReadDeviceSpec(path), cpu);
  ASSERT_TRUE(WriteFileAtomically(path, FormatDeviceSpec(cpu) + "name b\n").ok());
  EXPECT_TRUE(Message(ReadDeviceSpec(path).status()).starts_with(path + ": line "));
}

TEST(DeviceSpec, SaysWhetherItsCachesCanBeEvicted) {
  const DeviceSpec cpu = LoadSpec(AG_SOURCE_DIR, "cpu");
  DeviceSpec fixed = *ParseDeviceSpec(FormatDeviceSpec(cpu) + "cold_cache no\n");
  EXPECT_EQ(*ParseDeviceSpec(FormatDeviceSpec(fixed)), fixed);
  EXPECT_EQ(*ParseDeviceSpec(FormatDeviceSpec(cpu) + "cold_cache yes\n"), cpu);
  EXPECT_EQ(ToString(CheckMeasures(fixed, {})), "OK");
  EXPECT_EQ(ToString(CheckMeasures(cpu, {.cold_cache = true})), "OK");
  EXPECT_EQ(ToString(CheckMeasures(fixed, {.cold_cache = true})),
            "UNIMPLEMENTED: cpu: cold_cache: its caches cannot be evicted");
  EXPECT_EQ(ToString(CheckMeasures(fixed, {.precision = "tf32", .cold_cache = true})),
            "UNIMPLEMENTED: cpu: precision tf32; it offers fp32");
}

TEST(DeviceSpec, ModelsContractionsWhereItSaysSo) {
  const DeviceSpec gpu = LoadSpec(AG_SOURCE_DIR, "h200");
  EXPECT_EQ(gpu.contraction_ns, 1200);
  EXPECT_EQ(gpu.core_bytes_per_second, 9.7e10);
  EXPECT_EQ(gpu.split_ns, 400);
  // Texts of other specs are as they were.
  const std::string text = FormatDeviceSpec(LoadSpec(AG_SOURCE_DIR, "rtx2080ti"));
  for (const char* word : {"contraction_ns", "core_bytes_per_second", "split_ns"}) {
    EXPECT_EQ(text.find(word), text.npos) << word;
  }
  const std::string relu = std::string(kHead) + "pattern a = Relu layouts any\n";
  EXPECT_EQ(Message(ParseDeviceSpec(relu + "core_bytes_per_second 1\n").status()),
            "core_bytes_per_second: expected block_outputs as well");
  EXPECT_EQ(Message(ParseDeviceSpec(relu + "block_outputs 1\nsplit_ns 1\n").status()),
            "split_ns: expected core_bytes_per_second as well");
}

TEST(DeviceSpec, HasBuffersWhereItSaysSo) {
  const DeviceSpec chip = LoadSpec(AG_SOURCE_DIR, "stcp920");
  EXPECT_EQ(chip.clusters, 4);
  EXPECT_EQ(chip.cores, 32);
  EXPECT_EQ(chip.units, 3);
  EXPECT_EQ(chip.local_bytes, 64 << 10);
  EXPECT_EQ(chip.global_bytes, 8 << 20);
  EXPECT_EQ(chip.bytes_per_second, 136e9);
  EXPECT_EQ(FormatDeviceSpec(SmallSpec()).find("global_bytes"), std::string::npos);
  const std::string relu = std::string(kHead) + "pattern a = Relu layouts any\n";
  const std::string rest =
      "units 1\nlocal_bytes 64\nlocal_bytes_per_second 2\nglobal_bytes 128\n"
      "global_bytes_per_second 3\nvector_flops_per_second 4\n";
  const auto spec = ParseDeviceSpec(relu + "clusters 2\n" + rest);
  ASSERT_EQ(ToString(spec.status()), "OK");
  EXPECT_EQ(spec->global_bytes, 128);
  EXPECT_EQ(*ParseDeviceSpec(FormatDeviceSpec(*spec)), *spec);
  EXPECT_EQ(Message(ParseDeviceSpec(relu + rest).status()),
            "buffers and units: expected clusters as well");
  EXPECT_EQ(Message(ParseDeviceSpec(relu + "clusters 4\n" + rest).status()),
            "clusters: 4 do not divide 2 cores");
  EXPECT_EQ(Message(ParseDeviceSpec(relu + "clusters 2\nunits 1\n").status()),
            "clusters: expected units, local_bytes, local_bytes_per_second, global_bytes, "
            "global_bytes_per_second and vector_flops_per_second as well");
}

TEST(DeviceSpec, GroupsTakeTheCoresThatTheirBlocksFill) {
  const DeviceSpec gpu = LoadSpec(AG_SOURCE_DIR, "h200");
  EXPECT_EQ(StreamCores(gpu, 4), 0);
  EXPECT_EQ(CoresTaken(gpu, 1, 132), 1);
  EXPECT_EQ(CoresTaken(gpu, 512 * 7 * 7, 132), 7);  // 6.1 tiles of 64 x 64.
  EXPECT_EQ(CoresTaken(gpu, 64 * 112 * 112, 132), 132);
  const DeviceSpec cpu = LoadSpec(AG_SOURCE_DIR, "cpu");
  EXPECT_EQ(CoresTaken(cpu, 1, 4), 4);
}

TEST(Policy, TextParsesBack) {
  const Policy policy{.precision = "tf32", .tolerance = 0.005, .cold_cache = true};
  EXPECT_EQ(policy.Text(), "precision=tf32;tolerance=0.005;cold_cache=1;nonfinite_strict=0");
  EXPECT_EQ(*ParsePolicy(policy.Text()), policy);
  EXPECT_EQ(*ParsePolicy(""), Policy());
  EXPECT_EQ(DefaultTolerance("fp32"), Policy().tolerance);
  EXPECT_LT(DefaultTolerance("tf32"), DefaultTolerance("fp16"));
  EXPECT_EQ(Message(ParsePolicy("speed=1").status()), "policy: unknown key 'speed'");
  EXPECT_EQ(Message(ParsePolicy("tolerance=-1").status()),
            "policy: tolerance: expected a finite number that is not negative, got '-1'");
}

TEST(Policy, AModelsOwnTypesAreAPrecision) {
  const auto coarsest = [](const char* precision, const char* text) {
    return CoarsestPrecision(precision, *ParseGraph(text, nullptr));
  };
  EXPECT_EQ(coarsest("tf32", "input x f32[2]\noutput y = relu(x)\n"), "tf32");
  EXPECT_EQ(coarsest("fp32", "input x f32[2]\nh = cast(x) to=f16\noutput y = cast(h) to=f32\n"),
            "fp16");
  EXPECT_EQ(coarsest("fp16", "input x bf16[2]\noutput y = relu(x)\n"), "bf16");
  EXPECT_EQ(coarsest("bf16", "input x f16[2]\noutput y = relu(x)\n"), "bf16");
}

}  // namespace
}  // namespace ag

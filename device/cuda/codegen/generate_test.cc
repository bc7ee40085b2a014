#include "device/cuda/codegen/generate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/text.h"
#include "device/cuda/codegen/testing/case_groups.h"

namespace ag::cuda {
namespace {

// Returns the first group of this pattern ("": any) of a graph in text form, and its context.
class FirstGroup {
 public:
  explicit FirstGroup(std::string_view text, std::string precision = "fp32",
                      std::string_view pattern = "") {
    const auto problems = GroupsOfCase(AG_SOURCE_DIR, text, false);
    AG_CHECK(problems.ok() && !problems->empty());
    const auto found = std::ranges::find_if(*problems, [&](const NamedProblem& p) {
      return pattern.empty() || p.problem.pattern == pattern;
    });
    AG_CHECK(found != problems->end());
    problem_ = found->problem;
    group_ = SingleGroupPlan(problem_).groups[0];
    precision_ = *PrecisionOf({.precision = std::move(precision)});
  }
  Group& group() { return group_; }
  GroupContext context() const { return {problem_.graph, group_, precision_, chip_}; }

  std::string Variants() const {
    const auto variants = GeneratedVariants(context());
    return variants.ok() ? Join(*variants, " ") : ToString(variants.status());
  }
  std::string Text(const std::string& variant) const {
    const auto group = GenerateGroup(context(), variant);
    return group.ok() ? "\n" + group->source : ToString(group.status());
  }

 private:
  GroupProblem problem_;
  Group group_;
  Precision precision_ = Precision::kFp32;
  Chip chip_;
};

TEST(Generate, WritesChains) {
  EXPECT_EQ(FirstGroup("input x f32[3,70]; input y f32[70]; output z = relu(mul(add(x, y), x))")
                .Text("v2/128"),
            R"(
// Add+Mul+Relu by v2/128: f32[3,70], f32[70] -> f32[3,70]
AG_DEVICE void chain_at(float x0, float x1, float& y0) {
  const float v0 = ag_get(x0) + ag_get(x1);
  const float v1 = v0 * ag_get(x0);
  const float v2 = Relu(v1);
  ag_put(y0, v2);
}

AG_KERNEL(128) chain(const float* i0, const float* i1, float* o0) {
  ag_launch_dependents();
  ag_wait();
  const int at = ag_block_x() * 128 + ag_thread();
  if (at >= 105) return;
  const int a1 = at % 35;
  const int a0 = at / 35;
  const ag_pack<float, 2> x0 = ag_load<2>(i0 + a0 * 70 + a1 * 2);
  const ag_pack<float, 2> x1 = ag_load<2>(i1 + a1 * 2);
  ag_pack<float, 2> y0;
  AG_UNROLL
  for (int k = 0; k < 2; ++k) chain_at(x0.at[k], x1.at[k], y0.at[k]);
  ag_store(o0 + a0 * 70 + a1 * 2, y0);
}
AG_ENTRY(chain)
)");
}

TEST(Generate, WrapsIntegers) {
  FirstGroup sum("input x i8[4]; input y i8[4]; output z = add(x, y)");
  EXPECT_THAT(sum.Text("v4/128"),
              testing::HasSubstr(
                  "const long long v0 = (long long)(signed char)ag_add(ag_get(x0), ag_get(x1));"));
  FirstGroup lowest("input x i64[4]; c = const i64[] {-9223372036854775808}; output y = mul(x, c)");
  EXPECT_THAT(
      lowest.Text("v2/128"),
      testing::HasSubstr("const long long v0 = ag_mul(ag_get(x0), (-9223372036854775807ll - 1));"));
  FirstGroup cast("input x f32[4]; output y = cast(x) to=u8");
  EXPECT_THAT(cast.Text("v4/128"),
              testing::HasSubstr("const long long v0 = ag_within(ag_whole(ag_get(x0)), 0, 255);"));
}

TEST(Generate, StoresWhatThePrecisionSaysAndReadsScalarsAsLiterals) {
  EXPECT_EQ(FirstGroup("input x f32[21]; c = const f32[] {0.5}; output y = sub(x, c)", "fp16")
                .Text("v8/128"),
            R"(
// Sub by v8/128: f32[21] -> f32[21]
AG_DEVICE void chain_at(ag_f16 x0, ag_f16& y0) {
  const float v0 = ag_get(x0) - 0.5f;
  ag_put(y0, v0);
}

AG_KERNEL(128) chain(const ag_f16* i0, ag_f16* o0) {
  ag_launch_dependents();
  ag_wait();
  const int at = ag_block_x() * 128 + ag_thread();
  if (at >= 3) return;
  if (at == 2) {
    for (int e = 16; e < 21; ++e) chain_at(i0[e], o0[e]);
    return;
  }
  const ag_pack<ag_f16, 8> x0 = ag_load<8>(i0 + at * 8);
  ag_pack<ag_f16, 8> y0;
  AG_UNROLL
  for (int k = 0; k < 8; ++k) chain_at(x0.at[k], y0.at[k]);
  ag_store(o0 + at * 8, y0);
}
AG_ENTRY(chain)
)");
}

TEST(Generate, WritesReductions) {
  EXPECT_EQ(FirstGroup("input x f32[5,300]; output y = reduce_mean(x) axes=[1]").Text("rows/32"),
            R"(
// ReduceMean by rows/32: f32[5,300] -> f32[5,1]
AG_KERNEL(128) reduce(const float* i0, float* o0) {
  ag_launch_dependents();
  ag_wait();
  const int lane = ag_thread() % 32;
  const int at = ag_block_x() * 4 + ag_thread() / 32;
  float sum = 0.0f;
  if (at < 5) {
    const float* from = i0 + at * 300;
    for (int j = lane; j < 75; j += 32) {
      const ag_pack<float, 4> x = ag_load<4>(from + j * 4);
      AG_UNROLL
      for (int k = 0; k < 4; ++k) sum = ag_sum::of(sum, ag_get(x.at[k]));
    }
  }
  sum = ag_fold<ag_sum, 32>(sum, (float*)0);
  if (lane != 0 || at >= 5) return;
  ag_put(o0[at], ag_div(sum, 300.0f));
}
AG_ENTRY(reduce)
)");
}

TEST(Generate, WritesResizes) {
  EXPECT_EQ(FirstGroup("input x f32[1,3,5,7]; output y = resize(x) sizes=[1,3,5,16] mode=linear")
                .Text("v4/128"),
            R"(
// Resize by v4/128: f32[1,3,5,7] -> f32[1,3,5,16]
// Axis 3, 7 to 16.
AG_DEVICE void taps3(int at, int (&e)[2], float (&w)[2]) {
  float x = ((float)at + 0.5f) / 2.2857144f - 0.5f;
  x = x < 0.0f ? 0.0f : x > 6.0f ? 6.0f : x;
  e[0] = (int)x;
  e[1] = e[0] < 6 ? e[0] + 1 : 6;
  w[1] = x - (float)e[0];
  w[0] = 1 - w[1];
}

AG_KERNEL(128) resize(const float* i0, float* o0) {
  ag_launch_dependents();
  ag_wait();
  const int at = ag_block_x() * 128 + ag_thread();
  if (at >= 60) return;
  const int a2 = at % 4;
  const int a1 = at / 4 % 5;
  const int a0 = at / 20;
  ag_pack<float, 4> y;
  AG_UNROLL
  for (int k = 0; k < 4; ++k) {
    int e3[2];
    float w3[2];
    taps3(a2 * 4 + k, e3, w3);
    float sum = 0;
    AG_UNROLL
    for (int t3 = 0; t3 < 2; ++t3) {
      sum += w3[t3] * ag_get(*(i0 + a0 * 35 + a1 * 7 + e3[t3]));
    }
    ag_put(y.at[k], sum);
  }
  ag_store(o0 + a0 * 80 + a1 * 16 + a2 * 4, y);
}
AG_ENTRY(resize)
)");
  FirstGroup nearest(
      "input x f32[1,16,5,7]; output y = resize(x) sizes=[1,16,9,7] nearest_mode=floor", "fp16");
  nearest.group().inputs[0].layout = nearest.group().outputs[0].layout = Layout::kChannelsLast;
  EXPECT_EQ(nearest.Text("v8/128"), R"(
// Resize by v8/128: f32[1,16,5,7] channels_last -> f32[1,16,9,7] channels_last
// Axis 2, 5 to 9.
AG_DEVICE int nearest2(int at) {
  const float x = ((float)at + 0.5f) / 1.8f - 0.5f;
  const float below = ag_floor(x);
  const int i = (int)below;
  return i < 0 ? 0 : i > 4 ? 4 : i;
}

AG_KERNEL(128) resize(const ag_f16* i0, ag_f16* o0) {
  ag_launch_dependents();
  ag_wait();
  const int at = ag_block_x() * 128 + ag_thread();
  if (at >= 126) return;
  const int a2 = at % 2;
  const int a1 = at / 2 % 7;
  const int a0 = at / 14;
  ag_pack<ag_f16, 8> y;
  const int e2 = nearest2(a0);
  y = ag_load<8>(i0 + e2 * 112 + a1 * 16 + a2 * 8);
  ag_store(o0 + a0 * 112 + a1 * 16 + a2 * 8, y);
}
AG_ENTRY(resize)
)");
}

TEST(Generate, CountsInSixtyFourBitsWhereItMust) {
  const std::string text =
      FirstGroup("input x f32[3,1073741824]; output y = relu(x)").Text("v4/128");
  EXPECT_NE(text.find("const long long at = (long long)ag_block_x() * 128 + ag_thread();"),
            std::string::npos)
      << text;
  const std::string shrunk =  // The operand is large, the result is not.
      FirstGroup("input x f32[4,8,8192,16384]; output y = resize(x) sizes=[4,8,1024,1024]")
          .Text("v1/128");
  EXPECT_NE(shrunk.find("const long long at = (long long)ag_block_x() * 128 + ag_thread();"),
            std::string::npos)
      << shrunk;
}

struct VariantsCase {
  const char* name;
  const char* text;
  const char* variants;
};
constexpr VariantsCase kVariants[] = {
    {"chain", "input x f32[8,64]; output y = relu(x)", "v4/128 v2/128 v1/128 v4/256"},
    {"chain of odd rows", "input x f32[8,9]; input b f32[9]; output y = add(x, b)",
     "v1/128 v1/256"},
    {"nothing", "input x f32[0,4]; output y = relu(x)", "nothing"},
    {"transpose", "input x f32[37,53]; output y = transpose(x) perm=[1,0]", "tile32 v1/128 v1/256"},
    {"rows", "input x f32[4,8192]; output y = reduce_sum(x) axes=[1]", "rows/512 rows/128 rows/32"},
    {"columns", "input x f32[300,64]; output y = reduce_max(x) axes=[0]",
     "columns/8v1 columns/8v4 columns/1v1 columns/1v4 columns/16v1 columns/16v4"},
    {"softmax", "input x f32[128,1000]; output y = softmax(x) axis=1",
     "rows/128 rows/64 rows/256 rows/32"},
    {"softmax over lines", "input x f32[4,9,32]; output y = softmax(x) axis=1",
     "lines/128 lines/32"},
    {"one row", "input x f32[1,2048]; w = const f32[2048,1000] seed 1; output y = matmul(x, w)",
     "thin/8v4/16 thin/8v4/1 thin/8v1/4 thin/8v1/1 tile/16x64/8 tile/16x64/16 tile/16x64/4 "
     "tile/16x64/2"},
    {"many rows", "input x f32[512,64]; w = const f32[64,2048] seed 1; output y = matmul(x, w)",
     "tile/128x64 tile/64x128 tile/64x64 tile/128x128"},
};

TEST(Generate, OffersVariants) {
  for (const VariantsCase& c : kVariants)
    EXPECT_EQ(FirstGroup(c.text).Variants(), c.variants) << c.name;
}

// Where all tensors are padded alike, whole pixels are vectors and their padding is set to zero;
// elsewhere further blocks write it.
TEST(Generate, WritesThePaddingOfChannels) {
  FirstGroup chain("input x f32[1,42,4,4]; output y = sigmoid(x)", "fp16");
  chain.group().inputs[0].layout = chain.group().outputs[0].layout = Layout::kChannelsLast8;
  EXPECT_EQ(chain.Variants(), "v8/128 v4/128 v1/128 v8/256");
  EXPECT_EQ(chain.Text("v8/128"), R"(
// Sigmoid by v8/128: f32[1,42,4,4] channels_last8 -> f32[1,42,4,4] channels_last8
AG_DEVICE void chain_at(ag_f16 x0, ag_f16& y0) {
  const float v0 = Sigmoid(ag_get(x0));
  ag_put(y0, v0);
}

AG_KERNEL(128) chain(const ag_f16* i0, ag_f16* o0) {
  ag_launch_dependents();
  ag_wait();
  const int at = ag_block_x() * 128 + ag_thread();
  if (at >= 96) return;
  const ag_pack<ag_f16, 8> x0 = ag_load<8>(i0 + at * 8);
  ag_pack<ag_f16, 8> y0;
  AG_UNROLL
  for (int k = 0; k < 8; ++k) chain_at(x0.at[k], y0.at[k]);
  AG_UNROLL
  for (int k = 0; k < 8; ++k) {
    if ((at) * 8 % 48 + k >= 42) ag_put(y0.at[k], 0.0f);
  }
  ag_store(o0 + at * 8, y0);
}
AG_ENTRY(chain)
)");
  chain.group().inputs[0].layout = Layout::kChannelsLast;
  EXPECT_THAT(chain.Text("v2/128"), testing::HasSubstr(R"(
  ag_wait();
  if (ag_block_x() >= 3 && ag_block_x() < 4) {
    const int pixel = (int)(ag_block_x() - 3) * 128 + ag_thread();
    if (ag_block_y() != 0 || ag_block_z() != 0 || pixel >= 16) return;
    AG_UNROLL
    for (int k = 42; k < 48; ++k) ag_put(o0[pixel * 48 + k], 0.0f);
    return;
  }
  const int at = ag_block_x() * 128 + ag_thread();
)"));
}

// A reorder of an image for its first convolution: a pixel is read from its planes and written at
// once.
TEST(Generate, WritesWholePixelsWhenItReorders) {
  const FirstGroup reorder(
      "input x f32[1,3,8,8]; w = const f32[16,3,3,3] seed 1; b = const f32[16] seed 2; output y = "
      "conv(x, w, b) strides=[1,1] pads=[1,1,1,1] dilations=[1,1]",
      "fp16", "reorder");
  EXPECT_EQ(reorder.Variants(), "v8/128 v4/128 v1/128 v8/256");
  EXPECT_EQ(reorder.Text("v8/128"), R"(
// reorder by v8/128: f32[1,3,8,8] -> f32[1,3,8,8] channels_last8
AG_KERNEL(128) move(const ag_f16* i0, ag_f16* o0) {
  ag_launch_dependents();
  ag_wait();
  const int at = ag_block_x() * 128 + ag_thread();
  if (at >= 64) return;
  const int channel = 0 * 8;
  const ag_f16* from = i0 + at;
  ag_pack<ag_f16, 8> y;
  AG_UNROLL
  for (int k = 0; k < 8; ++k) {
    ag_put(y.at[k], 0.0f);
    if (channel + k < 3) y.at[k] = from[k * 64];
  }
  ag_store(o0 + at * 8, y);
}
AG_ENTRY(move)
)");
}

TEST(Generate, RefusesWhatItHasNot) {
  FirstGroup blocked("input x f32[1,16,4,4]; output y = relu(x)");
  blocked.group().inputs[0].layout = blocked.group().outputs[0].layout = Layout::kBlocked16;
  EXPECT_EQ(blocked.Variants(), "UNIMPLEMENTED: generated Relu: layout blocked16");

  FirstGroup text("input x f32[8]; output y = relu(x)");
  EXPECT_EQ(
      text.Text("tile/9x9"),
      "INVALID_ARGUMENT: generated Relu: no variant 'tile/9x9'; it has v4/128, v2/128, v1/128, "
      "v4/256");

  FirstGroup wide("input x u64[8]; output y = cast(x) to=f32");
  EXPECT_EQ(wide.Variants(), "UNIMPLEMENTED: generated Cast: Cast: element type u64");

  FirstGroup last("input x f32[1,8,4,4]; output y = softmax(x) axis=1");
  last.group().inputs[0].layout = last.group().outputs[0].layout = Layout::kChannelsLast;
  EXPECT_EQ(last.Variants(), "UNIMPLEMENTED: generated Softmax: layout channels_last");
}

TEST(Generate, ComputesADepthwiseConvolutionWhereAPointwiseOneReadsIt) {
  FirstGroup separable(
      "input x f32[1,16,8,8]; w = const f32[16,1,3,3] seed 1; b = const f32[16] seed 2; w2 = const "
      "f32[32,16,1,1] seed 3; b2 = const f32[32] seed 4; output y = conv(relu(conv(x, w, b) "
      "strides=[1,1] pads=[1,1,1,1] dilations=[1,1] group=16), w2, b2) strides=[1,1] "
      "pads=[0,0,0,0] dilations=[1,1]",
      "fp16", "separable");
  EXPECT_EQ(separable.Variants(), "mma/32x32 mma/64x16 mma/64x32 tile/32x32");
  const auto group = GenerateGroup(separable.context(), "mma/32x32");
  ASSERT_EQ(ToString(group.status()), "OK");
  EXPECT_EQ(group->kernels.size(), 1u);
  EXPECT_EQ(group->workspace_bytes, 0);
  ASSERT_EQ(group->constants.size(), 4u);
  EXPECT_EQ(group->constants[0].order, (std::vector<int>{2, 3, 1, 0}));  // Neighbouring channels.
  EXPECT_EQ(group->constants[2].order, (std::vector<int>{0, 2, 3, 1}));
  separable.group().outputs[0].layout = Layout::kPlain;
  EXPECT_EQ(separable.Variants(),
            "UNIMPLEMENTED: generated Conv+Relu+Conv: expected a depthwise convolution before a "
            "pointwise one with channels last, of less than 2^31 elements");
}

TEST(Generate, AsksForWeightsInTheOrderOfItsLoops) {
  const FirstGroup conv(
      "input x f32[1,16,8,8]; w = const f32[32,16,3,3] seed 1; b = const f32[32] seed 2; c = "
      "conv(x, w, b) strides=[1,1] pads=[1,1,1,1] dilations=[1,1]; output y = relu(c)",
      "fp16", "conv");
  const auto group = GenerateGroup(conv.context(), "mma/32x32/2");
  ASSERT_EQ(ToString(group.status()), "OK");
  ASSERT_EQ(group->constants.size(), 2u);
  EXPECT_EQ(group->constants[0].order, (std::vector<int>{0, 2, 3, 1}));
  EXPECT_EQ(group->constants[0].stored, DType::kFloat16);
  EXPECT_EQ(group->constants[1].order, std::vector<int>());
  EXPECT_EQ(group->constants[1].stored, DType::kFloat32);  // The bias.
  ASSERT_EQ(group->kernels.size(), 2u);
  EXPECT_EQ(group->kernels[0].function, "conv");
  EXPECT_EQ(group->kernels[1].function, "add_parts");
  EXPECT_EQ(group->workspace_bytes, 2 * 64 * 32 * 4);  // Two parts of all sums, as f32.
  EXPECT_TRUE(group->can_begin_early);
}

}  // namespace
}  // namespace ag::cuda

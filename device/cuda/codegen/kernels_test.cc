// Tests every group that the conformance cases form under the H200's spec, generated in every
// layout and by every variant, run on the host and compared with the reference kernels.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <set>

#include "base/digest.h"
#include "base/file.h"
#include "base/text.h"
#include "device/conformance/cases.h"
#include "device/cuda/codegen/testing/case_groups.h"
#include "device/cuda/codegen/testing/host_check.h"
#include "device/cuda/codegen/testing/host_kernels.h"

namespace ag::cuda {
namespace {

// AG_CUDA_KERNELS=long: also every layout and every precision (tests/long/cuda_kernels.sh).
bool IsLong() {
  const char* value = std::getenv("AG_CUDA_KERNELS");
  return value != nullptr && std::string_view(value) == "long";
}

// Checks of all cases in slices, so that two builds can share the machine's memory.
void RunAll(Precision precision, bool all_layouts) {
  constexpr size_t kSlice = 200;
  std::vector<GroupCheck> checks;
  std::set<std::string> known;  // Cases share groups: reorders, single operators.
  const auto run = [&] {
    const StatusOr<std::vector<std::string>> wrong = RunChecks(checks);
    ASSERT_EQ(ToString(wrong.status()), "OK");
    for (const std::string& line : *wrong) ADD_FAILURE() << line;
    checks.clear();
  };
  for (const std::span<const ConformanceCase> cases : {OperatorCases(), NetworkCases()}) {
    for (const ConformanceCase& c : cases) {
      const StatusOr<std::vector<NamedProblem>> problems =
          GroupsOfCase(AG_SOURCE_DIR, c.text, all_layouts);
      ASSERT_EQ(ToString(problems.status()), "OK") << c.name;
      for (const NamedProblem& p : *problems) {
        if (!known.insert(EncodeGroupProblem(p.problem)).second) continue;
        const std::string name = fmt::format("{}: {}", c.name, p.name);
        StatusOr<std::vector<GroupCheck>> found = ChecksOf(name, p.problem, precision);
        EXPECT_EQ(ToString(found.status()), "OK") << name;
        if (!found.ok()) continue;
        std::ranges::move(*found, std::back_inserter(checks));
      }
      if (checks.size() >= kSlice) run();
    }
  }
  if (!checks.empty()) run();
}

class Kernels : public testing::Test {
 protected:
  void SetUp() override {
    const Status status = CompileForHost("").status();
    if (status.code() == StatusCode::kUnimplemented) GTEST_SKIP() << Message(status);
  }
};

TEST_F(Kernels, ComputeAsTheReferenceInTf32) { RunAll(Precision::kTf32, false); }

// Products of several odd tiles in both directions, with the cuts of small and large chips.
constexpr std::string_view kProducts[] = {
    "input x f32[130,200]; w = const f32[200,151] seed 1; output y = relu(matmul(x, w))",
    // NOLINTNEXTLINE(bugprone-suspicious-missing-comma): one graph in two lines.
    "input r f32[70,136]; input x f32[70,256]; w = const f32[256,136] seed 1; b = const f32[136] "
    "seed 2; output y = add(add(matmul(x, w), b), r)",
    "input x f32[3,9,1100]; w = const f32[1100,40] seed 1; output y = matmul(x, w)",
    "input a f32[2,3,33,72]; input b f32[3,72,80]; output y = matmul(a, b)",
    "input x f32[1,40,13,11]; w = const f32[72,40,3,3] seed 1; b = const f32[72] seed 2; output y "
    "= "
    "relu(conv(x, w, b) strides=[1,2] pads=[1,1,1,0] dilations=[1,1])",
    "input x f32[2,48,9,9]; w = const f32[96,24,3,3] seed 1; b = const f32[96] seed 2; output y = "
    "conv(x, w, b) strides=[1,1] pads=[2,2,2,2] dilations=[2,2] group=2",
    "input x f32[2,136,11,9]; w = const f32[136,1,3,3] seed 1; b = const f32[136] seed 2; w2 = "
    "const f32[72,136,1,1] seed 3; b2 = const f32[72] seed 4; output y = conv(relu(conv(x, w, b) "
    "strides=[1,1] pads=[1,1,1,1] dilations=[1,1] group=136), w2, b2) strides=[1,1] "
    "pads=[0,0,0,0] dilations=[1,1]",
};

TEST_F(Kernels, ComputeProductsInEveryCut) {
  for (const Precision precision : {Precision::kFp32, Precision::kFp16}) {
    std::vector<GroupCheck> checks;
    std::set<std::string> known;
    for (const std::string_view text : kProducts) {
      const auto problems = GroupsOfCase(AG_SOURCE_DIR, text, true);
      ASSERT_EQ(ToString(problems.status()), "OK") << text;
      for (const NamedProblem& p : *problems) {
        if (std::ranges::count(std::array{"conv", "dense", "separable"}, p.problem.pattern) == 0) {
          continue;
        }
        for (const int sms : {1, 24, 132, 1000}) {
          const std::string name = fmt::format("{}: {}", p.name, text);
          auto found = ChecksOf(name, p.problem, precision, {.sms = sms});
          ASSERT_EQ(ToString(found.status()), "OK") << name;
          for (GroupCheck& check : *found) {
            if (known.insert(check.name).second) checks.push_back(std::move(check));
          }
        }
      }
    }
    const StatusOr<std::vector<std::string>> wrong = RunChecks(checks);
    ASSERT_EQ(ToString(wrong.status()), "OK");
    for (const std::string& line : *wrong) ADD_FAILURE() << line;
  }
}

// Groups over channels that are not whole blocks: every family that writes channels_last8, with
// operators that would not give zero if the padding were computed like channels.
constexpr std::string_view kPadded[] = {
    "input x f32[2,11,3,5]; input r f32[2,11,3,5]; output y = sigmoid(add(exp(x), r))",
    "input x f32[2,11,3,5]; input s f32[2,11,1,1]; output y = div(x, s)",
    // NOLINTNEXTLINE(bugprone-suspicious-missing-comma): one graph in two lines.
    "input x f32[1,3,4,4]; c = const f32[3,1,1] seed 1; output y = exp(x); output z = "
    "hard_sigmoid(add(x, c))",
    "input x f32[1,42,3,3]; s = const f32[42] seed 1; h = const f32[42] seed 2; m = const f32[42] "
    "seed 3; v = const f32[42] {1}; output y = batch_norm(x, s, h, m, v) epsilon=0.01",
    "input x f32[2,11,7,6]; output y = average_pool(x) kernel_shape=[3,3] strides=[2,1] "
    "pads=[1,1,1,1] dilations=[1,1]; output z = max_pool(x) kernel_shape=[2,3] strides=[1,1] "
    "pads=[0,1,0,1] dilations=[1,1]",
    "input x f32[2,22,5,7]; output y = reduce_mean(x) axes=[2,3]; output z = reduce_max(x) "
    "axes=[1] keepdims=1",
    "input x f32[1,42,3,4]; input r f32[1,6,3,4]; output y = concat(x, r) axis=1; p, q = "
    "split(x) axis=1 sizes=[11,31]; output p; output q; output z = slice(x) axes=[1,3] "
    "starts=[5,0] ends=[42,4] "
    "steps=[2,3]",
    "input x f32[1,44,5,5]; w = const f32[22,44,3,3] seed 1; b = const f32[22] seed 2; output y = "
    "sigmoid(conv(x, w, b) strides=[2,1] pads=[1,1,0,1] dilations=[1,1])",
    "input x f32[2,3,7,6]; w = const f32[16,3,3,3] seed 1; b = const f32[16] seed 2; c = conv(x, "
    "w, "
    "b) strides=[2,2] pads=[1,1,1,1] dilations=[1,1]; v = const f32[42,16,1,1] seed 3; d = const "
    "f32[42] seed 4; output y = relu(conv(c, v, d) strides=[1,1] pads=[0,0,0,0] dilations=[1,1])",
    "input x f32[1,42,6,5]; w = const f32[42,42,1,1] seed 1; b = const f32[42] seed 2; output y = "
    "conv(x, w, b) strides=[1,1] pads=[0,0,0,0] dilations=[1,1]",
    "input x f32[2,42,4,4]; input r f32[2,42,4,4]; w = const f32[42,14,1,1] seed 1; b = const "
    "f32[42] seed 2; output y = relu(add(conv(x, w, b) strides=[1,1] pads=[0,0,0,0] "
    "dilations=[1,1] group=3, r))",
    "input x f32[2,42,5,6]; w = const f32[42,1,3,3] seed 1; b = const f32[42] seed 2; output y = "
    "sigmoid(conv(x, w, b) strides=[1,2] pads=[1,1,1,1] dilations=[1,1] group=42)",
    "input x f32[1,11,5,6]; input r f32[1,11,5,6]; w = const f32[11,1,5,5] seed 1; b = const "
    "f32[11] seed 2; output y = exp(add(conv(x, w, b) strides=[1,1] pads=[2,2,2,2] "
    "dilations=[1,1] group=11, r))",
    "input x f32[1,11,5,6]; c = const f32[11,1,1] seed 3; w = const f32[11,1,3,3] seed 1; b = "
    "const f32[11] seed 2; output y = add(conv(x, w, b) strides=[1,1] pads=[1,1,1,1] "
    "dilations=[1,1] group=11, c)",
    "input x f32[1,11,6,5]; w = const f32[11,1,3,3] seed 1; b = const f32[11] seed 2; w2 = const "
    "f32[22,11,1,1] seed 3; b2 = const f32[22] seed 4; output y = sigmoid(conv(sigmoid(conv(x, w, "
    "b) strides=[1,1] pads=[1,1,1,1] dilations=[1,1] group=11), w2, b2) strides=[1,1] "
    "pads=[0,0,0,0] dilations=[1,1])",
    "input x f32[2,11,3,5]; output y = resize(x) sizes=[2,11,7,5] mode=linear; output z = "
    "resize(x) sizes=[2,11,2,9]",
};

TEST_F(Kernels, WriteZerosBehindTheChannels) {
  for (const Precision precision : {Precision::kFp32, Precision::kFp16}) {
    std::vector<GroupCheck> checks;
    std::set<std::string> patterns;
    for (const std::string_view text : kPadded) {
      const auto problems = GroupsOfCase(AG_SOURCE_DIR, text, true);
      ASSERT_EQ(ToString(problems.status()), "OK") << text;
      for (const NamedProblem& p : *problems) {
        const auto padded = [](Layout layout) { return layout == Layout::kChannelsLast8; };
        if (!std::ranges::any_of(p.problem.output_layouts, padded)) continue;
        auto found = ChecksOf(fmt::format("{}: {}", p.name, text), p.problem, precision);
        ASSERT_EQ(ToString(found.status()), "OK") << p.name;
        patterns.insert(p.problem.pattern);
        std::ranges::move(*found, std::back_inserter(checks));
      }
    }
    EXPECT_EQ(Join(std::vector<std::string>(patterns.begin(), patterns.end()), " "),
              "batch_norm chain concat conv pool reduce reorder resize separable");
    const StatusOr<std::vector<std::string>> wrong = RunChecks(checks);
    ASSERT_EQ(ToString(wrong.status()), "OK");
    for (const std::string& line : *wrong) ADD_FAILURE() << line;
  }
}

// What the two lists above do not have: every other family.
constexpr std::string_view kOthers[] = {
    "input x f32[3,70]; input y f32[70]; output z = gelu(mul(add(x, y), x))",
    "input x f32[4,1,33]; input y f32[5,1]; output z = pow(x, y)",
    "input x f32[1,24,5,5]; input s f32[1,24,1,1]; output y = swish(mul(x, s))",
    "input x i64[37]; output y = mod(cast(x) to=i32, cast(x) to=i32)",
    "input x f32[37,53]; output y = transpose(x) perm=[1,0]",
    // NOLINTNEXTLINE(bugprone-suspicious-missing-comma): one graph in two lines.
    "input x f32[2,6,5,16]; output y = transpose(x) perm=[0,2,1,3]; output z = transpose(x) "
    "perm=[3,1,0,2]",
    "input x f32[5,300]; output y = reduce_mean(x) axes=[1]; output z = reduce_max(x) axes=[0]",
    "input x f32[4,8192]; output y = reduce_sum(x) axes=[1]",
    "input x f32[3,4,5,6]; output y = reduce_sum(x) axes=[0,2]; output z = reduce_max(x) "
    "axes=[1,3] keepdims=0",
    "input x f32[128,1000]; output y = softmax(x) axis=1",
    "input x f32[4,9,32]; output y = softmax(x) axis=1",
    "input x f32[6,768]; s = const f32[768] seed 1; h = const f32[768] seed 2; output y = "
    "layer_norm(x, s, h) axis=1; output z = rms_norm(x, s) axis=1",
    "input x f32[2,16,9,9]; output y = max_pool(x) kernel_shape=[3,3] strides=[2,2] "
    "pads=[1,1,1,1] dilations=[1,1]; output z = average_pool(x) kernel_shape=[2,2] strides=[2,2] "
    "pads=[0,0,0,0] dilations=[1,1]",
    "input x f32[3,8]; input i i64[5]; output y = gather(x, i); output z = gather(x, i) axis=1",
    "input x f32[2,8,4,4]; output y = pad(x) pads=[0,0,1,1,0,0,1,2] value=1; output z = pad(x) "
    "pads=[0,0,1,1,0,0,1,1] mode=\"edge\"",
    "input x f32[2,8,5,5]; output y = resize(x) sizes=[2,8,11,10] mode=cubic; output z = "
    "resize(x) sizes=[2,8,3,10] mode=linear coordinate_transformation_mode=align_corners; output "
    "w = resize(x) sizes=[2,8,10,10] nearest_mode=ceil",
    "input x f32[1,3,16,16]; w = const f32[16,3,3,3] seed 1; b = const f32[16] seed 2; output y = "
    "relu(conv(x, w, b) strides=[2,2] pads=[1,1,1,1] dilations=[1,1])",
    "input x f32[1,2048]; w = const f32[2048,1000] seed 1; output y = matmul(x, w)",
    "input a f32[2,9,16]; input b f32[2,16,24]; input r f32[24]; output y = add(matmul(a, b), r)",
    "input x f32[2,6,4,4]; p, q = split(x) axis=1 sizes=[2,4]; output y = concat(q, p) axis=1; "
    "output z = slice(x) axes=[2] starts=[1] ends=[4] steps=[2]",
};

// Returns how the kernels of the texts' groups look, in every layout and variant, on two chips.
std::string Describe(std::span<const std::string_view> texts, Precision precision) {
  std::string all;
  for (const std::string_view text : texts) {
    const auto problems = GroupsOfCase(AG_SOURCE_DIR, text, true);
    EXPECT_EQ(ToString(problems.status()), "OK") << text;
    if (!problems.ok()) continue;
    for (const NamedProblem& p : *problems) {
      const Group group = SingleGroupPlan(p.problem).groups[0];
      for (const int sms : {24, 132}) {
        const Chip chip{.sms = sms};
        const GroupContext context{p.problem.graph, group, precision, chip};
        const auto variants = GeneratedVariants(context);
        all += fmt::format("\n== {}, {} SMs: {}\n", p.name, sms,
                           variants.ok() ? Join(*variants, " ") : ToString(variants.status()));
        if (!variants.ok()) continue;
        for (const std::string& variant : *variants) {
          const auto made = GenerateGroup(context, variant);
          if (!made.ok()) all += ToString(made.status());
          if (!made.ok()) continue;
          all += made->source;
          for (const GeneratedKernel& k : made->kernels) {
            all += fmt::format("// {}: grid {}, block {}, {} bytes shared, {} arguments\n",
                               k.function, Join(k.grid, "x"), Join(k.block, "x"), k.shared_bytes,
                               k.arguments.size());
          }
          for (const GeneratedConstant& c : made->constants) {
            all += fmt::format("// constant: order {}, padded {}, type {}\n", Join(c.order, ","),
                               Join(c.padded, "x"), static_cast<int>(c.stored));
          }
          all += fmt::format("// workspace {}, early {}\n", made->workspace_bytes,
                             made->can_begin_early);
        }
      }
    }
  }
  return all;
}

// Changed texts are found without a run. The text behind a digest stands in the build folder, to be
// compared with the text of a build before the change.
TEST(KernelTexts, AreTheSame) {
  const struct {
    const char* name;
    std::span<const std::string_view> texts;
    Precision precision;
    const char* digest;
  } kCases[] = {
      {"products_tf32", kProducts, Precision::kTf32, "cc8dbc1560f5"},
      {"products_fp16", kProducts, Precision::kFp16, "1f9c6b187643"},
      {"padded_fp32", kPadded, Precision::kFp32, "d4dfa053cfc9"},
      {"padded_fp16", kPadded, Precision::kFp16, "22a07fc86962"},
      {"others_fp32", kOthers, Precision::kFp32, "3370ca2e0665"},
      {"others_bf16", kOthers, Precision::kBf16, "f05939654b81"},
  };
  for (const auto& c : kCases) {
    const std::string text = Describe(c.texts, c.precision);
    EXPECT_EQ(Sha256(text).Short(), c.digest) << c.name;
    const std::string file = fmt::format("{}/kernels_{}.txt", AG_BINARY_DIR, c.name);
    EXPECT_TRUE(WriteFileAtomically(file, text).ok());
  }
}

TEST_F(Kernels, ComputeAsTheReferenceInEveryLayoutAndPrecision) {
  if (!IsLong()) GTEST_SKIP() << "AG_CUDA_KERNELS=long asks for it";
  for (const Precision precision :
       {Precision::kFp32, Precision::kTf32, Precision::kFp16, Precision::kBf16}) {
    SCOPED_TRACE(static_cast<int>(precision));
    RunAll(precision, true);
  }
}

}  // namespace
}  // namespace ag::cuda

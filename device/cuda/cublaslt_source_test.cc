// Tests of the source against a library of the test: calls that need a device (lists, checks,
// products) are recorded; descriptors are cuBLASLt's own, which need none.
#include "device/cuda/cublaslt_source.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>

#include <algorithm>
#include <cmath>

#include "device/cuda/packed_constant.h"
#include "device/cuda/testing/testing.h"

namespace ag::cuda {
namespace {

template <class T>
T LayoutAttribute(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t name) {
  T value{};
  size_t written = 0;
  EXPECT_EQ(cublasLtMatrixLayoutGetAttribute(layout, name, &value, sizeof(value), &written),
            CUBLAS_STATUS_SUCCESS);
  return value;
}
template <class T>
T DescAttribute(const CublasLtProblem& p, cublasLtMatmulDescAttributes_t name) {
  T value{};
  size_t written = 0;
  EXPECT_EQ(cublasLtMatmulDescGetAttribute(p.desc.get(), name, &value, sizeof(value), &written),
            CUBLAS_STATUS_SUCCESS);
  return value;
}

// Returns "8x4 ld 8", and for a batch " x3 by 32".
std::string Say(cublasLtMatrixLayout_t m) {
  std::string said =
      fmt::format("{}x{} ld {}", LayoutAttribute<uint64_t>(m, CUBLASLT_MATRIX_LAYOUT_ROWS),
                  LayoutAttribute<uint64_t>(m, CUBLASLT_MATRIX_LAYOUT_COLS),
                  LayoutAttribute<int64_t>(m, CUBLASLT_MATRIX_LAYOUT_LD));
  const auto batch = LayoutAttribute<int32_t>(m, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
  if (batch == 1) return said;
  return said +
         fmt::format(" x{} by {}", batch,
                     LayoutAttribute<int64_t>(m, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET));
}
std::string Say(const CublasLtProblem& p) {
  return fmt::format("{} | {} | {} | op {} epilogue {}{}", Say(p.a.get()), Say(p.b.get()),
                     Say(p.d.get()), DescAttribute<int32_t>(p, CUBLASLT_MATMUL_DESC_TRANSA),
                     DescAttribute<uint32_t>(p, CUBLASLT_MATMUL_DESC_EPILOGUE),
                     p.has_addend ? " + C" : "");
}

constexpr std::string_view kDense = R"(
input x f32[2,8,16]
input r f32[2,8,32]
w = const f32[16,32] seed 1
b = const f32[32] seed 2
output y = relu(add(add(matmul(x, w), b), r))
)";
constexpr std::string_view kScores = R"(
input q f32[12,128,64]
input k f32[12,64,128]
output y = matmul(q, k)
)";

TEST(CublasLtProblem, SaysRowMajorAsColumnMajor) {
  const struct {
    std::string_view text;
    MatmulForm form;
    std::string_view expected;
  } cases[] = {
      {kDense, MatmulForm::kRows, "32x16 ld 32 | 16x16 ld 16 | 32x16 ld 32 | op 0 epilogue 6 + C"},
      {kDense, MatmulForm::kColumns,
       "16x32 ld 16 | 16x16 ld 16 | 32x16 ld 32 | op 1 epilogue 6 + C"},
      {kScores, MatmulForm::kRows,
       "128x64 ld 128 x12 by 8192 | 64x128 ld 64 x12 by 8192 | 128x128 ld 128 x12 by 16384 | op 0 "
       "epilogue 1"},
      {R"(
input a f32[4,5]
input b f32[7,5,6]
output y = matmul(a, b)
)",
       MatmulForm::kRows,
       "6x5 ld 6 x7 by 30 | 5x4 ld 5 x7 by 0 | 6x4 ld 6 x7 by 24 | op 0 epilogue 1"},
  };
  for (const auto& c : cases) {
    const TextGroup group(c.text);
    const DenseProblem dense = *DenseProblemOf(group.context());
    const auto problem = MakeCublasLtProblem(dense, Precision::kFp16, c.form);
    ASSERT_TRUE(problem.ok()) << problem.status();
    EXPECT_EQ(Say(*problem), c.expected);
  }
}

TEST(CublasLtProblem, ComputesAsThePolicySays) {
  const struct {
    Precision precision;
    cudaDataType_t type;
    cublasComputeType_t compute;
    uint32_t reductions;
    bool tensor_cores, tf32;
  } cases[] = {
      {Precision::kFp32, CUDA_R_32F, CUBLAS_COMPUTE_32F, 7, false, false},
      {Precision::kTf32, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32, 7, true, true},
      {Precision::kFp16, CUDA_R_16F, CUBLAS_COMPUTE_32F, 2, true, true},
      {Precision::kBf16, CUDA_R_16BF, CUBLAS_COMPUTE_32F, 2, true, true},
  };
  for (const auto& c : cases) {
    const TextGroup group(kDense, c.precision);
    const DenseProblem dense = *DenseProblemOf(group.context());
    const auto p = MakeCublasLtProblem(dense, c.precision, MatmulForm::kRows);
    ASSERT_TRUE(p.ok()) << p.status();
    EXPECT_EQ(p->type, c.type);
    EXPECT_EQ(p->compute, c.compute);
    EXPECT_EQ(p->reduction_mask, c.reductions);
    const auto allows = [&](uint64_t flag) { return (p->numerical_mask & flag) == flag; };
    EXPECT_EQ(allows(CUBLASLT_NUMERICAL_IMPL_FLAGS_HMMA), c.tensor_cores);
    EXPECT_EQ(allows(CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_TF32), c.tf32);
    EXPECT_TRUE(allows(CUBLASLT_NUMERICAL_IMPL_FLAGS_FMA));
    EXPECT_FALSE(allows(CUBLASLT_NUMERICAL_IMPL_FLAGS_ACCUMULATOR_16F));
    EXPECT_EQ(DescAttribute<int32_t>(*p, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE), c.type);
    EXPECT_TRUE(PreferenceOf(*p).ok());
  }
}

// cuBLASLt's GELU is not used for the erf form: below zero, where results are small, they differ by
// many units of f16 and even of bf16.
TEST(CublasLtProblem, TheTanhFormOfGeluIsNotTheErfForm) {
  double worst = 0, worst_ratio = 0;
  for (double x = -4; x <= 4; x += 1.0 / 1024) {
    const double by_erf = 0.5 * x * (1 + std::erf(x * std::sqrt(0.5)));
    const double inner = 0.7978845608028654 * (x + 0.044715 * x * x * x);
    const double by_tanh = 0.5 * x * (1 + std::tanh(inner));
    const double difference = std::abs(by_erf - by_tanh);
    worst = std::max(worst, difference);
    if (x < 0) worst_ratio = std::max(worst_ratio, difference / std::abs(by_erf));
  }
  EXPECT_NEAR(worst, 4.7e-4, 1e-5);
  EXPECT_GT(worst_ratio, 10 * std::ldexp(1, -8));
}

TEST(CublasLtProblem, ActivationsThatItComputes) {
  const struct {
    std::string_view activation;
    Precision precision;
    std::string_view answer;
  } cases[] = {
      {"relu(m)", Precision::kFp32, "OK"},
      {"gelu(m) approximate=\"tanh\"", Precision::kFp16, "OK"},
      {"gelu(m) approximate=\"tanh\"", Precision::kTf32,
       "UNIMPLEMENTED: cuBLASLt: its GELU is no tanh GELU of f32"},
      {"gelu(m)", Precision::kFp16, "UNIMPLEMENTED: cuBLASLt: its GELU is no erf GELU of f16"},
      {"sigmoid(m)", Precision::kFp16, "UNIMPLEMENTED: cuBLASLt: no epilogue for Sigmoid"},
      {"clip(m) min=0 max=6", Precision::kFp16, "UNIMPLEMENTED: cuBLASLt: no epilogue for Clip"},
  };
  for (const auto& c : cases) {
    const TextGroup group(fmt::format(R"(
input x f32[8,16]
w = const f32[16,32] seed 1
m = matmul(x, w)
output y = {}
)",
                                      c.activation),
                          c.precision);
    const DenseProblem dense = *DenseProblemOf(group.context());
    const Status status = MakeCublasLtProblem(dense, c.precision, MatmulForm::kRows).status();
    EXPECT_EQ(ToString(status), c.answer);
  }
}

// A library that records its calls. It suggests algorithms 1 to 3, and cannot build the second.
class Recorder : public CublasLtLibrary {
 public:
  StatusOr<std::vector<CublasLtChoice>> Suggest(const CublasLtProblem&, MatmulForm form,
                                                int max) override {
    EXPECT_EQ(max, CublasLtSource::kSuggestedMax);
    std::vector<CublasLtChoice> choices;
    for (const int id : ids) choices.push_back({.form = form, .id = id, .tile = 20});
    return choices;
  }
  StatusOr<CublasLtAlgorithm> Build(const CublasLtProblem& problem,
                                    const CublasLtChoice& choice) override {
    if (choice.form == broken) return Err(StatusCode::kInvalidArgument, "not so");
    if (choice.id == 2) return Err(StatusCode::kInvalidArgument, "there is no 2");
    if (problem.has_bias) {
      bias = DescAttribute<const std::byte*>(problem, CUBLASLT_MATMUL_DESC_BIAS_POINTER);
    }
    return CublasLtAlgorithm{.workspace_bytes = choice.id == 3 ? 64 : 0};
  }
  Status Multiply(const CublasLtProblem&, const CublasLtAlgorithm&, const Pointers& given,
                  StreamRef) override {
    pointers = given;
    return multiplied;
  }
  std::vector<int> ids{1, 2, 3, 1};
  std::optional<MatmulForm> broken;  // None of its algorithms is built.
  const std::byte* bias = nullptr;
  Pointers pointers;
  Status multiplied;
};

TEST(CublasLtSource, ListsBothFormsOfWeightsInTurn) {
  CublasLtSource source(std::make_shared<Recorder>());
  const TextGroup dense(kDense), scores(kScores);
  EXPECT_EQ(*source.Kernels(dense.context()),
            (std::vector<std::string>{"cublaslt:nn/1,tile=20", "cublaslt:tn/1,tile=20",
                                      "cublaslt:nn/3,tile=20", "cublaslt:tn/3,tile=20"}));
  EXPECT_EQ(*source.Kernels(scores.context()),
            (std::vector<std::string>{"cublaslt:nn/1,tile=20", "cublaslt:nn/3,tile=20"}));
}

TEST(CublasLtSource, OneFormOfWeightsIsEnough) {
  const auto library = std::make_shared<Recorder>();
  library->broken = MatmulForm::kColumns;
  CublasLtSource source(library);
  const TextGroup dense(kDense);
  EXPECT_EQ(*source.Kernels(dense.context()),
            (std::vector<std::string>{"cublaslt:nn/1,tile=20", "cublaslt:nn/3,tile=20"}));
}

TEST(CublasLtSource, SaysThatNothingCanBeRebuilt) {
  const auto library = std::make_shared<Recorder>();
  library->ids = {2, 2};
  CublasLtSource source(library);
  const TextGroup scores(kScores);
  EXPECT_EQ(ToString(source.Kernels(scores.context()).status()),
            "UNIMPLEMENTED: cuBLASLt: none of 2 algorithms can be rebuilt: there is no 2");
}

// A group made into a kernel, with aligned memory for its ports.
struct Workbench {
  explicit Workbench(std::string_view text) : group(text) {}
  StatusOr<std::unique_ptr<GroupKernel>> Make(const std::string& name) {
    Constants constants(group.graph, group.weights);
    auto kernel = source.Make(group.context(), name, constants, weights.memory);
    weights.Wait();
    return kernel;
  }
  DenseProblem Problem() { return *DenseProblemOf(group.context()); }
  TextGroup group;
  HostWeights weights;
  std::shared_ptr<Recorder> library = std::make_shared<Recorder>();
  CublasLtSource source{library};
};

TEST(CublasLtSource, HandsOverOperandsInCublassOrder) {
  Workbench run(kDense);
  const auto kernel = run.Make("cublaslt:nn/3,tile=20");
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  EXPECT_EQ((*kernel)->workspace_bytes(), 64 + 240) << "room to align it";
  EXPECT_EQ(run.weights.memory.held_bytes(), 16 * 32 * 2 + 32 * 2);
  alignas(256) std::byte workspace[512];
  alignas(16) std::byte x[16], r[16], y[16];
  const std::byte* inputs[] = {x, r};
  std::byte* outputs[] = {y};
  ASSERT_TRUE((*kernel)->Enqueue(nullptr, {inputs, outputs, workspace + 16}, false).ok());
  EXPECT_EQ(run.library->pointers.workspace, workspace + 256);
  ASSERT_TRUE((*kernel)->Enqueue(nullptr, {inputs, outputs, workspace}, false).ok());
  const auto& p = run.library->pointers;
  EXPECT_EQ(p.b, x);
  EXPECT_EQ(p.c, r);
  EXPECT_EQ(p.d, y);
  EXPECT_EQ(p.workspace, workspace);
  // The weights and the bias are packed, f16.
  Constants constants(run.group.graph, run.group.weights);
  const DenseProblem dense = *DenseProblemOf(run.group.context());
  const auto expect_packed = [&](const std::byte* at, const ConstantRecipe& recipe) {
    const std::vector<std::byte> bytes = *PackConstant(recipe, constants);
    EXPECT_EQ(std::memcmp(at, bytes.data(), bytes.size()), 0);
  };
  expect_packed(p.a, {.sum = {dense.b}, .shape = {16, 32}, .stored = DType::kFloat16});
  expect_packed(run.library->bias,
                {.sum = dense.tail.vectors, .shape = {32}, .stored = DType::kFloat16});
  const auto by_columns = run.Make("cublaslt:tn/1,tile=20");
  ASSERT_TRUE(by_columns.ok()) << by_columns.status();
  ASSERT_TRUE((*by_columns)->Enqueue(nullptr, {inputs, outputs, nullptr}, false).ok());
  expect_packed(p.a,
                {.sum = {dense.b}, .shape = {16, 32}, .order = {1, 0}, .stored = DType::kFloat16});
}

// Weights of a convolution are [channels out][channels in], which is by columns.
TEST(CublasLtSource, RunsConvolutionsOfOnePixel) {
  Workbench run(R"(
input x f32[1,8,4,4]
w = const f32[16,8,1,1] seed 1
b = const f32[16] seed 2
z = const f32[1,16,4,4] seed 3
output y = relu(add(conv(x, w, b) strides=[1,1] pads=[0,0,0,0] dilations=[1,1], z))
)");
  EXPECT_EQ(run.source.Kernels(run.group.context())->size(), 4u);
  alignas(16) std::byte x[16], y[16];
  const std::byte* inputs[] = {x};
  std::byte* outputs[] = {y};
  const Node& conv = run.group.context().node(0);
  Constants constants(run.group.graph, run.group.weights);
  const struct {
    std::string name;
    std::vector<int> order;
  } cases[] = {{"cublaslt:tn/1,tile=20", {}}, {"cublaslt:nn/1,tile=20", {1, 0, 2, 3}}};
  for (const auto& c : cases) {
    const auto kernel = run.Make(c.name);
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    ASSERT_TRUE((*kernel)->Enqueue(nullptr, {inputs, outputs, nullptr}, false).ok());
    const auto packed = *PackConstant({.sum = {conv.inputs[1]},
                                       .shape = {16, 8, 1, 1},
                                       .order = c.order,
                                       .stored = DType::kFloat16},
                                      constants);
    EXPECT_EQ(std::memcmp(run.library->pointers.a, packed.data(), packed.size()), 0) << c.name;
    const auto addend = *PackConstant({.sum = {*run.Problem().tail.addend},
                                       .shape = {1, 16, 4, 4},
                                       .order = {0, 2, 3, 1},
                                       .stored = DType::kFloat16},
                                      constants);
    EXPECT_EQ(std::memcmp(run.library->pointers.c, addend.data(), addend.size()), 0) << c.name;
  }
}

TEST(CublasLtSource, PadsWeightsAndBiasOfPaddedChannels) {
  Workbench run(R"(
input x f32[1,11,4,4]
w = const f32[22,11,1,1] seed 1
b = const f32[22] seed 2
output y = conv(x, w, b) strides=[1,1] pads=[0,0,0,0] dilations=[1,1]
)");
  alignas(16) std::byte x[16], y[16];
  const std::byte* inputs[] = {x};
  std::byte* outputs[] = {y};
  const auto kernel = run.Make("cublaslt:tn/1,tile=20");
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  EXPECT_EQ(run.weights.memory.held_bytes(), 24 * 16 * 2 + 24 * 2);
  ASSERT_TRUE((*kernel)->Enqueue(nullptr, {inputs, outputs, nullptr}, false).ok());
  const Node& conv = run.group.context().node(0);
  Constants constants(run.group.graph, run.group.weights);
  const auto weights = *PackConstant({.sum = {conv.inputs[1]},
                                      .shape = {22, 11, 1, 1},
                                      .stored = DType::kFloat16,
                                      .padded = {24, 16, 1, 1}},
                                     constants);
  EXPECT_EQ(std::memcmp(run.library->pointers.a, weights.data(), weights.size()), 0);
  const auto bias = *PackConstant(
      {.sum = {conv.inputs[2]}, .shape = {22}, .stored = DType::kFloat16, .padded = {24}},
      constants);
  EXPECT_EQ(std::memcmp(run.library->bias, bias.data(), bias.size()), 0);
}

TEST(CublasLtSource, SaysWhatIsWrong) {
  Workbench run(kDense);
  EXPECT_EQ(ToString(run.Make("cublaslt:nn/2").status()), "INVALID_ARGUMENT: there is no 2");
  EXPECT_EQ(ToString(run.Make("cudnn:e1").status()),
            "INVALID_ARGUMENT: 'cudnn:e1' is no kernel of cuBLASLt");
  Workbench scores(kScores);
  EXPECT_EQ(ToString(scores.Make("cublaslt:tn/1").status()),
            "INVALID_ARGUMENT: cublaslt:tn/1: the right side is no constant matrix");
  const auto kernel = run.Make("cublaslt:nn/3");
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  alignas(16) std::byte x[16], y[16];
  const std::byte* inputs[] = {x, x};
  std::byte* outputs[] = {y};
  EXPECT_EQ(ToString((*kernel)->Enqueue(nullptr, {inputs, outputs, nullptr}, false)),
            "INVALID_ARGUMENT: cublaslt:nn/3: no workspace, 304 bytes are needed");
  const std::byte* missing[] = {x, nullptr};
  EXPECT_EQ(ToString((*kernel)->Enqueue(nullptr, {missing, outputs, y}, false)),
            "INVALID_ARGUMENT: cublaslt:nn/3: a matrix at 0x0 is not aligned to 16 bytes");
  run.library->multiplied = Err(StatusCode::kUnavailable, "lost");
  EXPECT_EQ(ToString((*kernel)->Enqueue(nullptr, {inputs, outputs, y}, false)),
            "UNAVAILABLE: cublaslt:nn/3: lost");
}

TEST(CublasLtLibrary, WithoutADeviceIsRefused) {
  HasDriverOrStub();
  const auto library = OpenCublasLt();
  if (library.ok()) GTEST_SKIP() << "this machine has a device";
  EXPECT_EQ(ToString(library.status()), "FAILED_PRECONDITION: open cuBLASLt " + CublasLtVersion() +
                                            ": cuBLASLt: CUBLAS_STATUS_NOT_INITIALIZED");
}

}  // namespace
}  // namespace ag::cuda

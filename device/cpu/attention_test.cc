// Every kernel of attention against the reference: masks that leave keys out, operands that lie by
// strides, numbers that are none.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>

#include "device/cpu/cpu_device.h"
#include "graph/reference/evaluate.h"
#include "graph/text_form.h"
#include "plan/equivalence.h"
#include "plan/fusion/group_problem.h"

namespace ag {
namespace {

constexpr float kInfinite = std::numeric_limits<float>::infinity();
constexpr float kNoNumber = std::numeric_limits<float>::quiet_NaN();
constexpr float kLowestMask = -3.4e38f;

// A group with its constants.
struct AttentionCase {
  std::string name;
  Graph graph;
  std::shared_ptr<MemoryWeights> weights = std::make_shared<MemoryWeights>();
};

Device& AttentionDevice() {
  static const std::unique_ptr<Device> device = *OpenCpuDevice({.cores = 2});
  return *device;
}

GroupProblem AttentionProblem(const Graph& graph) {
  GroupProblem problem;
  problem.graph = graph;
  problem.pattern = "attention";
  problem.input_layouts.assign(graph.inputs().size(), Layout::kPlain);
  problem.output_layouts = {Layout::kPlain};
  return problem;
}

// Runs every kernel on the inputs and compares with the reference.
void CheckKernels(const AttentionCase& c, const std::vector<Tensor>& inputs) {
  const GroupProblem problem = AttentionProblem(c.graph);
  const auto names = AttentionDevice().Kernels(problem);
  ASSERT_TRUE(names.ok()) << c.name << ": " << Message(names.status());
  EXPECT_NE(names->front(), "reference") << c.name;
  const auto expected = Evaluate(c.graph, inputs, *c.weights);
  ASSERT_TRUE(expected.ok()) << c.name << ": " << Message(expected.status());
  for (const std::string& name : *names) {
    Plan plan = SingleGroupPlan(problem);
    plan.groups[0].kernel = name;
    const auto executable = AttentionDevice().Build({c.graph, plan, *c.weights});
    ASSERT_TRUE(executable.ok()) << c.name << " " << name << ": " << Message(executable.status());
    std::vector<Tensor> outputs = {Tensor::Zeros(expected->front().type())};
    ASSERT_TRUE((*executable)->Run(inputs, outputs).ok());
    int64_t wrong = 0;
    for (int64_t i = 0; i < outputs[0].type().NumElements(); ++i) {
      const double a = expected->front().At(i), b = outputs[0].At(i);
      const bool fits = std::isnan(a) ? std::isnan(b) : a == b || std::abs(a - b) < 3e-5;
      if (!fits) ++wrong;
    }
    EXPECT_EQ(wrong, 0) << c.name << " " << name;
  }
}

std::vector<Tensor> AttentionInputs(const Graph& graph) {
  std::vector<Tensor> inputs;
  for (const NodeId id : graph.inputs()) {
    inputs.push_back(RandomTensor(graph.type({id, 0}), 3 + inputs.size()));
  }
  return inputs;
}

// How scores are masked.
enum class MaskKind { kCausal, kWindow, kBlocks, kRows };

// Whether query q of `queries` sees key k of `keys`. kRows: some queries see none.
bool SeesKey(MaskKind mask, int64_t q, int64_t k, int64_t past) {
  if (mask == MaskKind::kWindow) return k <= q + past && k + 40 > q + past;
  if (mask == MaskKind::kBlocks) return k / 32 == (q + past) / 32;
  return k <= q + past && !(mask == MaskKind::kRows && q % 7 == 3);
}

// The text form has no large constants with values.
AttentionCase MaskedCase(const std::string& name, const std::string& head, const std::string& steps,
                         MaskKind mask, int64_t queries, int64_t keys, float masked) {
  AttentionCase c{name};
  const TensorType floats{DType::kFloat32, {1, 1, queries, keys}};
  const TensorType bools{DType::kBool, {1, 1, queries, keys}};
  Tensor added = Tensor::Zeros(floats), kept = Tensor::Zeros(bools),
         factors = Tensor::Zeros(floats);
  for (int64_t q = 0; q < queries; ++q) {
    for (int64_t k = 0; k < keys; ++k) {
      const bool sees = SeesKey(mask, q, k, keys - queries);
      added.Put(q * keys + k, sees ? 0 : masked);
      kept.Put(q * keys + k, sees ? 1 : 0);
      factors.Put(q * keys + k, sees ? 1 : 0);
    }
  }
  // The constants stand in the text as inputs, whose readers then read the constants.
  const std::string shape = fmt::format("[1,1,{},{}]", queries, keys);
  const Graph text = *ParseGraph(
      head + "input added f32" + shape + "\ninput kept bool" + shape + "\ninput factors f32" +
      shape + fmt::format("\nmasked = const f32[] {{{}}}\n", masked) + "s = matmul(q, k)\n" +
      steps + "output transpose(matmul(softmax(m) axis=3, v)) perm=[0,2,1,3]\n");
  GraphBuilder builder(text);
  for (const NodeId id : text.inputs()) {
    for (const auto& [input, tensor] : {std::pair<std::string, const Tensor*>{"added", &added},
                                        {"kept", &kept},
                                        {"factors", &factors}}) {
      const auto place = std::ranges::find(text.inputs(), id) - text.inputs().begin();
      if (text.input_name(static_cast<size_t>(place)) != input) continue;
      const Edge constant =
          builder.Constant(tensor->type(), c.weights->Put(*tensor), tensor->bytes());
      AG_CHECK(builder.Replace({id, 0}, constant).ok());
      builder.ForgetInput({id, 0});
    }
  }
  c.graph = *builder.Build();
  return c;
}

std::string OperandsText(int64_t queries, int64_t keys, int64_t size) {
  return fmt::format(
      "input x f32[1,{},2,{}]\ninput y f32[1,{},2,{}]\ninput z f32[1,{},2,{}]\n"
      "q = transpose(x) perm=[0,2,1,3]\nk = transpose(y) perm=[0,2,3,1]\n"
      "v = transpose(z) perm=[0,2,1,3]\nc = const f32[] {{0.3}}\n",
      queries, size, keys, size, keys, size);
}

const std::string kWhereStep = "m = where(kept, mul(s, c), masked)\n";
const std::string kAddStep = "m = add(div(s, c), added)\n";

TEST(AttentionOnCpu, LeavesMaskedKeysOut) {
  for (const int64_t tokens : {1, 49, 197, 513}) {
    const std::string head = OperandsText(tokens, tokens, 32);
    for (const float masked : {-kInfinite, kLowestMask}) {
      const AttentionCase where = MaskedCase(fmt::format("where {} {}", masked, tokens), head,
                                             kWhereStep, MaskKind::kCausal, tokens, tokens, masked);
      CheckKernels(where, AttentionInputs(where.graph));
    }
    const AttentionCase added = MaskedCase(fmt::format("add {}", tokens), head, kAddStep,
                                           MaskKind::kCausal, tokens, tokens, -1e9f);
    CheckKernels(added, AttentionInputs(added.graph));
  }
  for (const int64_t size : {64, 80, 128, 256}) {
    const AttentionCase c = MaskedCase(fmt::format("size {}", size), OperandsText(197, 197, size),
                                       kWhereStep, MaskKind::kCausal, 197, 197, kLowestMask);
    CheckKernels(c, AttentionInputs(c.graph));
  }
  const std::pair<std::string, std::string> forms[] = {
      {"product and difference", "m = add(mul(s, factors), added)\n"},
      {"bias in front", "input b f32[2,150,197]\nm = where(kept, add(s, b), masked)\n"},
      {"mask behind", "input b f32[1,1,1,197]\nm = add(where(kept, s, masked), b)\n"},
  };
  for (const auto& [name, steps] : forms) {
    const AttentionCase c =
        MaskedCase(name, OperandsText(150, 197, 64), steps, MaskKind::kCausal, 150, 197, -1e4f);
    CheckKernels(c, AttentionInputs(c.graph));
  }
  for (const MaskKind mask : {MaskKind::kWindow, MaskKind::kBlocks, MaskKind::kRows}) {
    for (const float masked : {-kInfinite, kLowestMask}) {
      const AttentionCase c =
          MaskedCase(fmt::format("mask {} {}", static_cast<int>(mask), masked),
                     OperandsText(150, 197, 64), kWhereStep, mask, 150, 197, masked);
      CheckKernels(c, AttentionInputs(c.graph));
    }
  }
}

// Where a key that is left out would change the result, it is not left out.
TEST(AttentionOnCpu, TreatsOddNumbersBehindMasksAsTheReference) {
  constexpr int64_t kTokens = 130, kSize = 32;
  const std::string head = OperandsText(kTokens, kTokens, kSize);
  for (const float masked : {-kInfinite, kLowestMask, -1e4f}) {
    for (const std::string& steps : {kWhereStep, kAddStep}) {
      const AttentionCase c = MaskedCase(fmt::format("odd {} {}", masked, steps), head, steps,
                                         MaskKind::kCausal, kTokens, kTokens, masked);
      for (size_t operand = 0; operand < 3; ++operand) {
        for (const float odd : {kNoNumber, kInfinite, -kInfinite, 1e30f}) {
          if (odd == 1e30f && operand == 2) continue;  // Sums of it are less sure.
          std::vector<Tensor> inputs = AttentionInputs(c.graph);
          // Of the last token of the second head.
          inputs[operand].Put(inputs[operand].type().NumElements() - 5, odd);
          CheckKernels(c, inputs);
        }
      }
    }
  }
}

TEST(AttentionOnCpu, ReadsOperandsByStrides) {
  const std::pair<const char*, const char*> cases[] = {
      {"joined product",
       "input x f32[2,49,96]\na, b, c = split(x) axis=2 sizes=[32,32,32]\n"
       "q = transpose(reshape(a) shape=[2,49,2,16]) perm=[0,2,1,3]\n"
       "k = transpose(reshape(b) shape=[2,49,2,16]) perm=[0,2,3,1]\n"
       "v = transpose(reshape(c) shape=[2,49,2,16]) perm=[0,2,1,3]\n"
       "output transpose(matmul(softmax(matmul(q, k)) axis=3, v)) perm=[0,2,1,3]\n"},
      {"gathers",
       "input x f32[2,49,102]\ni = const i64[] {0}\nj = const i64[] {1}\nl = const i64[] {-1}\n"
       "h = transpose(reshape(x) shape=[2,49,3,2,17]) perm=[2,0,3,1,4]\nc = const f32[] {0.25}\n"
       "q = mul(gather(h, i) axis=0, c)\nk = transpose(gather(h, j) axis=0) perm=[0,1,3,2]\n"
       "v = gather(h, l) axis=0\noutput matmul(softmax(matmul(q, k)) axis=3, v)\n"},
      {"shared heads",
       "input q f32[2,6,49,24]\ninput y f32[2,2,51,24]\ninput z f32[2,2,51,40]\n"
       "e = expand(reshape(y) shape=[2,2,1,51,24]) shape=[2,2,3,51,24]\n"
       "f = expand(reshape(z) shape=[2,2,1,51,40]) shape=[2,2,3,51,40]\n"
       "k = transpose(reshape(e) shape=[2,6,51,24]) perm=[0,1,3,2]\n"
       "v = reshape(f) shape=[2,6,51,40]\ninput m f32[2,1,1,51]\n"
       "n = expand(m) shape=[2,1,49,51]\n"
       "output matmul(softmax(add(matmul(q, k), n)) axis=3, v)\n"},
      {"slices backwards and apart",
       "input x f32[1,4,40,48]\ninput y f32[1,4,40,48]\n"
       "q = slice(x) axes=[1,3] starts=[1,0] ends=[3,16] steps=[1,1]\n"
       "k = transpose(slice(y) axes=[1,2,3] starts=[0,-1,1] ends=[3,-100,48] steps=[2,-2,3]) "
       "perm=[0,1,3,2]\nv = slice(y) axes=[1,2] starts=[2,0] ends=[4,20] steps=[1,1]\n"
       "output matmul(softmax(matmul(q, k)) axis=3, v)\n"},
      {"mask of booleans",
       "input q f32[2,3,19,8]\ninput k f32[2,3,8,37]\ninput v f32[2,3,37,8]\n"
       "input m bool[2,1,1,37]\nn = const f32[] {-inf}\n"
       "output matmul(softmax(where(m, n, matmul(q, k))) axis=3, v)\n"},
      {"mask of booleans for each score",
       "input q f32[2,3,19,8]\ninput k f32[2,3,8,37]\ninput v f32[2,3,37,8]\n"
       "input m bool[2,1,19,37]\nn = const f32[] {nan}\n"
       "output matmul(softmax(where(m, matmul(q, k), n)) axis=3, v)\n"},
  };
  for (const auto& [name, text] : cases) {
    AttentionCase c{name};
    const auto graph = ParseGraph(text, c.weights.get());
    ASSERT_TRUE(graph.ok()) << name << ": " << Message(graph.status());
    c.graph = *graph;
    CheckKernels(c, AttentionInputs(c.graph));
  }
}

}  // namespace
}  // namespace ag

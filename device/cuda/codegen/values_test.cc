// Tests with values that random data does not have: NaN, infinities, divisions by zero, values that
// do not fit a type; and with groups that no graph of the conformance cases forms.
#include <gtest/gtest.h>

#include <limits>

#include "device/cuda/codegen/testing/case_groups.h"
#include "device/cuda/codegen/testing/host_check.h"
#include "device/cuda/codegen/testing/host_kernels.h"
#include "graph/reference/evaluate.h"
#include "graph/testing/function_cases.h"
#include "graph/text_form.h"

namespace ag::cuda {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kBig = 4611686018427387904;  // 2^62: of its double only the negative fits an i64.
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

struct ValuesCase {
  std::string name;
  std::string text;
  std::vector<std::vector<double>> inputs;
};

const std::vector<ValuesCase>& Cases() {
  static const std::vector<double> all{-kInf, -3.5, -1, -0.0, 0, 0.25, 1, 70000, kInf, kNan};
  static const std::vector<double> turned{kNan, kInf, 0, -1, -0.0, 0, 0, -kInf, 1, 2};
  static const std::vector<ValuesCase> cases = {
      {"clip", "input x f32[10]; output y = clip(x) min=-1 max=0.5", {all}},
      {"gelu", "input x f32[10]; output y = gelu(x)", {all}},
      {"min", "input a f32[10]; input b f32[10]; output y = min(a, b)", {all, turned}},
      {"max", "input a f32[10]; input b f32[10]; output y = max(a, b)", {all, turned}},
      {"div", "input a f32[10]; input b f32[10]; output y = div(a, b)", {all, turned}},
      {"pow", "input a f32[10]; input b f32[10]; output y = pow(a, b)", {all, turned}},
      {"mod", "input a f32[10]; input b f32[10]; output y = mod(a, b)", {all, turned}},
      {"less", "input a f32[10]; input b f32[10]; output y = less(a, b)", {all, turned}},
      {"equal", "input a f32[10]; input b f32[10]; output y = equal(a, b)", {all, turned}},
      {"cast to i32", "input x f32[10]; output y = cast(x) to=i32", {all}},
      {"cast to i8", "input x f32[10]; output y = cast(x) to=i8", {all}},
      {"cast to bool", "input x f32[10]; output y = cast(x) to=bool", {all}},
      {"cast to f16 and back",
       "input x f32[10]; output y = cast(cast(x) to=f16) to=f32",
       {{1.0001, 65519, 65520, 6e-8, 2e-8, 0.33333, -1e-5, kInf, kNan, 2049}}},
      {"cast to bf16 and back",
       "input x f32[6]; output y = cast(cast(x) to=bf16) to=f32",
       {{1.0039, 3.3e38, -0.1, kInf, kNan, 257}}},
      {"cast to u8", "input x f32[10]; output y = cast(x) to=u8", {all}},
      {"cast to i64", "input x f64[10]; output y = cast(x) to=i64", {all}},
      {"cast i64 to i8", "input x i64[5]; output y = cast(x) to=i8", {{300, -129, 127, kBig, -1}}},
      {"cast i64 to i32 and on",
       "input x i64[4]; output y = cast(cast(x) to=i32) to=f64",
       {{4294967297, 2147483648, kBig, -1}}},
      {"cast what doubles round to f32",
       "input x i64[1]; c = const i64[] {274877906945}; output y = cast(add(x, c)) to=f32",
       {{kBig}}},
      {"add u8", "input a u8[3]; input b u8[3]; output y = add(a, b)", {{200, 1, 0}, {100, 2, 0}}},
      {"add i8 and on",
       "input a i8[3]; input b i8[3]; output y = greater(add(a, b), a)",
       {{100, 1, -128}, {100, 2, -1}}},
      {"add i64 that no double holds",
       "input x i64[3]; c = const i64[] {9007199254740993}; output y = add(x, c)",
       {{0, 1, kBig}}},
      {"add i64", "input a i64[2]; input b i64[2]; output y = add(a, b)", {{kBig, 1}, {kBig, 1}}},
      {"sub i64",
       "input x i64[2]; c = const i64[] {-9223372036854775808}; output y = sub(x, c)",
       {{kBig, -1}}},
      {"mul i64", "input a i64[2]; input b i64[2]; output y = mul(a, b)", {{kBig, 3}, {6, -5}}},
      {"mul i32 and on",
       "input a i32[2]; input b i32[2]; output y = cast(mul(a, b)) to=i64",
       {{65536, 2147483647}, {65537, 3}}},
      {"neg i8", "input a i8[3]; output y = neg(a)", {{-128, 127, 0}}},
      {"abs i8", "input a i8[3]; output y = abs(a)", {{-128, 127, -1}}},
      {"abs and neg i64", "input a i64[2]; output y = neg(abs(a))", {{-2 * kBig, -5}}},
      {"clip i8 beyond its ends",
       "input a i8[3]; output y = clip(a) min=-300 max=1",
       {{-128, 5, 1}}},
      {"clip i8 to its end", "input a i8[3]; output y = clip(a) min=300", {{-128, 5, 1}}},
      {"clip i64 beyond its ends",
       "input a i64[2]; output y = clip(a) min=-1e+30 max=1e+30",
       {{-2 * kBig, 5}}},
      {"div i32",
       "input a i32[3]; input b i32[3]; output y = div(a, b)",
       {{-2147483648, 7, 7}, {-1, 0, -2}}},
      {"pow i32", "input a i32[2]; input b i32[2]; output y = pow(a, b)", {{3, -3}, {40, 41}}},
      {"matmul i32 and on",
       "input a i32[2,2]; input b i32[2,2]; output y = relu(matmul(a, b))",
       {{65536, 65536, 5, -2147483648}, {16384, 1, 16384, 3}}},
      {"reduce_sum i32",
       "input x i32[2,3]; output y = reduce_sum(x) axes=[1]",
       {{2147483647, 2147483647, 5, 1, 2, 3}}},
      {"reduce_sum i64",
       "input x i64[2,3]; output y = reduce_sum(x) axes=[0]",
       {{kBig, kBig, 5, kBig, 2, 3}}},
      {"reduce_mean i32",
       "input x i32[2,3]; output y = reduce_mean(x) axes=[1]",
       {{2147483647, 2147483647, 5, -1, -2, -4}}},
      {"reduce_mean i64",
       "input x i64[2,3]; output y = reduce_mean(x) axes=[1]",
       {{kBig, kBig, 5, -1, -2, -4}}},
      {"reduce_mean i8",
       "input x i8[300]; output y = reduce_mean(x) axes=[0]",
       {std::vector<double>(300, 100)}},
      {"reduce_max i8", "input x i8[3]; output y = reduce_max(x) axes=[0]", {{-128, -5, -7}}},
      {"pad i8 beyond its end", "input x i8[2]; output y = pad(x) pads=[1,1] value=300", {{1, 2}}},
      {"div i64",
       "input a i64[8]; input b i64[8]; output y = div(a, b)",
       {{7, -7, 7, -7, 5, -5, 0, -2 * kBig}, {2, 2, -2, -2, 0, 0, 0, -1}}},
      {"mod i64",
       "input a i64[8]; input b i64[8]; output y = mod(a, b)",
       {{7, -7, 7, -7, 5, -5, 0, -2 * kBig}, {2, 2, -2, -2, 0, 0, 0, -1}}},
      {"fmod i64",
       "input a i64[8]; input b i64[8]; output y = mod(a, b) fmod=1",
       {{7, -7, 7, -7, 5, -5, 0, -2 * kBig}, {2, 2, -2, -2, 0, 0, 0, -1}}},
      {"pow i64",
       "input a i64[4]; input b i64[4]; output y = pow(a, b)",
       {{2, -3, 5, 2}, {10, 3, 0, -1}}},
      {"pow i64 beyond its ends",
       "input a i64[6]; input b i64[6]; output y = pow(a, b)",
       {{3, -3, 2, -1, -1, 1}, {41, 41, 64, -3, -4, -5}}},
      {"reduce_max", "input x f32[2,5]; output y = reduce_max(x) axes=[1]", {all}},
      {"reduce_max of columns", "input x f32[5,2]; output y = reduce_max(x) axes=[0]", {all}},
      {"reduce_sum", "input x f32[2,5]; output y = reduce_sum(x) axes=[1]", {all}},
      {"max_pool",
       "input x f32[1,1,10]; output y = max_pool(x) kernel_shape=[2] strides=[1] pads=[1,1] "
       "dilations=[1]",
       {all}},
      {"max_pool of padding alone",
       "input x f32[1,1,1]; output y = max_pool(x) kernel_shape=[2] strides=[1] pads=[1,1] "
       "dilations=[2]",
       {{5}}},
      {"softmax",
       "input x f32[3,3]; output y = softmax(x) axis=1",
       {{1, 2, kInf, -kInf, -kInf, -kInf, 1000, kNan, 0}}},
      {"softmax of large",
       "input x f32[1,4]; output y = softmax(x) axis=1",
       {{1000, 999, -1000, -kInf}}},
      {"gather from the end",
       "input x f32[4]; input i i64[3]; output y = gather(x, i)",
       {{1, 2, 3, 4}, {-1, -4, 3}}},
      {"pad to one", "input x f32[3]; output y = pad(x) pads=[-1,-1]", {{1, 2, 3}}},
      {"pad beside everything",
       "input x f32[2,2]; output y = pad(x) pads=[1,0,-2,0] value=7",
       {{1, 2, 3, 4}}},
  };
  return cases;
}

class Values : public testing::Test {
 protected:
  void SetUp() override {
    const Status status = CompileForHost("").status();
    if (status.code() == StatusCode::kUnimplemented) GTEST_SKIP() << Message(status);
  }
};

// Returns checks of the case's last group by every variant, on the given values.
StatusOr<std::vector<GroupCheck>> ChecksOfCase(const ValuesCase& c) {
  AG_LET(const std::vector<NamedProblem> problems, GroupsOfCase(AG_SOURCE_DIR, c.text, false));
  AG_LET(std::vector<GroupCheck> checks, ChecksOf(c.name, problems[0].problem, Precision::kFp32));
  for (GroupCheck& check : checks) {
    for (size_t i = 0; i < check.inputs.size(); ++i) {
      check.inputs[i] = Tensor::FromDoubles(check.inputs[i].type(), c.inputs[i]);
    }
    AG_LET(check.expected, Evaluate(check.graph, check.inputs, *check.weights));
  }
  return checks;
}

TEST_F(Values, AreAsTheReferenceHasThem) {
  std::vector<GroupCheck> checks;
  std::vector<ValuesCase> cases = Cases();
  for (const FunctionCase& c : FunctionCases()) {
    std::vector<std::vector<double>> inputs{c.x};
    if (c.y.size() > 0) inputs.push_back(c.y);
    const std::string shape = fmt::format("[{}]", c.x.size());
    cases.push_back({std::string(c.name), StatementsOf(c, shape), std::move(inputs)});
  }
  for (const ValuesCase& c : cases) {
    const StatusOr<std::vector<GroupCheck>> found = ChecksOfCase(c);
    ASSERT_EQ(ToString(found.status()), "OK") << c.name;
    checks.insert(checks.end(), found->begin(), found->end());
  }
  const StatusOr<std::vector<std::string>> wrong = RunChecks(checks);
  ASSERT_EQ(ToString(wrong.status()), "OK");
  for (const std::string& line : *wrong) ADD_FAILURE() << line;
}

// No case has copies, because a plan's places say where they write (plan/plan.h).
TEST_F(Values, AreCopiedToEveryOutput) {
  auto weights = std::make_shared<MemoryWeights>();
  const StatusOr<Graph> graph = ParseGraph(
      "input x f32[3,5]\nw = const f32[3,5] seed 1\noutput a = add(x, w)", weights.get());
  ASSERT_EQ(ToString(graph.status()), "OK");
  const Edge input{graph->inputs()[0], 0};
  const Edge constant = graph->node(graph->outputs()[0].edge.node).inputs[1];
  const Tensor x = RandomTensor(graph->type(input), 3);
  const Tensor w = *Materialize(*graph, constant, *weights);
  std::vector<GroupCheck> checks;
  for (const bool is_constant : {false, true}) {
    GroupCheck check{
        .name = is_constant ? "constant" : "input", .graph = *graph, .weights = weights};
    const Port port{is_constant ? constant : input, Layout::kPlain};
    check.group.pattern = kReorderPattern;
    if (!is_constant) check.group.inputs = {port};
    check.group.outputs = {port, port};
    if (!is_constant) check.inputs = {x};
    check.expected = is_constant ? std::vector{w, w} : std::vector{x, x};
    const Chip chip;
    const GroupContext context{check.graph, check.group, Precision::kFp32, chip};
    const auto variants = GeneratedVariants(context);
    ASSERT_EQ(ToString(variants.status()), "OK");
    const auto generated = GenerateGroup(context, variants->front());
    ASSERT_EQ(ToString(generated.status()), "OK");
    check.generated = *generated;
    checks.push_back(check);
  }
  EXPECT_EQ(checks[1].generated.constants.size(), 1u);
  const StatusOr<std::vector<std::string>> wrong = RunChecks(checks);
  ASSERT_EQ(ToString(wrong.status()), "OK");
  for (const std::string& line : *wrong) ADD_FAILURE() << line;
}

// The check itself must find an error.
TEST_F(Values, WhenWrongAreReported) {
  const ValuesCase c{"relu", "input x f32[4]; output y = relu(x)", {{1, 2, 3, 4}}};
  StatusOr<std::vector<GroupCheck>> checks = ChecksOfCase(c);
  ASSERT_EQ(ToString(checks.status()), "OK");
  GroupCheck check = checks->front();
  check.expected[0] = Tensor::FromFloats({4}, {{1, 2, 3, 4.001f}});
  GroupCheck beyond = checks->front();
  const std::string store = "ag_store(o0, y0);";
  beyond.generated.source.replace(beyond.generated.source.find(store), store.size(),
                                  store + " o0[-1] = 1;");
  const std::vector<GroupCheck> both{check, beyond};
  const StatusOr<std::vector<std::string>> wrong = RunChecks(both);
  ASSERT_EQ(ToString(wrong.status()), "OK");
  EXPECT_EQ(*wrong, (std::vector<std::string>{"relu by v4/128: output 0: f32[4]: error 0.001 of 4",
                                              "relu by v4/128: wrote beside a tensor"}));
}

}  // namespace
}  // namespace ag::cuda

#include "tests/fuzz/seeds.h"

#include "graph/onnx/plan_metadata.h"
#include "graph/onnx/testing/onnx_testing.h"
#include "plan/format/plan_codec.h"
#include "plan/schedule/planner.h"
#include "plan/testing/testing.h"

namespace ag {
namespace {

using testing::HeldBy;

constexpr const char* kTexts[] = {
    "g (float[2,3,4] x) => (float[2,12] y) <int64[1] i = {0}, int64[1] m = {-1}> {"
    "s = Shape(x) d = Gather(s, i) t = Concat<axis = 0>(d, m) z = Softmax<axis = 1>(x)"
    "q = Selu(z) y = Reshape(q, t) }",
    "g (float[4,6] x) => (float[4,3] y) <int64[1] s = {-3}, int64[1] e = {6}, int64[1] a = {1}> {"
    "p = Slice(x, s, e, a) k = Transpose<perm = [1,0]>(p) w, v = Split<axis = 1>(k)"
    "y = Gemm<transB = 1>(p, p) }",
    "g (float[2] x, bool c) => (float[2] y) { y = If<then_branch = t () => (float[2] a) {"
    "a = Relu(x) }, else_branch = e () => (float[2] b) { b = Exp(x) }>(c) }",
    "g (float[2] x, int64 n) => (float[2] y, float[N,2] all) <bool c = {1}> {"
    "y, all = Loop<body = b (int64 i, bool go, float[2] v) => (bool go2, float[2] w, float[2] s) {"
    "go2 = Identity(go) w = Add(v, x) s = Identity(w) }>(n, c, x) }",
    "g (float[2] x) => (float[2] y, float[3,2] all) <int64 n = {3}, bool c = {1}> {"
    "y, all = Loop<body = b (int64 i, bool go, float[2] v) => (bool go2, float[2] w, float[2] s) {"
    "go2 = Identity(go) w = Add(v, x) s = Identity(w) }>(n, c, x) }",
    "g (float[2] h, float[2,2] x) => (float[2] y, float[2,2] all) {"
    "y, all = Scan<num_scan_inputs = 1, body = b (float[2] s, float[2] e) => "
    "(float[2] t, float[2] p) { t = Add(s, e) p = Relu(t) }>(h, x) }",
    "<ir_version: 8, opset_import: [\"\" : 17, \"f\" : 1]>"
    "g (float[2] x) => (float[2] y) { y = f.twice(x) } <domain: \"f\", opset_import: [\"\" : 17]>"
    "twice (a) => (b) { x = Relu(a) b = Add(x, x) }",
    "g (float[6] x) => (float[2] y, int64 n) <int64 two = {2}, int64 last = {-1}> {"
    "parts = SplitToSequence<axis = 0>(x, two) a = Relu(x) more = SequenceInsert(parts, a)"
    "less = SequenceErase(more, two) n = SequenceLength(less)"
    "some = Optional(less) got = OptionalGetElement(some) one = Constant<value_int = 1>()"
    "y = SequenceAt(got, one) }",
    "g (float[2] x) => (string[2] y) <string[2] w = {\"no\", \"yes\"}> {"
    "z = Constant<value_float = 0.0>() more = Greater(x, z) i = Cast<to = 7>(more)"
    "y = Gather(w, i) }",
    "g (float[batch,seq,4] x, int64[batch,seq] ids, float[9,4] w) => (float[batch,seq,4] y) {"
    "e = Gather(w, ids) y = Add(x, e) }",
    "g (float[1,4] x) => (float[1,4] y) <float s = {0.5}, uint8 z = {3}> {"
    "q = QuantizeLinear(x, s, z) y = DequantizeLinear(q, s, z) }",
    "g (float[1,2,4,4] x, float[2,2,3,3] w) => (float[1,2,A,B] y) <float[4] k = {1, 1, 2, 2}> {"
    "c = Conv<pads = [1,1,1,1]>(x, w) p = MaxPool<kernel_shape = [2,2]>(c)"
    "y = Resize<mode = \"linear\">(p, , k) }",
    "g (float[3,1,2] x, float[1,8,2] w, float[1,8,2] r) => (float[3,1,1,2] y) {"
    "y = LSTM<hidden_size = 2>(x, w, r) }",
    "g (float[2,3] a, float[3,4] b) => (float[2,4] y) { y = Einsum<equation = \"ij,jk->ik\">(a, b) "
    "}",
    "g (float[5] x) => (float[k] y) { n = NonZero(x) t = Transpose(n) y = GatherND(x, t) }",
};

}  // namespace

std::vector<std::string> ImportSeeds() {
  std::vector<std::string> seeds = {testing::ConvModel()};
  for (const char* const text : kTexts) seeds.push_back(testing::ModelFromText(text));
  seeds.push_back(testing::SequenceModelFromText(
      "g (float[2] s, float[2] x, string[3] w) => (float[n] y, string[m] v) {"
      "r = Relu(x) more = SequenceInsert(s, r) y = ConcatFromSequence<axis = 0>(more)"
      "v = StringNormalizer<case_change_action = \"LOWER\", stopwords = [\"no\"]>(w) }",
      {"s"}));
  for (const HeldBy held_by : {HeldBy::kInitializer, HeldBy::kConstant, HeldBy::kBranch}) {
    seeds.push_back(testing::SparseModel(
        {.values = {1, 2}, .indices = {0, 1, 1, 0}, .index_dims = {2, 2}, .held_by = held_by}));
    seeds.push_back(testing::ExternalDataModel(
        {.location = "w.bin", .offset = "8", .length = "8", .held_by = held_by}));
  }
  seeds.push_back(seeds[0] + PlanEntry("key", EncodePlan(SeedsOfPlans().plans[0])));
  return seeds;
}

const PlanSeeds& SeedsOfPlans() {
  static const PlanSeeds seeds = [] {
    PlanSeeds made{GraphOf("input x f32[1,3,8,8]\nw = const f32[16,3,3,3] seed 7\n"
                           "s = const f32[16] seed 8\n"
                           "c = relu(conv(x, w, s) strides=[1,1] pads=[1,1,1,1] "
                           "dilations=[1,1])\n"
                           "a, b = split(c) axis=1 sizes=[8,8]\n"
                           "output \"y\" = add(exp(a), neg(b))\noutput \"c\" = c\n"),
                   LoadSpec(AG_SOURCE_DIR, "small"),
                   {}};
    RooflineTimes times(made.spec);
    for (const int streams : {1, 2}) {
      StatusOr<Plan> plan = MakePlan(made.graph, made.spec, Policy(), times, {}, streams);
      AG_CHECK(plan.ok());
      made.plans.push_back(*std::move(plan));
    }
    return made;
  }();
  return seeds;
}

}  // namespace ag

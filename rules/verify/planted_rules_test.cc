// Wrong rules, each refused with a counter-example: mistakes of published rule sets and of authors
// of rules.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rules/sets/built_in_rules.h"
#include "rules/verify/verify.h"

namespace ag {
namespace {

struct WrongRule {
  const char* why;
  const char* text;
};

// Each rule looks right; most are mistakes of published rule sets.
const WrongRule kWrongRules[] = {
    {"bias dropped", "w [exact]: add(matmul(x, v), b) => matmul(x, v) if shape(b) == [dim(v, 1)]"},
    {"scale dropped (TASO's conv-mul)",
     "w [exact]: mul(y:conv.c(x, w, b), k) => conv.c(x, w, b) if along_axis(k, y, 1)"},
    {"wrong cut points",
     "w [exact]: each i: matmul(x, w[i]) => split(matmul(x, concat(w[i]...; axis=1)); "
     "axis=rank(x) - 1, sizes=[1, sum(dim(w[i], 1)...) - 1])[i] "
     "if rank(w[i]) == 2, count(w[i]...) == 2, sum(dim(w[i], 1)...) > 1"},
    {"relu missing",
     "w [exact]: each i: relu(conv.c(x, w[i], b[i]; group=1)) => "
     "split(conv.c(x, concat(w[i]...; axis=0), concat(b[i]...; axis=0)); "
     "axis=1, sizes=[dim(w[i], 0)...])[i] if k = shape_but(w[i], 0)"},
    {"TASO #99: groups that do not line up",
     "w [exact]: concat(conv.c(x, w, b; group=1), conv.c(y, v, d; group=1); axis=1) => "
     "conv.c(concat(x, y; axis=1), concat(w, v; axis=0), concat(b, d; axis=0); group=2) "
     "if shape_but(w, 0) == shape_but(v, 0)"},
    {"TASO #130: the same with one kernel's channels free",
     "w [exact]: concat(conv.c(x, w, b; group=1), conv.c(y, v, d; group=1); axis=1) => "
     "conv.c(concat(x, y; axis=1), concat(w, v; axis=0), concat(b, d; axis=0); group=2)"},
    {"no guard on groups (TASO #125-129)",
     "w [exact]: each i: conv.c(x, w[i], b[i]) => "
     "split(conv.c(x, concat(w[i]...; axis=0), concat(b[i]...; axis=0)); axis=1, "
     "sizes=[dim(w[i], 0)...])[i] if k = shape_but(w[i], 0)"},
    {"broadcast slip (TASO #59)",
     "w [rounding]: conv.c(add(x, y), w, b) => add(conv.c(x, w, b), conv.c(y, w, sub(b, b)))"},
    {"conv of a channel-wise shift",
     "w [rounding]: conv.c(add(x, y), w, b) => add(conv.c(x, w, b), reduce_sum(mul(w, "
     "reshape(y; shape=[1, dim(y, 1), 1, 1])); axes=[0, 1, 2, 3], keepdims=0)) "
     "if rank(x) == 4, shape(y) == [1, dim(x, 1), 1, 1]"},
    {"concat of broadcast operands",
     "w [exact]: concat(mul(x[i], y[i])...; axis=a) => "
     "mul(concat(x[i]...; axis=a), concat(y[i]...; axis=a)) if same(rank(x[i]), rank(y[i]), a + "
     "1)"},
    {"pads off by one",
     "w [finite]: conv(x, w, b; strides=s, pads=p, dilations=d, group=g), "
     "r:conv(x, v, c; strides=s, pads=q, dilations=d, group=h) => "
     "conv(x, pad(w; pads=[0, 0, 1, 1, 0, 0, 1, 1]), b; strides=s, pads=q, dilations=d, group=g), "
     "r "
     "if rank(w) == 4, dim(w, 2) == 1, dim(w, 3) == 1, dim(v, 2) == 3, dim(v, 3) == 3, "
     "sum(p) == 0, sum(q) == 4, d == [1, 1]"},
    {"wrong concat axis",
     "w [exact]: each i: matmul(x, w[i]) => "
     "split(matmul(x, concat(w[i]...; axis=0)); axis=1, sizes=[dim(w[i], 1)...])[i] if rank(x) == "
     "2"},
    {"operand transposed",
     "w [exact]: transpose(matmul(x, y); perm=[1, 0]) => "
     "matmul(transpose(x; perm=[1, 0]), transpose(y; perm=[1, 0])) if shape(x) == shape(y)"},
    {"outputs swapped",
     "w [exact]: matmul(x, v), matmul(x, w) => "
     "split(matmul(x, concat(v, w; axis=1)); axis=1, sizes=[dim(v, 1), dim(w, 1)])[1], "
     "split(matmul(x, concat(v, w; axis=1)); axis=1, sizes=[dim(v, 1), dim(w, 1)])[0] "
     "if rank(x) == 2, same_shape(v, w)"},
    {"matmul commutes", "w [rounding]: matmul(x, y) => matmul(y, x) if same_shape(x, y)"},
    {"subtraction commutes", "w [exact]: sub(x, y) => sub(y, x)"},
    {"division is associative", "w [rounding]: div(div(x, y), z) => div(x, div(y, z))"},
    {"relu is linear", "w [rounding]: relu(add(x, y)) => add(relu(x), relu(y))"},
    {"relu of the negative", "w [exact]: relu(neg(x)) => neg(relu(x))"},
    {"transposes composed the wrong way",
     "w [exact]: transpose(transpose(x; perm=p); perm=q) => transpose(x; perm=compose(q, p))"},
    {"batch-norm without epsilon",
     "w [rounding]: batch_norm(x, s, t, m, v) => add(mul(x, reshape(k:div(s, sqrt(v)); shape=n)), "
     "reshape(sub(t, mul(m, k)); shape=n)) if n = join([dim(x, 1)], repeat(1, rank(x) - 2))"},
    {"layer norm's epsilon",
     "w [rounding]: layer_norm(x, g, b; axis=n) => layer_norm(x, g, b; axis=n, epsilon=0.5)"},
    {"gelu by the other formula",
     "w [rounding]: gelu(x; approximate=\"none\") => gelu(x; approximate=\"tanh\")"},
    {"rounds, but says exact", "w [exact]: matmul(matmul(x, v), w) => matmul(x, matmul(v, w))"},
    {"TASO #98, #105: grouped siblings of a sum joined as if they had one group",
     "w [rounding]: add(conv.c(x, w, b), conv.c(y, v, d)) => conv.c(concat(x, y; axis=1), "
     "concat(w, v; axis=1), add(b, d)) if same_shape(x, y), same_shape(w, v)"},
    {"inputs of two sizes, which a stride makes one",
     "w [exact]: concat(conv.c(x, w, b), conv.c(y, w, b); axis=0) => conv.c(concat(x, y; axis=0), "
     "w, b)"},
    {"the same of pools",
     "w [exact]: concat(max_pool.p(x), max_pool.p(y); axis=1) => max_pool.p(concat(x, y; axis=1))"},
    {"TASO #99, groups counted, sizes not",
     "w [exact]: concat(conv.c(x, w, b), conv.c(y, v, d); axis=1) => conv.c(concat(x, y; axis=1), "
     "concat(w, v; axis=0), concat(b, d; axis=0); group=(dim(x, 1) + dim(y, 1)) / dim(w, 1)) "
     "if same_shape(w, v)"},
    {"conv over a sum, bias twice",
     "w [rounding]: conv.c(add(x, y), w, b) => add(conv.c(x, w, b), conv.c(y, w, b)) "
     "if same_shape(x, y)"},
    {"TASO's broadcast axiom: a kernel scaled by a row",
     "w [rounding]: mul(conv.c(x, w, b), k) => conv.c(x, mul(w, k), mul(b, reshape(k; "
     "shape=[elements(k)]))) if along_axis(k, x, 1), elements(k) == dim(w, 0)"},
    {"an element-wise operator joined with concat where one side is broadcast",
     "w [exact]: concat(add(x, z), add(y, z); axis=a) => add(concat(x, y; axis=a), z) "
     "if same_shape(x, y)"},
    {"an operand dropped from a sum (TASO's built-in)",
     "w [rounding]: add(matmul(x, w), add(matmul(x, v), y)) => add(matmul(x, add(w, v)), x) "
     "if same_shape(w, v), same_shape(x, y), dim(w, -1) == dim(x, -1)"},
    {"wrong split sizes",
     "w [exact]: each i: matmul(x, w[i]) => split(matmul(x, concat(w[i]...; axis=1)); axis=1, "
     "sizes=[dim(w[i], 0)...])[i] if rank(x) == 2, rank(w[i]) == 2, same(dim(w[i], 0), 2), "
     "sum(dim(w[i], 1)...) == 2 * count(w[i]...)"},
    {"split read in the other order",
     "w [exact]: concat(split.s(x; axis=a)[1], split.s(x; axis=a)[0]; axis=a) => x"},
    {"concat commutes", "w [exact]: concat(x, y; axis=a) => concat(y, x; axis=a)"},
    {"slice off by one",
     "w [exact]: slice(concat(x, y; axis=a); axes=[a], starts=[dim(x, a) - 1], "
     "ends=[dim(x, a) + dim(y, a) - 1], steps=[1]) => y"},
    {"pad moved into average pooling that leaves pads out of its count",
     "w [rounding]: average_pool.c(pad(x; pads=q, value=0, mode=\"constant\"); pads=p, "
     "count_include_pad=0, ceil_mode=0) => average_pool.c(x; pads=[at(q, 2), at(q, 3), at(q, 6), "
     "at(q, 7)], count_include_pad=0) if rank(x) == 4, sum(p) == 0, at(q, 0) == 0, at(q, 1) == 0, "
     "at(q, 4) == 0, at(q, 5) == 0"},
    {"average pooling whether or not pads count",
     "w [rounding]: average_pool.c(x; count_include_pad=1) => average_pool.c(x; "
     "count_include_pad=0)"},
    {"pad with zeros moved into max pooling",
     "w [exact]: max_pool.c(pad(x; pads=q, value=0, mode=\"constant\"); pads=p, ceil_mode=0) => "
     "max_pool.c(x; pads=[at(q, 2), at(q, 3), at(q, 6), at(q, 7)]) if rank(x) == 4, sum(p) == 0, "
     "at(q, 0) == 0, at(q, 1) == 0, at(q, 4) == 0, at(q, 5) == 0"},
    {"pooling of a sum",
     "w [rounding]: max_pool.c(add(x, y)) => add(max_pool.c(x), "
     "max_pool.c(y)) if same_shape(x, y)"},
    {"sign of a maximum", "w [exact]: neg(max(x, y)) => max(neg(x), neg(y))"},
    {"maximum scaled by what may be negative",
     "w [rounding]: max(mul(x, z), mul(y, z)) => mul(max(x, y), z) if same_shape(x, y, z)"},
    {"relu of a scaled value", "w [rounding]: relu(mul(x, y)) => mul(relu(x), y)"},
    {"absolute value, one sign", "w [rounding]: abs(x) => add(relu(x), neg(relu(neg(x))))"},
    {"clips joined",
     "w [exact]: clip(clip(x; min=a, max=b); min=c, max=d) => clip(x; min=c, "
     "max=d)"},
    {"softmax along the axis as it was",
     "w [rounding]: softmax(transpose(x; perm=[1, 0]); axis=0) => transpose(softmax(x; axis=0); "
     "perm=[1, 0])"},
    {"softmax of a concat",
     "w [rounding]: softmax(concat(x, y; axis=a); axis=a) => concat(softmax(x; axis=a), "
     "softmax(y; axis=a); axis=a)"},
    {"softmax shifted along its axis",
     "w [rounding]: softmax(add(x, y); axis=a) => softmax(x; axis=a) if same_shape(x, y)"},
    {"reduction along the axis as it was",
     "w [rounding]: reduce_sum(transpose(x; perm=p); axes=a, keepdims=1) => "
     "transpose(reduce_sum(x; axes=a, keepdims=1); perm=p)"},
    {"mean of a product",
     "w [rounding]: reduce_mean(mul(x, y); axes=a, keepdims=k) => "
     "mul(reduce_mean(x; axes=a, keepdims=k), reduce_mean(y; axes=a, keepdims=k)) "
     "if same_shape(x, y)"},
    {"mean of means, uneven",
     "w [rounding]: reduce_mean(concat(x, y; axis=a); axes=[a], "
     "keepdims=1) => mul(add(reduce_mean(x; axes=[a], keepdims=1), reduce_mean(y; axes=[a], "
     "keepdims=1)), 0.5)"},
    {"reshape hides a transpose",
     "w [exact]: reshape(transpose(x; perm=p); shape=s) => reshape(x; shape=s)"},
    {"mean and bias swapped",
     "w [rounding]: batch_norm.n(x, s, t, m, v) => batch_norm.n(x, s, m, t, v)"},
    {"branches swapped", "w [exact]: where(c, x, y) => where(not(c), x, y)"},
    {"integer division", "w [rounding]: div(mul(x, y), z) => mul(div(x, z), y)"},
    {"a cast there and back", "w [exact]: cast(cast(x; to=7); to=11) => x"},
    {"equal but for NaN", "w [exact]: where(equal(x, x), x, y) => x if same_shape(x, y)"},
    {"gather of a concat from its first part",
     "w [exact]: gather(concat(x, y; axis=a), i; axis=a) => gather(x, i; axis=a) "
     "if dim(x, a) >= 2"},
    {"another constant", "w [rounding]: mul(mul(x, 0.5), add(erf(div(x, {1.5})), 1)) => gelu(x)"},
    {"a constant wrong in the fifth place",
     "w [rounding]: mul(mul(x, 0.5), add(erf(div(x, {1.4143})), 1)) => gelu(x)"},
};

TEST(PlantedRules, AreRefusedWithACounterExample) {
  for (const WrongRule& wrong : kWrongRules) {
    SCOPED_TRACE(wrong.why);
    const StatusOr<RuleSet> set = RuleSet::Parse(wrong.text, "wrong");
    ASSERT_TRUE(set.ok()) << ToString(set.status());
    const VerifyReport report = Verify(set->rules()[0]);
    EXPECT_FALSE(report.proved) << report.instances;
    EXPECT_THAT(report.counter_example, testing::HasSubstr("=>")) << report.counter_example;
    EXPECT_THAT(report.counter_example, testing::HasSubstr("\nseed "));
    const Status loaded = RequireVerified(*set);
    EXPECT_EQ(loaded.code() == StatusCode::kFailedPrecondition ||
                  loaded.code() == StatusCode::kInvalidArgument,
              true)
        << ToString(loaded);
    EXPECT_THAT(Message(loaded), testing::StartsWith("wrong:1:"));
    EXPECT_THAT(Message(loaded), testing::HasSubstr("=>"));
  }
}

// Built-in rules of windows, groups and scales, each without one of its guards.
TEST(PlantedRules, ABuiltInRuleWithoutAGuardIsRefused) {
  const struct {
    const char* rule;
    const char* guard;  // As in the rule; "1" replaces it.
  } kCases[] = {
      {"conv-groups-to-split", "z == repeat(dim(w, 0) / length(z), length(z))"},
      {"conv-of-transpose", "elements(s) == 1"},
      {"conv-of-transpose", "p == repeat(0, length(p))"},
      {"pointwise-conv-of-conv", "elements(drop(shape(w), 2)) == 1"},
      {"pointwise-conv-of-conv", "p == repeat(0, length(p))"},
      {"pool-into-concat", "a < 2"},
      {"pool-out-of-concat", "a < 2"},
      {"pool-into-split", "a < 2"},
      {"slice-past-pool", "max(a) < 2"},
      {"monotone-past-max-pool", "monotone(f)"},
      {"max-pool-past-monotone", "max(elements(d) == 1, q == repeat(0, length(q)))"},
      {"affine-past-average-pool", "constant_along(k, x, range(2, rank(x)))"},
      {"affine-past-average-pool",
       "max(is(f, \"mul\", \"div\"), n == 0, q == repeat(0, length(q)))"},
      {"affine-into-average-pool", "is(f, \"mul\", \"div\", \"add\", \"sub\")"},
      {"pointwise-conv-past-average-pool", "max(n == 0, q == repeat(0, length(q)))"},
      {"pointwise-conv-past-padded-average-pool", "elements(s) == 1"},
      {"average-pool-past-pointwise-conv", "r == repeat(0, length(r))"},
      {"average-pool-as-reduce-mean", "q == repeat(0, length(q))"},
      {"average-pool-as-depthwise-conv", "max(n == 1, p == repeat(0, length(p)))"},
      {"constant-into-concat", "dim(k, n) == dim(y, a)"},
      {"scale-before-conv", "is(f, \"mul\", \"div\")"},
      {"scale-before-conv", "along_axis(k, x, 1)"},
      {"shift-before-conv", "p == repeat(0, length(p))"},
      {"scale-before-matmul", "along_axis(k, x, -1)"},
      {"shift-before-matmul", "along_axis(b, z, -1)"},
      {"one-is-neutral", "is(f, \"mul\", \"div\", \"pow\")"},
      {"relu-of-clip", "a >= 0"},
      {"clip-of-relu", "a <= 0"},
      {"pool-of-one-into-conv", "elements(k) + sum(q) == 1"},
      {"pool-of-one-into-conv", "elements(t) == 1"},
      {"reduction-of-one", "elements(x) == elements(y)"},
  };
  for (const auto& c : kCases) {
    SCOPED_TRACE(fmt::format("{} without {}", c.rule, c.guard));
    const Rule* rule = BuiltInRules().Find(c.rule);
    ASSERT_NE(rule, nullptr);
    const size_t at = rule->text.find(c.guard);
    ASSERT_NE(at, std::string::npos) << rule->text;
    std::string text = rule->text;
    text.replace(at, std::string(c.guard).size(), "1");
    const StatusOr<RuleSet> set = RuleSet::Parse(text, "wrong");
    ASSERT_TRUE(set.ok()) << ToString(set.status());
    const VerifyReport report = Verify(set->rules()[0]);
    EXPECT_FALSE(report.proved || report.too_few_cases) << report.instances;
  }
}

// The same rules corrected: with the missing guard, operand or class.
TEST(PlantedRules, AreProvedWhenTheyArePutRight) {
  const char* const kRight[] = {
      "r [rounding]: add(conv.c(x, w, b; group=1), conv.c(y, v, d)) => conv.c(concat(x, y; "
      "axis=1), concat(w, v; axis=1), add(b, d)) if same_shape(x, y), same_shape(w, v)",
      "r [rounding]: conv.c(add(x, y), w, b) => add(conv.c(x, w, b), conv.c(y, w, sub(b, b))) "
      "if same_shape(x, y)",
      "r [exact]: neg(max(x, y)) => min(neg(x), neg(y))",
      "r [exact]: softmax(transpose(x; perm=[1, 0]); axis=0) => transpose(softmax(x; axis=1); "
      "perm=[1, 0])",
      "r [finite]: where(equal(x, x), x, y) => x if same_shape(x, y)",
      "r [rounding]: div(mul(x, y), z) => mul(div(x, z), y) if floating(x)",
      "r [exact]: where(c, x, y) => where(not(c), y, x)",
  };
  for (const char* text : kRight) {
    SCOPED_TRACE(text);
    const StatusOr<RuleSet> set = RuleSet::Parse(text, "right");
    ASSERT_TRUE(set.ok()) << ToString(set.status());
    const VerifyReport report = Verify(set->rules()[0]);
    EXPECT_TRUE(report.proved) << report.counter_example;
  }
}

}  // namespace
}  // namespace ag

#include "rules/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/file.h"

namespace ag {
namespace {

struct WrongRule {
  const char* why;
  const char* text;
};

// Each is a rule that looks right; most are slips of published rule sets (research/taso.md).
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
};

TEST(Verify, RefusesPlantedWrongRulesWithACounterExample) {
  for (const WrongRule& wrong : kWrongRules) {
    SCOPED_TRACE(wrong.why);
    const StatusOr<RuleSet> set = RuleSet::Parse(wrong.text, "wrong");
    ASSERT_TRUE(set.ok()) << ToString(set.status());
    const VerifyReport report = Verify(set->rules()[0]);
    EXPECT_FALSE(report.proved);
    EXPECT_THAT(report.counter_example, testing::HasSubstr("=>")) << report.instances;
    EXPECT_EQ(RequireVerified(*set).code(), StatusCode::kFailedPrecondition);
  }
}

TEST(Verify, TheCounterExampleIsSmallAndComplete) {
  const RuleSet set = *RuleSet::Parse("w [exact]: sub(x, y) => sub(y, x)", "wrong");
  const VerifyReport report = Verify(set.rules()[0]);
  EXPECT_THAT(report.counter_example,
              testing::StartsWith("input x0 f64[]\ninput x1 f64[]\nv2 = sub(x0, x1)\n"
                                  "output \"o0\" = v2\n=>\n"));
  EXPECT_THAT(report.counter_example, testing::HasSubstr("output o0 element 0: "));
  EXPECT_EQ(Verify(set.rules()[0]).counter_example, report.counter_example);
}

TEST(Verify, SeesTheCasesThatCatchOthers) {
  const VerifyReport report = Verify(*RuleSet::Shipped().Find("conv-sum-same-input"));
  ASSERT_TRUE(report.proved) << report.counter_example;
  EXPECT_EQ(report.arithmetic, "field");
  std::vector<std::string> names;
  for (const auto& [name, count] : report.classes) {
    EXPECT_GE(count, 5) << name;
    names.push_back(name);
  }
  EXPECT_THAT(names, testing::IsSupersetOf({"asymmetric pads", "axis of size 1", "depthwise",
                                            "dilated", "group > 1", "strided"}));
}

// rules/verified.txt holds one line per shipped rule. AG_WRITE_DOCS=1 rules_test writes it anew,
// then build again: it is compiled in.
TEST(Verify, TheShippedVerdictsAreUpToDate) {
  std::string text;
  for (const Rule& rule : RuleSet::Shipped().rules()) {
    const VerifyReport report = Verify(rule);
    EXPECT_TRUE(report.proved) << rule.name << "\n" << report.counter_example;
    EXPECT_GE(report.instances, 200) << rule.name;
    if (!report.proved) continue;
    text += fmt::format("{} {} {} {}\n", Sha256(rule.text).Hex(), rule.name, report.arithmetic,
                        report.instances);
  }
  const std::string path = std::string(AG_SOURCE_DIR) + "/rules/verified.txt";
  if (std::getenv("AG_WRITE_DOCS") != nullptr) {
    ASSERT_TRUE(WriteFileAtomically(path, text).ok());
    return;
  }
  EXPECT_EQ(*ReadFile(path), text) << "AG_WRITE_DOCS=1 rules_test writes rules/verified.txt anew";
  for (const Rule& rule : RuleSet::Shipped().rules())
    EXPECT_TRUE(IsShippedVerdict(rule)) << rule.name;
  EXPECT_TRUE(RequireVerified(RuleSet::Shipped()).ok());
}

}  // namespace
}  // namespace ag

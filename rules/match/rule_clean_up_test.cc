#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/text_form.h"
#include "rules/match/rewrite.h"
#include "rules/match/rule_clean_up.h"
#include "rules/sets/built_in_rules.h"

namespace ag {
namespace {

struct CleanUpCase {
  const char* name;
  const char* before;
  const char* operators;  // The operators that remain, in order, without constants and recipes.
  const char* steps;
};

const CleanUpCase kCleanUpTexts[] = {
    {"nothing to do", "input x f32[2]\noutput y = relu(x)\n", "relu", ""},
    {"batch norm, then scale and shift into one conv",
     "input x f32[1,2,4,4]\n"
     "y = conv(x, const f32[3,2,3,3] seed 1, const f32[3] seed 2) strides=[1,1] pads=[1,1,1,1] "
     "dilations=[1,1]\n"
     "z = batch_norm(y, const f32[3] seed 3, const f32[3] seed 4, const f32[3] seed 5, "
     "const f32[3] seed 6)\n"
     "s = mul(z, const f32[3,1,1] seed 7)\n"
     "output o = relu(add(s, const f32[1,3,1,1] seed 8))\n",
     "conv relu", "batch-norm-into-conv 1, scale-into-conv 1, shift-into-conv 1"},
    {"batch norm of a conv that others read",
     "input x f32[1,2,4,4]\n"
     "y = conv(x, const f32[3,2,3,3] seed 1, const f32[3] seed 2) strides=[1,1] pads=[1,1,1,1] "
     "dilations=[1,1]\n"
     "output y\n"
     "output z = batch_norm(y, const f32[3] seed 3, const f32[3] seed 4, const f32[3] seed 5, "
     "const f32[3] seed 6)\n",
     "conv mul add", "batch-norm-alone 1"},
    {"scale and shift of an image before an unpadded conv",
     "input x f32[1,3,4,4]\n"
     "s = div(sub(x, const f32[3,1,1] seed 1), const f32[3,1,1] seed 2)\n"
     "output y = conv(s, const f32[2,3,3,3] seed 3, const f32[2] seed 4) strides=[1,1] "
     "pads=[0,0,0,0] dilations=[1,1]\n",
     "conv", "scale-before-conv 1, shift-before-conv 1"},
    {"the same before a padded conv, where the shift stays",
     "input x f32[1,3,4,4]\n"
     "s = div(sub(x, const f32[3,1,1] seed 1), const f32[3,1,1] seed 2)\n"
     "output y = conv(s, const f32[2,3,3,3] seed 3, const f32[2] seed 4) strides=[1,1] "
     "pads=[1,1,1,1] dilations=[1,1]\n",
     "sub conv", "scale-before-conv 1"},
    {"a matrix that two read is scaled for neither",
     "input x f32[2,3]\nw = const f32[3,3] seed 1\nt = matmul(x, w)\n"
     "output y = matmul(mul(relu(t), const f32 {0.5}), w)\n",
     "matmul relu mul matmul", ""},
    {"two swishes in a row",
     "input x f32[2]\ny = mul(x, sigmoid(x))\noutput z = mul(y, sigmoid(y))\n", "swish swish",
     "swish 2"},
    {"rms norm with a power and a quotient of one, as transformers are exported",
     "input x f32[2,3,4]\n"
     "v = reduce_mean(pow(x, const f32 {2})) axes=[2]\n"
     "r = div(const f32 {1}, sqrt(add(v, const f32 {0.001})))\n"
     "output y = mul(const f32[4] seed 1, mul(x, r))\n",
     "rms_norm", "divide-by-root 1, pow-square 1, reciprocal 1, rms-norm 1"},
    {"rms norm with a product and a reciprocal",
     "input x f32[2,3,4]\n"
     "r = reciprocal(sqrt(add(reduce_mean(mul(x, x)) axes=[1,2], const f32 {0.001})))\n"
     "output y = mul(mul(r, x), const f32[3,4] seed 1)\n",
     "rms_norm", "divide-by-root 1, rms-norm 1"},
    {"rms norm as it is exported",
     "input x f32[2,3,4]\n"
     "v = reduce_mean(pow(x, const f32 {2})) axes=[2]\n"
     "output y = mul(div(x, sqrt(add(v, const f32 {0.001}))), const f32[4] seed 1)\n",
     "rms_norm", "pow-square 1, rms-norm 1"},
    {"layer norm with a power",
     "input x f32[2,3,4]\n"
     "d = sub(x, reduce_mean(x) axes=[2])\n"
     "v = reduce_mean(pow(d, const f32 {2})) axes=[2]\n"
     "n = mul(div(d, sqrt(add(v, const f32 {0.001}))), const f32[4] seed 1)\n"
     "output y = add(n, const f32[4] seed 2)\n",
     "layer_norm", "layer-norm 1, pow-square 1, rms-norm 1"},
    {"layer norm with a product and a reciprocal",
     "input x f32[2,3,4]\n"
     "d = sub(x, reduce_mean(x) axes=[2])\n"
     "r = reciprocal(sqrt(add(reduce_mean(mul(d, d)) axes=[2], const f32 {0.001})))\n"
     "output y = add(mul(mul(d, r), const f32[4] seed 1), const f32[4] seed 2)\n",
     "layer_norm", "divide-by-root 1, layer-norm 1, rms-norm 1"},
    {"softmax by hand, of scores with what each row has in common",
     "input x f32[2,3,4]\ninput m f32[2,3,1]\n"
     "s = add(x, m)\n"
     "e = exp(sub(s, reduce_max(s) axes=[2]))\n"
     "output y = div(e, reduce_sum(e) axes=[2])\n",
     "softmax", "softmax 1, softmax-shift 2"},
    {"a mask that is stretched, turned round and laid on twice",
     "input x f32[2,3,4]\ninput m bool[1,4]\n"
     "n = expand(not(m)) shape=[2,3,4]\n"
     "i = const f32 {-1e9}\n"
     "output y = where(n, i, where(n, i, x))\n",
     "where", "expand-mask 1, where-of-not 1, where-of-where-else 1"},
    {"chains of movement",
     "input x f32[2,3,4]\n"
     "t = transpose(transpose(x) perm=[1,2,0]) perm=[2,0,1]\n"
     "output y = relu(reshape(reshape(t) shape=[24]) shape=[2,3,4])\n",
     "relu", ""},
};

std::string Operators(const Graph& graph) {
  std::vector<std::string> names;
  for (NodeId id = 0; id < graph.size(); ++id) {
    const OpKind op = graph.node(id).op;
    if (!Has(op, kLeaf) && !graph.is_constant(id)) names.push_back(Info(op).text_name);
  }
  return fmt::format("{}", fmt::join(names, " "));
}

TEST(CleanUp, DoesWhatItsCasesSay) {
  for (const CleanUpCase& c : kCleanUpTexts) {
    SCOPED_TRACE(c.name);
    const StatusOr<Graph> graph = ParseGraph(c.before);
    ASSERT_TRUE(graph.ok()) << ToString(graph.status());
    std::vector<CleanUpStep> steps;
    const StatusOr<Graph> clean = CleanUp(*graph, BuiltInRules(), &steps);
    ASSERT_TRUE(clean.ok()) << ToString(clean.status());
    EXPECT_EQ(Operators(*clean), c.operators) << FormatGraph(*clean);
    std::vector<std::string> counted;
    for (const CleanUpStep& step : steps)
      counted.push_back(fmt::format("{} {}", step.rule, step.count));
    EXPECT_EQ(fmt::format("{}", fmt::join(counted, ", ")), c.steps);
    EXPECT_EQ(CleanUp(*clean, BuiltInRules())->digest(), clean->digest());
  }
}

}  // namespace
}  // namespace ag

#include "rules/rules_cases.h"

#include "absl/strings/str_replace.h"

namespace ag {
namespace {

// Inputs that many cases share.
#define XW                                                                         \
  "input x f32[2,3,5,5]; w = const f32[4,3,3,3] seed 1; b = const f32[4] seed 2; " \
  "v = const f32[6,3,3,3] seed 3; c = const f32[6] seed 4; "
#define MM \
  "input x f32[2,3]; input y f32[2,3]; w = const f32[3,4] seed 1; v = const f32[3,5] seed 2; "

}  // namespace

std::string CaseText(const RuleCase& c, const char* side) {
  std::string text = std::string(c.inputs) + ";" + side;
  for (const char p : {'0', '1', '2'}) {
    text = absl::StrReplaceAll(
        text, {{std::string("@") + p, std::string("strides=[1,1] dilations=[1,1] pads=[") + p +
                                          "," + p + "," + p + "," + p + "]"}});
  }
  return absl::StrReplaceAll(text, {{";", "\n"}});
}

const std::vector<RuleCase> kSearchCases = {
    {"concat-of-split", "input x f32[2,6]; p, q = split(x) axis=1 sizes=[2,4]",
     "output y = concat(p, q) axis=1", "output y = x"},
    {"concat-of-split", "input x f32[2,6]; p, q = split(x) axis=1 sizes=[2,4]",
     "output y = concat(q, p) axis=1", ""},
    {"split-of-concat", "input x f32[2,2]; input y f32[2,4]; c = concat(x, y) axis=1",
     "p, q = split(c) axis=1 sizes=[2,4]; output p; output q", "output p = x; output q = y"},
    {"split-of-concat", "input x f32[2,2]; input y f32[2,4]; c = concat(x, y) axis=1",
     "p, q = split(c) axis=1 sizes=[3,3]; output p; output q", ""},
    {"concat-of-concat", "input x f32[2]; input y f32[3]; input z f32[4]",
     "output o = concat(x, concat(y, z) axis=0) axis=0", "output o = concat(x, y, z) axis=0"},
    {"concat-of-concat", "input x f32[1,4]; input y f32[1,2]; input z f32[1,2]",
     "output o = concat(x, concat(y, z) axis=1) axis=0", ""},
    {"slice-of-concat",
     "input x f32[2]; input y f32[3]; input z f32[4]; c = concat(x, y, z) axis=0",
     "output o = slice(c) axes=[0] starts=[2] ends=[5] steps=[1]", "output o = y"},
    {"slice-of-concat",
     "input x f32[2]; input y f32[3]; input z f32[4]; c = concat(x, y, z) axis=0",
     "output o = slice(c) axes=[0] starts=[1] ends=[5] steps=[1]", ""},
    {"transpose-of-transpose", "input x f32[2,3,4]",
     "output y = transpose(transpose(x) perm=[1,2,0]) perm=[0,2,1]",
     "output y = transpose(x) perm=[1,0,2]"},
    {"transpose-of-transpose", "input x f32[2,3,4]",
     "output y = transpose(relu(transpose(x) perm=[1,2,0])) perm=[0,2,1]", ""},
    {"reshape-of-reshape", "input x f32[2,3,4]",
     "output y = reshape(reshape(x) shape=[6,4]) shape=[4,6]", "output y = reshape(x) shape=[4,6]"},
    {"reshape-of-reshape", "input x f32[2,3,4]", "output y = reshape(relu(x)) shape=[4,6]", ""},
    {"unary-into-concat", "input x f32[2]; input y f32[3]",
     "output o = leaky_relu(concat(x, y) axis=0) alpha=0.5",
     "output o = concat(leaky_relu(x) alpha=0.5, leaky_relu(y) alpha=0.5) axis=0"},
    {"unary-into-concat", "input x f32[2]; input y f32[2]",
     "output o = softmax(concat(x, y) axis=0) axis=0", ""},
    {"unary-out-of-concat", "input x f32[2]; input y f32[3]",
     "output o = concat(relu(x), relu(y)) axis=0", "output o = relu(concat(x, y) axis=0)"},
    {"unary-out-of-concat", "input x f32[2]; input y f32[3]",
     "output o = concat(relu(x), tanh(y)) axis=0", ""},
    {"unary-into-split", "input x f32[6]",
     "p, q = split(relu(x)) axis=0 sizes=[2,4]; output p; output q",
     "p, q = split(x) axis=0 sizes=[2,4]; output p = relu(p); output q = relu(q)"},
    {"unary-into-split", "input x f32[6]; input y f32[6]",
     "p, q = split(add(x, y)) axis=0 sizes=[2,4]; output p; output q", ""},
    {"unary-out-of-split", "input x f32[6]; p, q = split(x) axis=0 sizes=[2,4]",
     "output p = relu(p); output q = relu(q)",
     "s, t = split(relu(x)) axis=0 sizes=[2,4]; output p = s; output q = t"},
    {"unary-out-of-split", "input x f32[6]; p, q = split(x) axis=0 sizes=[2,4]",
     "output p = relu(p); output q = tanh(q)", ""},
    {"unary-past-transpose", "input x f32[2,3]", "output y = relu(transpose(x) perm=[1,0])",
     "output y = transpose(relu(x)) perm=[1,0]"},
    {"unary-past-transpose", "input x f32[2,3]",
     "output y = softmax(transpose(x) perm=[1,0]) axis=0", ""},
    {"transpose-past-unary", "input x f32[2,3]", "output y = transpose(relu(x)) perm=[1,0]",
     "output y = relu(transpose(x) perm=[1,0])"},
    {"transpose-past-unary", "input x f32[2,3]",
     "output y = transpose(softmax(x) axis=0) perm=[1,0]", ""},
    {"unary-past-reshape", "input x f32[2,3]", "output y = relu(reshape(x) shape=[6])",
     "output y = reshape(relu(x)) shape=[6]"},
    {"unary-past-reshape", "input x f32[2,3]", "output y = softmax(reshape(x) shape=[6]) axis=0",
     ""},
    {"reshape-past-unary", "input x f32[2,3]", "output y = reshape(relu(x)) shape=[6]",
     "output y = relu(reshape(x) shape=[6])"},
    {"reshape-past-unary", "input x f32[2,3]", "output y = reshape(softmax(x) axis=0) shape=[6]",
     ""},
    {"binary-out-of-concat", "input x f32[2]; input y f32[2]; input z f32[3]; input t f32[3]",
     "output o = concat(sub(x, y), sub(z, t)) axis=0",
     "output o = sub(concat(x, z) axis=0, concat(y, t) axis=0)"},
    {"binary-out-of-concat", "input x f32[2]; input y f32[1]; input z f32[3]; input t f32[1]",
     "output o = concat(sub(x, y), sub(z, t)) axis=0", ""},

    {"conv-merge-siblings", XW, "output p = conv(x, w, b) @1; output q = conv(x, v, c) @1",
     "p, q = split(conv(x, concat(w, v) axis=0, concat(b, c) axis=0) @1) axis=1 sizes=[4,6];"
     "output p; output q"},
    {"conv-merge-siblings", XW, "output p = conv(x, w, b) @1; output q = conv(x, v, c) @0", ""},
    {"conv-unary-merge-siblings", XW,
     "output p = relu(conv(x, w, b) @1); output q = relu(conv(x, v, c) @1)",
     "p, q = split(relu(conv(x, concat(w, v) axis=0, concat(b, c) axis=0) @1)) axis=1 sizes=[4,6];"
     "output p; output q"},
    {"conv-unary-merge-siblings", XW,
     "output p = relu(conv(x, w, b) @1); output q = sigmoid(conv(x, v, c) @1)", ""},
    {"conv-enlarge", XW "u = const f32[4,3,1,1] seed 5",
     "output p = conv(x, u, b) @0; output q = conv(x, v, c) @1",
     "output p = conv(x, pad(u) pads=[0,0,1,1,0,0,1,1], b) @1; output q = conv(x, v, c) @1"},
    {"conv-enlarge", XW "u = const f32[4,3,1,1] seed 5",
     "output p = conv(x, u, b) @1; output q = conv(x, v, c) @1", ""},
    {"conv-merge-batches", XW "input y f32[1,3,5,5]",
     "output p = conv(x, w, b) @1; output q = conv(y, w, b) @1",
     "p, q = split(conv(concat(x, y) axis=0, w, b) @1) axis=0 sizes=[2,1]; output p; output q"},
    {"conv-merge-batches", XW "input y f32[1,3,5,6]",
     "output p = conv(x, w, b) @1; output q = conv(y, w, b) @1", ""},
    {"conv-sum-same-input", XW "u = const f32[4,3,3,3] seed 5",
     "output p = add(conv(x, w, b) @1, conv(x, u, b) @1)",
     "output p = conv(x, add(w, u), add(b, b)) @1"},
    {"conv-sum-same-input", XW "u = const f32[1,3,3,3] seed 5; d = const f32[1] seed 6",
     "output p = add(conv(x, w, b) @1, conv(x, u, d) @1)", ""},
    {"conv-sum", XW "input y f32[2,1,5,5]; u = const f32[4,1,3,3] seed 5",
     "output p = add(conv(x, w, b) @1, conv(y, u, b) @1)",
     "output p = conv(concat(x, y) axis=1, concat(w, u) axis=1, add(b, b)) @1"},
    {"conv-sum", XW "input y f32[2,1,5,5]; u = const f32[1,1,3,3] seed 5; d = const f32[1] seed 6",
     "output p = add(conv(x, w, b) @1, conv(y, u, d) @1)", ""},
    {"conv-concat-to-groups", XW "input y f32[2,3,5,5]; u = const f32[4,3,3,3] seed 5",
     "output p = concat(conv(x, w, b) @1, conv(y, u, b) @1) axis=1",
     "output p = conv(concat(x, y) axis=1, concat(w, u) axis=0, concat(b, b) axis=0) @1 group=2"},
    {"conv-concat-to-groups", XW "input y f32[2,3,5,5]",
     "output p = concat(conv(x, w, b) @1, conv(y, v, c) @1) axis=1", ""},

    {"matmul-merge-siblings", MM, "output p = matmul(x, w); output q = matmul(x, v)",
     "p, q = split(matmul(x, concat(w, v) axis=1)) axis=1 sizes=[4,5]; output p; output q"},
    {"matmul-merge-siblings", MM, "output p = matmul(x, w); output q = matmul(y, v)", ""},
    {"matmul-add-merge-siblings", MM "b = const f32[4] seed 3; c = const f32[5] seed 4",
     "output p = add(matmul(x, w), b); output q = add(matmul(x, v), c)",
     "p, q = split(add(matmul(x, concat(w, v) axis=1), concat(b, c) axis=0)) axis=1 sizes=[4,5];"
     "output p; output q"},
    {"matmul-add-merge-siblings", MM "b = const f32[1] seed 3; c = const f32[1] seed 4",
     "output p = add(matmul(x, w), b); output q = add(matmul(x, v), c)", ""},
    {"matmul-merge-rows", MM "input z f32[5,3]", "output p = matmul(x, w); output q = matmul(z, w)",
     "p, q = split(matmul(concat(x, z) axis=0, w)) axis=0 sizes=[2,5]; output p; output q"},
    {"matmul-merge-rows", MM, "output p = matmul(x, w); output q = matmul(x, v)", ""},
    {"matmul-reassociate", MM "u = const f32[4,2] seed 3", "output p = matmul(matmul(x, w), u)",
     "output p = matmul(x, matmul(w, u))"},
    {"matmul-reassociate", MM "input u f32[4,2]", "output p = matmul(matmul(x, w), u)", ""},
    {"matmul-reassociate-back", MM "input u f32[5,2]; input t f32[2,3]",
     "output p = matmul(u, matmul(t, w))", "output p = matmul(matmul(u, t), w)"},
    {"matmul-reassociate-back", MM "input u f32[5,2]; input t f32[3,4]",
     "output p = matmul(u, matmul(x, t))", ""},
    {"matmul-sum-same-input", MM "u = const f32[3,4] seed 3",
     "output p = add(matmul(x, w), matmul(x, u))", "output p = matmul(x, add(w, u))"},
    {"matmul-sum-same-input", MM "u = const f32[3,1] seed 3",
     "output p = add(matmul(x, w), matmul(x, u))", ""},
    {"matmul-sum", MM "u = const f32[3,4] seed 3", "output p = add(matmul(x, w), matmul(y, u))",
     "output p = matmul(concat(x, y) axis=1, concat(w, u) axis=0)"},
    {"matmul-sum", MM "u = const f32[3,1] seed 3", "output p = add(matmul(x, w), matmul(y, u))",
     ""},
    {"matmul-transposed", MM, "output p = transpose(matmul(x, w)) perm=[1,0]",
     "output p = matmul(transpose(w) perm=[1,0], transpose(x) perm=[1,0])"},
    {"matmul-transposed", "input x f32[2,2,2]; input w f32[2,2]",
     "output p = transpose(matmul(x, w)) perm=[1,0,2]", ""},

    {"relu-idempotent", "input x f32[2]", "output y = relu(relu(x))", "output y = relu(x)"},
    {"relu-idempotent", "input x f32[2]", "output y = relu(tanh(x))", ""},
    {"mul-distribute", "input x f32[2]; input y f32[2]; input z f32[1]",
     "output o = mul(add(x, y), z)", "output o = add(mul(x, z), mul(y, z))"},
    {"mul-distribute", "input x f32[2]; input y f32[2]; input z f32[1]",
     "output o = add(mul(x, y), z)", ""},
    {"mul-factor", "input x f32[2]; input y f32[2]; input z f32[2]",
     "output o = add(mul(x, z), mul(y, z))", "output o = mul(add(x, y), z)"},
    {"mul-factor", "input x f32[2]; input y f32[2]; input z f32[1]",
     "output o = add(mul(x, z), mul(y, z))", ""},
    {"add-reassociate", "input x f32[2]; input y f32[2]; input z f32[2]",
     "output o = add(add(x, y), z)", "output o = add(x, add(y, z))"},
    {"add-reassociate", "input x f32[2]; input y f32[2]; input z f32[1]",
     "output o = add(add(x, y), z)", ""},
};

#define ERF                                                                           \
  "input x f32[2]; e = erf(div(x, const f32 {1.4142135})); s = erf(mul(x, const f32 " \
  "{0.70710677}));"                                                                   \
  "one = const f32 {1}; half = const f32 {0.5};"
#define TANH                                                                               \
  "input x f32[2]; one = const f32 {1}; half = const f32 {0.5}; k = const f32 {0.044715};" \
  "r = const f32 {0.7978846};"
#define LN                                                                                       \
  "input x f32[2,3,4]; g = const f32[4] seed 1; b = const f32[4] seed 2; e = const f32 {0.001};" \
  "m = reduce_mean(x) axes=[2]; d = sub(x, m);"
#define BN                                                                        \
  "input x f32[1,2,3,3]; w = const f32[4,2,3,3] seed 1; b = const f32[4] seed 2;" \
  "s = const f32[4] seed 3; t = const f32[4] seed 4; m = const f32[4] seed 5;"    \
  "n = const f32[4] {1,2,3,4}; k = const f32[4,1,1] seed 6; y = conv(x, w, b) @1;"

const std::vector<RuleCase> kCleanUpCases = {
    {"gelu-erf", ERF, "output y = mul(mul(x, add(e, one)), half)", "output y = gelu(x)"},
    {"gelu-erf", ERF "input z f32[2]", "output y = mul(mul(z, add(e, one)), half)", ""},
    {"gelu-erf-half-inside", ERF, "output y = mul(mul(half, x), add(one, e))",
     "output y = gelu(x)"},
    {"gelu-erf-half-inside", ERF, "output y = mul(mul(one, x), add(one, e))", ""},
    {"gelu-erf-half-outside", ERF, "output y = mul(x, mul(half, add(one, e)))",
     "output y = gelu(x)"},
    {"gelu-erf-half-outside", ERF, "output y = mul(x, mul(half, add(half, e)))", ""},
    {"gelu-erf-scaled", ERF, "output y = mul(mul(x, add(s, one)), half)", "output y = gelu(x)"},
    {"gelu-erf-scaled", ERF, "output y = mul(mul(x, add(s, one)), one)", ""},
    {"gelu-erf-scaled-half-inside", ERF, "output y = mul(mul(x, half), add(s, one))",
     "output y = gelu(x)"},
    {"gelu-erf-scaled-half-inside", ERF, "output y = mul(mul(x, one), add(s, one))", ""},
    {"gelu-erf-scaled-half-outside", ERF, "output y = mul(x, mul(half, add(s, one)))",
     "output y = gelu(x)"},
    {"gelu-erf-scaled-half-outside", ERF, "output y = mul(x, mul(one, add(s, one)))", ""},
    {"gelu-tanh", TANH "p = pow(x, const f32 {3});",
     "output y = mul(mul(x, half), add(tanh(mul(add(x, mul(p, k)), r)), one))",
     "output y = gelu(x) approximate=tanh"},
    {"gelu-tanh", TANH "p = pow(x, const f32 {2});",
     "output y = mul(mul(x, half), add(tanh(mul(add(x, mul(p, k)), r)), one))", ""},
    {"gelu-tanh-product", TANH "p = mul(x, mul(x, x));",
     "output y = mul(mul(x, half), add(tanh(mul(add(x, mul(p, k)), r)), one))",
     "output y = gelu(x) approximate=tanh"},
    {"gelu-tanh-product", TANH "p = mul(x, x);",
     "output y = mul(mul(x, half), add(tanh(mul(add(x, mul(p, k)), r)), one))", ""},
    {"swish", "input x f32[2]", "output y = mul(sigmoid(x), x)", "output y = swish(x)"},
    {"swish", "input x f32[2]; input z f32[2]", "output y = mul(sigmoid(x), z)", ""},
    {"hard-swish", "input x f32[2]", "output y = mul(x, hard_sigmoid(x) alpha=0.16666667)",
     "output y = hard_swish(x)"},
    {"hard-swish", "input x f32[2]", "output y = mul(x, hard_sigmoid(x) alpha=0.2)", ""},
    {"hard-swish-clip", "input x f32[2]; three = const f32 {3}; six = const f32[1] {6}",
     "output y = div(mul(x, clip(add(x, three)) min=0 max=6), six)", "output y = hard_swish(x)"},
    {"hard-swish-clip", "input x f32[2]; three = const f32 {3}; six = const f32[1,1] {6}",
     "output y = div(mul(x, clip(add(x, three)) min=0 max=6), six)", ""},
    {"layer-norm", LN,
     "output y = add(mul(div(d, sqrt(add(reduce_mean(pow(d, const f32 {2})) axes=[2], e))), g), b)",
     "output y = layer_norm(x, g, b) axis=2 epsilon=0.0010000000474974513"},
    {"layer-norm", LN,
     "output y = add(mul(div(d, sqrt(add(reduce_mean(pow(d, const f32 {2})) axes=[1], e))), g), b)",
     ""},
    {"layer-norm-product", LN,
     "output y = add(mul(div(d, sqrt(add(reduce_mean(mul(d, d)) axes=[2], e))), g), b)",
     "output y = layer_norm(x, g, b) axis=2 epsilon=0.0010000000474974513"},
    {"layer-norm-product", LN,
     "output y = add(mul(div(d, sqrt(add(reduce_mean(mul(d, x)) axes=[2], e))), g), b)", ""},
    {"batch-norm-into-conv", BN, "output z = batch_norm(y, s, t, m, n) epsilon=0.5",
     "r = div(s, sqrt(add(n, const f32 {0.5})));"
     "output z = conv(x, mul(w, reshape(r) shape=[4,1,1,1]), add(mul(sub(b, m), r), t)) @1"},
    {"batch-norm-into-conv", BN, "output y; output z = batch_norm(y, s, t, m, n) epsilon=0.5", ""},
    {"batch-norm-alone", BN "input u f32[2,4,3,3]",
     "output z = batch_norm(u, s, t, m, n) epsilon=0.5",
     "r = div(s, sqrt(add(n, const f32 {0.5}))); output z = add(mul(u, reshape(r) shape=[4,1,1]), "
     "reshape(sub(t, mul(m, r))) shape=[4,1,1])"},
    {"batch-norm-alone", BN "input u f32[2,4,3,3]; input a f32[4]",
     "output z = batch_norm(u, a, t, m, n) epsilon=0.5", ""},
    {"scale-into-conv", BN, "output z = mul(k, y)",
     "output z = conv(x, mul(w, reshape(k) shape=[4,1,1,1]), mul(b, reshape(k) shape=[4])) @1"},
    {"scale-into-conv", BN "h = const f32[3] seed 9", "output z = mul(h, y)", ""},
    {"divide-into-conv", BN, "output z = div(y, k)",
     "output z = conv(x, div(w, reshape(k) shape=[4,1,1,1]), div(b, reshape(k) shape=[4])) @1"},
    {"divide-into-conv", BN, "output z = div(k, y)", ""},
    {"shift-into-conv", BN, "output z = add(y, k)",
     "output z = conv(x, w, add(b, reshape(k) shape=[4])) @1"},
    {"shift-into-conv", BN "h = const f32[2,4,1,1] seed 9", "output z = add(y, h)", ""},
    {"subtract-into-conv", BN, "output z = sub(y, k)",
     "output z = conv(x, w, sub(b, reshape(k) shape=[4])) @1"},
    {"subtract-into-conv", BN, "output z = sub(k, y)", ""},
    {"scale-into-matmul", MM "k = const f32[4] seed 5", "output z = mul(matmul(x, w), k)",
     "output z = matmul(x, mul(w, reshape(k) shape=[4]))"},
    {"scale-into-matmul", MM "k = const f32[2,1] seed 5", "output z = mul(matmul(x, w), k)", ""},
    {"scale-into-matmul-add", MM "b = const f32[4] seed 4; k = const f32[1] seed 5",
     "output z = mul(add(matmul(x, w), b), k)",
     "r = reshape(k) shape=[1]; output z = add(matmul(x, mul(w, r)), mul(b, r))"},
    {"scale-into-matmul-add", MM "b = const f32[4] seed 4; input k f32[1]",
     "output z = mul(add(matmul(x, w), b), k)", ""},
};

}  // namespace ag

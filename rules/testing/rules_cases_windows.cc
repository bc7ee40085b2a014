// Cases of convolutions and pools, and of clean-up before them.
#include "rules/testing/rules_cases.h"

namespace ag {
namespace {

#define X4 "input x f32[2,4,6,6]; "
// One group for each two channels.
#define GROUPED                                                                     \
  X4 "w = const f32[4,2,3,3] seed 1; b = const f32[4] seed 2; v = const f32[2,2,3," \
     "3] seed 3; c = const f32[2] seed 4; "
#define THREE "input x f32[2,3,6,6]; w = const f32[6,1,3,3] seed 1; b = const f32[6] seed 2; "
// A pointwise convolution.
#define POINTWISE X4 "w = const f32[3,4,1,1] seed 1; b = const f32[3] seed 2; "
// Windows: 3 x 3 with padding, strides 2 and 1; the whole input; one position; every second
// position.
#define PADDED "kernel_shape=[3,3] strides=[2,2] pads=[1,1,1,1] dilations=[1,1] "
#define STEP3 "kernel_shape=[3,3] strides=[1,1] pads=[1,1,1,1] dilations=[1,1] "
#define WHOLE "kernel_shape=[6,6] strides=[1,1] pads=[0,0,0,0] dilations=[1,1] "
#define ONE "kernel_shape=[1,1] strides=[1,1] pads=[0,0,0,0] dilations=[1,1] "
#define PICK "kernel_shape=[1,1] strides=[2,2] pads=[0,0,0,0] dilations=[1,1] "

}  // namespace

const std::vector<RuleCase> kWindowCases = {
    {"conv-merge-grouped-siblings", GROUPED,
     "output p = conv(x, w, b) @1 group=2; output q = conv(x, v, c) @1 group=2",
     "k = reshape(concat(reshape(w) shape=[2,2,2,3,3], reshape(v) shape=[2,1,2,3,3]) axis=1) "
     "shape=[6,2,3,3];"
     "d = reshape(concat(reshape(b) shape=[2,2], reshape(c) shape=[2,1]) axis=1) shape=[6];"
     "s, t = split(reshape(conv(x, k, d) @1 group=2) shape=[2,2,3,6,6]) axis=2 sizes=[2,1];"
     "output p = reshape(s) shape=[2,4,6,6]; output q = reshape(t) shape=[2,2,6,6]"},
    {"conv-merge-grouped-siblings", GROUPED "u = const f32[2,4,3,3] seed 5",
     "output p = conv(x, w, b) @1 group=2; output q = conv(x, u, c) @1", ""},
    {"conv-into-split", POINTWISE,
     "s, t = split(conv(x, w, b) @0) axis=1 sizes=[1,2]; output s; output t",
     "u, v = split(w) axis=0 sizes=[1,2]; c, d = split(b) axis=0 sizes=[1,2];"
     "output s = conv(x, u, c) @0; output t = conv(x, v, d) @0"},
    {"conv-into-split", POINTWISE,
     "u = concat(w, w) axis=0; d = concat(b, b) axis=0;"
     "s, t = split(conv(x, u, d) @0) axis=1 sizes=[3,3]; output s; output t",
     ""},
    {"conv-groups-to-concat", THREE "input y f32[2,1,6,6]; input z f32[2,1,6,6]",
     "c = concat(y, z, y) axis=1; output p = conv(c, w, b) @1 group=3; output q = relu(x)",
     "s, t, r = split(w) axis=0 sizes=[2,2,2]; d, e, f = split(b) axis=0 sizes=[2,2,2];"
     "output p = concat(conv(y, s, d) @1 group=1, conv(z, t, e) @1 group=1, conv(y, r, f) @1 "
     "group=1) axis=1;"
     "output q = relu(x)"},
    {"conv-groups-to-concat", THREE "input y f32[2,1,6,6]; input z f32[2,2,6,6]",
     "output p = conv(concat(y, z) axis=1, w, b) @1 group=3; output q = relu(x)", ""},
    {"conv-groups-to-split", THREE,
     "s, t, o = split(conv(x, w, b) @1 group=3) axis=1 sizes=[2,2,2]; output s; output t; output o",
     "g, h, i = split(x) axis=1 sizes=[1,1,1]; u, r, k = split(w) axis=0 sizes=[2,2,2];"
     "d, e, f = split(b) axis=0 sizes=[2,2,2];"
     "output s = conv(g, u, d) @1 group=1; output t = conv(h, r, e) @1 group=1;"
     "output o = conv(i, k, f) @1 group=1"},
    {"conv-groups-to-split", THREE,
     "s, t = split(conv(x, w, b) @1 group=3) axis=1 sizes=[2,4]; output s; output t", ""},
    {"conv-split-groups", GROUPED, "output p = conv(x, w, b) @1 group=2",
     "g, h = split(x) axis=1 sizes=[2,2]; u, r = split(w) axis=0 sizes=[2,2];"
     "d, e = split(b) axis=0 sizes=[2,2];"
     "output p = concat(conv(g, u, d) @1 group=1, conv(h, r, e) @1 group=1) axis=1"},
    {"conv-split-groups", GROUPED "u = concat(v, v) axis=0; d = concat(c, c) axis=0",
     "output p = conv(x, u, d) @1 group=2", ""},
    {"conv-of-concat",
     POINTWISE "input y f32[2,1,6,6]; u = const f32[5,5,1,1] seed 3; d = const f32[5] seed 4",
     "output p = conv(concat(y, x) axis=1, u, d) @0; output q = conv(x, w, b) @0",
     "s = slice(u) axes=[1] starts=[0] ends=[1] steps=[1];"
     "t = slice(u) axes=[1] starts=[5] ends=[5] steps=[1];"
     "o = conv(x, slice(u) axes=[1] starts=[1] ends=[5] steps=[1], d) @0;"
     "output p = add(o, conv(concat(y) axis=1, concat(s, t) axis=1, expand(const f32 {0}) "
     "shape=[5]) @0);"
     "output q = conv(x, w, b) @0"},
    {"conv-of-concat",
     POINTWISE "input y f32[2,1,6,6]; u = const f32[5,5,1,1] seed 3; d = const f32[5] seed 4",
     "output p = conv(concat(y, x) axis=1, u, d) @0; output q = relu(x)", ""},
    {"pointwise-conv-of-conv",
     X4 "v = const f32[8,4,3,3] seed 3; a = const f32[8] seed 4; "
        "w = const f32[3,8,1,1] seed 1; b = const f32[3] seed 2",
     "output p = conv(conv(x, v, a) @1, w, b) @0",
     "u = reshape(w) shape=[3,8]; k = reshape(matmul(u, reshape(v) shape=[8,36])) shape=[3,4,3,3];"
     "d = reshape(matmul(u, reshape(a) shape=[8,1])) shape=[3];"
     "output p = conv(x, k, add(b, d)) @1"},
    {"pointwise-conv-of-conv",
     X4 "v = const f32[2,4,3,3] seed 3; a = const f32[2] seed 4; "
        "w = const f32[9,2,1,1] seed 1; b = const f32[9] seed 2",
     "output p = conv(conv(x, v, a) @1, w, b) @0", ""},
    {"conv-as-matmul", POINTWISE "input y f32[2,4,1,1]",
     "output p = conv(y, w, b) @0; output q = relu(x)",
     "k = transpose(reshape(w) shape=[3,4]) perm=[1,0];"
     "output p = reshape(add(matmul(reshape(y) shape=[2,4], k), b)) shape=[2,3,1,1];"
     "output q = relu(x)"},
    {"conv-as-matmul", POINTWISE, "output p = conv(x, w, b) @0", ""},
    {"conv-of-transpose", POINTWISE "input y f32[2,6,6,4]",
     "output p = conv(transpose(y) perm=[0,3,1,2], w, b) @0; output q = relu(x)",
     "k = transpose(reshape(w) shape=[3,4]) perm=[1,0];"
     "output p = transpose(add(matmul(y, k), b)) perm=[0,3,1,2]; output q = relu(x)"},
    {"conv-of-transpose", POINTWISE "input y f32[2,6,6,4]",
     "output p = conv(transpose(y) perm=[0,3,2,1], w, b) @0; output q = relu(x)", ""},
    {"matmul-as-conv", X4 "w = const f32[4,3] seed 1",
     "output p = transpose(matmul(transpose(x) perm=[0,2,3,1], w)) perm=[0,3,1,2]",
     "k = reshape(transpose(w) perm=[1,0]) shape=[3,4,1,1];"
     "output p = conv(x, k, expand(const f32 {0}) shape=[3]) @0 group=1"},
    {"matmul-as-conv", X4 "w = const f32[4,3] seed 1",
     "output p = transpose(matmul(transpose(x) perm=[0,2,3,1], w)) perm=[0,3,2,1]", ""},
    {"weights-by-channels-as-conv", "input x f32[2,4,6]; w = const f32[3,4] seed 1",
     "output p = matmul(w, x)",
     "output p = conv(x, reshape(w) shape=[3,4,1], expand(const f32 {0}) shape=[3]) "
     "strides=[1] pads=[0,0] dilations=[1] group=1"},
    {"weights-by-channels-as-conv", "input x f32[2,4,6]; input w f32[3,4]",
     "output p = matmul(w, x)", ""},
    {"scale-into-conv-weights", POINTWISE "input s f32[1]", "output p = conv(mul(x, s), w, b) @0",
     "output p = conv(x, mul(w, s), b) @0"},
    {"scale-into-conv-weights", POINTWISE "input s f32[6]", "output p = conv(mul(x, s), w, b) @0",
     ""},
    {"scale-out-of-conv-weights", POINTWISE "input s f32[1]", "output p = conv(x, mul(w, s), b) @0",
     "output p = conv(mul(x, s), w, b) @0"},
    {"scale-out-of-conv-weights", POINTWISE "input s f32[3,1,1,1]",
     "output p = conv(x, mul(w, s), b) @0", ""},

    {"pool-into-concat", X4 "input y f32[2,1,6,6]",
     "output p = average_pool(concat(x, y) axis=1) " PADDED,
     "output p = concat(average_pool(x) " PADDED ", average_pool(y) " PADDED ") axis=1"},
    {"pool-into-concat", X4 "input y f32[2,4,6,1]",
     "output p = average_pool(concat(x, y) axis=3) " PADDED, ""},
    {"pool-out-of-concat", X4 "input y f32[1,4,6,6]",
     "output p = concat(max_pool(x) " PADDED ", max_pool(y) " PADDED ") axis=0",
     "output p = max_pool(concat(x, y) axis=0) " PADDED},
    {"pool-out-of-concat", X4 "input y f32[2,4,5,5]",
     "output p = concat(max_pool(x) " PADDED ", max_pool(y) " PADDED ") axis=1", ""},
    {"pool-into-split", X4,
     "s, t = split(max_pool(x) " PADDED ") axis=1 sizes=[1,3]; output s; output t",
     "u, v = split(x) axis=1 sizes=[1,3]; output s = max_pool(u) " PADDED
     "; output t = max_pool(v) " PADDED},
    {"pool-into-split", X4,
     "s, t = split(max_pool(x) " PADDED ") axis=2 sizes=[1,2]; output s; output t", ""},
    {"pool-out-of-split", X4 "u, v = split(x) axis=1 sizes=[1,3]",
     "output s = max_pool(u) " PADDED "; output t = max_pool(v) " PADDED,
     "q, r = split(max_pool(x) " PADDED ") axis=1 sizes=[1,3]; output s = q; output t = r"},
    {"pool-out-of-split", X4 "u, v = split(x) axis=1 sizes=[1,3]",
     "output s = max_pool(u) " PADDED "; output t = average_pool(v) " PADDED, ""},
    {"slice-past-pool", X4,
     "output p = slice(max_pool(x) " PADDED ") axes=[1] starts=[3] ends=[-9] steps=[-1]",
     "output p = max_pool(slice(x) axes=[1] starts=[3] ends=[-9] steps=[-1]) " PADDED},
    {"slice-past-pool", X4,
     "output p = slice(max_pool(x) " PADDED ") axes=[1,2] starts=[0,0] ends=[1,1] steps=[1,1]", ""},
    {"monotone-past-max-pool", X4, "output p = clip(max_pool(x) " PADDED ") min=0 max=6",
     "output p = max_pool(clip(x) min=0 max=6) " PADDED},
    {"monotone-past-max-pool", X4, "output p = neg(max_pool(x) " PADDED ")", ""},
    {"max-pool-past-monotone", X4, "output p = max_pool(relu(x)) " PADDED,
     "output p = relu(max_pool(x) " PADDED ")"},
    {"max-pool-past-monotone", X4,
     "output p = max_pool(relu(x)) kernel_shape=[2,2] strides=[1,1] pads=[2,2,2,2] dilations=[5,5]",
     ""},
    {"max-pool-of-max-pool", X4,
     "output p = max_pool(max_pool(x) " STEP3 ") kernel_shape=[2,2] strides=[2,2] pads=[1,0,0,0] "
     "dilations=[1,1]",
     "output p = max_pool(x) kernel_shape=[4,4] strides=[2,2] pads=[2,1,1,1] dilations=[1,1]"},
    {"max-pool-of-max-pool", X4, "output p = max_pool(max_pool(x) " PADDED ") " STEP3, ""},
    {"max-pool-of-sibling", X4,
     "output p = max_pool(x) kernel_shape=[5,5] strides=[1,1] pads=[2,2,2,2] dilations=[1,1];"
     "output q = max_pool(x) " STEP3,
     "q = max_pool(x) " STEP3 "; output p = max_pool(q) " STEP3 "; output q"},
    {"max-pool-of-sibling", X4,
     "output p = max_pool(x) kernel_shape=[5,5] strides=[1,1] pads=[0,2,2,2] dilations=[1,1];"
     "output q = max_pool(x) " STEP3,
     ""},
    {"affine-past-average-pool", X4 "input k f32[2,1,1,1]",
     "output p = average_pool(mul(x, k)) " PADDED "count_include_pad=1",
     "output p = mul(average_pool(x) " PADDED "count_include_pad=1, k)"},
    {"affine-past-average-pool", X4 "input k f32[2,1,1,1]",
     "output p = average_pool(add(x, k)) " PADDED "count_include_pad=1", ""},
    {"affine-into-average-pool", X4 "input k f32[4,1,1]",
     "output p = sub(average_pool(x) " PADDED ", k)", "output p = average_pool(sub(x, k)) " PADDED},
    {"affine-into-average-pool", X4 "input k f32[3,1]",
     "output p = sub(average_pool(x) " PADDED ", k)", ""},
    {"pointwise-conv-past-average-pool", POINTWISE,
     "output p = conv(average_pool(x) " PADDED ", w, b) @0",
     "output p = average_pool(conv(x, w, b) @0) " PADDED},
    {"pointwise-conv-past-average-pool", POINTWISE,
     "output p = conv(average_pool(x) " PADDED "count_include_pad=1, w, b) @0", ""},
    {"pointwise-conv-past-padded-average-pool", POINTWISE,
     "output p = conv(average_pool(x) " PADDED "count_include_pad=1, w, b) @0",
     "y = average_pool(conv(x, w, expand(const f32 {0}) shape=[3]) @0) " PADDED
     "count_include_pad=1; output p = add(y, reshape(b) shape=[3,1,1])"},
    {"pointwise-conv-past-padded-average-pool", POINTWISE,
     "output p = conv(average_pool(x) " PADDED "count_include_pad=1, w, b) @1", ""},
    {"average-pool-past-pointwise-conv", POINTWISE,
     "output p = average_pool(conv(x, w, b) @0) " PADDED,
     "output p = conv(average_pool(x) " PADDED ", w, b) @0"},
    {"average-pool-past-pointwise-conv", POINTWISE,
     "y = conv(x, w, b) @0; output y; output p = average_pool(y) " PADDED, ""},
    {"average-pool-as-reduce-mean", X4, "output p = average_pool(x) " WHOLE,
     "output p = reduce_mean(x) axes=[2,3]"},
    {"average-pool-as-reduce-mean", X4, "output p = average_pool(x) " PADDED, ""},
    {"reduce-mean-as-average-pool", X4, "output p = reduce_mean(x) axes=[2,3] keepdims=0",
     "output p = reshape(average_pool(x) " WHOLE ") shape=[2,4]"},
    {"reduce-mean-as-average-pool", X4, "output p = reduce_mean(x) axes=[1,3]", ""},
    {"average-pool-as-depthwise-conv", X4 "w = const f32[8,1,5,5] seed 1; b = const f32[8] seed 2",
     "output p = average_pool(x) " PADDED "count_include_pad=1;"
     "output q = conv(x, w, b) strides=[2,2] pads=[2,2,2,2] dilations=[1,1] group=4",
     "k = expand(reciprocal(const f32 {9})) shape=[4,1,3,3];"
     "output p = conv(x, k, expand(const f32 {0}) shape=[4]) strides=[2,2] pads=[1,1,1,1] "
     "dilations=[1,1] group=4;"
     "output q = conv(x, w, b) strides=[2,2] pads=[2,2,2,2] dilations=[1,1] group=4"},
    {"average-pool-as-depthwise-conv", X4 "w = const f32[8,1,5,5] seed 1; b = const f32[8] seed 2",
     "output p = average_pool(x) " PADDED ";"
     "output q = conv(x, w, b) strides=[2,2] pads=[2,2,2,2] dilations=[1,1] group=4",
     ""},

    {"constant-into-concat", X4 "input y f32[2,2,6,6]; k = const f32[6,1,1] seed 1",
     "output p = mul(concat(x, y) axis=1, k)",
     "s, t = split(k) axis=0 sizes=[4,2]; output p = concat(mul(x, s), mul(y, t)) axis=1"},
    {"constant-into-concat", X4 "input y f32[2,2,6,6]; k = const f32[6,1] seed 1",
     "output p = mul(concat(x, y) axis=1, k)", ""},
    {"constant-on-left-into-concat", X4 "input y f32[2,2,6,6]; k = const f32[6,1,1] seed 1",
     "output p = sub(k, concat(x, y) axis=1)",
     "s, t = split(k) axis=0 sizes=[4,2]; output p = concat(sub(s, x), sub(t, y)) axis=1"},
    {"constant-on-left-into-concat", X4 "input y f32[2,2,6,6]; input k f32[6,1,1]",
     "output p = sub(k, concat(x, y) axis=1)", ""},

    {"scale-before-conv", GROUPED "k = const f32[4,1,1] seed 5",
     "output p = conv(div(x, k), w, b) @1 group=2",
     "r = reshape(expand(reshape(k) shape=[4]) shape=[4]) shape=[2,1,2,1,1];"
     "output p = conv(x, reshape(div(reshape(w) shape=[2,2,2,3,3], r)) shape=[4,2,3,3], b) @1 "
     "group=2"},
    {"scale-before-conv", GROUPED "k = const f32[4,1,1] seed 5",
     "output p = conv(div(k, x), w, b) @1 group=2", ""},
    {"shift-before-conv", GROUPED "k = const f32[1] seed 5",
     "output p = conv(sub(x, k), w, b) @0 group=2",
     "r = reshape(expand(reshape(k) shape=[1]) shape=[4]) shape=[2,1,2,1,1];"
     "s = reduce_sum(mul(reshape(w) shape=[2,2,2,3,3], r)) axes=[2,3,4] keepdims=0;"
     "output p = conv(x, w, sub(b, reshape(s) shape=[4])) @0 group=2"},
    {"shift-before-conv", GROUPED "k = const f32[1] seed 5",
     "output p = conv(sub(x, k), w, b) @1 group=2", ""},
    {"scale-before-matmul", "input x f32[2,3]; w = const f32[3,4] seed 1; k = const f32[3] seed 2",
     "output p = matmul(mul(k, x), w)", "output p = matmul(x, mul(w, reshape(k) shape=[3,1]))"},
    {"scale-before-matmul",
     "input x f32[2,3]; w = const f32[3,4] seed 1; k = const f32[2,1] seed 2",
     "output p = matmul(mul(k, x), w)", ""},
    {"shift-before-matmul",
     "input x f32[2,3]; w = const f32[3,4] seed 1; k = const f32[3] seed 2; b = const f32[4] seed "
     "3",
     "output p = add(matmul(sub(x, k), w), b)",
     "r = reshape(expand(reshape(k) shape=[3]) shape=[3]) shape=[1,3];"
     "output p = add(matmul(x, w), sub(reshape(b) shape=[1,4], matmul(r, w)))"},
    {"shift-before-matmul", "input x f32[2,3]; w = const f32[3,4] seed 1; k = const f32[3] seed 2",
     "output p = matmul(sub(x, k), w)", ""},
    {"add-constants", "input x f32[2,3]; k = const f32[3] seed 1; l = const f32[3] seed 2",
     "output p = add(add(x, k), l)", "output p = add(x, add(k, l))"},
    {"add-constants", "input x f32[2,3]; k = const f32[3] seed 1; l = const f32[2,1] seed 2",
     "output p = add(add(x, k), l)", ""},
    {"multiply-constants", "input x f32[2,3]; k = const f32[3] seed 1; l = const f32[1] seed 2",
     "output p = mul(mul(x, k), l)", "output p = mul(x, mul(k, l))"},
    {"multiply-constants", "input x f32[2,3]; k = const f32[3] seed 1; input l f32[3]",
     "output p = mul(mul(x, k), l)", ""},
    {"zero-is-neutral", "input x f32[3]; k = const f32[1] {0}", "output p = sub(x, k)",
     "output p = x"},
    {"zero-is-neutral", "input x f32[3]; k = const f32[1] {0}", "output p = sub(k, x)", ""},
    {"one-is-neutral", "input x f32[3]; k = const f32[1] {1}", "output p = pow(x, k)",
     "output p = x"},
    {"one-is-neutral", "input x f32[3]; k = const f32[1] {1.0000001}", "output p = mul(x, k)", ""},
    {"negate-twice", "input x f32[3]", "output p = neg(neg(x))", "output p = x"},
    {"negate-twice", "input x f32[3]", "output p = neg(abs(x))", ""},
    {"relu-of-nonnegative", "input x f32[3]", "output p = relu(sigmoid(x))",
     "output p = sigmoid(x)"},
    {"relu-of-nonnegative", "input x f32[3]", "output p = relu(tanh(x))", ""},
    {"relu-of-softmax", "input x f32[3]", "output p = relu(softmax(x) axis=0)",
     "output p = softmax(x) axis=0"},
    {"relu-of-softmax", "input x f32[3]", "output p = softmax(relu(x)) axis=0", ""},
    {"relu-of-clip", "input x f32[3]", "output p = relu(clip(x) min=0.5 max=2)",
     "output p = clip(x) min=0.5 max=2"},
    {"relu-of-clip", "input x f32[3]", "output p = relu(clip(x) min=-0.5 max=2)", ""},
    {"clip-of-relu", "input x f32[3]", "output p = clip(relu(x)) min=-1 max=6",
     "output p = clip(x) min=0 max=6"},
    {"clip-of-relu", "input x f32[3]", "output p = clip(relu(x)) min=-2 max=-1", ""},
    {"pool-of-one", X4, "output p = average_pool(x) " ONE, "output p = x"},
    {"pool-of-one", X4, "output p = average_pool(x) " PICK, ""},
    {"pool-of-one-into-conv", POINTWISE, "output p = conv(average_pool(x) " PICK ", w, b) @0",
     "output p = conv(x, w, b) strides=[2,2] pads=[0,0,0,0] dilations=[1,1]"},
    {"pool-of-one-into-conv", POINTWISE "v = const f32[3,4,3,3] seed 3",
     "output p = conv(average_pool(x) " PICK ", v, b) @0", ""},
    {"reduction-of-one", "input x f32[3,1,1]", "output p = reduce_max(x) axes=[1,2] keepdims=0",
     "output p = reshape(x) shape=[3]"},
    {"reduction-of-one", "input x f32[3,1,1]", "output p = reduce_max(x) axes=[0,1] keepdims=0",
     ""},
};

}  // namespace ag

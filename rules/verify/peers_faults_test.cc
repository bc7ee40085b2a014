// Wrong outputs that other optimizers shipped, as graphs that show the mistake. Each row also has
// the graph with the mistake: the test first checks that the comparison detects it, then runs our
// passes, clean-up and every applicable rewrite, and compares each result exactly.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/passes/clean_up.h"
#include "graph/text_form.h"
#include "rules/match/matcher.h"
#include "rules/match/rewrite.h"
#include "rules/match/rule_clean_up.h"
#include "rules/sets/built_in_rules.h"
#include "rules/testing/rules_cases.h"
#include "rules/testing/testing.h"
#include "rules/verify/compare.h"

namespace ag {
namespace {

#define CONV                                                                       \
  "input x f32[1,2,4,4]; w = const f32[4,2,3,3] seed 1; b = const f32[4] seed 2; " \
  "y = conv(x, w, b) @1"
#define NORM(of)                                                            \
  "batch_norm(" of                                                          \
  ", const f32[4] seed 3, const f32[4] seed 4, const f32[4] seed 5, const " \
  "f32[4] seed 1)"

// 3 x 3 windows that keep the size.
#define SAME "kernel_shape=[3,3] strides=[1,1] pads=[1,1,1,1] dilations=[1,1] "

// rule: whose mistake; inputs and before: the graph; after: the graph with the mistake.
const RuleCase kFaults[] = {
    // Passes of onnx/optimizer, by issues from a differential fuzzing campaign.
    {"optimizer #252, nop_concat: the same operand twice", "input x f32[2,3]",
     "output y = concat(x, x) axis=0", "output y = x"},
    {"optimizer #252, nop_concat: an empty operand", "input x f32[2,3]; input e f32[2,0]",
     "output y = concat(x, e, x) axis=1", "output y = concat(e, x, e) axis=1"},
    {"optimizer #253, consecutive squeezes: what is between", "input x f32[1,2,1,3]",
     "s = reshape(x) shape=[2,1,3]; t = transpose(s) perm=[2,1,0]; output y = reshape(t) "
     "shape=[3,2]",
     "output y = reshape(x) shape=[3,2]"},
    {"optimizer #254, common subexpressions: other attributes", "input x f32[2,2]",
     "p = softmax(x) axis=0; q = softmax(x) axis=1; output p; output q",
     "p = softmax(x) axis=0; output p; output q = p"},
    {"optimizer #254, common subexpressions: other pads", CONV,
     "z = conv(x, w, b) strides=[1,1] dilations=[1,1] pads=[0,0,2,2]; output z; output y",
     "output z = y; output y"},
    {"optimizer #254, common subexpressions: operands in another order",
     "input x f32[2]; input z f32[2]", "output p = sub(x, z); output q = sub(z, x)",
     "p = sub(x, z); output p; output q = p"},
    {"optimizer #254, common subexpressions: several outputs", "input x f32[4]",
     "p, q = split(x) axis=0 sizes=[2,2]; r, s = split(x) axis=0 sizes=[2,2]; output a = "
     "concat(p, s) axis=0; output c = concat(r, q) axis=0",
     "p, q = split(x) axis=0 sizes=[2,2]; output a = concat(p, p) axis=0; output c = concat(q, "
     "q) axis=0"},
    {"optimizer, duplicate initializers: equal bytes, other shapes",
     "input x f32[2,3]; input z f32[3,2]; k = const f32[2,3] {1,2,3,4,5,6}; l = const f32[3,2] "
     "{1,2,3,4,5,6}",
     "output p = add(x, k); output q = add(z, l)",
     "output p = add(x, k); output q = add(z, transpose(k) perm=[1,0])"},
    {"optimizer, duplicate initializers: equal bytes, other types",
     "input x f32[2]; k = const f32[1] {1}; l = const i32[1] {1065353216}",
     "output p = add(x, k); output q = add(x, cast(l) to=f32)",
     "output p = add(x, k); output q = add(x, k)"},
    {"optimizer #255, bn into conv: weights that another convolution shares", CONV,
     "output z = " NORM("y") "; output v = relu(conv(x, w, b) @1)",
     "z = " NORM("y") "; output z; output v = relu(z)"},
    {"optimizer #178, bn into conv: the convolution has another reader", CONV,
     "output z = " NORM("y") "; output v = sigmoid(y)",
     "z = " NORM("y") "; output z; output v = sigmoid(z)"},
    {"optimizer #133, bn into conv: weights that are no constants",
     "input x f32[1,2,4,4]; input w f32[4,2,3,3]; b = const f32[4] seed 2; y = conv(x, w, b) @1",
     "output z = " NORM("y"), "output z = y"},
    {"optimizer #255, bn into conv: groups",
     "input x f32[1,4,3,3]; w = const f32[4,1,3,3] seed 1; b = const f32[4] seed 2; "
     "y = conv(x, w, b) @1 group=4",
     "output z = " NORM("y"), "output z = conv(x, w, b) @1 group=4"},
    {"optimizer #178, bn into conv: an epsilon that counts", CONV,
     "output z = " NORM("y") " epsilon=0.5", "output z = " NORM("y")},
    {"optimizer, bias into conv: an operand along another axis",
     "input x f32[1,2,3,3]; w = const f32[3,2,1,1] seed 1; b = const f32[3] {0,0,0}; k = const "
     "f32[3] {1,2,3}",
     "output z = add(conv(x, w, b) @0, k)", "output z = conv(x, w, k) @0"},
    {"optimizer, bias into conv: an operand that stretches the result",
     "input x f32[1,2,3,3]; w = const f32[3,2,1,1] seed 1; b = const f32[3] {0,0,0}; k = const "
     "f32[2,3,1,1] {1,2,3,4,5,6}",
     "output z = add(conv(x, w, b) @0, k)", "output z = conv(x, w, const f32[3] {1,2,3}) @0"},
    {"optimizer #267, concat into reshape: order", "input x f32[2,1,3]; input z f32[2,1,3]",
     "output y = reshape(concat(x, z) axis=1) shape=[2,6]",
     "output y = reshape(concat(x, z) axis=0) shape=[2,6]"},
    {"optimizer #273, nop_cast: a cast that truncates", "input x f32[4]",
     "output y = cast(cast(x) to=i64) to=f32", "output y = x"},
    {"optimizer #273, nop_cast: by way of bool", "input x f32[4]",
     "output y = cast(cast(x) to=bool) to=f32", "output y = x"},
    {"optimizer #275, nop_expand: axes that grow", "input x f32[2,1]",
     "output y = reduce_sum(expand(x) shape=[2,3]) axes=[1]", "output y = reduce_sum(x) axes=[1]"},
    {"optimizer #275, nop_expand: rank that grows", "input x f32[3]; input z f32[2,3]",
     "output y = concat(expand(x) shape=[1,3], z) axis=0",
     "output y = concat(z, expand(x) shape=[1,3]) axis=0"},
    {"optimizer #276, nop_flatten: to one row", "input x f32[2,3]",
     "output y = softmax(reshape(x) shape=[1,6]) axis=1",
     "output y = reshape(softmax(x) axis=1) shape=[1,6]"},
    {"optimizer #278, nop_pad: pads that add up to nothing", "input x f32[4]",
     "output y = pad(x) pads=[1,-1]", "output y = x"},
    {"optimizer #261, nop_pad: of the border's values", "input x f32[3]",
     "output y = pad(x) pads=[1,0] mode=reflect", "output y = pad(x) pads=[1,0] mode=edge"},
    {"optimizer #282, nop_reshape: as many elements in other axes", "input x f32[2,3,2]",
     "output y = reduce_sum(reshape(x) shape=[3,2,2]) axes=[0]",
     "output y = reduce_sum(transpose(x) perm=[1,0,2]) axes=[0]"},
    {"optimizer #283, nop_split: an empty part", "input x f32[4]",
     "p, q, r = split(x) axis=0 sizes=[1,0,3]; output y = concat(r, q, p) axis=0", "output y = x"},
    {"optimizer #284, nop_transpose: a square", "input x f32[3,3]",
     "output y = transpose(x) perm=[1,0]", "output y = x"},
    {"optimizer #284, nop_transpose: an axis of size 1 before a broadcast",
     "input x f32[2,1]; input z f32[2,2]", "output y = add(transpose(x) perm=[1,0], z)",
     "output y = add(x, z)"},
    {"optimizer #285, nop_with_unit: nothing minus x", "input x f32[3]; k = const f32[1] {0}",
     "output y = sub(k, x)", "output y = x"},
    {"optimizer #285, nop_with_unit: one by x", "input x f32[3]; k = const f32[1] {1}",
     "output y = div(k, x)", "output y = x"},
    {"optimizer #285, nop_with_unit: ones that stretch", "input x f32[1,2]; k = const f32[3,1] {1}",
     "output y = reduce_sum(mul(x, k)) axes=[0]", "output y = reduce_sum(x) axes=[0]"},
    {"optimizer #285, nop_with_unit: zeros that stretch",
     "input x f32[1,2]; k = const f32[3,2] {0}", "output y = reduce_sum(add(x, k)) axes=[0]",
     "output y = reduce_sum(x) axes=[0]"},
    {"optimizer #285, nop_with_unit: one to the power of x", "input x f32[3]; k = const f32[1] {1}",
     "output y = pow(k, x)", "output y = x"},
    {"optimizer, consecutive transposes: the order of composition", "input x f32[2,2,2]",
     "output y = transpose(transpose(x) perm=[1,2,0]) perm=[1,0,2]",
     "output y = transpose(x) perm=[0,2,1]"},
    {"optimizer, consecutive concats: other axes", "input x f32[2,2]; input z f32[2,2]",
     "c = concat(x, z) axis=0; output y = concat(c, c) axis=1",
     "output y = reshape(concat(x, z, x, z) axis=0) shape=[4,4]"},
    {"optimizer, consecutive slices: other axes, back to front", "input x f32[3,4]",
     "s = slice(x) axes=[1] starts=[3] ends=[-9] steps=[-1]; output y = slice(s) axes=[1] "
     "starts=[0] ends=[2] steps=[1]",
     "output y = slice(x) axes=[1] starts=[0] ends=[2] steps=[1]"},
    {"optimizer, pad into conv: a value that is not 0",
     "input x f32[1,2,3,3]; w = const f32[2,2,3,3] seed 1; b = const f32[2] seed 2",
     "p = pad(x) pads=[0,0,1,1,0,0,1,1] value=1; output y = conv(p, w, b) @0",
     "output y = conv(x, w, b) @1"},
    {"optimizer, pad into pool: pads that do not count", "input x f32[1,1,4,4]",
     "p = pad(x) pads=[0,0,1,1,0,0,1,1]; output y = average_pool(p) kernel_shape=[2,2] "
     "strides=[2,2] pads=[0,0,0,0] dilations=[1,1]",
     "output y = average_pool(x) kernel_shape=[2,2] strides=[2,2] pads=[1,1,1,1] dilations=[1,1]"},
    {"optimizer, transpose into gemm: axes of a batch", "input x f32[2,2,2]; input z f32[2,2,2]",
     "output y = matmul(transpose(x) perm=[1,0,2], z)",
     "output y = matmul(transpose(x) perm=[0,2,1], z)"},
    {"optimizer, matmul and bias into gemm: a column",
     "input x f32[2,3]; w = const f32[3,2] seed "
     "1; k = const f32[2,1] {1,2}",
     "output y = add(matmul(x, w), k)", "output y = add(matmul(x, w), reshape(k) shape=[1,2])"},
    // ONNX Runtime.
    {"onnxruntime #4110: a fused value that is an output too", CONV, "output y; output z = relu(y)",
     "z = relu(y); output y = z; output z"},
    {"onnxruntime, relu and clip: the lower bound", "input x f32[6]",
     "output y = clip(relu(x)) min=-0.5 max=0.5", "output y = clip(x) min=-0.5 max=0.5"},
    {"onnxruntime, division and product: a numerator that is not 1",
     "input x f32[3]; input z f32[3]; k = const f32[1] {2}", "output y = mul(div(k, x), z)",
     "output y = div(z, x)"},
    {"onnxruntime, conv and mul: a scale by column",
     "input x f32[1,2,3,3]; w = const f32[3,2,1,1] seed 1; b = const f32[3] seed 2; k = const "
     "f32[1,1,1,3] {1,2,3}",
     "output z = mul(conv(x, w, b) @0, k)",
     "output z = mul(conv(x, w, b) @0, reshape(k) shape=[1,3,1,1])"},
    {"onnxruntime, gelu: another constant", "input x f32[4]",
     "e = erf(div(x, const f32 {1.5})); output y = mul(mul(x, add(e, const f32 {1})), const f32 "
     "{0.5})",
     "output y = gelu(x)"},
    {"onnxruntime, layer norm: axes that are not the last",
     "input x f32[2,3]; g = const f32[2,1] {1,2}; b = const f32[2,1] {0,1}",
     "d = sub(x, reduce_mean(x) axes=[0]); v = reduce_mean(mul(d, d)) axes=[0]; output y = "
     "add(mul(div(d, sqrt(add(v, const f32 {0.001}))), g), b)",
     "d = sub(x, reduce_mean(x) axes=[1]); v = reduce_mean(mul(d, d)) axes=[1]; output y = "
     "add(mul(div(d, sqrt(add(v, const f32 {0.001}))), g), b)"},
    {"onnxruntime #17689, skip layer norm: the sum has another reader",
     "input x f32[2,3]; input z f32[2,3]; g = const f32[3] {1,2,3}; b = const f32[3] {0,1,2}",
     "s = add(x, z); output y = layer_norm(s, g, b) axis=1; output t = relu(s)",
     "s = add(x, z); y = layer_norm(s, g, b) axis=1; output y; output t = relu(y)"},
    {"onnxruntime #22177, pad fusion: pads of the channels",
     "input x f32[1,1,3,3]; w = const f32[2,2,1,1] seed 1; b = const f32[2] seed 2",
     "p = pad(x) pads=[0,1,0,0,0,0,0,0]; output y = conv(p, w, b) @0",
     "p = pad(x) pads=[0,0,0,0,0,1,0,0]; output y = conv(p, w, b) @0"},
    // onnx-simplifier.
    {"onnxsim #50: batch norm of a value that two read", CONV,
     "z = " NORM("y") "; output v = relu(z); output u = add(z, y)",
     "z = " NORM("y") "; output v = relu(z); output u = add(z, z)"},
    {"onnxsim, integers that random inputs never were: division",
     "input x i64[4]; k = const "
     "i64[1] {2}",
     "output y = mul(div(x, k), k)", "output y = x"},
    // TASO.
    {"TASO, export: an activation inside a convolution", CONV, "output z = relu(y)",
     "output z = y"},
    {"TASO, import: pad is nothing", "input x f32[1,1,2,2]",
     "output y = reduce_sum(pad(x) pads=[0,0,1,0,0,0,0,0] value=1) axes=[2]",
     "output y = reduce_sum(x) axes=[2]"},
    {"TASO, import: a slice with steps is nothing", "input x f32[4]",
     "output y = slice(x) axes=[0] starts=[3] ends=[-9] steps=[-1]", "output y = x"},
    {"TASO #99: two convolutions joined as groups that do not line up",
     "input x f32[1,1,3,3]; input z f32[1,1,3,3]; w = const f32[1,1,1,1] {2}; v = const "
     "f32[3,1,1,1] {3,4,5}; b = const f32[1] {0}; c = const f32[3] {0,0,0}",
     "output y = concat(conv(x, w, b) @0, conv(z, v, c) @0) axis=1",
     "k = concat(w, v) axis=0; output y = conv(concat(x, z) axis=1, k, concat(b, c) axis=0) @0 "
     "group=2"},
    {"TASO #125: grouped siblings merged by plain concat",
     "input x f32[1,2,2,2]; w = const f32[2,1,1,1] {2,3}; v = const f32[2,1,1,1] {4,5}; b = const "
     "f32[2] {0,0}",
     "output p = conv(x, w, b) @0 group=2; output q = conv(x, v, b) @0 group=2",
     "m = conv(x, concat(w, v) axis=0, concat(b, b) axis=0) @0 group=2; p, q = split(m) axis=1 "
     "sizes=[2,2]; output p; output q"},
    {"TASO #59: a convolution over a sum with a row for each channel",
     "input x f32[1,2,3,3]; input k f32[1,2,1,1]; w = const f32[2,2,3,3] seed 1; b = const f32[2] "
     "{0,0}",
     "output y = conv(add(x, k), w, b) @1",
     "e = conv(expand(k) shape=[1,2,3,3], w, b) @0; output y = add(conv(x, w, b) @1, e)"},
    {"TASO, concat of unequal parts: offsets", "input x f32[1,2]; input z f32[1,3]",
     "c = concat(x, z) axis=1; p, q = split(c) axis=1 sizes=[2,3]; output p = relu(p); output q "
     "= relu(q)",
     "c = concat(z, x) axis=1; p, q = split(c) axis=1 sizes=[2,3]; output p = relu(p); output q "
     "= relu(q)"},
    {"TASO, an enlarged kernel: off by one",
     "input x f32[1,1,3,3]; w = const f32[1,1,1,1] {2}; v = const f32[1,1,3,3] seed 1; b = const "
     "f32[1] {0}",
     "output p = conv(x, w, b) @0; output q = conv(x, v, b) @1",
     "u = pad(w) pads=[0,0,0,0,0,0,2,2]; output p = conv(x, u, b) @1; output q = conv(x, v, b) "
     "@1"},
    // Common mistakes of transformations that move windows, groups and scales.
    {"a shift before a padded convolution: the border is not shifted",
     "input x f32[1,2,3,3]; w = const f32[2,2,3,3] seed 1; b = const f32[2] seed 2; k = const "
     "f32[2,1,1] {1,2}",
     "output y = conv(add(x, k), w, b) @1",
     "s = reduce_sum(mul(w, reshape(k) shape=[1,2,1,1])) axes=[1,2,3] keepdims=0; output y = "
     "conv(x, w, add(b, s)) @1"},
    {"a batch norm before a convolution: the scale of other channels", CONV,
     "output z = conv(" NORM("y") ", const f32[2,4,1,1] seed 6, const f32[2] {0,0}) @0",
     "r = reshape(const f32[4] seed 3) shape=[4,1,1,1]; k = mul(const f32[2,4,1,1] seed 6, "
     "reshape(r) shape=[1,4,1,1]); output z = conv(y, k, const f32[2] {0,0}) @0"},
    {"a scale before a grouped convolution: each group has its own",
     "input x f32[1,4,3,3]; w = const f32[2,2,1,1] seed 1; b = const f32[2] seed 2; k = const "
     "f32[4,1,1] {1,2,3,4}",
     "output y = conv(mul(x, k), w, b) @0 group=2",
     "s = slice(k) axes=[0] starts=[0] ends=[2] steps=[1]; output y = conv(x, mul(w, reshape(s) "
     "shape=[1,2,1,1]), b) @0 group=2"},
    {"a scale before a matrix product: columns instead of rows",
     "input x f32[2,2]; w = const f32[2,2] seed 1; k = const f32[2] {1,2}",
     "output y = matmul(mul(x, k), w)", "output y = matmul(x, mul(w, k))"},
    {"a batch norm of a concat: parameters in another order",
     "input x f32[1,1,2,2]; input z f32[1,1,2,2]; k = const f32[2,1,1] {1,2}",
     "output y = mul(concat(x, z) axis=1, k)",
     "p, q = split(k) axis=0 sizes=[1,1]; output y = concat(mul(x, q), mul(z, p)) axis=1"},
    {"grouped siblings: weights in turns, results in one piece each",
     "input x f32[1,2,2,2]; w = const f32[2,1,1,1] {2,3}; v = const f32[2,1,1,1] {4,5}; b = const "
     "f32[2] {0,0}",
     "output p = conv(x, w, b) @0 group=2; output q = conv(x, v, b) @0 group=2",
     "k = reshape(concat(reshape(w) shape=[2,1], reshape(v) shape=[2,1]) axis=1) shape=[4,1,1,1];"
     "m = conv(x, k, concat(b, b) axis=0) @0 group=2; p, q = split(m) axis=1 sizes=[2,2];"
     "output p; output q"},
    {"an average pool as a convolution: padding that does not count",
     "input x f32[1,1,3,3]; w = const f32[1,1,3,3] seed 1; b = const f32[1] {0}",
     "output p = average_pool(x) " SAME "; output q = conv(x, w, b) @1",
     "k = expand(const f32 {0.125}) shape=[1,1,3,3]; output p = mul(conv(x, k, b) @1, const f32 "
     "{0.8888889}); output q = conv(x, w, b) @1"},
    {"an average pool as a convolution: a window over the end",
     "input x f32[1,1,5,5]; w = const f32[1,1,2,2] seed 1; b = const f32[1] {0}",
     "output p = average_pool(x) kernel_shape=[2,2] strides=[2,2] pads=[0,0,0,0] dilations=[1,1] "
     "ceil_mode=1 count_include_pad=1; output q = conv(x, w, b) strides=[2,2] pads=[0,0,0,0] "
     "dilations=[1,1]",
     "e = pad(x) pads=[0,0,0,0,0,0,1,1]; k = expand(const f32 {0.25}) shape=[1,1,2,2];"
     "output p = conv(e, k, b) strides=[2,2] pads=[0,0,0,0] dilations=[1,1]; output q = conv(x, "
     "w, b) strides=[2,2] pads=[0,0,0,0] dilations=[1,1]"},
    {"a 1x1 convolution past an average pool: the bias in padding that counts",
     "input x f32[1,2,3,3]; w = const f32[2,2,1,1] seed 1; b = const f32[2] {1,2}",
     "output y = conv(average_pool(x) " SAME "count_include_pad=1, w, b) @0",
     "output y = average_pool(conv(x, w, b) @0) " SAME "count_include_pad=1"},
    {"a shift past an average pool: padding that counts",
     "input x f32[1,2,3,3]; k = const f32[2,1,1] {1,2}",
     "output y = average_pool(add(x, k)) " SAME "count_include_pad=1",
     "output y = add(average_pool(x) " SAME "count_include_pad=1, k)"},
    {"an activation past a max pool: one that falls", "input x f32[1,1,3,3]",
     "output y = leaky_relu(max_pool(x) " SAME ") alpha=-0.5",
     "output y = max_pool(leaky_relu(x) alpha=-0.5) " SAME},
    {"an activation past a max pool: a window that lies in the padding", "input x f32[1,1,1,1]",
     "output y = relu(max_pool(x) kernel_shape=[2,2] strides=[1,1] pads=[1,1,1,1] dilations=[2,2])",
     "output y = max_pool(relu(x)) kernel_shape=[2,2] strides=[1,1] pads=[1,1,1,1] "
     "dilations=[2,2]"},
    {"a pool of a concat: along the window", "input x f32[1,1,2,2]; input z f32[1,1,2,2]",
     "output y = max_pool(concat(x, z) axis=2) " SAME,
     "output y = concat(max_pool(x) " SAME ", max_pool(z) " SAME ") axis=2"},
    {"two convolutions as one: the second is padded",
     "input x f32[1,1,4,4]; w = const f32[1,1,3,3] seed 1; a = const f32[1] {1}; v = const "
     "f32[1,1,1,1] {2}; b = const f32[1] {3}",
     "output y = conv(conv(x, w, a) @0, v, b) @1",
     "output y = conv(x, mul(w, v), const f32[1] {5}) @1"},
    {"a pool of one place: a convolution that looks further",
     "input x f32[1,1,5,5]; w = const f32[1,1,3,3] seed 1; b = const f32[1] {0}",
     "p = max_pool(x) kernel_shape=[1,1] strides=[2,2] pads=[0,0,0,0] dilations=[1,1];"
     "output y = conv(p, w, b) @1",
     "output y = conv(x, w, b) strides=[2,2] pads=[1,1,1,1] dilations=[1,1]"},
    {"a neutral element: nearly one", "input x f32[3]; k = const f32[1] {1.0000005}",
     "output y = mul(x, k)", "output y = x"},
    {"clip of relu: a bound above 0", "input x f32[6]", "output y = clip(relu(x)) min=0.5 max=0.75",
     "output y = clip(x) min=0 max=0.75"},
    {"groups apart: cuts that go through a group",
     "input x f32[1,2,2,2]; w = const f32[4,1,1,1] {1,2,3,4}; b = const f32[4] {0,0,0,0}",
     "p, q = split(conv(x, w, b) @0 group=2) axis=1 sizes=[1,3]; output p; output q",
     "g, h = split(x) axis=1 sizes=[1,1]; u, v = split(w) axis=0 sizes=[1,3]; c, d = split(b) "
     "axis=0 sizes=[1,3]; output p = conv(g, u, c) @0; output q = conv(h, v, d) @0"},
    // The same kinds of mistake (an axis, a sign, a broadcast, a wrong size) in movement, cuts,
    // reductions and attention.
    {"transpose past softmax: the axis that moves", "input x f32[2,3,4]",
     "output y = softmax(transpose(x) perm=[1,2,0]) axis=0",
     "output y = transpose(softmax(x) axis=0) perm=[1,2,0]"},
    {"softmax before opset 13: one axis instead of all from it on", "input x f32[2,3,4]",
     "output y = reshape(softmax(reshape(x) shape=[2,12]) axis=1) shape=[2,3,4]",
     "output y = softmax(x) axis=1"},
    {"transpose past reduction: axes that are dropped", "input x f32[2,3,4]",
     "output y = reduce_sum(transpose(x) perm=[2,0,1]) axes=[0] keepdims=0",
     "output y = reduce_sum(x) axes=[0] keepdims=0"},
    {"transpose past element-wise: a constant of fewer axes",
     "input x f32[2,3,3]; k = const f32[3] {1,2,3}", "output y = add(transpose(x) perm=[0,2,1], k)",
     "output y = transpose(add(x, k)) perm=[0,2,1]"},
    {"reshape past element-wise: a column", "input x f32[2,8]; input k f32[8,1]",
     "output y = mul(reshape(x) shape=[8,2], k)",
     "output y = reshape(mul(x, reshape(k) shape=[8])) shape=[8,2]"},
    {"reshape of reshape: a 0 that meant the size in between", "input x f32[2,6]",
     "output y = reshape(reshape(x) shape=[3,4]) shape=[3,2,2]",
     "output y = reshape(x) shape=[2,3,2]"},
    {"gather of gather: an index from the end",
     "input x f32[5,2]; i = const i64[3] {0,2,-1}; j = const i64[2] {-2,0}",
     "output y = gather(gather(x, i), j)", "output y = gather(x, const i64[2] {-2,0})"},
    {"gather past a sum: a bias along the axis",
     "input x f32[3,3]; input k f32[3,1]; i = const i64[2] {2,0}",
     "output y = gather(add(x, k), i)",
     "output y = add(gather(x, i), gather(k, const i64[2] {0,1}))"},
    {"where: a mask that stretches what it chooses from",
     "input m bool[3]; input x f32[1,3]; input z f32",
     "output y = reduce_sum(where(expand(m) shape=[2,3], x, z)) axes=[0]",
     "output y = reduce_sum(where(m, x, z)) axes=[0]"},
    {"where of where: another mask",
     "input m bool[3]; input n bool[3]; input x f32[3]; input z f32",
     "output y = where(m, z, where(n, z, x))", "output y = where(m, z, x)"},
    {"where of not: its branches", "input m bool[3]; input x f32[3]; input z f32",
     "output y = where(not(m), z, x)", "output y = where(m, z, x)"},
    {"reduction of nothing: no axes mean all", "input x f32[2,3]",
     "output y = reduce_sum(reduce_sum(x) axes=[]) axes=[1]",
     "output y = reduce_sum(x) axes=[0,1]"},
    {"mean of means: the axes of what is left", "input x f32[2,3,4]",
     "output y = reduce_mean(reduce_mean(x) axes=[0] keepdims=0) axes=[0] keepdims=0",
     "output y = reduce_mean(x) axes=[0,2] keepdims=0"},
    {"mean of a concat: parts that are not alike", "input x f32[1,2]; input z f32[3,2]",
     "output y = reduce_mean(concat(x, z) axis=0) axes=[0]",
     "output y = mul(add(reduce_mean(x) axes=[0], reduce_mean(z) axes=[0]), const f32 {0.5})"},
    {"split into heads: uneven parts", "input x f32[2,6]; p, q = split(x) axis=1 sizes=[2,4]",
     "output y = reshape(p) shape=[2,1,2]; output z = reshape(q) shape=[2,2,2]",
     "r, t, u = split(reshape(x) shape=[2,3,2]) axis=1 sizes=[1,1,1]; output y = t; output z = "
     "concat(r, u) axis=1"},
    {"heads of query and key: another order",
     "input x f32[2,4,3]; p, q = split(x) axis=1 sizes=[2,2]",
     "output y = transpose(p) perm=[1,0,2]; output z = transpose(q) perm=[1,2,0]",
     "s, t = split(transpose(x) perm=[1,0,2]) axis=0 sizes=[2,2]; output y = s; output z = "
     "reshape(t) shape=[2,3,2]"},
    {"slice of slice: steps back", "input x f32[7]",
     "s = slice(x) axes=[0] starts=[6] ends=[0] steps=[-2]; output y = slice(s) axes=[0] "
     "starts=[1] ends=[3] steps=[1]",
     "output y = slice(x) axes=[0] starts=[1] ends=[3] steps=[1]"},
    {"slice of pad: one that lies in the border", "input x f32[2]",
     "output y = slice(pad(x) pads=[3,1] value=1) axes=[0] starts=[0] ends=[2] steps=[1]",
     "output y = slice(x) axes=[0] starts=[0] ends=[2] steps=[1]"},
    {"concat of slices: a gap",
     "input x f32[6]; p = slice(x) axes=[0] starts=[0] ends=[2] steps=[1]",
     "output y = concat(p, slice(x) axes=[0] starts=[3] ends=[6] steps=[1]) axis=0",
     "output y = slice(x) axes=[0] starts=[0] ends=[5] steps=[1]"},
    {"attention: a scale by key", "input q f32[2,3]; input k f32[3,2]; input c f32[2]",
     "output y = softmax(mul(matmul(q, k), c)) axis=1",
     "output y = softmax(matmul(mul(q, reshape(c) shape=[2,1]), k)) axis=1"},
    {"softmax: a summand along the axis", "input x f32[2,3]; input m f32[3]",
     "output y = softmax(add(x, m)) axis=1", "output y = softmax(x) axis=1"},
    {"RMS norm: a mean over other axes than the scale's",
     "input x f32[2,3,3]; g = const f32[3] seed 1; e = const f32 {0.5}",
     "output y = mul(div(x, sqrt(add(reduce_mean(mul(x, x)) axes=[1], e))), g)",
     "output y = rms_norm(x, g) axis=2 epsilon=0.5"},
    {"batched products: a transpose of the batch", "input x f32[2,2,3]; input z f32[2,3,2]",
     "output y = matmul(transpose(x) perm=[1,0,2], z)", "output y = matmul(x, z)"},
};

// Returns "" when both compute the same outputs under the same names.
std::string DifferenceOf(const Graph& before, const Graph& after) {
  if (before.outputs().size() != after.outputs().size()) return "other outputs";
  for (size_t i = 0; i < before.outputs().size(); ++i) {
    const GraphOutput &a = before.outputs()[i], &b = after.outputs()[i];
    if (a.name != b.name || before.type(a.edge) != after.type(b.edge)) return "other types";
  }
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    const Comparison comparison = Compare(before, after, seed);
    if (!comparison.computed) return "not computed";
    if (!comparison.equal) return comparison.difference;
  }
  return "";
}

void ExpectSame(const std::string& what, const Graph& before, const StatusOr<Graph>& after) {
  ASSERT_TRUE(after.ok()) << what << ": " << ToString(after.status());
  EXPECT_EQ(DifferenceOf(before, *after), "") << what << "\n" << FormatGraph(*after);
}

// Applies every rewrite, also single clean-up rules, and clean-up to each result.
int RewriteEverywhere(const Graph& original, const Graph& from) {
  int applied = 0;
  const NodeIndex index(from);
  for (const Rule& rule : BuiltInRules().rules()) {
    for (Bindings& match : FindMatches(from, index, *rule.pattern, /*subsets_max=*/8)) {
      Rewrite rewrite{.rule = &rule};
      rewrite.bindings = std::make_shared<const Bindings>(std::move(match));
      const StatusOr<Graph> after = Apply(from, rewrite);
      if (after.status().code() == StatusCode::kFailedPrecondition) continue;
      ++applied;
      ExpectSame(rule.name, original, after);
      if (!after.ok()) continue;
      ExpectSame(rule.name + ", cleaned up", original, CleanUp(*after, BuiltInRules()));
    }
  }
  return applied;
}

TEST(PeersFaults, AreNotOurs) {
  int rewrites = 0;
  for (const RuleCase& fault : kFaults) {
    const std::string text = CaseText(fault, fault.before);
    SCOPED_TRACE(std::string(fault.rule) + "\n" + text);
    const Graph graph = MustParse(text);
    EXPECT_NE(DifferenceOf(graph, MustParse(CaseText(fault, fault.after))), "")
        << "the fault would not show";
    ExpectSame("no-ops removed", graph, RemoveNoOps(graph));
    ExpectSame("deduped", graph, Dedupe(graph));
    const StatusOr<Graph> clean = CleanUp(graph, BuiltInRules());
    ExpectSame("cleaned up", graph, clean);
    rewrites += RewriteEverywhere(graph, graph);
    if (clean.ok()) rewrites += RewriteEverywhere(graph, *clean);
  }
  EXPECT_GE(rewrites, 20) << "hardly a rule applies: the rows test little";
}

}  // namespace
}  // namespace ag

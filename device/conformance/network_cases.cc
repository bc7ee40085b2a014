#include "device/conformance/cases.h"

namespace ag {
namespace {

// clang-format off
constexpr ConformanceCase kNetworkCases[] = {
    {"conv relu", "input x f32[1,16,8,8]; w = const f32[32,16,3,3] seed 1; b = const f32[32] seed 2; output y = relu(conv(x, w, b) strides=[1,1] pads=[1,1,1,1] dilations=[1,1])"},
    {"conv pad channels", "input x f32[1,3,8,8]; w = const f32[21,3,3,3] seed 1; b = const f32[21] seed 2; output y = pad(conv(x, w, b) strides=[1,1] pads=[1,1,1,1] dilations=[1,1]) pads=[0,2,1,0,0,3,-1,2] value=0.5"},
    {"conv pad reflect conv", "input x f32[1,3,8,8]; w = const f32[21,3,3,3] seed 1; b = const f32[21] seed 2; v = const f32[16,21,3,3] seed 3; c = const f32[16] seed 4; output y = conv(pad(conv(x, w, b) strides=[1,1] pads=[1,1,1,1] dilations=[1,1]) pads=[0,0,1,2,0,0,2,1] mode=reflect, v, c) strides=[1,1] pads=[0,0,0,0] dilations=[1,1]"},
    {"conv clip", "input x f32[1,16,8,8]; w = const f32[32,16,3,3] seed 1; b = const f32[32] seed 2; output y = clip(conv(x, w, b) strides=[1,1] pads=[1,1,1,1] dilations=[1,1]) min=0 max=6"},
    {"conv tanh odd", "input x f32[1,3,8,8]; w = const f32[21,3,3,3] seed 1; b = const f32[21] seed 2; output y = tanh(conv(x, w, b) strides=[1,1] pads=[1,1,1,1] dilations=[1,1])"},
    {"conv gelu", "input x f32[1,16,8,8]; w = const f32[32,16,3,3] seed 1; b = const f32[32] seed 2; output y = gelu(conv(x, w, b) strides=[1,1] pads=[1,1,1,1] dilations=[1,1])"},
    {"conv residual relu", "input x f32[1,32,8,8]; w = const f32[32,32,3,3] seed 1; b = const f32[32] seed 2; output y = relu(add(conv(x, w, b) strides=[1,1] pads=[1,1,1,1] dilations=[1,1], x))"},
    {"conv residual odd", "input x f32[1,19,8,8]; w = const f32[19,19,3,3] seed 1; b = const f32[19] seed 2; output y = relu(add(x, conv(x, w, b) strides=[1,1] pads=[1,1,1,1] dilations=[1,1]))"},
    {"conv channel add", "input x f32[1,16,8,8]; w = const f32[32,16,3,3] seed 1; b = const f32[32] seed 2; c = const f32[1,32,1,1] seed 3; output y = relu(add(conv(x, w, b) strides=[1,1] pads=[1,1,1,1] dilations=[1,1], c))"},
    {"conv constant add", "input x f32[1,16,8,8]; w = const f32[32,16,3,3] seed 1; b = const f32[32] seed 2; c = const f32[1,32,8,8] seed 3; output y = add(conv(x, w, b) strides=[1,1] pads=[1,1,1,1] dilations=[1,1], c)"},
    {"conv scalar add", "input x f32[1,16,8,8]; w = const f32[32,16,3,3] seed 1; b = const f32[32] seed 2; c = const f32[] {0.5}; output y = add(conv(x, w, b) strides=[1,1] pads=[1,1,1,1] dilations=[1,1], c)"},
    {"depthwise clip", "input x f32[1,32,9,9]; w = const f32[32,1,3,3] seed 1; b = const f32[32] seed 2; output y = clip(conv(x, w, b) strides=[1,1] pads=[1,1,1,1] dilations=[1,1] group=32) min=0 max=6"},
    {"depthwise pointwise", "input x f32[1,20,9,9]; w = const f32[20,1,5,5] seed 1; b = const f32[20] seed 2; w2 = const f32[42,20,1,1] seed 3; b2 = const f32[42] seed 4; output y = conv(conv(x, w, b) strides=[2,2] pads=[2,1,2,3] dilations=[1,1] group=20, w2, b2) strides=[1,1] pads=[0,0,0,0] dilations=[1,1]"},
    {"inverted residual", "input x f32[2,16,7,7]; w0 = const f32[96,16,1,1] seed 1; b0 = const f32[96] seed 2; w1 = const f32[96,1,3,3] seed 3; b1 = const f32[96] seed 4; w2 = const f32[16,96,1,1] seed 5; b2 = const f32[16] seed 6; e = clip(conv(x, w0, b0) strides=[1,1] pads=[0,0,0,0] dilations=[1,1]) min=0 max=6; d = clip(conv(e, w1, b1) strides=[1,1] pads=[1,1,1,1] dilations=[1,1] group=96) min=0 max=6; output y = relu(add(x, conv(d, w2, b2) strides=[1,1] pads=[0,0,0,0] dilations=[1,1]))"},
    {"dilated separable swish", "input x f32[1,11,13,10]; w = const f32[11,1,3,3] seed 1; b = const f32[11] seed 2; w2 = const f32[70,11,1,1] seed 3; b2 = const f32[70] seed 4; output y = gelu(conv(swish(conv(x, w, b) strides=[1,1] pads=[0,0,0,0] dilations=[3,2] group=11), w2, b2) strides=[1,1] pads=[0,0,0,0] dilations=[1,1])"},
    {"dense bias relu", "input x f32[7,19]; w = const f32[19,23] seed 1; b = const f32[23] seed 2; output y = relu(add(matmul(x, w), b))"},
    {"dense bias gelu", "input x f32[2,7,32]; w = const f32[32,64] seed 1; b = const f32[64] seed 2; output y = gelu(add(matmul(x, w), b))"},
    {"dense bias residual", "input x f32[2,7,32]; w = const f32[32,32] seed 1; b = const f32[32] seed 2; output y = add(add(matmul(x, w), b), x)"},
    {"dense constant residual", "input x f32[6,32]; w = const f32[32,48] seed 1; c = const f32[6,48] seed 2; output y = relu(add(matmul(x, w), c))"},
    {"attention", "input q f32[1,2,9,8]; input k f32[1,2,8,9]; input v f32[1,2,9,8]; input m f32[1,1,1,9]; s = const f32[] {0.35}; output y = matmul(softmax(add(mul(matmul(q, k), s), m)) axis=3, v)"},
    {"chain", "input x f32[3,70]; input y f32[70]; a = mul(sigmoid(add(x, y)), x); output z = sqrt(add(mul(a, a), exp(neg(x))))"},
    {"chain with broadcast inside", "input x f32[5]; input y f32[3,5]; output z = relu(sub(y, exp(x)))"},
    {"chain of types", "input x f32[4,6]; input i i64[6]; output y = where(greater(cast(i) to=f32, x), x, cast(i) to=f32)"},
    {"swish by hand", "input x f32[1,16,8,8]; w = const f32[32,16,3,3] seed 1; b = const f32[32] seed 2; c = conv(x, w, b) strides=[1,1] pads=[1,1,1,1] dilations=[1,1]; output y = mul(c, sigmoid(c))"},
    {"padded channels", "input x f32[1,8,6,6]; w = const f32[20,8,3,3] seed 1; b = const f32[20] seed 2; w2 = const f32[24,20,3,3] seed 3; b2 = const f32[24] seed 4; c = conv(x, w, b) strides=[1,1] pads=[1,1,1,1] dilations=[1,1]; e = exp(mul(c, sigmoid(c))); output y = conv(e, w2, b2) strides=[1,1] pads=[1,1,1,1] dilations=[1,1]"},
    {"squeeze and excite", "input x f32[1,32,6,6]; w = const f32[32,32,3,3] seed 1; b = const f32[32] seed 2; w1 = const f32[16,32,1,1] seed 3; b1 = const f32[16] seed 4; w2 = const f32[32,16,1,1] seed 5; b2 = const f32[32] seed 6; c = relu(conv(x, w, b) strides=[1,1] pads=[1,1,1,1] dilations=[1,1]); g = reduce_mean(c) axes=[2,3]; h = relu(conv(g, w1, b1) strides=[1,1] pads=[0,0,0,0] dilations=[1,1]); s = sigmoid(conv(h, w2, b2) strides=[1,1] pads=[0,0,0,0] dilations=[1,1]); output y = mul(c, s)"},
    {"inception", "input x f32[1,32,9,9]; w1 = const f32[16,32,1,1] seed 1; b1 = const f32[16] seed 2; w3 = const f32[32,32,3,3] seed 3; b3 = const f32[32] seed 4; w5 = const f32[16,32,5,5] seed 5; b5 = const f32[16] seed 6; p = average_pool(x) kernel_shape=[3,3] strides=[1,1] pads=[1,1,1,1] dilations=[1,1]; a = relu(conv(x, w1, b1) strides=[1,1] pads=[0,0,0,0] dilations=[1,1]); c = relu(conv(x, w3, b3) strides=[1,1] pads=[1,1,1,1] dilations=[1,1]); d = relu(conv(x, w5, b5) strides=[1,1] pads=[2,2,2,2] dilations=[1,1]); output y = concat(a, c, d, p) axis=1"},
    {"pixel read in its output", "input x f32[1,16,3,3]; w = const f32[16,16,3,3] seed 1; k = const f32[16] seed 3; m = const f32[16,4] seed 2; c = conv(x, w, k) strides=[1,1] pads=[0,0,0,0] dilations=[1,1]; r = reshape(c) shape=[1,16]; output f = r; output y = relu(matmul(r, m))"},
    {"pixel that is an output", "input x f32[1,16,3,3]; w = const f32[16,16,3,3] seed 1; k = const f32[16] seed 3; c = conv(x, w, k) strides=[1,1] pads=[0,0,0,0] dilations=[1,1]; output f = c; output y = softmax(c) axis=1"},
    {"dilated residual of one column", "input x f32[2,5,5,3]; w = const f32[8,5,3,3] seed 1; b = const f32[8] seed 2; c = const f32[2,8,7,1] seed 3; output y = add(conv(x, w, b) strides=[1,1] pads=[2,2,2,0] dilations=[1,2], c)"},
    {"residual network", "input x f32[1,3,32,32]; w0 = const f32[32,3,7,7] seed 1; b0 = const f32[32] seed 2; w1 = const f32[32,32,3,3] seed 3; b1 = const f32[32] seed 4; w2 = const f32[32,32,3,3] seed 5; b2 = const f32[32] seed 6; wf = const f32[32,10] seed 7; bf = const f32[10] seed 8; c = relu(conv(x, w0, b0) strides=[2,2] pads=[3,3,3,3] dilations=[1,1]); p = max_pool(c) kernel_shape=[3,3] strides=[2,2] pads=[1,1,1,1] dilations=[1,1]; r = relu(conv(p, w1, b1) strides=[1,1] pads=[1,1,1,1] dilations=[1,1]); s = relu(add(conv(r, w2, b2) strides=[1,1] pads=[1,1,1,1] dilations=[1,1], p)); g = reshape(reduce_mean(s) axes=[2,3]) shape=[1,32]; output \"probabilities\" = softmax(add(matmul(g, wf), bf)) axis=1"},
    {"split branches", "input x f32[1,32,8,8]; w = const f32[16,16,3,3] seed 1; b = const f32[16] seed 2; l, r = split(x) axis=1 sizes=[16,16]; c = relu(conv(r, w, b) strides=[1,1] pads=[1,1,1,1] dilations=[1,1]); output y = concat(l, c) axis=1"},
    {"batch_norm after conv", "input x f32[1,16,6,6]; w = const f32[32,16,3,3] seed 1; b = const f32[32] seed 2; s = const f32[32] seed 3; h = const f32[32] seed 4; m = const f32[32] seed 5; v0 = const f32[32] seed 6; v = mul(v0, v0); output y = relu(batch_norm(conv(x, w, b) strides=[1,1] pads=[1,1,1,1] dilations=[1,1], s, h, m, v) epsilon=0.01)"},
    {"layer norm block", "input x f32[2,7,32]; s = const f32[32] seed 1; h = const f32[32] seed 2; w = const f32[32,96] seed 3; b = const f32[96] seed 4; n = layer_norm(x, s, h) axis=2; t = add(matmul(n, w), b); q, k, v = split(t) axis=2 sizes=[32,32,32]; output y = add(x, matmul(softmax(matmul(q, transpose(k) perm=[0,2,1])) axis=2, v))"},
    {"channels in no blocks", "input x f32[2,3,9,9]; w = const f32[11,3,3,3] seed 1; b = const f32[11] seed 2; wd = const f32[11,1,3,3] seed 3; wp = const f32[22,11,1,1] seed 4; bp = const f32[22] seed 5; wl = const f32[42,44,3,3] seed 6; bl = const f32[42] seed 7; s = relu(conv(x, w, b) strides=[2,2] pads=[1,1,1,1] dilations=[1,1]); d = conv(s, wd, b) strides=[1,1] pads=[1,1,1,1] dilations=[1,1] group=11; p = sigmoid(conv(d, wp, bp) strides=[1,1] pads=[0,0,0,0] dilations=[1,1]); a = average_pool(s) kernel_shape=[3,3] strides=[1,1] pads=[1,1,1,1] dilations=[1,1]; k = concat(p, a, add(s, d)) axis=1; l = conv(exp(k), wl, bl) strides=[1,1] pads=[1,1,1,1] dilations=[1,1]; output y = reduce_mean(relu(add(l, l))) axes=[2,3]; output z = l"},
    {"output twice", "input x f32[3,5]; y = relu(x); output \"a\" = y; output \"b\" = y"},
    {"input as output", "input x f32[3,5]; output \"same\" = x; output y = relu(x)"},
    {"constant as output", "input x f32[3,5]; w = const f32[4] seed 1; output \"w\" = w; output y = relu(x)"},
    {"inner value as output", "input x f32[1,16,8,8]; w = const f32[16,16,3,3] seed 1; b = const f32[16] seed 2; c = conv(x, w, b) strides=[1,1] pads=[1,1,1,1] dilations=[1,1]; output c; output y = relu(c)"},
    {"unused input", "input x f32[3]; input unused f32[2]; output y = relu(x)"},
    {"upsampling", "input x f32[1,16,9,7]; w = const f32[32,16,3,3] seed 1; b = const f32[32] seed 2; v = const f32[32,16,1,1] seed 3; c = relu(conv(x, w, b) strides=[2,2] pads=[1,1,1,1] dilations=[1,1]); u = resize(c) sizes=[1,32,9,7] mode=linear; output y = relu(add(u, conv(x, v, b) strides=[1,1] pads=[0,0,0,0] dilations=[1,1]))"},
    {"upsampled concat", "input x f32[1,16,10,8]; w = const f32[32,16,3,3] seed 1; b = const f32[32] seed 2; v = const f32[8,48,3,3] seed 3; a = const f32[8] seed 4; c = relu(conv(x, w, b) strides=[2,2] pads=[1,1,1,1] dilations=[1,1]); u = resize(c) sizes=[1,32,10,8] coordinate_transformation_mode=asymmetric nearest_mode=floor; output y = conv(concat(u, x) axis=1, v, a) strides=[1,1] pads=[1,1,1,1] dilations=[1,1]"},
};
// clang-format on

}  // namespace

std::span<const ConformanceCase> NetworkCases() { return kNetworkCases; }

}  // namespace ag

#include <deque>
#include <set>

#include "device/conformance/cases.h"
#include "graph/testing/function_cases.h"

namespace ag {
namespace {

// clang-format off
constexpr ConformanceCase kOperatorCases[] = {
    // Element-wise, one operand.
    {"relu long", "input x f32[3,1037]; output y = relu(x)"},
    {"relu rank 4", "input x f32[2,16,5,7]; output y = relu(x)"},
    {"relu scalar", "input x f32[]; output y = relu(x)"},
    {"relu empty", "input x f32[0,4]; output y = relu(x)"},
    {"relu i64", "input x i64[9]; output y = relu(x)"},
    {"sigmoid f64", "input x f64[2,33]; output y = sigmoid(x)"},
    {"matmul f64", "input x f64[2,3,5]; input y f64[2,5,4]; output z = matmul(x, y)"},
    {"softmax f64", "input x f64[2,33]; output y = softmax(x) axis=1"},
    {"gelu", "input x f32[2,33]; output y = gelu(x)"},
    {"gelu tanh", "input x f32[2,33]; output y = gelu(x) approximate=tanh"},
    {"neg i32", "input x i32[2,33]; output y = neg(x)"},
    {"clip", "input x f32[2,33]; output y = clip(x) min=-0.5 max=0.75"},
    {"clip one-sided", "input x f32[2,33]; output y = clip(x) max=0.75"},
    {"cast to i64", "input x f32[2,33]; output y = cast(x) to=i64"},
    {"cast to u8", "input x f32[2,33]; output y = cast(x) to=u8"},
    {"cast to bool", "input x i64[2,33]; output y = cast(x) to=bool"},
    {"cast to f32", "input x i64[2,33]; output y = cast(x) to=f32"},
    {"cast to f64", "input x f32[2,33]; output y = cast(x) to=f64"},
    // Element-wise, two or three operands.
    {"add", "input a f32[4,5,6]; input b f32[4,5,6]; output y = add(a, b)"},
    {"add itself", "input a f32[4,5,6]; output y = add(a, a)"},
    {"add scalar", "input a f32[4,5,6]; input b f32[]; output y = add(a, b)"},
    {"add row", "input a f32[4,5,6]; input b f32[6]; output y = add(a, b)"},
    {"add column", "input a f32[4,5,6]; input b f32[5,1]; output y = add(a, b)"},
    {"add both ways", "input a f32[4,1,6]; input b f32[5,1]; output y = add(a, b)"},
    {"add channels", "input a f32[2,24,3,5]; input b f32[24,1,1]; output y = add(a, b)"},
    {"mul channels of many", "input a f32[2,48,20,16]; input b f32[48,1,1]; s = const f32[48,1,1] seed 3; output y = relu(add(mul(a, b), s))"},
    {"mul channels of images", "input a f32[2,320,9,13]; input b f32[2,320,1,1]; d = const f32[320,1,1] seed 4; output y = add(mul(a, b), d)"},
    {"add rows and columns", "input a f32[41,700]; input b f32[700]; input c f32[41,1]; d = const f32[7] seed 3; e = reshape(add(mul(a, b), c)) shape=[41,100,7]; output y = mul(e, d)"},
    {"add channel constant", "input a f32[2,24,3,5]; w = const f32[1,24,1,1] seed 3; output y = add(a, w)"},
    {"add i64", "input a i64[4,5]; input b i64[5]; output y = add(a, b)"},
    {"sub", "input a f32[4,5,6]; input b f32[1,5,1]; output y = sub(a, b)"},
    {"sub from scalar", "input a f32[4,5,6]; c = const f32[] {1}; output y = sub(c, a)"},
    {"mul", "input a f32[4,5,6]; input b f32[4,5,1]; output y = mul(a, b)"},
    {"mul i32", "input a i32[4,5]; input b i32[4,1]; output y = mul(a, b)"},
    {"div", "input a f32[4,5,6]; input b f32[4,1,6]; output y = div(a, b)"},
    {"div i64", "input a i64[6]; c = const i64[6] {1,2,3,-1,-2,2}; output y = div(a, c)"},
    {"pow square", "input a f32[4,6]; c = const f32[] {2}; output y = pow(a, c)"},
    {"pow", "input a f32[4,6]; input b f32[4,6]; output y = pow(abs(a), b)"},
    {"pow i64", "input a i64[6]; c = const i64[6] {50,63,64,-1,0,3}; output y = pow(a, c)"},
    {"pow i32", "input a i32[6]; c = const i32[6] {50,31,32,-1,0,3}; output y = pow(neg(a), c)"},
    {"min", "input a f32[4,5,6]; input b f32[6]; output y = min(a, b)"},
    {"max", "input a f32[4,5,6]; input b f32[6]; output y = max(a, b)"},
    {"mod", "input a i64[6]; c = const i64[6] {2,3,-2,-3,1,2}; output y = mod(neg(a), c)"},
    {"mod fmod", "input a f32[6]; c = const f32[6] {2,3,-2,-3,1,2}; output y = mod(a, c) fmod=1"},
    {"equal", "input a i64[4,6]; input b i64[6]; output y = equal(a, b)"},
    {"greater", "input a f32[4,6]; input b f32[6]; output y = greater(a, b)"},
    {"less", "input a f32[4,6]; input b f32[4,1]; output y = less(a, b)"},
    {"where", "input c bool[4,1]; input a f32[4,6]; input b f32[6]; output y = where(c, a, b)"},
    {"where i64", "input c bool[6]; input a i64[4,6]; input b i64[1]; output y = where(c, a, b)"},
    // Convolutions.
    {"conv 3x3", "input x f32[1,3,9,7]; w = const f32[5,3,3,3] seed 1; b = const f32[5] seed 2; output y = conv(x, w, b) strides=[1,1] pads=[1,1,1,1] dilations=[1,1]"},
    {"conv 3x3 wide", "input x f32[2,32,14,14]; w = const f32[48,32,3,3] seed 1; b = const f32[48] seed 2; output y = conv(x, w, b) strides=[1,1] pads=[1,1,1,1] dilations=[1,1]"},
    {"conv 3x3 in tiles, two images", "input x f32[2,16,13,17]; w = const f32[32,16,3,3] seed 1; b = const f32[32] seed 2; output y = conv(x, w, b) strides=[1,1] pads=[1,1,1,1] dilations=[1,1]"},
    {"conv 3x3 in tiles, no padding", "input x f32[1,24,12,15]; w = const f32[16,24,3,3] seed 1; b = const f32[16] seed 2; output y = conv(x, w, b) strides=[1,1] pads=[0,0,0,0] dilations=[1,1]"},
    {"conv 3x3 in tiles, uneven pads", "input x f32[1,16,9,10]; w = const f32[40,16,3,3] seed 1; b = const f32[40] seed 2; output y = conv(x, w, b) strides=[1,1] pads=[2,0,1,2] dilations=[1,1]"},
    {"conv 3x3 in tiles, odd channels", "input x f32[1,20,12,12]; w = const f32[37,20,3,3] seed 1; b = const f32[37] seed 2; output y = conv(x, w, b) strides=[1,1] pads=[1,1,1,1] dilations=[1,1]"},
    {"conv 3x3 in tiles, residual and relu", "input x f32[1,32,12,9]; input r f32[1,48,12,9]; w = const f32[48,32,3,3] seed 1; b = const f32[48] seed 2; c = conv(x, w, b) strides=[1,1] pads=[1,1,1,1] dilations=[1,1]; s = add(c, r); output y = relu(s)"},
    {"conv 3x3 in tiles, clip", "input x f32[1,16,12,12]; w = const f32[24,16,3,3] seed 1; b = const f32[24] seed 2; c = conv(x, w, b) strides=[1,1] pads=[1,1,1,1] dilations=[1,1]; output y = clip(c) min=-2 max=6"},
    {"conv 3x3 in tiles, clip above zero", "input x f32[1,16,12,12]; w = const f32[20,16,3,3] seed 1; b = const f32[20] seed 2; c = conv(x, w, b) strides=[1,1] pads=[1,1,1,1] dilations=[1,1]; output y = clip(c) min=0.25 max=6"},
    {"conv 3x3 in tiles, in chunks", "input x f32[3,16,32,32]; w = const f32[16,16,3,3] seed 1; b = const f32[16] seed 2; output y = conv(x, w, b) strides=[1,1] pads=[1,1,1,1] dilations=[1,1]"},
    {"conv odd channels", "input x f32[1,17,8,8]; w = const f32[19,17,3,3] seed 1; b = const f32[19] seed 2; output y = conv(x, w, b) strides=[1,1] pads=[1,1,1,1] dilations=[1,1]"},
    {"conv 1x1", "input x f32[1,32,7,5]; w = const f32[64,32,1,1] seed 1; b = const f32[64] seed 2; output y = conv(x, w, b) strides=[1,1] pads=[0,0,0,0] dilations=[1,1]"},
    {"conv 1x1 stride 2", "input x f32[1,32,7,7]; w = const f32[16,32,1,1] seed 1; b = const f32[16] seed 2; output y = conv(x, w, b) strides=[2,2] pads=[0,0,0,0] dilations=[1,1]"},
    {"conv stem", "input x f32[1,3,32,32]; w = const f32[32,3,7,7] seed 1; b = const f32[32] seed 2; output y = conv(x, w, b) strides=[2,2] pads=[3,3,3,3] dilations=[1,1]"},
    {"conv uneven pads", "input x f32[1,16,8,9]; w = const f32[16,16,3,2] seed 1; b = const f32[16] seed 2; output y = conv(x, w, b) strides=[2,1] pads=[0,1,2,0] dilations=[1,1]"},
    {"conv pads beyond the kernel", "input x f32[1,16,6,7]; w = const f32[16,16,1,1] seed 1; b = const f32[16] seed 2; output y = conv(x, w, b) strides=[1,1] pads=[2,0,1,3] dilations=[1,1]"},
    {"conv pads beyond the kernel, odd", "input x f32[1,3,6,7]; w = const f32[5,3,2,3] seed 1; b = const f32[5] seed 2; output y = conv(x, w, b) strides=[1,2] pads=[4,5,3,0] dilations=[1,1]"},
    {"conv dilated", "input x f32[1,16,12,12]; w = const f32[16,16,3,3] seed 1; b = const f32[16] seed 2; output y = conv(x, w, b) strides=[1,1] pads=[2,2,2,2] dilations=[2,2]"},
    {"conv grouped", "input x f32[1,32,8,8]; w = const f32[64,16,3,3] seed 1; b = const f32[64] seed 2; output y = conv(x, w, b) strides=[1,1] pads=[1,1,1,1] dilations=[1,1] group=2"},
    {"conv grouped odd", "input x f32[1,12,8,8]; w = const f32[18,4,3,3] seed 1; b = const f32[18] seed 2; output y = conv(x, w, b) strides=[1,1] pads=[1,1,1,1] dilations=[1,1] group=3"},
    {"conv depthwise", "input x f32[1,32,9,9]; w = const f32[32,1,3,3] seed 1; b = const f32[32] seed 2; output y = conv(x, w, b) strides=[2,2] pads=[1,1,1,1] dilations=[1,1] group=32"},
    {"conv depthwise odd", "input x f32[1,20,9,9]; w = const f32[20,1,5,5] seed 1; b = const f32[20] seed 2; output y = conv(x, w, b) strides=[1,1] pads=[2,2,2,2] dilations=[1,1] group=20"},
    {"conv in pieces of channels", "input x f32[1,8,80,90]; w = const f32[48,8,1,1] seed 1; b = const f32[48] seed 2; output y = swish(conv(x, w, b) strides=[1,1] pads=[0,0,0,0] dilations=[1,1])"},
    {"conv in pieces of channels, depthwise", "input x f32[1,48,80,90]; w = const f32[48,1,3,3] seed 1; b = const f32[48] seed 2; output y = sigmoid(conv(x, w, b) strides=[1,1] pads=[1,1,1,1] dilations=[1,1] group=48)"},
    {"conv in pieces of images", "input x f32[3,3,80,90]; w = const f32[37,3,3,2] seed 1; b = const f32[37] seed 2; output y = swish(conv(x, w, b) strides=[1,1] pads=[1,1,1,0] dilations=[1,1])"},
    {"conv in one piece", "input x f32[2,16,11,9]; w = const f32[20,16,1,1] seed 1; b = const f32[20] seed 2; output y = sigmoid(conv(x, w, b) strides=[1,1] pads=[0,0,0,0] dilations=[1,1])"},
    {"conv to 1x1", "input x f32[1,8,4,4]; w = const f32[8,8,4,4] seed 1; b = const f32[8] seed 2; output y = conv(x, w, b) strides=[1,1] pads=[0,0,0,0] dilations=[1,1]"},
    {"conv 1-d", "input x f32[2,8,21]; w = const f32[6,8,5] seed 1; b = const f32[6] seed 2; output y = conv(x, w, b) strides=[2] pads=[2,1] dilations=[1]"},
    {"conv column", "input x f32[1,32,40,1]; w = const f32[48,32,5,1] seed 1; b = const f32[48] seed 2; output y = relu(conv(x, w, b) strides=[1,1] pads=[2,0,2,0] dilations=[1,1])"},
    {"conv column, strides and residual", "input x f32[2,19,21,1]; input r f32[2,24,11,1]; w = const f32[24,19,3,1] seed 1; b = const f32[24] seed 2; output y = relu(add(conv(x, w, b) strides=[2,1] pads=[1,0,3,0] dilations=[2,1], r))"},
    {"conv column, grouped", "input x f32[1,32,33,1]; w = const f32[32,1,4,1] seed 1; b = const f32[32] seed 2; output y = conv(x, w, b) strides=[1,3] pads=[0,0,0,0] dilations=[1,2] group=32"},
    {"conv column, weights given", "input x f32[1,4,9,1]; input w f32[8,4,3,1]; input b f32[8]; output y = conv(x, w, b) strides=[1,1] pads=[1,0,1,0] dilations=[1,1]"},
    {"conv 3-d", "input x f32[1,4,5,6,7]; w = const f32[6,4,3,3,3] seed 1; b = const f32[6] seed 2; output y = conv(x, w, b) strides=[1,1,1] pads=[1,1,1,1,1,1] dilations=[1,1,1]"},
    {"conv weights given", "input x f32[1,4,6,6]; input w f32[8,4,3,3]; input b f32[8]; output y = conv(x, w, b) strides=[1,1] pads=[1,1,1,1] dilations=[1,1]"},
    // Matrix products.
    {"matmul", "input x f32[7,19]; w = const f32[19,23] seed 1; output y = matmul(x, w)"},
    {"matmul one row", "input x f32[1,64]; w = const f32[64,100] seed 1; output y = matmul(x, w)"},
    {"matmul rank 3", "input x f32[2,7,19]; w = const f32[19,23] seed 1; output y = matmul(x, w)"},
    {"matmul wide", "input x f32[48,96]; w = const f32[96,64] seed 1; output y = matmul(x, w)"},
    {"matmul constant first", "input x f32[19,5]; w = const f32[7,19] seed 1; output y = matmul(w, x)"},
    {"matmul batched", "input a f32[2,3,5,8]; input b f32[2,3,8,6]; output y = matmul(a, b)"},
    {"matmul broadcast", "input a f32[2,1,5,8]; input b f32[3,8,6]; output y = matmul(a, b)"},
    {"matmul batched constant", "input a f32[3,5,8]; w = const f32[3,8,6] seed 1; output y = matmul(a, w)"},
    {"matmul itself", "input a f32[6,6]; output y = matmul(a, a)"},
    // Pooling.
    {"max_pool", "input x f32[1,16,9,9]; output y = max_pool(x) kernel_shape=[3,3] strides=[2,2] pads=[1,1,1,1] dilations=[1,1]"},
    {"max_pool odd", "input x f32[2,5,8,7]; output y = max_pool(x) kernel_shape=[2,3] strides=[1,2] pads=[0,1,1,0] dilations=[1,1]"},
    {"max_pool ceil", "input x f32[1,16,8,8]; output y = max_pool(x) kernel_shape=[3,3] strides=[2,2] pads=[0,0,0,0] dilations=[1,1] ceil_mode=1"},
    {"max_pool dilated", "input x f32[1,16,9,9]; output y = max_pool(x) kernel_shape=[3,3] strides=[1,1] pads=[0,0,0,0] dilations=[2,2]"},
    {"max_pool 1-d", "input x f32[1,3,11]; output y = max_pool(x) kernel_shape=[3] strides=[2] pads=[1,1] dilations=[1]"},
    {"max_pool 3-d", "input x f32[1,3,5,6,7]; output y = max_pool(x) kernel_shape=[2,2,2] strides=[2,2,2] pads=[0,0,0,1,0,1] dilations=[1,1,1]"},
    {"average_pool", "input x f32[1,32,9,9]; output y = average_pool(x) kernel_shape=[3,3] strides=[2,2] pads=[1,1,1,1] dilations=[1,1]"},
    {"average_pool with pads", "input x f32[1,16,9,9]; output y = average_pool(x) kernel_shape=[3,3] strides=[2,2] pads=[1,1,1,1] dilations=[1,1] count_include_pad=1"},
    {"average_pool ceil with pads", "input x f32[1,16,8,8]; output y = average_pool(x) kernel_shape=[3,3] strides=[2,2] pads=[1,1,0,0] dilations=[1,1] ceil_mode=1 count_include_pad=1"},
    {"average_pool ceil", "input x f32[1,7,8,8]; output y = average_pool(x) kernel_shape=[3,3] strides=[2,2] pads=[0,0,0,0] dilations=[1,1] ceil_mode=1"},
    // Resampling.
    {"resize", "input x f32[2,16,7,5]; output y = resize(x) sizes=[2,16,14,10] coordinate_transformation_mode=asymmetric nearest_mode=floor"},
    {"resize odd", "input x f32[2,5,9,7]; output y = resize(x) sizes=[2,5,4,11]"},
    {"resize nearest above", "input x f32[1,19,6,5]; output y = resize(x) sizes=[1,19,13,4] nearest_mode=ceil coordinate_transformation_mode=align_corners"},
    {"resize nearest half up", "input x f32[1,8,8,6]; output y = resize(x) sizes=[1,8,4,9] nearest_mode=round_prefer_ceil"},
    {"resize nearest by scales", "input x f32[1,8,10,5]; output y = resize(x) sizes=[1,8,6,7] scales=[1,1,1,1,3,5,3,2] coordinate_transformation_mode=asymmetric nearest_mode=floor"},
    {"resize nearest tensorflow", "input x f32[1,8,7,5]; output y = resize(x) sizes=[1,8,3,8] coordinate_transformation_mode=tf_half_pixel_for_nn nearest_mode=floor"},
    {"resize nearest symmetric", "input x f32[1,8,7,5]; output y = resize(x) sizes=[1,8,10,8] scales=[1,1,1,1,3,2,8,5] coordinate_transformation_mode=half_pixel_symmetric"},
    {"resize linear", "input x f32[2,32,7,9]; output y = resize(x) sizes=[2,32,14,18] mode=linear"},
    {"resize linear odd", "input x f32[1,19,6,5]; output y = resize(x) sizes=[1,19,9,11] mode=linear"},
    {"resize linear corners", "input x f32[1,16,5,8]; output y = resize(x) sizes=[1,16,11,3] mode=linear coordinate_transformation_mode=align_corners"},
    {"resize linear down", "input x f32[1,16,13,11]; output y = resize(x) sizes=[1,16,5,4] mode=linear coordinate_transformation_mode=asymmetric"},
    {"resize linear by scales", "input x f32[1,12,7,5]; output y = resize(x) sizes=[1,12,9,8] scales=[1,1,1,1,13,10,8,5] mode=linear"},
    {"resize linear symmetric", "input x f32[1,12,7,5]; output y = resize(x) sizes=[1,12,9,8] scales=[1,1,1,1,13,10,7,4] mode=linear coordinate_transformation_mode=half_pixel_symmetric"},
    {"resize linear to one", "input x f32[1,8,3,5]; output y = resize(x) sizes=[1,8,1,1] mode=linear coordinate_transformation_mode=pytorch_half_pixel"},
    {"resize linear f64", "input x f64[1,3,4,5]; output y = resize(x) sizes=[1,3,7,5] mode=linear"},
    {"resize rows", "input x f32[1,8,6,5]; output y = resize(x) sizes=[1,8,11,5] mode=linear"},
    {"resize last axis", "input x f32[3,4,5]; output y = resize(x) sizes=[3,4,9] mode=linear"},
    {"resize inner axes", "input x f32[1,5,6,8]; output y = resize(x) sizes=[1,9,4,8] mode=linear"},
    {"resize volume", "input x f32[1,2,3,4,5]; output y = resize(x) sizes=[1,2,5,7,6] mode=linear"},
    {"resize all axes", "input x f32[2,8,3,4]; output y = resize(x) sizes=[3,12,5,2] mode=linear"},
    {"resize all axes nearest", "input x f32[2,8,3,4]; output y = resize(x) sizes=[3,12,5,2]"},
    {"resize cubic", "input x f32[1,16,6,7]; output y = resize(x) sizes=[1,16,11,13] mode=cubic"},
    {"resize cubic odd", "input x f32[1,5,8,9]; output y = resize(x) sizes=[1,5,5,12] mode=cubic exclude_outside=1 cubic_coeff_a=-0.5"},
    {"resize cubic corners", "input x f32[1,8,4,7]; output y = resize(x) sizes=[1,8,9,3] mode=cubic coordinate_transformation_mode=align_corners"},
    {"resize cubic f64", "input x f64[3,5]; output y = resize(x) sizes=[3,8] mode=cubic exclude_outside=1"},
    {"resize i64", "input x i64[2,3,5]; output y = resize(x) sizes=[2,3,8]"},
    {"resize bool", "input x bool[4,6]; output y = resize(x) sizes=[3,9]"},
    {"resize nothing", "input x f32[0,8,3,3]; output y = resize(x) sizes=[0,8,6,6] mode=linear"},
    {"resize to the same", "input x f32[2,8,3,3]; output y = resize(x) sizes=[2,8,3,3] mode=linear"},
    // Reductions.
    {"reduce_mean pooling", "input x f32[2,32,7,7]; output y = reduce_mean(x) axes=[2,3]"},
    {"reduce_mean last", "input x f32[5,300]; output y = reduce_mean(x) axes=[1] keepdims=0"},
    {"reduce_mean first", "input x f32[5,300]; output y = reduce_mean(x) axes=[0]"},
    {"reduce_sum middle", "input x f32[3,4,5,6]; output y = reduce_sum(x) axes=[1,2] keepdims=0"},
    {"reduce_sum outer", "input x f32[3,4,5,6]; output y = reduce_sum(x) axes=[0,2]"},
    {"reduce_sum all", "input x f32[3,4,5]; output y = reduce_sum(x) axes=[0,1,2] keepdims=0"},
    {"reduce_sum i64", "input x i64[3,4,5]; output y = reduce_sum(x) axes=[1]"},
    {"reduce_sum no axes", "input x f32[3,4]; output y = reduce_sum(x) axes=[]"},
    {"reduce_mean i64", "input x i64[3,4,5]; output y = reduce_mean(x) axes=[2]"},
    {"reduce_max", "input x f32[3,4,5]; output y = reduce_max(x) axes=[2]"},
    {"reduce_max first", "input x f32[3,70]; output y = reduce_max(x) axes=[0] keepdims=0"},
    {"reduce_max i32", "input x i32[3,4,5]; output y = reduce_max(x) axes=[0,2]"},
    // Normalizations.
    {"softmax last", "input x f32[3,5,101]; output y = softmax(x) axis=2"},
    {"softmax middle", "input x f32[3,5,101]; output y = softmax(x) axis=1"},
    {"softmax of one", "input x f32[3,1]; output y = softmax(x) axis=1"},
    {"batch_norm", "input x f32[2,19,5,5]; s = const f32[19] seed 1; b = const f32[19] seed 2; m = const f32[19] seed 3; v0 = const f32[19] seed 4; v = mul(v0, v0); output y = batch_norm(x, s, b, m, v) epsilon=0.01"},
    {"batch_norm rank 2", "input x f32[6,16]; s = const f32[16] seed 1; b = const f32[16] seed 2; m = const f32[16] seed 3; v0 = const f32[16] seed 4; v = mul(v0, v0); output y = batch_norm(x, s, b, m, v) epsilon=0.01"},
    {"batch_norm given", "input x f32[2,16,5,5]; input s f32[16]; input b f32[16]; input m f32[16]; v0 = const f32[16] seed 4; v = mul(v0, v0); output y = batch_norm(x, s, b, m, v) epsilon=0.01"},
    {"layer_norm", "input x f32[4,7,65]; s = const f32[65] seed 1; b = const f32[65] seed 2; output y = layer_norm(x, s, b) axis=2"},
    {"layer_norm two axes", "input x f32[4,7,9]; s = const f32[7,9] seed 1; b = const f32[7,9] seed 2; output y = layer_norm(x, s, b) axis=1"},
    {"layer_norm given", "input x f32[4,9]; input s f32[9]; input b f32[9]; output y = layer_norm(x, s, b) axis=1"},
    {"rms_norm", "input x f32[4,7,65]; s = const f32[65] seed 1; output y = rms_norm(x, s) axis=2"},
    {"rms_norm two axes", "input x f32[4,7,9]; s = const f32[7,9] seed 1; output y = rms_norm(x, s) axis=1 epsilon=0.5"},
    {"rms_norm given", "input x f32[4,9]; input s f32[9]; output y = rms_norm(x, s) axis=1"},
    // Movement.
    {"concat channels", "input a f32[2,16,3,3]; input b f32[2,32,3,3]; output y = concat(a, b) axis=1"},
    {"concat odd", "input a f32[2,3,4]; input b f32[2,5,4]; input c f32[2,1,4]; output y = concat(a, b, c) axis=1"},
    {"concat last", "input a f32[2,3]; input b f32[2,5]; output y = concat(a, b) axis=1"},
    {"concat itself", "input a f32[2,3]; output y = concat(a, a) axis=0"},
    {"concat constant", "input a f32[2,3]; w = const f32[2,2] seed 1; output y = concat(w, a) axis=1"},
    {"concat i64", "input a i64[3]; input b i64[2]; output y = concat(a, b) axis=0"},
    {"split channels", "input x f32[2,48,3,3]; a, b = split(x) axis=1 sizes=[16,32]; output a; output b"},
    {"split odd", "input x f32[2,9,3]; a, b, c = split(x) axis=1 sizes=[2,3,4]; output a; output c; output z = relu(b)"},
    {"slice", "input x f32[6,7,8]; output y = slice(x) axes=[0,2] starts=[1,-5] ends=[5,8] steps=[1,2]"},
    {"slice backwards", "input x f32[6,7]; output y = slice(x) axes=[1] starts=[6] ends=[-100] steps=[-1]"},
    {"slice backwards by two", "input x f32[6,7]; output y = slice(x) axes=[0] starts=[5] ends=[0] steps=[-2]"},
    {"slice channels", "input x f32[1,48,3,3]; output y = slice(x) axes=[1] starts=[16] ends=[48] steps=[1]"},
    {"slice rows", "input x f32[1,16,5,6]; output y = slice(x) axes=[2,3] starts=[1,2] ends=[4,6] steps=[1,2]"},
    {"slice to nothing", "input x f32[6,7]; output y = slice(x) axes=[0] starts=[4] ends=[2] steps=[1]"},
    {"transpose 2-d", "input x f32[37,53]; output y = transpose(x) perm=[1,0]"},
    {"transpose heads", "input x f32[2,9,4,8]; output y = transpose(x) perm=[0,2,1,3]"},
    {"transpose all", "input x f32[3,4,5,6]; output y = transpose(x) perm=[3,1,0,2]"},
    {"transpose i64", "input x i64[3,4,5]; output y = transpose(x) perm=[2,0,1]"},
    {"transpose bool", "input x bool[3,4]; output y = transpose(x) perm=[1,0]"},
    {"reshape", "input x f32[3,4,5]; output y = reshape(x) shape=[5,12]"},
    {"reshape of relu", "input x f32[3,4,5]; output y = reshape(relu(x)) shape=[60]"},
    {"expand", "input x f32[3,1,5]; output y = expand(x) shape=[2,3,4,5]"},
    {"expand scalar", "input x f32[]; output y = expand(x) shape=[2,3]"},
    {"expand i64", "input x i64[1,3]; output y = expand(x) shape=[4,3]"},
    {"pad", "input x f32[2,3,4]; output y = pad(x) pads=[0,1,2,1,0,3] value=1.5"},
    {"pad crops", "input x f32[4,5]; output y = pad(x) pads=[-1,2,1,-2]"},
    {"pad reflect", "input x f32[1,2,5,6]; output y = pad(x) pads=[0,0,2,3,0,0,1,4] mode=reflect"},
    {"pad edge", "input x f32[1,2,5,6]; output y = pad(x) pads=[0,0,2,3,0,0,1,4] mode=edge"},
    {"pad image", "input x f32[1,16,5,6]; output y = pad(x) pads=[0,0,1,1,0,0,2,2]"},
    {"gather rows", "input x f32[2,7]; input i i64[3,2]; output y = gather(x, i)"},
    {"gather columns", "input x f32[3,5]; c = const i64[4] {4,-5,0,-1}; output y = gather(x, c) axis=1"},
    {"gather i32", "input x i64[5]; c = const i32[] {3}; output y = gather(x, c)"},
    {"gather from constant", "w = const f32[50,8] seed 1; input i i64[6]; output y = gather(w, i)"},
};
// clang-format on

// What an activation may be fused behind.
constexpr std::string_view kConvolved =
    "input i f32[1,16,8,8]; w = const f32[32,16,3,3] seed 1; b = const f32[32] seed 2; x = conv(i, "
    "w, b) strides=[1,1] pads=[1,1,1,1] dilations=[1,1]; ";
constexpr std::string_view kMultiplied =
    "input i f32[7,19]; w = const f32[19,23] seed 1; x = matmul(i, w); ";

}  // namespace

std::span<const ConformanceCase> OperatorCases() {
  static const std::vector<ConformanceCase>& cases = *[] {
    auto* all = new std::vector(std::begin(kOperatorCases), std::end(kOperatorCases));
    static auto* const texts = new std::deque<std::string>;  // What the cases point into.
    const auto add = [&](const FunctionCase& c, const std::string& where, std::string text) {
      const std::string& name = texts->emplace_back(std::string(c.name) + where);
      all->push_back({name, texts->emplace_back(std::move(text))});
    };
    std::set<OpKind> seen;
    for (const FunctionCase& c : FunctionCases()) {
      add(c, "", StatementsOf(c, "[2,33]"));
      if (!Has(OpOf(c), kActivation) || !seen.insert(OpOf(c)).second) continue;
      add(c, " after conv", StatementsOf(c, "", kConvolved));
      add(c, " after matmul", StatementsOf(c, "", kMultiplied));
    }
    return all;
  }();
  return cases;
}

}  // namespace ag

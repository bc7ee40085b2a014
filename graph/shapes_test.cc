// Ill-typed graphs with their messages; well-typed graphs with their types.
#include <gtest/gtest.h>

#include "graph/shapes.h"
#include "graph/text_form.h"

namespace ag {
namespace {

struct ShapeCase {
  std::string name;
  std::string call;      // Over the inputs below.
  std::string expected;  // The type, or the message after "line L:C: ".
};

constexpr std::string_view kShapeInputs =
    "input x f32[1,4,8,8]\ninput w f32[6,4,3,3]\ninput b f32[6]\ninput m f32[2,3]\n"
    "input i i64[2]\ninput c bool[3]\ninput h f16[3]\ninput z f32[0,3]\ninput s string[2]\n";

const ShapeCase kShapeCases[] = {
    {"conv", "conv(x, w, b) strides=[2,2] pads=[1,1,1,1] dilations=[1,1]", "f32[1,6,4,4]"},
    {"conv channels", "conv(x, w, b) strides=[1,1] pads=[0,0,0,0] dilations=[1,1] group=2",
     "conv: expected 8 input channels, got 4"},
    {"conv group", "conv(x, w, b) strides=[1,1] pads=[0,0,0,0] dilations=[1,1] group=4",
     "conv: group 4 does not divide 6 output channels"},
    {"conv bias", "conv(x, w, h) strides=[1,1] pads=[0,0,0,0] dilations=[1,1]",
     "conv: expected one floating point type, got f32, f32, f16"},
    {"conv strides", "conv(x, w, b) strides=[0,1] pads=[0,0,0,0] dilations=[1,1]",
     "conv: strides: 0 is outside [1, 2^30]"},
    {"conv pads", "conv(x, w, b) strides=[1,1] pads=[0,0] dilations=[1,1]",
     "conv: pads: expected 4 values, got 2"},
    {"conv kernel", "conv(x, w, b) strides=[1,1] pads=[0,0,0,0] dilations=[4,1]",
     "conv: kernel spans 9, padded input has 8"},
    {"arity", "conv(x, w)", "conv: expected 3 operands, got 2"},
    {"arity of concat", "concat() axis=0", "concat: expected 1 or more operands, got 0"},
    {"missing attribute", "softmax(x)", "softmax: attribute 'axis' is missing"},
    {"matmul", "matmul(m, const f32[3,5] {0})", "f32[2,5]"},
    {"matmul batches", "matmul(const f32[7,1,2,3] {0}, const f32[4,3,5] {0})", "f32[7,4,2,5]"},
    {"inner dims differ", "matmul(m, m)", "matmul: inner dims differ: 3 vs 2"},
    {"matmul rank", "matmul(m, b)",
     "matmul: operands need rank 2 or more, got f32[2,3] and f32[6]"},
    {"add", "add(x, const f32[8] {0})", "f32[1,4,8,8]"},
    {"add scalars", "add(const f32 {1}, const f32 {1})", "f32[]"},
    {"add shapes", "add(m, b)", "add: [2,3] and [6] do not broadcast"},
    {"add types", "add(m, h)", "add: element types differ: f32 and f16"},
    {"add bools", "add(c, c)", "add: expected numbers, got bool[3]"},
    {"and", "and(c, m)", "and: expected bool, got f32[2,3]"},
    {"exp of ints", "exp(i)", "exp: expected floating point, got i64[2]"},
    {"gelu", "gelu(m) approximate=fast", "gelu: approximate: expected none or tanh, got fast"},
    {"compare", "less(m, m)", "bool[2,3]"},
    {"predicate", "is_nan(m)", "bool[2,3]"},
    {"predicate of ints", "is_nan(i)", "is_nan: expected floating point, got i64[2]"},
    {"prelu", "prelu(m, const f32[3] {0})", "f32[2,3]"},
    {"prelu slope", "prelu(const f32[3] {0}, m)",
     "prelu: the slope f32[2,3] does not broadcast to f32[3]"},
    {"where", "where(c, m, m)", "f32[2,3]"},
    {"cast", "cast(m) to=f16", "f16[2,3]"},
    {"cast to string", "cast(m) to=string", "cast: no element type to cast to has number 14"},
    {"strings", "relu(s)", "relu: cannot compute on string"},
    {"pool",
     "max_pool(x) kernel_shape=[3,3] strides=[2,2] pads=[0,0,0,0] dilations=[1,1]"
     " ceil_mode=1",
     "f32[1,4,4,4]"},
    {"pool pads", "max_pool(x) kernel_shape=[2,2] strides=[1,1] pads=[2,0,0,0] dilations=[1,1]",
     "max_pool: pads 2 and 0 reach the kernel's extent 2"},
    {"pool rank", "average_pool(m) kernel_shape=[] strides=[] pads=[] dilations=[]",
     "average_pool: expected rank 3 or more, got f32[2,3]"},
    {"reduce", "reduce_mean(x) axes=[3,2]", "f32[1,4,1,1]"},
    {"reduce without dims", "reduce_sum(x) axes=[2,3] keepdims=0", "f32[1,4]"},
    {"reduce axis", "reduce_sum(m) axes=[2]", "reduce_sum: axis 2 is outside [0, 2)"},
    {"reduce twice", "reduce_sum(m) axes=[1,1]", "reduce_sum: axis 1 is given twice"},
    {"reduce_max of nothing", "reduce_max(z) axes=[0]", "reduce_max: axis 0 of f32[0,3] is empty"},
    {"resize", "resize(x) sizes=[1,4,5,16] mode=cubic", "f32[1,4,5,16]"},
    {"resize by scales", "resize(m) sizes=[2,4] scales=[1,1,3,2]", "f32[2,4]"},
    {"resize rank", "resize(m) sizes=[2]", "resize: sizes: expected 2 values, got 1"},
    {"resize scales", "resize(m) sizes=[2,4] scales=[1,1,3]",
     "resize: scales: expected none or 4 values, got 3"},
    {"resize by another scale", "resize(m) sizes=[2,4] scales=[1,1,2,1]",
     "resize: axis 1 of f32[2,3] times 2/1 has 6 elements, sizes say 4"},
    {"resize by no scale", "resize(m) sizes=[2,4] scales=[1,1,0,1]",
     "resize: scales: 0 is outside [1, 2^24]"},
    {"resize by a huge scale", "resize(m) sizes=[2,4] scales=[1,1,1,16777217]",
     "resize: scales: 16777217 is outside [1, 2^24]"},
    {"resize to nothing", "resize(m) sizes=[2,0]",
     "resize: axis 1 of f32[2,3] cannot get 0 elements"},
    {"resize of nothing", "resize(z) sizes=[1,3]",
     "resize: axis 0 of f32[0,3] cannot get 1 elements"},
    {"resize to less", "resize(m) sizes=[2,-1]", "resize: negative size in f32[2,-1]"},
    {"resize mode", "resize(m) sizes=[2,4] mode=area",
     "resize: mode: expected one of nearest, linear, cubic, got area"},
    {"resize places", "resize(m) sizes=[2,4] coordinate_transformation_mode=tf_crop_and_resize",
     "resize: coordinate_transformation_mode: expected one of half_pixel, pytorch_half_pixel, "
     "align_corners, asymmetric, half_pixel_symmetric, tf_half_pixel_for_nn, got "
     "tf_crop_and_resize"},
    {"resize rounding", "resize(m) sizes=[2,4] nearest_mode=round",
     "resize: nearest_mode: expected one of round_prefer_floor, round_prefer_ceil, floor, ceil, "
     "got round"},
    {"resize of ints", "resize(i) sizes=[4] mode=linear",
     "resize: mode linear: expected floating point, got i64[2]"},
    {"softmax", "softmax(m) axis=-1", "softmax: axis -1 is outside [0, 2)"},
    {"batch_norm", "batch_norm(x, b, b, b, b)", "batch_norm: scale: expected f32[4], got f32[6]"},
    {"layer_norm", "layer_norm(m, b, b) axis=1", "layer_norm: scale: expected f32[3], got f32[6]"},
    {"rms_norm", "rms_norm(x, reduce_sum(x) axes=[0,1] keepdims=0) axis=2", "f32[1,4,8,8]"},
    {"rms_norm scale", "rms_norm(m, b) axis=1", "rms_norm: scale: expected f32[3], got f32[6]"},
    {"rms_norm axis", "rms_norm(m, b) axis=2", "rms_norm: axis 2 is outside [0, 2)"},
    {"concat", "concat(m, m, m) axis=0", "f32[6,3]"},
    {"concat axis", "concat(m, x) axis=0",
     "concat: f32[2,3] and f32[1,4,8,8] differ beyond axis 0"},
    {"split", "split(m) axis=1 sizes=[1,1]", "split: sizes add up to 2, axis 1 has 3"},
    {"split too much", "split(m) axis=1 sizes=[2,2]", "split: sizes do not add up to 3 of axis 1"},
    {"slice", "slice(x) axes=[1,3] starts=[-1,0] ends=[99,-1] steps=[1,3]", "f32[1,1,8,3]"},
    {"slice empty", "slice(m) axes=[1] starts=[2] ends=[1] steps=[1]", "f32[2,0]"},
    {"slice step", "slice(m) axes=[1] starts=[2] ends=[1] steps=[0]", "slice: step of axis 1 is 0"},
    {"slice lengths", "slice(m) axes=[1] starts=[2] ends=[] steps=[0]",
     "slice: axes, starts, ends, steps: lengths 1, 1, 0, 1 differ"},
    {"slice of int64's ends",
     "slice(m) axes=[1] starts=[9223372036854775807] ends=[-9223372036854775808]"
     " steps=[-9223372036854775808]",
     "f32[2,1]"},
    {"transpose", "transpose(x) perm=[0,2,3,1]", "f32[1,8,8,4]"},
    {"transpose twice", "transpose(m) perm=[0,0]", "transpose: axis 0 is given twice"},
    {"reshape", "reshape(x) shape=[4,-1]", "f32[4,64]"},
    {"reshape wrong", "reshape(m) shape=[4]", "reshape: f32[2,3] has 6 elements, [4] has 4"},
    {"reshape two unknown", "reshape(m) shape=[-1,-1]", "reshape: negative size in f32[-1,-1]"},
    {"reshape huge", "reshape(m) shape=[9223372036854775807,9223372036854775807]",
     "reshape: f32[9223372036854775807,9223372036854775807] has more than 2^40 elements"},
    {"expand", "expand(m) shape=[4,2,3]", "f32[4,2,3]"},
    {"expand wrong", "expand(m) shape=[2,1]", "expand: f32[2,3] does not expand to [2,1]"},
    {"pad", "pad(m) pads=[1,0,0,2]", "f32[3,5]"},
    {"pad reflect", "pad(m) pads=[0,3,0,0] mode=reflect",
     "pad: reflect: pads 3 and 0 do not fit axis 1 of f32[2,3]"},
    {"pad mode", "pad(m) pads=[0,0,0,0] mode=wrap",
     "pad: mode: expected constant, reflect or edge, got wrap"},
    {"gather", "gather(x, i) axis=1", "f32[1,2,8,8]"},
    {"gather by floats", "gather(x, m) axis=1",
     "gather: indices: expected i64 or i32, got f32[2,3]"},
};

TEST(ShapesTest, TypesAndMessages) {
  for (const ShapeCase& c : kShapeCases) {
    SCOPED_TRACE(c.name);
    const std::string text = std::string(kShapeInputs) + "output \"y\" = " + c.call;
    const StatusOr<Graph> graph = ParseGraph(text);
    if (graph.ok()) {
      EXPECT_EQ(graph->type(graph->outputs()[0].edge).ToString(), c.expected);
    } else {
      const std::string message = Message(graph.status());
      EXPECT_EQ(message.substr(message.find(": ") + 2), c.expected);
      EXPECT_EQ(graph.status().code(), StatusCode::kInvalidArgument);
    }
  }
}

TEST(ShapesTest, AttributeKindsAreChecked) {
  GraphBuilder builder;
  const Edge x = builder.Input("x", {DType::kFloat32, {1, 2}});
  const auto message = [&](OpKind op, Attributes attributes) {
    return ToString(builder.Add1(op, {x}, std::move(attributes)).status());
  };
  EXPECT_EQ(message(OpKind::kSoftmax, {{"axis", 1.0}}),
            "INVALID_ARGUMENT: softmax: attribute 'axis': expected int, got float");
  EXPECT_EQ(message(OpKind::kLeakyRelu, {{"alpha", int64_t{1}}}),
            "INVALID_ARGUMENT: leaky_relu: attribute 'alpha': expected float, got int");
  EXPECT_EQ(message(OpKind::kRelu, {{"alpha", 1.0}}),
            "INVALID_ARGUMENT: relu: unknown attribute 'alpha'");
  EXPECT_EQ(message(OpKind::kInput, {}),
            "INVALID_ARGUMENT: input: is not an operator that Add makes");
}

TEST(ShapesTest, BroadcastAlignsAtTheLastAxis) {
  EXPECT_EQ(BroadcastShapes(Shape{2, 1}, Shape{3}).value(), (Shape{2, 3}));
  EXPECT_EQ(BroadcastShapes(Shape{}, Shape{3}).value(), (Shape{3}));
  EXPECT_EQ(BroadcastShapes(Shape{0, 1}, Shape{1, 5}).value(), (Shape{0, 5}));
  EXPECT_FALSE(BroadcastShapes(Shape{2}, Shape{3}).ok());
}

}  // namespace
}  // namespace ag

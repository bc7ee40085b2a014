#include "device/cuda/dense_problem.h"

#include <gtest/gtest.h>

#include "device/cuda/testing/testing.h"

namespace ag::cuda {
namespace {

// Returns "batch x [m,k]*[k,n], strides a/b/d", and the addends and the activation.
std::string Say(const DenseProblem& p) {
  return fmt::format(
      "{} x [{},{}]*[{},{}] strides {}/{}/{}{}{}{}", p.batch, p.m, p.k, p.k, p.n, p.a_stride,
      p.b_stride, p.d_stride,
      p.tail.vectors.empty() ? "" : fmt::format(" +{}", p.tail.vectors.size()),
      p.tail.addend ? " +D" : "",
      p.tail.activation == nullptr ? "" : fmt::format(" {}", Info(p.tail.activation->op).name));
}

TEST(DenseProblem, IsOneStridedBatch) {
  const struct {
    std::string_view text;
    std::string_view expected;
  } cases[] = {
      {R"(
input x f32[8,16]
w = const f32[16,32] seed 1
output y = matmul(x, w)
)",
       "1 x [8,16]*[16,32] strides 0/0/0"},
      {R"(
input x f32[2,3,8,16]
w = const f32[16,32] seed 1
b = const f32[32] seed 2
output y = relu(add(matmul(x, w), b))
)",
       "1 x [48,16]*[16,32] strides 0/0/0 +1 Relu"},
      {R"(
input x f32[1,128,768]
input r f32[1,128,768]
w = const f32[768,768] seed 1
b = const f32[768] seed 2
output y = add(add(matmul(x, w), b), r)
)",
       "1 x [128,768]*[768,768] strides 0/0/0 +1 +D"},
      {R"(
input q f32[1,12,128,64]
input k f32[1,12,64,128]
output y = matmul(q, k)
)",
       "12 x [128,64]*[64,128] strides 8192/8192/16384"},
      {R"(
input a f32[2,3,4,5]
input b f32[2,3,5,6]
output y = matmul(a, b)
)",
       "6 x [4,5]*[5,6] strides 20/30/24"},
      {R"(
input a f32[4,5]
input b f32[7,5,6]
output y = matmul(a, b)
)",
       "7 x [4,5]*[5,6] strides 0/30/24"},
      {R"(
input a f32[7,3,4,5]
input b f32[7,1,5,6]
output y = matmul(a, b)
)",
       "7 x [12,5]*[5,6] strides 60/30/72"},
      {R"(
input x f32[2,64,14,14]
input r f32[2,256,14,14]
w = const f32[256,64,1,1] seed 1
b = const f32[256] seed 2
output y = relu(add(conv(x, w, b) strides=[1,1] pads=[0,0,0,0] dilations=[1,1], r))
)",
       "1 x [392,64]*[64,256] strides 0/0/0 +1 +D Relu"},
  };
  for (const auto& c : cases) {
    const TextGroup group(c.text);
    const StatusOr<DenseProblem> p = DenseProblemOf(group.context());
    ASSERT_TRUE(p.ok()) << p.status() << c.text;
    EXPECT_EQ(Say(*p), c.expected) << c.text;
    EXPECT_EQ(p->stored, DType::kFloat16);
  }
}

TEST(DenseProblem, RefusesWhatNoStrideWalksThrough) {
  const struct {
    std::string_view text;
    std::string_view message;
  } cases[] = {
      {R"(
input a f32[2,1,4,5]
input b f32[1,3,5,6]
output y = matmul(a, b)
)",
       "UNIMPLEMENTED: MatMul: batch of [2,1,4,5] times [1,3,5,6] needs 2 strides"},
      {R"(
input a f32[0,5]
input b f32[5,6]
output y = matmul(a, b)
)",
       "UNIMPLEMENTED: MatMul: operand f32[0,5]"},
      {R"(
input a i32[4,5]
input b i32[5,6]
output y = matmul(a, b)
)",
       "UNIMPLEMENTED: MatMul: type i32"},
      {R"(
input a f32[4,5]
input r f32[4,6]
input s f32[4,6]
w = const f32[5,6] seed 1
output y = add(add(matmul(a, w), r), s)
)",
       "UNIMPLEMENTED: Add: a second operand of [4,6] to [4,6]"},
      {R"(
input x f32[1,64,14,14]
w = const f32[256,64,3,3] seed 1
b = const f32[256] seed 2
output y = conv(x, w, b) strides=[1,1] pads=[1,1,1,1] dilations=[1,1]
)",
       "UNIMPLEMENTED: Conv: [256,64,3,3] with strides, pads or groups is no product"},
      {R"(
input x f32[1,64,14,14]
w = const f32[256,64,1,1] seed 1
b = const f32[256] seed 2
output y = conv(x, w, b) strides=[2,2] pads=[0,0,0,0] dilations=[1,1]
)",
       "UNIMPLEMENTED: Conv: [256,64,1,1] with strides, pads or groups is no product"},
      {R"(
input x f32[4,4]
output y = softmax(x) axis=1
)",
       "UNIMPLEMENTED: a softmax group is no product of matrices"},
  };
  for (const auto& c : cases) {
    const TextGroup group(c.text);
    EXPECT_EQ(ToString(DenseProblemOf(group.context()).status()), c.message) << c.text;
  }
}

TEST(DenseProblem, APlainImageIsNoProductOfPixels) {
  TextGroup group(R"(
input x f32[1,64,14,14]
w = const f32[256,64,1,1] seed 1
b = const f32[256] seed 2
output y = conv(x, w, b) strides=[1,1] pads=[0,0,0,0] dilations=[1,1]
)");
  group.group.inputs[0].layout = Layout::kPlain;
  EXPECT_EQ(ToString(DenseProblemOf(group.context()).status()),
            "UNIMPLEMENTED: Conv: a product of tensors in layout plain");
}

TEST(DenseProblem, PaddedChannelsAreDepthAndColumns) {
  TextGroup group(R"(
input x f32[1,42,14,14]
input r f32[1,22,14,14]
w = const f32[22,42,1,1] seed 1
b = const f32[22] seed 2
output y = relu(add(conv(x, w, b) strides=[1,1] pads=[0,0,0,0] dilations=[1,1], r))
)");
  EXPECT_EQ(Say(*DenseProblemOf(group.context())), "1 x [196,48]*[48,24] strides 0/0/0 +1 +D Relu");
  group.group.inputs[1].layout = Layout::kChannelsLast;
  EXPECT_EQ(ToString(DenseProblemOf(group.context()).status()),
            "UNIMPLEMENTED: Conv: an addend in layout channels_last, the result in channels_last8");
  TextGroup sigmoid(R"(
input x f32[1,42,14,14]
w = const f32[22,42,1,1] seed 1
b = const f32[22] seed 2
output y = sigmoid(conv(x, w, b) strides=[1,1] pads=[0,0,0,0] dilations=[1,1])
)");
  EXPECT_EQ(ToString(DenseProblemOf(sigmoid.context()).status()),
            "UNIMPLEMENTED: Conv: Sigmoid makes no zeros of padding");
}

TEST(GroupTail, AnInnerResultThatIsWantedOutsideIsRefused) {
  TextGroup group(R"(
input x f32[4,5]
w = const f32[5,6] seed 1
output y = relu(matmul(x, w))
)");
  group.group.outputs.push_back({{group.group.nodes[0], 0}, Layout::kPlain});
  EXPECT_EQ(ToString(ReadTail(group.context()).status()),
            "UNIMPLEMENTED: dense: a result inside the group is wanted outside");
}

}  // namespace
}  // namespace ag::cuda

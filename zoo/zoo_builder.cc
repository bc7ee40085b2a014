#include "zoo/zoo_builder.h"

#include <cmath>

#include "base/random.h"

namespace ag {
namespace {

// Element i of a stream is a function of i alone (SplitMix64's mixer), so iterations are
// independent.
inline uint64_t Mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

// Fills with the sum of four 16-bit uniforms, scaled to mean 0 and variance 1: normal enough for
// weights, and without a logarithm per element.
void FillNormal(uint64_t seed, double mean, double deviation, std::span<float> out) {
  constexpr double kSumMean = 4 * 32767.5;
  const double scale = deviation * std::sqrt(3.0) / 65536;
  for (size_t i = 0; i < out.size(); ++i) {
    const uint64_t bits = Mix(seed + i * 0x9e3779b97f4a7c15);
    const auto sum = static_cast<int64_t>((bits & 0xffff) + (bits >> 16 & 0xffff) +
                                          (bits >> 32 & 0xffff) + (bits >> 48));
    out[i] = static_cast<float>(mean + scale * (static_cast<double>(sum) - kSumMean));
  }
}

Ints Twice(std::array<int64_t, 2> pad) { return {pad[0], pad[1], pad[0], pad[1]}; }

}  // namespace

Edge ZooBuilder::Constant(const Tensor& tensor) {
  return graph_.Constant(tensor.type(), weights_->Put(tensor), tensor.bytes());
}

Edge ZooBuilder::Floats(const Shape& shape, std::span<const float> values) {
  return Constant(Tensor::FromFloats(shape, values));
}

Edge ZooBuilder::Ints(const Shape& shape, std::span<const int64_t> values) {
  return Constant(Tensor::FromInts(shape, values));
}

Edge ZooBuilder::Random(const Shape& shape, double deviation, double mean) {
  Tensor tensor = Tensor::Zeros({DType::kFloat32, shape});
  FillNormal(ag::Random(seed_ ^ (++drawn_ << 32)).Next(), mean, deviation, tensor.Mutable<float>());
  return Constant(tensor);
}

Edge ZooBuilder::Uniform(int64_t count, double low, double high) {
  ag::Random random(seed_ ^ (++drawn_ << 32));
  Tensor tensor = Tensor::Zeros({DType::kFloat32, {count}});
  for (float& value : tensor.Mutable<float>()) {
    value = static_cast<float>(low + (high - low) * random.Unit());
  }
  return Constant(tensor);
}

Edge ZooBuilder::Op(OpKind op, std::initializer_list<Edge> inputs, Attributes attributes) {
  StatusOr<Edge> edge = graph_.Add1(op, inputs, std::move(attributes));
  AG_CHECK(edge.ok());
  return *edge;
}

Edge ZooBuilder::Concat(std::span<const Edge> parts, int64_t axis) {
  const StatusOr<NodeId> node = graph_.Add(OpKind::kConcat, parts, {{"axis", axis}});
  AG_CHECK(node.ok());
  return {*node, 0};
}

Edge ZooBuilder::Reshape(Edge x, std::vector<int64_t> shape) {
  return Op(OpKind::kReshape, {x}, {{"shape", std::move(shape)}});
}

Edge ZooBuilder::Transpose(Edge x, std::vector<int64_t> perm) {
  return Op(OpKind::kTranspose, {x}, {{"perm", std::move(perm)}});
}

Edge ZooBuilder::Conv(Edge x, const ConvOptions& options) {
  const int64_t inputs = Channels(x) / options.group;
  const auto [height, width] = options.kernel;
  const double fan_in = static_cast<double>(inputs * height * width);
  const Edge weight =
      Random({options.channels, inputs, height, width}, std::sqrt(options.gain / fan_in));
  const Edge bias = options.bias ? Uniform(options.channels, -0.1, 0.1)
                                 : Constant(Tensor::Zeros({DType::kFloat32, {options.channels}}));
  return Op(OpKind::kConv, {x, weight, bias},
            {{"strides", ag::Ints{options.stride, options.stride}},
             {"pads", Twice(options.pad)},
             {"dilations", ag::Ints{1, 1}},
             {"group", options.group}});
}

Edge ZooBuilder::BatchNorm(Edge x, const NormOptions& options) {
  const int64_t channels = Channels(x);
  const Edge scale = Uniform(channels, 0.9 * options.scale, 1.1 * options.scale);
  const Edge bias = Uniform(channels, -0.1, 0.1);
  const Edge mean = Uniform(channels, -0.1, 0.1);
  const Edge variance = Uniform(channels, 0.8, 1.25);
  return Op(OpKind::kBatchNorm, {x, scale, bias, mean, variance}, {{"epsilon", options.epsilon}});
}

Edge ZooBuilder::MaxPool(Edge x, const PoolOptions& options) {
  return Op(OpKind::kMaxPool, {x},
            {{"kernel_shape", ag::Ints(2, options.kernel)},
             {"strides", ag::Ints(2, options.stride)},
             {"pads", ag::Ints(4, options.pad)},
             {"dilations", ag::Ints{1, 1}},
             {"ceil_mode", int64_t{options.ceil ? 1 : 0}}});
}

Edge ZooBuilder::AveragePool(Edge x, const PoolOptions& options) {
  return Op(OpKind::kAveragePool, {x},
            {{"kernel_shape", ag::Ints(2, options.kernel)},
             {"strides", ag::Ints(2, options.stride)},
             {"pads", ag::Ints(4, options.pad)},
             {"dilations", ag::Ints{1, 1}},
             {"count_include_pad", int64_t{options.count_pad ? 1 : 0}}});
}

Edge ZooBuilder::GlobalAveragePool(Edge x) {
  return Op(OpKind::kReduceMean, {x}, {{"axes", ag::Ints{2, 3}}, {"keepdims", int64_t{1}}});
}

Edge ZooBuilder::Classifier(Edge x, int64_t classes, double size) {
  const Edge pooled = GlobalAveragePool(x);
  const Edge flat = Reshape(pooled, {ShapeOf(x)[0], Channels(x)});
  // Pooled features have a mean square near 0.5; 20 / fan-in then spreads logits by about 3.
  return Dense(flat, classes, 20 / (size * size));
}

Edge ZooBuilder::Dense(Edge x, int64_t outputs, double gain) {
  const int64_t inputs = ShapeOf(x).back();
  const Edge weight = Random({inputs, outputs}, std::sqrt(gain / static_cast<double>(inputs)));
  return Add(MatMul(x, weight), Uniform(outputs, -0.1, 0.1));
}

}  // namespace ag

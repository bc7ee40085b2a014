// A fluent builder for networks: layers with weights from one seed. The weights keep the size of
// activations through any depth: variance 2 / fan-in before a ReLU (He et al., ICCV 2015), 1 /
// fan-in elsewhere, and batch-norm statistics close to those of such a network. A wrong network is
// a bug and stops the process. One thread at a time.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/weights.h"

namespace ag {

class ZooBuilder {
 public:
  ZooBuilder(uint64_t seed, MemoryWeights* weights) : seed_(seed), weights_(weights) {}

  // Values.
  Edge Input(std::string name, TensorType type) {
    return graph_.Input(std::move(name), std::move(type));
  }
  Edge Floats(const Shape& shape, std::span<const float> values);
  Edge Ints(const Shape& shape, std::span<const int64_t> values);
  Edge Scalar(float value) { return Floats({}, {&value, 1}); }
  Edge Random(const Shape& shape, double deviation, double mean = 0);  // About normal.
  const Shape& ShapeOf(Edge edge) const { return graph_.type(edge).shape; }
  int64_t Channels(Edge x) const { return ShapeOf(x)[1]; }

  // Any operator.
  Edge Op(OpKind op, std::initializer_list<Edge> inputs, Attributes attributes = {});
  Edge Concat(std::span<const Edge> parts, int64_t axis = 1);
  Edge Reshape(Edge x, std::vector<int64_t> shape);
  Edge Transpose(Edge x, std::vector<int64_t> perm);
  Edge Relu(Edge x) { return Op(OpKind::kRelu, {x}); }
  Edge Add(Edge a, Edge b) { return Op(OpKind::kAdd, {a, b}); }
  Edge Mul(Edge a, Edge b) { return Op(OpKind::kMul, {a, b}); }
  Edge MatMul(Edge a, Edge b) { return Op(OpKind::kMatMul, {a, b}); }

  // Layers on [N,C,H,W].
  struct ConvOptions {
    int64_t channels = 1;  // Of the output.
    std::array<int64_t, 2> kernel = {1, 1};
    int64_t stride = 1;
    std::array<int64_t, 2> pad = {0, 0};  // Of both ends of each axis.
    int64_t group = 1;
    bool bias = false;
    double gain = 2;  // Variance of a weight times fan-in.
  };
  Edge Conv(Edge x, const ConvOptions& options);
  struct NormOptions {
    double epsilon = 1e-5;
    double scale = 1;  // The mean of the drawn scales.
  };
  Edge BatchNorm(Edge x, const NormOptions& options);
  Edge BatchNorm(Edge x) { return BatchNorm(x, {}); }
  struct PoolOptions {
    int64_t kernel = 3;
    int64_t stride = 1;
    int64_t pad = 0;
    bool ceil = false;
    bool count_pad = false;  // Average pooling counts the padding.
  };
  Edge MaxPool(Edge x, const PoolOptions& options);
  Edge AveragePool(Edge x, const PoolOptions& options);
  Edge GlobalAveragePool(Edge x);  // [N,C,1,1].
  // Global average, then a dense layer to `classes` whose outputs spread enough for a peaked
  // softmax. `size`: of the features, relative to 1 in a network that keeps their size.
  Edge Classifier(Edge x, int64_t classes, double size = 1);
  // Returns x * W + b on the last axis.
  Edge Dense(Edge x, int64_t outputs, double gain = 1);

  void Output(Edge edge, std::string name) { graph_.Output(edge, std::move(name)); }
  StatusOr<Graph> Build() const { return graph_.Build(); }

 private:
  Edge Constant(const Tensor& tensor);
  Edge Uniform(int64_t count, double low, double high);

  uint64_t seed_;
  uint64_t drawn_ = 0;  // Tensors so far; each draws from its own stream.
  MemoryWeights* weights_;
  GraphBuilder graph_;
};

}  // namespace ag

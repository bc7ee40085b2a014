// Fast kernels of operators in ONNX's own form. Each is made for one form of its operator; other
// forms run on the reference kernel (kept.cc).
#pragma once

#include <initializer_list>
#include <optional>

#include "device/cpu/kernel.h"
#include "graph/onnx/operators/operators.h"

namespace ag::cpu {

// kUnimplemented: the kernel lacks the form. With `context.constants` null, checks this only.
// LSTM, GRU, RNN and DynamicQuantizeLSTM.
StatusOr<std::unique_ptr<Kernel>> MakeRecurrent(const GroupContext& context,
                                                const KeptOperator& kept);
StatusOr<std::unique_ptr<Kernel>> MakeTransposed(const GroupContext& context,
                                                 const KeptOperator& kept);
// MatMulInteger, QLinearMatMul, QGemm, ConvInteger, QLinearConv.
StatusOr<std::unique_ptr<Kernel>> MakeIntegerProduct(const GroupContext& context,
                                                     const KeptOperator& kept);
// MatMulInteger and QLinearMatMul of two activations.
StatusOr<std::unique_ptr<Kernel>> MakeByteProduct(const GroupContext& context,
                                                  const KeptOperator& kept);
// QuantizeLinear and DequantizeLinear.
StatusOr<std::unique_ptr<Kernel>> MakeQuantize(const GroupContext& context,
                                               const KeptOperator& kept);
StatusOr<std::unique_ptr<Kernel>> MakeDynamicQuantize(const GroupContext& context,
                                                      const KeptOperator& kept);
// QLinearAdd and QLinearMul; QLinearSigmoid and QLinearLeakyRelu; QLinearConcat;
// QLinearGlobalAveragePool.
StatusOr<std::unique_ptr<Kernel>> MakeByteSum(const GroupContext& context,
                                              const KeptOperator& kept);
StatusOr<std::unique_ptr<Kernel>> MakeByteFunction(const GroupContext& context,
                                                   const KeptOperator& kept);
StatusOr<std::unique_ptr<Kernel>> MakeByteConcat(const GroupContext& context,
                                                 const KeptOperator& kept);
StatusOr<std::unique_ptr<Kernel>> MakeBytePool(const GroupContext& context,
                                               const KeptOperator& kept);
// InstanceNormalization and GroupNormalization.
StatusOr<std::unique_ptr<Kernel>> MakeNorm(const GroupContext& context, const KeptOperator& kept);
// Conv, MaxPool and AveragePool over three axes.
StatusOr<std::unique_ptr<Kernel>> MakeKeptConvolution(const GroupContext& context,
                                                      const KeptOperator& kept);
StatusOr<std::unique_ptr<Kernel>> MakeKeptWinograd(const GroupContext& context,
                                                   const KeptOperator& kept);
StatusOr<std::unique_ptr<Kernel>> MakeKeptPool(const GroupContext& context,
                                               const KeptOperator& kept);
StatusOr<std::unique_ptr<Kernel>> MakeTransposedTiles(const GroupContext& context,
                                                      const KeptOperator& kept);

// LRN.
StatusOr<std::unique_ptr<Kernel>> MakeLrn(const GroupContext& context, const KeptOperator& kept);
// Along one axis: TopK, ArgMax and ArgMin, CumSum, LpNormalization.
StatusOr<std::unique_ptr<Kernel>> MakeTopK(const GroupContext& context, const KeptOperator& kept);
StatusOr<std::unique_ptr<Kernel>> MakeArg(const GroupContext& context, const KeptOperator& kept);
StatusOr<std::unique_ptr<Kernel>> MakeCumSum(const GroupContext& context, const KeptOperator& kept);
StatusOr<std::unique_ptr<Kernel>> MakeLpNorm(const GroupContext& context, const KeptOperator& kept);
// By indices.
StatusOr<std::unique_ptr<Kernel>> MakeGatherElements(const GroupContext& context,
                                                     const KeptOperator& kept);
StatusOr<std::unique_ptr<Kernel>> MakeGatherNd(const GroupContext& context,
                                               const KeptOperator& kept);
// ScatterElements and its former name Scatter.
StatusOr<std::unique_ptr<Kernel>> MakeScatterElements(const GroupContext& context,
                                                      const KeptOperator& kept);
StatusOr<std::unique_ptr<Kernel>> MakeScatterNd(const GroupContext& context,
                                                const KeptOperator& kept);
StatusOr<std::unique_ptr<Kernel>> MakeTrilu(const GroupContext& context, const KeptOperator& kept);
StatusOr<std::unique_ptr<Kernel>> MakeGridSample(const GroupContext& context,
                                                 const KeptOperator& kept);

// Returns what a kernel says of a node whose form it lacks.
Status RefuseForm(const KeptOperator& kept);

inline bool IsByte(DType dtype) { return dtype == DType::kUInt8 || dtype == DType::kInt8; }

// The operands of a node by their place in ONNX's form, where some may be omitted.
class KeptOperands {
 public:
  KeptOperands(const GroupContext& context, const KeptOperator& kept);

  bool Has(size_t i) const { return i < edges_.size() && edges_[i].node >= 0; }
  Edge At(size_t i) const { return edges_[i]; }
  const TensorType& Type(size_t i) const { return context_.graph.type(edges_[i]); }
  const Shape& ShapeOf(size_t i) const { return Type(i).shape; }
  bool IsConstant(size_t i) const { return Has(i) && context_.InputOf(edges_[i]) < 0; }
  // True when every operand and result is f32 in plain layout; operands `but` may have other types.
  bool IsPlainFloat(std::initializer_list<size_t> but = {}) const;
  // True when the node omits result `i` of ONNX's form, or the graph says that it has this shape.
  bool ResultIs(size_t i, const Shape& shape) const;
  // Returns the port of the group for the node's result `i` in ONNX's form; -1: nobody reads it.
  int OutputPort(size_t i) const;

 private:
  const GroupContext& context_;
  std::vector<Edge> edges_;
  std::vector<int> results_;  // By place in ONNX's form: the node's output; -1: omitted.
};

// Returns a kernel of class K after its Prepare(context, kept).
template <class K>
StatusOr<std::unique_ptr<Kernel>> PreparedKept(const GroupContext& context,
                                               const KeptOperator& kept) {
  auto kernel = std::make_unique<K>();
  AG_TRY(kernel->Prepare(context, kept));
  return kernel;
}

// An operand that is a port of the group or a constant.
class KeptOperand {
 public:
  KeptOperand() = default;
  // `context.constants` null: a constant has no value yet.
  static StatusOr<KeptOperand> Of(const GroupContext& context, const KeptOperands& operands,
                                  size_t i);

  const TensorType& type() const { return type_; }
  bool is_constant() const { return port_ < 0; }
  const Tensor& held() const { return held_; }  // REQUIRES: is_constant().
  const void* At(Inputs inputs) const { return port_ >= 0 ? inputs[port_] : held_.bytes().data(); }

 private:
  TensorType type_;
  int port_ = -1;
  Tensor held_;
};

// Sizes of a window over the spatial axes of X with explicit padding.
struct KeptWindow {
  Ints kernel, strides, dilations;  // Dilations begin at 1.
  Ints begin, end;                  // Padding; what a pool's ceil_mode adds is not in `end`.
};
// kUnimplemented: an attribute or the size of a result does not fit. `kernel`: that of the weights;
// empty: the attribute kernel_shape.
StatusOr<KeptWindow> KeptWindowOf(const KeptOperator& kept, const Shape& x, const Shape& y,
                                  const Ints& kernel);

// A convolution over three axes of f32 in plain layout by constants.
struct KeptConvolutionForm {
  Shape x, w, y;
  int64_t groups = 1;
  KeptWindow window;
  Edge weights;
  std::optional<Edge> bias;
};
// kUnimplemented: it is another one, or its sizes do not fit or are zero.
StatusOr<KeptConvolutionForm> KeptConvolutionFormOf(const GroupContext& context,
                                                    const KeptOperator& kept);

}  // namespace ag::cpu

// One call of a kernel: the node's attributes, its operands, and the results that the kernel makes.
// One thread at a time.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "graph/onnx/node_attributes.h"
#include "graph/onnx/operators/element.h"
#include "graph/onnx/wire.h"
#include "graph/tensor.h"

namespace ag::onnx_operators {

class OperatorCall : public NodeAttributes {
 public:
  // An operand that the node omits is null. `opset` is the version of the node's domain. The node
  // and the operands must outlive the call.
  OperatorCall(const OnnxNode& node, int64_t opset, std::vector<const Tensor*> inputs,
               int64_t bytes_max, int threads);

  int64_t opset() const { return opset_; }
  int64_t bytes_max() const { return bytes_max_; }  // Of each result.
  int threads() const { return threads_; }
  // Whether of the results only their types count.
  bool types_only() const { return types_only_; }
  void set_types_only(bool types_only) { types_only_ = types_only; }

  // Operands. Has is false for an omitted one.
  size_t size() const { return inputs_.size(); }
  bool Has(size_t i) const { return i < inputs_.size() && inputs_[i] != nullptr; }
  const Tensor& In(size_t i) const { return *inputs_[i]; }
  const TensorType& Type(size_t i) const { return inputs_[i]->type(); }
  DType TypeOf(size_t i) const { return Type(i).dtype; }
  const Shape& ShapeOf(size_t i) const { return Type(i).shape; }
  int64_t Rank(size_t i) const { return static_cast<int64_t>(ShapeOf(i).size()); }
  // REQUIRES: T is the C++ type of the operand's elements.
  template <class T>
  const T* Values(size_t i) const {
    return reinterpret_cast<const T*>(inputs_[i]->bytes().data());
  }
  // kInvalidArgument: one of the first `low` operands is missing, or there are more than `high`.
  Status CheckInputs(size_t low, size_t high) const;
  // kInvalidArgument: the operand has another element type, or another rank.
  Status CheckType(size_t i, DType dtype) const;
  Status CheckRank(size_t i, int64_t rank) const;
  // kInvalidArgument: the operand is there with another shape.
  Status CheckShape(size_t i, const Shape& expected) const;
  // Returns the integers (i64 or i32) of operand `i`, or its single integer.
  StatusOr<Ints> IntsAt(size_t i) const;
  StatusOr<int64_t> IntAt(size_t i) const;
  // Returns any numeric element of operand `i` as a double.
  double NumberAt(size_t i, int64_t at = 0) const { return inputs_[i]->At(at); }
  // Returns the attribute "axis", resolved for operand 0.
  StatusOr<int64_t> Axis(int64_t otherwise);
  // Returns the element type that the attribute "dtype" names.
  StatusOr<DType> ResultType(DType otherwise);

  // Results. Wants is false for an omitted one, which the kernel need not make.
  size_t outputs() const { return node().outputs.size(); }
  bool Wants(size_t i) const { return i < outputs() && !node().outputs[i].empty(); }
  // Makes result `i`, zeros at first, and returns its elements. kResourceExhausted: it is larger
  // than the limit on one tensor.
  template <class T>
  StatusOr<T*> Make(size_t i, Shape shape) {
    AG_LET(char* bytes, MakeBytes(i, {DTypeOf<T>(), std::move(shape)}));
    return reinterpret_cast<T*>(bytes);
  }
  StatusOr<char*> MakeBytes(size_t i, TensorType type);
  void Give(size_t i, Tensor tensor);  // Makes result `i` of a tensor that is there.
  std::vector<Tensor>& results() { return results_; }

 private:
  int64_t opset_ = 0;
  int64_t bytes_max_ = 0;
  int threads_ = 1;
  bool types_only_ = false;
  std::vector<const Tensor*> inputs_;
  std::vector<Tensor> results_;
};

// A kernel computes the wanted results of a call. kUnimplemented: it lacks the form;
// kInvalidArgument: operands or attributes do not fit; kOutOfRange: a value does not, such as an
// index.
using OperatorKernel = Status (*)(OperatorCall& call);

// What the sizes of the results follow from besides the shapes of the operands: nothing, all values
// (NonZero), or the values of some operands, a bit each (Reshape's shape, TopK's k).
enum class ResultSizes : uint8_t { kFromShapes = 0, kFromValues = 0xFF };
constexpr ResultSizes FromOperands(std::initializer_list<int> operands) {
  unsigned bits = 0;
  for (const int i : operands) bits |= 1U << i;
  return static_cast<ResultSizes>(bits);
}

struct OperatorRow {
  std::string_view name;  // ONNX's; of another domain than the default one "domain.Name".
  OperatorKernel run;
  ResultSizes sizes = ResultSizes::kFromShapes;
  bool takes_strings = false;  // Of others the ranks of strings run, where they only move elements.
};

// The kernels by family. Each file lists its own.
std::span<const OperatorRow> IndexOperators();   // TopK, Scatter*, Gather*, NonZero, OneHot, ...
std::span<const OperatorRow> WindowOperators();  // ConvTranspose, n-D pools, MaxUnpool, Col2Im...
std::span<const OperatorRow> RecurrentOperators();  // LSTM, GRU, RNN.
std::span<const OperatorRow> ReduceOperators();  // ReduceProd, ArgMax, CumSum, integer minima, ...
std::span<const OperatorRow> NormOperators();  // InstanceNormalization, LRN, GroupNormalization...
std::span<const OperatorRow> ScalarOperators();  // Acos, BitShift, ... and forms the IR lacks.
std::span<const OperatorRow> QuantOperators();   // QuantizeLinear, QLinearConv, MatMulInteger, ...
std::span<const OperatorRow> SignalOperators();  // DFT, STFT, windows, MelWeightMatrix.
std::span<const OperatorRow> AttentionOperators();  // Attention, RotaryEmbedding.
std::span<const OperatorRow> RandomOperators();     // RandomNormal, ..., with a seed.
std::span<const OperatorRow> StatefulOperators();   // LinearAttention, CausalConvWithState.
std::span<const OperatorRow>
MicrosoftOperators();  // Of domain com.microsoft: fused ones, Gelu, ...
std::span<const OperatorRow> MicrosoftAttentionOperators();
std::span<const OperatorRow> MicrosoftQuantOperators();
std::span<const OperatorRow> ProductOperators();   // Einsum, Det, NonMaxSuppression.
std::span<const OperatorRow> SampleOperators();    // GridSample, AffineGrid, DeformConv.
std::span<const OperatorRow> RegionOperators();    // RoiAlign, MaxRoiPool.
std::span<const OperatorRow> ResampleOperators();  // Resize, Upsample.
std::span<const OperatorRow> LossOperators();      // NegativeLogLikelihoodLoss, ...
std::span<const OperatorRow> TextOperators();      // StringNormalizer, TfIdfVectorizer, ...

}  // namespace ag::onnx_operators

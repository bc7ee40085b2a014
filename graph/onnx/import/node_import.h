// The view of one node for the importer of its operator. An unread attribute, and a form that the
// importer refuses with kUnimplemented, make the node opaque; any other error is an error of the
// model. One thread at a time.
#pragma once

#include <initializer_list>
#include <limits>
#include <string>
#include <vector>

#include "graph/onnx/import/importer.h"
#include "graph/onnx/node_attributes.h"

namespace ag {

class NodeImport : public NodeAttributes {
 public:
  NodeImport(const OnnxNode& node, int64_t opset, Importer& importer);

  int64_t opset() const { return opset_; }
  Importer& importer() { return importer_; }
  const Importer& importer() const { return importer_; }

  // Operands. Has is false for an omitted optional one.
  size_t size() const { return inputs_.size(); }
  bool Has(size_t i) const { return i < inputs_.size() && inputs_[i] != kNoValue; }
  ValueId In(size_t i) const { return inputs_[i]; }
  const std::vector<ValueId>& inputs() const { return inputs_; }
  Status CheckInputs(size_t low, size_t high) const;  // The first `low` are required.
  bool IsTensor(ValueId value) const { return importer_.kind(value) == OnnxKind::kTensor; }
  const TensorType& Type(ValueId value) const { return importer_.type(value); }
  const Shape& ShapeOf(ValueId value) const { return importer_.type(value).shape; }
  int64_t Rank(ValueId value) const { return static_cast<int64_t>(ShapeOf(value).size()); }
  const Tensor* Known(ValueId value) const { return importer_.known(value); }
  // Returns the integers of operand `i`. kUnimplemented: they are unknown before the model runs.
  // kInvalidArgument: it is missing or of another type.
  StatusOr<Ints> KnownInts(size_t i) const;
  StatusOr<int64_t> KnownInt(size_t i) const;                // The same for one.
  StatusOr<std::vector<float>> KnownFloats(size_t i) const;  // The same for f32.
  // The same for one number or bool of any type. kUnimplemented: no double holds it, too.
  StatusOr<double> KnownScalar(size_t i) const;

  // New values.
  StatusOr<ValueId> Emit(OpKind op, std::initializer_list<ValueId> inputs,
                         Attributes attributes = {});
  StatusOr<std::vector<ValueId>> EmitAll(OpKind op, std::span<const ValueId> inputs,
                                         Attributes attributes);
  StatusOr<ValueId> Constant(const Tensor& tensor) { return importer_.AddTensor(tensor); }
  // Returns a sequence. kInvalidArgument: an item is no tensor, or their element types differ.
  StatusOr<ValueId> Sequence(std::vector<ValueId> items);
  StatusOr<ValueId> Scalar(DType dtype, double value);
  StatusOr<ValueId> Filled(const TensorType& type, double value);
  StatusOr<ValueId> Reshape(ValueId value, std::span<const int64_t> shape);

  // Outputs. Wants is false for an omitted one.
  bool Wants(size_t i) const { return i < node().outputs.size() && !node().outputs[i].empty(); }
  Status OnlyFirstOutput() const;       // kUnimplemented: the node wants another one.
  Status Out(StatusOr<ValueId> value);  // Gives the first output, or returns the error.
  void Out(size_t i, ValueId value);
  Status OutAll(const std::vector<ValueId>& values);
  const std::vector<ValueId>& results() const { return results_; }

 private:
  StatusOr<const Tensor*> KnownTensor(size_t i) const;

  const int64_t opset_;
  Importer& importer_;
  std::vector<ValueId> inputs_;
  std::vector<ValueId> results_;
};

using NodeImporter = Status (*)(NodeImport& node);

// The special importers by ONNX name, all in namespace ag::importers.
struct NodeImporterRow {
  std::string_view name;  // Of another domain than the default one "domain.Name".
  NodeImporter run;
  size_t inputs_min = 0, inputs_max = kAnyInputs;  // Checked before `run`.
  bool takes_any_kind = false;                     // Also sequences and optionals.
  static constexpr size_t kAnyInputs = std::numeric_limits<size_t>::max();
};
std::span<const NodeImporterRow> ShapeImporters();       // Reshape, Slice, Split, Pad, ...
std::span<const NodeImporterRow> ArithmeticImporters();  // Gemm, Sum, Clip, Pow, ...
std::span<const NodeImporterRow> WindowImporters();      // Conv and pooling.
std::span<const NodeImporterRow> EinsumImporters();
std::span<const NodeImporterRow> ResizeImporters();
std::span<const NodeImporterRow> NormImporters();       // Softmax, norms, reductions.
std::span<const NodeImporterRow> ConstantImporters();   // Constant, Shape, Range, ...
std::span<const NodeImporterRow> ControlImporters();    // If, Loop, Scan, SequenceMap.
std::span<const NodeImporterRow> SequenceImporters();   // Sequence*, Optional*, SplitToSequence.
std::span<const NodeImporterRow> MicrosoftImporters();  // Fused operators of com.microsoft.

}  // namespace ag

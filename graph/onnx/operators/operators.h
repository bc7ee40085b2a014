// Kernels of ONNX operators that the IR keeps in ONNX's own form (opaque nodes). They define these
// operators as the reference kernels of graph/reference define the others: plain code, arithmetic
// in double precision, results rounded once. Thread-safe.
#pragma once

#include <span>
#include <vector>

#include "graph/graph.h"
#include "graph/onnx/wire.h"
#include "graph/tensor.h"

namespace ag {

// Whether a kernel exists for the operator of this node.
bool HasOperator(const OnnxNode& node);
// Why there is none for an operator of ONNX's default domain that is left out on purpose; "" for
// others.
std::string_view WhyLeftOut(const OnnxNode& node);
// Whether the sizes of its results depend on values of operands that are not known, so that no type
// can be given before it runs. `known`: for each of node.inputs; true for an omitted one. REQUIRES:
// HasOperator(node).
bool SizesComeFromValues(const OnnxNode& node, const std::vector<bool>& known);

struct OperatorRun {
  const OnnxNode& node;
  int64_t opset = 0;                     // The version of the node's domain.
  std::vector<const Tensor*> inputs;     // One for each of node.inputs; null where it is omitted.
  int64_t bytes_max = int64_t{4} << 30;  // For each result.
  int threads = 1;
  bool types_only = false;  // Of the results only their types count: work may be left out.
};

// Returns the results, one for each of node.outputs; an empty tensor where that is omitted.
// kUnimplemented: no kernel, or not this form of the operator. kInvalidArgument: operands or
// attributes do not fit. kOutOfRange: a value is outside its range, such as an index.
// kResourceExhausted: a result is larger than bytes_max.
StatusOr<std::vector<Tensor>> RunOperator(const OperatorRun& run);

// Returns the name of the operator that an opaque node keeps: "Loop", "com.x.Rotate"; "opaque" for
// a node whose bytes are no ONNX node.
std::string OperatorName(const Node& node);

// An opaque node of a graph, read once and run any number of times.
class KeptOperator {
 public:
  // kUnimplemented, with the operator's name: no kernel here runs it.
  static StatusOr<KeptOperator> Of(const Node& node);

  // Returns the node's outputs. `inputs` are its operands in the graph, without omitted ones.
  // Errors as of RunOperator; kInvalidArgument: the results have other types than the graph says.
  StatusOr<std::vector<Tensor>> Run(std::span<const Tensor> inputs, int threads = 1) const;

  const OnnxNode& node() const { return node_; }  // Without its bytes.
  int64_t opset() const { return opset_; }        // The version of the node's domain.

 private:
  std::string bytes_;  // What `node_` points into.
  OnnxNode node_;
  int64_t opset_ = 0;
  std::vector<TensorType> types_;
};

}  // namespace ag

// ONNX's messages as plain values, so that only the *_wire.cc files of this folder see the
// generated headers. Tensors point into the model's bytes where they can: weights are never copied
// through protobuf. Nothing here trusts the bytes: every length is checked, no path is ever opened.
// Values are plain data.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/onnx/onnx.h"
#include "graph/tensor.h"

namespace ag {

struct OnnxTensor {
  std::string name;
  int32_t data_type = 0;  // TensorProto.DataType; DTypeFromOnnx translates.
  std::vector<int64_t> dims;
  std::string_view bytes;  // Elements, little-endian: in the model's bytes or in `owned`.
  std::shared_ptr<const std::string> owned;
  std::optional<std::string> external;  // The location that external data points to.
};

// The numbers of AttributeProto.AttributeType.
enum class OnnxAttributeType : int32_t {
  kNone = 0,
  kFloat = 1,
  kInt = 2,
  kString = 3,
  kTensor = 4,
  kGraph = 5,
  kFloats = 6,
  kInts = 7,
  kStrings = 8,
};

struct OnnxAttribute {
  std::string name;
  OnnxAttributeType type = OnnxAttributeType::kNone;
  int64_t i = 0;
  float f = 0;
  std::string s;
  std::vector<int64_t> ints;
  std::vector<float> floats;
  std::optional<OnnxTensor> tensor;
};

struct OnnxNode {
  std::string op_type, domain, name;
  std::vector<std::string> inputs, outputs;  // "" where an optional one is left out.
  std::vector<OnnxAttribute> attributes;
  std::string_view proto;             // The node's own bytes, when it was read from a model.
  int subgraph_depth = 0;             // 0: it carries no subgraph.
  std::vector<std::string> captures;  // What its subgraphs read from outside by name; sorted.
};

struct OnnxDim {
  int64_t size = -1;  // -1: not known.
  std::string name;   // The symbolic name, if any.
};

struct OnnxValueInfo {
  std::string name;
  int32_t data_type = 0;
  bool is_tensor = true;
  bool has_shape = false;
  std::vector<OnnxDim> dims;
};

struct OnnxModel {
  OnnxOrigin origin;  // Metadata still holds our own plans.
  std::vector<OnnxNode> nodes;
  std::vector<OnnxTensor> initializers;
  std::vector<OnnxValueInfo> inputs, outputs, value_infos;
  int functions = 0, sparse_initializers = 0, training_infos = 0;
};

// Reads a model. `bytes` must outlive the result. kInvalidArgument: not a protobuf, truncated,
// empty, an unreadable tensor. kResourceExhausted: more than `nodes_max` nodes.
StatusOr<OnnxModel> ParseModel(std::string_view bytes, int64_t nodes_max);

// Reads one serialized NodeProto or TensorProto. `bytes` must outlive the result.
StatusOr<OnnxNode> ParseNode(std::string_view bytes);
StatusOr<OnnxTensor> ParseTensor(std::string_view bytes);

// Writes a model; equal models give equal bytes. Of a node with `proto`, everything but the names
// is taken from there. kResourceExhausted: over protobuf's 2 GiB.
StatusOr<std::string> SerializeModel(const OnnxModel& model);
Status SerializeModel(const OnnxModel& model, const ByteSink& sink);  // In pieces.

// The bytes of `node` without what differs between equal nodes: its name, its comment, and the
// names of its operands ("x" stands for each that is present, "" for each left out). `name` stays
// when given: it tells equal nodes apart that are not the same value.
StatusOr<std::string> AnonymousNode(const OnnxNode& node, const std::string& name = "");

// The types of the outputs of `node` (none for those left out) by ONNX's own inference.
// `values[i]`, where present, is the known value of input i. kUnimplemented: it does not know them
// all. kInvalidArgument: it says that the node is wrong.
struct OperandInfo {
  TensorType type;
  const Tensor* known = nullptr;
};
StatusOr<std::vector<TensorType>> InferOutputs(
    const OnnxNode& node, std::span<const OperandInfo> operands,
    const std::vector<std::pair<std::string, int64_t>>& opsets);

// kUnimplemented: an element type that the IR does not have.
StatusOr<DType> DTypeFromOnnx(int32_t data_type);
int32_t DTypeToOnnx(DType dtype);

// The tensor, its type and size checked against its bytes. A view: `tensor`'s bytes must outlive
// it, or be owned. Errors name the tensor.
StatusOr<Tensor> ToTensor(const OnnxTensor& tensor);
OnnxTensor FromTensor(std::string name, const Tensor& tensor);

// A name from a model as a message may show it: in quotes, printable, not endless.
std::string Quoted(std::string_view name);

}  // namespace ag

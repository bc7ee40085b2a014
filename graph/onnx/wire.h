// ONNX's messages as plain values: only the *_wire.cc files of this folder include the generated
// headers. Tensors point into the model's bytes where possible, so weights are never copied through
// protobuf. The bytes are never trusted: every length is checked and no path is opened. Plain data
// and pure functions.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/onnx/byte_sink.h"
#include "graph/onnx/model_value.h"
#include "graph/onnx/origin.h"
#include "graph/tensor.h"

namespace ag {

// The place of a tensor's bytes outside of the model, as the model says it.
struct OnnxExternal {
  std::string location, offset, length;  // "": not said.
};

struct OnnxTensor {
  std::string name;
  int32_t data_type = 0;  // TensorProto.DataType; DTypeFromOnnx translates.
  std::vector<int64_t> dims;
  // Elements as the file has them: little-endian, two of 4 bits in a byte; strings as in Tensor. In
  // the model's bytes or in `owned`.
  std::string_view bytes;
  std::shared_ptr<const std::string> owned;
  std::optional<OnnxExternal> external;  // `bytes` are then no elements.
};

// The elements of a tensor that are not zero. `values` carry its name.
struct OnnxSparseTensor {
  OnnxTensor values;
  std::optional<OnnxTensor> indices;
  std::vector<int64_t> dims;  // Of the whole tensor.
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
  std::vector<std::string> strings;
  std::optional<OnnxTensor> tensor;
  std::optional<OnnxSparseTensor> sparse;
};

struct OnnxNode {
  std::string op_type, domain, name;
  std::vector<std::string> inputs, outputs;  // "": an omitted optional one.
  std::vector<OnnxAttribute> attributes;
  std::string_view proto;             // The node's own bytes, if it comes from a model.
  std::string notes;                  // Fields of NodeProto that are written beside the others.
  int subgraph_depth = 0;             // 0: the node has no subgraph.
  std::vector<std::string> captures;  // Outer names that its subgraphs read; sorted.
};

// A model-local function; `proto` is its own bytes.
struct OnnxFunction {
  std::string name, domain;
  std::vector<std::string> inputs, outputs;
  std::vector<std::pair<std::string, int64_t>> opsets;  // Of its nodes.
  std::string_view proto;
};

struct OnnxDim {
  int64_t size = -1;  // -1: unknown.
  std::string name;   // The symbolic name, if any.
};

struct OnnxValueInfo {
  std::string name;
  OnnxKind kind = OnnxKind::kTensor;
  int32_t data_type = 0;  // Of the tensors.
  bool has_shape = false;
  std::vector<OnnxDim> dims;
  // The whole ValueInfoProto, as it was read. Written, the other members replace a tensor's type;
  // without an element type it stands as it is.
  std::string proto;
};

struct OnnxModel {
  OnnxOrigin origin;  // Its metadata still has our own plans.
  std::vector<OnnxNode> nodes;
  std::vector<OnnxTensor> initializers;
  std::vector<OnnxSparseTensor> sparse_initializers;  // Only read, never written.
  std::vector<OnnxValueInfo> inputs, outputs, value_infos;
  std::vector<QuantAnnotation> annotations;
  std::vector<OnnxFunction> functions;  // Written as their `proto`.
  int training_infos = 0;
};

// Returns the parsed model, which points into `bytes`. kInvalidArgument: not a protobuf, truncated,
// empty, or an unreadable tensor. kResourceExhausted: more than `nodes_max` nodes.
StatusOr<OnnxModel> ParseModel(std::string_view bytes, int64_t nodes_max);

// Returns one parsed NodeProto or TensorProto, which points into `bytes`.
StatusOr<OnnxNode> ParseNode(std::string_view bytes);
StatusOr<OnnxTensor> ParseTensor(std::string_view bytes);
StatusOr<OnnxFunction> ParseFunction(std::string_view bytes);  // The same for a FunctionProto.
StatusOr<OnnxValueInfo> ParseValueInfo(std::string_view bytes);
StatusOr<ValueForm> ParseForm(std::string_view value_info);

// Adds all names of tensors and nodes that occur in the node, its subgraphs included, to `names`,
// and its operator and those of its subgraphs to `operators` where they are of the default domain.
Status NamesIn(const OnnxNode& node, std::set<std::string>& names,
               std::set<std::string>& operators);

// Returns the parsed graph that is attribute `name` of a node, without an origin. It points into
// the node's bytes. kInvalidArgument: the node has no such graph.
StatusOr<OnnxModel> ParseSubgraph(const OnnxNode& node, std::string_view name, int64_t nodes_max);

// The nodes of a function for one call of it: with the call's attributes, and "" for the operands
// that the call omits. The nodes point into `bytes`.
struct FunctionBody {
  std::deque<std::string> bytes;
  std::vector<OnnxNode> nodes;
};
StatusOr<FunctionBody> BodyOf(const OnnxFunction& function, const OnnxNode& call);

// Returns a serialized model; equal models give equal bytes. A node with `proto` keeps all of it
// except the names. With its weights a model may exceed the 2 GiB that protobuf's readers take:
// ParseModel reads it, others after SplitModel (graph/onnx/files). kResourceExhausted: it exceeds
// them without its weights.
StatusOr<std::string> SerializeModel(const OnnxModel& model);
Status SerializeModel(const OnnxModel& model, const ByteSink& sink);  // In pieces.

// Returns the bytes of `node` without the parts in which equal nodes differ: its name, its comment,
// and the names of its operands ("x" for a present one, "" for an omitted one). `name`, when given,
// stays: it keeps equal nodes apart that have different values.
StatusOr<std::string> AnonymousNode(const OnnxNode& node, const std::string& name = "");

// Returns the types of the outputs of `node`, without omitted ones, by ONNX's own inference.
// kUnimplemented: it cannot infer all of them, or the opset brought a form that it does not know.
// kInvalidArgument: it finds the node wrong.
struct OperandInfo {
  TensorType type;
  const Tensor* known = nullptr;  // The value, when it is known.
};
StatusOr<std::vector<TensorType>> InferOutputs(
    const OnnxNode& node, std::span<const OperandInfo> operands,
    const std::vector<std::pair<std::string, int64_t>>& opsets);

// Returns the names of the default domain's operators that the linked library knows, sorted.
const std::vector<std::string>& StandardOperators();
// Whether the node's operator is one of them.
bool IsStandard(const OnnxNode& node);
// Returns "; did you mean 'Conv'?" for a name in the standard domain that is none of them, or "".
std::string SimilarOperator(const OnnxNode& node);

// Whether a node of the default domain means the same in a later opset, as far as the linked
// library knows: true for the same opset.
bool MeansTheSame(const std::string& op_type, int64_t opset, int64_t later);

// Returns our element type. kUnimplemented: the IR does not have it.
StatusOr<DType> DTypeFromOnnx(int32_t data_type);
int32_t DTypeToOnnx(DType dtype);

// Returns a tensor that may view the tensor's bytes, which must outlive it unless `tensor` owns
// them.
// kInvalidArgument, with the tensor's name: the bytes do not fit its type and shape.
StatusOr<Tensor> ToTensor(const OnnxTensor& tensor);
OnnxTensor FromTensor(std::string name, const Tensor& tensor);

// Returns a name from a model for use in a message: in quotes, printable, shortened.
std::string Quoted(std::string_view name);

}  // namespace ag

#include "graph/reference/evaluate.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "graph/onnx/operators/operators.h"
#include "graph/reference/reference.h"
#include "graph/reference/walk.h"

namespace ag {

namespace {

Status CheckInputs(const Graph& graph, const std::vector<Tensor>& inputs) {
  if (inputs.empty()) return OkStatus();  // Fine when nothing depends on one, else found later.
  if (inputs.size() != graph.inputs().size()) {
    return Err(StatusCode::kInvalidArgument, "expected {} inputs, got {}", graph.inputs().size(),
               inputs.size());
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorType& expected = graph.node(graph.inputs()[i]).outputs[0];
    if (inputs[i].type() == expected) continue;
    return Err(StatusCode::kInvalidArgument, "input '{}': expected {}, got {}", graph.input_name(i),
               expected.ToString(), inputs[i].type().ToString());
  }
  return OkStatus();
}

StatusOr<Tensor> ConstantTensor(const Node& node, const WeightSource& weights) {
  const TensorType& type = node.outputs[0];
  const std::string& bytes = node.constant->inline_bytes;
  if (!bytes.empty()) return Tensor::FromBytes(type, bytes);
  return ConstantOf(weights, node.constant->digest, type);
}

// Calls visit(element) with a zero of the C++ type of `dtype`. REQUIRES: an integer type or bool.
template <class Visit>
void WithInteger(DType dtype, Visit visit) {
  switch (dtype) {
    case DType::kInt64:
      return visit(int64_t{});
    case DType::kInt32:
      return visit(int32_t{});
    case DType::kInt16:
      return visit(int16_t{});
    case DType::kInt8:
      return visit(int8_t{});
    case DType::kUInt64:
      return visit(uint64_t{});
    case DType::kUInt32:
      return visit(uint32_t{});
    case DType::kUInt16:
      return visit(uint16_t{});
    case DType::kUInt8:
    case DType::kBool:
      return visit(uint8_t{});
    default:
      AG_CHECK(false);
  }
}

bool HoldsWholes(DType dtype) { return IsInteger(dtype) || dtype == DType::kBool; }

Array<Whole> WholesOf(const Tensor& tensor) {
  Array<Whole> array(tensor.type().shape);
  const bool is_bool = tensor.type().dtype == DType::kBool;
  WithInteger(tensor.type().dtype, [&](auto element) {
    const char* in = tensor.bytes().data();
    for (Whole& value : array.values) {
      std::memcpy(&element, in, sizeof element);  // Mapped blobs may have any address.
      in += sizeof element;
      value = Whole(is_bool ? element != 0 : element);
    }
  });
  return array;
}

// Keeps the last bits of each value, as integers wrap.
Tensor TensorOf(const TensorType& type, std::span<const Whole> values) {
  Tensor tensor = Tensor::Zeros(type);
  WithInteger(type.dtype, [&](auto element) {
    using Element = decltype(element);
    const std::span<Element> out = tensor.Mutable<Element>();
    for (size_t i = 0; i < values.size(); ++i) out[i] = static_cast<Element>(values[i].value);
  });
  return tensor;
}

// Runs one kernel on numbers of type T.
template <class T, class Read, class Write>
StatusOr<std::vector<Tensor>> RunKernel(Kernel<T> kernel, const Node& node,
                                        const internal::Operands<Tensor>& operands, int threads,
                                        Read read, Write write) {
  Arrays<T> arrays;
  for (const Tensor* tensor : operands.values) arrays.push_back(read(*tensor));
  absl::InlinedVector<const Array<T>*, 4> inputs;
  for (const Array<T>& array : arrays) inputs.push_back(&array);
  AG_LET(const Arrays<T> outputs,
         kernel({.node = node, .types = operands.types, .inputs = inputs, .threads = threads}));
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < outputs.size(); ++i) {
    tensors.push_back(write(node.outputs[i], outputs[i].values));
  }
  return tensors;
}

// Returns the kernel that computes the node in integers, or null: it has other types as well, or
// none.
Kernel<Whole> IntegerKernelOf(const Node& node, std::span<const TensorType* const> types) {
  const bool all =
      std::ranges::all_of(types, [](const TensorType* t) { return HoldsWholes(t->dtype); }) &&
      std::ranges::all_of(node.outputs, [](const TensorType& t) { return HoldsWholes(t.dtype); });
  return all ? WholeKernelOf(node.op) : nullptr;
}

// Whether the node makes f32 or narrower numbers of integers that doubles do not hold: a rounding
// on the way would be one too many.
bool RoundsTwice(const Node& node, DType from) {
  return node.op == OpKind::kCast && (from == DType::kInt64 || from == DType::kUInt64) &&
         IsFloat(node.outputs[0].dtype) && node.outputs[0].dtype != DType::kFloat64;
}

// Returns each integer as the nearest float.
Array<double> FloatsOf(const Tensor& tensor) {
  const Array<Whole> wholes = WholesOf(tensor);
  Array<double> array(wholes.shape);
  for (size_t i = 0; i < array.values.size(); ++i) {
    array.values[i] = static_cast<float>(wholes.values[i].value);
  }
  return array;
}

// Transposes elements of the size of `Bits`, which keep their bytes.
template <class Bits>
Tensor Transposed(const Node& node, const Tensor& x) {
  const TensorType& type = node.outputs[0];
  const Shape own = StridesOf(x.type().shape);
  Shape outer, strides;
  for (const int64_t axis : node.IntList("perm")) {
    outer.push_back(x.type().shape[static_cast<size_t>(axis)]);
    strides.push_back(own[static_cast<size_t>(axis)]);
  }
  const int64_t row = outer.back(), stride = strides.back();
  outer.pop_back();
  strides.pop_back();
  Tensor result = Tensor::Zeros(type);
  char* to = result.Mutable<char>().data();
  Walker<1> walker(outer, {strides});
  for (int64_t left = type.NumElements(); left > 0; left -= row, walker.Next()) {
    const char* from = x.bytes().data() + walker.offset(0) * static_cast<int64_t>(sizeof(Bits));
    for (int64_t i = 0; i < row; ++i, to += sizeof(Bits)) {
      std::memcpy(to, from + i * stride * static_cast<int64_t>(sizeof(Bits)), sizeof(Bits));
    }
  }
  return result;
}

// Returns a transpose of weights, of which no array is made: fresh pages of doubles, and of bits as
// well, take longer than the transpose (the kernel on bits gained nothing for a classifier).
// Nothing: another operator or type.
std::optional<Tensor> MovedFloats(const Node& node, const internal::Operands<Tensor>& operands) {
  if (node.op != OpKind::kTranspose || node.outputs[0].shape.empty()) return std::nullopt;
  const Tensor& x = *operands.values[0];
  if (!IsFloat(x.type().dtype)) return std::nullopt;
  switch (SizeOf(x.type().dtype)) {
    case 2:
      return Transposed<uint16_t>(node, x);
    case 4:
      return Transposed<uint32_t>(node, x);
    case 8:
      return Transposed<uint64_t>(node, x);
    default:
      return std::nullopt;
  }
}

StatusOr<std::vector<Tensor>> RunNode(const Node& node, const internal::Operands<Tensor>& operands,
                                      int threads) {
  if (Has(node.op, kBarrier)) {
    AG_LET(const KeptOperator kept, KeptOperator::Of(node));
    std::vector<Tensor> inputs;
    for (const Tensor* tensor : operands.values) inputs.push_back(*tensor);
    return kept.Run(inputs, threads);
  }
  if (std::optional<Tensor> moved = MovedFloats(node, operands)) {
    std::vector<Tensor> results;
    results.push_back(*std::move(moved));
    return results;
  }
  if (const Kernel<Whole> whole = IntegerKernelOf(node, operands.types); whole != nullptr) {
    return RunKernel<Whole>(whole, node, operands, threads, WholesOf, TensorOf);
  }
  const bool as_floats = RoundsTwice(node, operands.types[0]->dtype);
  const auto read = [as_floats](const Tensor& tensor) {
    if (as_floats) return FloatsOf(tensor);
    return Array<double>(tensor.type().shape, tensor.ToDoubles());
  };
  return RunKernel<double>(KernelOf<double>(node.op), node, operands, threads, read,
                           Tensor::FromDoubles);
}

// What one operator reads, in doubles: a stored constant is converted row by row.
struct Operand {
  TensorType type;
  bool advances = false;         // Along the first axis, as the result does.
  std::optional<Tensor> stored;  // Else `values`.
  Array<double> values = Array<double>();

  Array<double> Rows(int64_t begin, int64_t count) const {
    if (!advances) return values;
    Shape shape = type.shape;
    const auto row = static_cast<size_t>(type.NumElements() / shape[0]);
    shape[0] = count;
    const size_t first = static_cast<size_t>(begin) * row, size = static_cast<size_t>(count) * row;
    if (!stored) {
      const auto from = values.values.begin() + static_cast<ptrdiff_t>(first);
      return Array<double>(std::move(shape), {from, from + static_cast<ptrdiff_t>(size)});
    }
    const auto element = static_cast<size_t>(SizeOf(type.dtype));
    const std::string_view bytes = stored->bytes().substr(first * element, size * element);
    return Array<double>(shape, Tensor::View({type.dtype, shape}, bytes, nullptr).ToDoubles());
  }
};

// A block of rows holds about this many elements: its doubles stay in a core's cache. Those of a
// whole weight are fresh pages, which take longer to clear than to fill.
constexpr int64_t kBlockElements = 16 << 10;

StatusOr<Operand> OperandOf(const Graph& graph, Edge edge, const TensorType& result,
                            const WeightSource& weights) {
  Operand operand{.type = graph.type(edge)};
  const Shape& shape = operand.type.shape;
  operand.advances = shape.size() == result.shape.size() && shape[0] == result.shape[0];
  if (operand.advances && graph.node(edge.node).op == OpKind::kConstant) {
    AG_LET(operand.stored, Materialize(graph, edge, weights));
    return operand;
  }
  AG_LET(const Tensor value, Materialize(graph, edge, weights));
  operand.values = Array<double>(operand.type.shape, value.ToDoubles());
  return operand;
}

// Whether the node's value is large and an element-wise function of stored constants and small
// values, as weights are with a batch norm folded in.
bool GoesByRows(const Graph& graph, const Node& node) {
  const TensorType& result = node.outputs[0];
  if (!Has(node.op, kElementwise) || result.NumElements() <= kBlockElements) return false;
  if (HoldsWholes(result.dtype)) return false;
  if (RoundsTwice(node, graph.type(node.inputs[0]).dtype)) return false;
  return std::ranges::all_of(node.inputs, [&](const Edge& e) {
    const TensorType& type = graph.type(e);
    return type.NumElements() <= kBlockElements ||
           (graph.node(e.node).op == OpKind::kConstant && type.shape == result.shape);
  });
}

// The node's value, a block of rows at a time. REQUIRES: GoesByRows.
StatusOr<Tensor> MaterializeByRows(const Graph& graph, const Node& node,
                                   const WeightSource& weights) {
  const TensorType& result = node.outputs[0];
  std::vector<Operand> operands;
  for (const Edge& e : node.inputs) {
    AG_LET(Operand operand, OperandOf(graph, e, result, weights));
    operands.push_back(std::move(operand));
  }
  Tensor tensor = Tensor::Zeros(result);
  const std::span<char> bytes = tensor.Mutable<char>();
  const int64_t rows = result.shape[0], row_bytes = result.Bytes() / rows;
  const int64_t block = std::max<int64_t>(kBlockElements * rows / result.NumElements(), 1);
  Node part = node;
  for (int64_t begin = 0; begin < rows; begin += block) {
    const int64_t count = std::min(block, rows - begin);
    TensorType type = node.outputs[0];
    type.shape[0] = count;
    part.SetFacts({node.facts->attributes, {std::move(type)}, node.facts->constant});
    std::vector<Array<double>> values;
    for (const Operand& operand : operands) values.push_back(operand.Rows(begin, count));
    absl::InlinedVector<const Array<double>*, 4> inputs;
    absl::InlinedVector<const TensorType*, 4> types;
    for (size_t i = 0; i < values.size(); ++i) {
      inputs.push_back(&values[i]);
      types.push_back(&operands[i].type);
    }
    AG_LET(const Arrays<double> outputs,
           KernelOf<double>(node.op)({.node = part, .types = types, .inputs = inputs}));
    const Tensor rounded = Tensor::FromDoubles(part.outputs[0], outputs[0].values);
    std::memcpy(bytes.data() + begin * row_bytes, rounded.bytes().data(), rounded.bytes().size());
  }
  return tensor;
}

}  // namespace

StatusOr<std::vector<Tensor>> EvaluateEdges(const Graph& graph, std::span<const Edge> edges,
                                            const std::vector<Tensor>& inputs,
                                            const WeightSource& weights,
                                            const EvaluateOptions& options) {
  AG_TRY(CheckInputs(graph, inputs));
  internal::NodeValues<Tensor> of;
  of.constant = [&](NodeId id) { return ConstantTensor(graph.node(id), weights); };
  of.result = [&](const Node& node, const internal::Operands<Tensor>& operands) {
    return RunNode(node, operands, options.threads);
  };
  of.on_node = options.on_node;
  return internal::GraphWalk<Tensor>(graph, inputs, std::move(of)).Run(edges);
}

StatusOr<std::vector<Tensor>> Evaluate(const Graph& graph, const std::vector<Tensor>& inputs,
                                       const WeightSource& weights,
                                       const EvaluateOptions& options) {
  std::vector<Edge> edges;
  for (const GraphOutput& output : graph.outputs()) edges.push_back(output.edge);
  return EvaluateEdges(graph, edges, inputs, weights, options);
}

StatusOr<Tensor> Materialize(const Graph& graph, Edge edge, const WeightSource& weights) {
  AG_CHECK(graph.is_constant(edge.node));
  const Node& node = graph.node(edge.node);
  if (node.op == OpKind::kConstant) return ConstantTensor(node, weights);
  if (GoesByRows(graph, node)) return MaterializeByRows(graph, node, weights);
  AG_LET(std::vector<Tensor> tensors, EvaluateEdges(graph, {&edge, 1}, {}, weights));
  return tensors[0];
}

}  // namespace ag

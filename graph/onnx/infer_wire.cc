#include <algorithm>
#include <exception>

#include "base/text.h"
#include "graph/onnx/wire.h"
#include "onnx/onnx_pb.h"
#include "onnx/shape_inference/implementation.h"

namespace ag {
namespace {

// Larger values do not decide shapes.
constexpr int64_t kInferredBytesMax = 1 << 16;

// The newest opset that the linked library knows.
constexpr int64_t kLibraryOpset = 17;

// Up to this opset operators only took more types and attributes, with few exceptions.
constexpr int64_t kOldFormsEnd = 11;

// Whether a later opset gave the operator a form (attributes, operands, sizes) that the library
// would misread. Others only took more element types.
bool HasLaterForm(const OnnxNode& node, int64_t opset) {
  struct Row {
    std::string_view name;
    int64_t since;
  };
  static constexpr Row kRows[] = {
      {"ReduceL1", 18},
      {"ReduceL2", 18},
      {"ReduceLogSum", 18},
      {"ReduceLogSumExp", 18},
      {"ReduceMax", 18},
      {"ReduceMean", 18},
      {"ReduceMin", 18},
      {"ReduceProd", 18},
      {"ReduceSumSquare", 18},
      {"Split", 18},
      {"Pad", 18},
      {"LpPool", 18},
      {"AveragePool", 19},
      {"DFT", 20},
      {"GridSample", 20},
      {"QuantizeLinear", 19},
      {"DequantizeLinear", 21},
      {"Upsample", 10},
      // The library takes a missing `onesided` for 0.
      {"STFT", 17},
      // The library reads and writes by its counts and axes without a look at them.
      {"Scan", 1},
  };
  // Smoothing leaves a resize its sizes; a kept aspect and a list of axes do not.
  const bool resizes_otherwise =
      node.op_type == "Resize" && std::ranges::any_of(node.attributes, [](const auto& attribute) {
        return attribute.name == "keep_aspect_ratio_policy" || attribute.name == "axes";
      });
  // The library counts places of a window that begin in the padding at the end.
  const bool rounds_up =
      node.op_type.ends_with("Pool") && std::ranges::any_of(node.attributes, [](const auto& a) {
        return a.name == "ceil_mode" && a.i != 0;
      });
  if (resizes_otherwise || rounds_up) return true;
  return std::ranges::any_of(
      kRows, [&](const Row& row) { return row.name == node.op_type && opset >= row.since; });
}

// The library divides by strides and by the square of a block's size without a look at them.
Status CheckDivisors(const OnnxNode& node) {
  constexpr int64_t kBlockMax = int64_t{1} << 30;  // Its square is no overflow.
  for (const OnnxAttribute& attribute : node.attributes) {
    if (attribute.name == "blocksize" && (attribute.i < 1 || attribute.i > kBlockMax)) {
      return Err(StatusCode::kInvalidArgument, "blocksize: {} is outside 1 to {}", attribute.i,
                 kBlockMax);
    }
    if (attribute.name != "strides") continue;
    const auto low = std::ranges::find_if(attribute.ints, [](int64_t i) { return i < 1; });
    if (low != attribute.ints.end()) {
      return Err(StatusCode::kInvalidArgument, "strides: {} is below 1", *low);
    }
  }
  return OkStatus();
}

// The library reads operands that its own table of operators requires, without a look whether they
// are there.
Status CheckOperands(const OnnxNode& node, int64_t opset) {
  const auto* schema = onnx::OpSchemaRegistry::Schema(
      node.op_type, static_cast<int>(std::min(opset, kLibraryOpset)), node.domain);
  if (schema == nullptr) return OkStatus();
  const auto count = static_cast<int64_t>(node.inputs.size());
  if (count < schema->min_input() || count > schema->max_input()) {
    return Err(StatusCode::kInvalidArgument, "expected {} to {} inputs, got {}",
               schema->min_input(), schema->max_input(), count);
  }
  for (int64_t i = 0; i < schema->min_input(); ++i) {
    if (!node.inputs[static_cast<size_t>(i)].empty()) continue;
    return Err(StatusCode::kInvalidArgument, "input {} is missing", i);
  }
  return OkStatus();
}

// The library reads sizes of these operators' operands without a look at the ranks.
Status CheckRanks(const OnnxNode& node, std::span<const OperandInfo> operands) {
  struct Row {
    std::string_view name;
    size_t other;  // The operand that is looked at beside the first; 0: none.
    bool are_equal;
    size_t x_min = 2;
  };
  static constexpr Row kRows[] = {
      {"AveragePool", 0, true}, {"Conv", 1, true},           {"ConvInteger", 1, true},
      {"LpPool", 0, true},      {"MaxPool", 0, true},        {"ConvTranspose", 1, true},
      {"QLinearConv", 3, true}, {"MaxRoiPool", 1, false, 4}, {"Gemm", 1, true},
      {"GRU", 1, true, 3},      {"LSTM", 1, true, 3},        {"RNN", 1, true, 3},
      {"MaxUnpool", 1, true},
  };
  const Row* const row = std::ranges::find(kRows, node.op_type, &Row::name);
  if (row == std::end(kRows) || operands.empty()) return OkStatus();
  const TensorType& x = operands[0].type;
  const TensorType& other = operands[operands.size() > row->other ? row->other : 0].type;
  const size_t x_rank = x.shape.size(), other_rank = other.shape.size();
  const bool fit =
      x_rank >= row->x_min && other_rank >= 2 && (!row->are_equal || x_rank == other_rank);
  if (fit) return OkStatus();
  return Err(StatusCode::kInvalidArgument, "the ranks of {} and {} do not fit", x.ToString(),
             other.ToString());
}

// The library writes at the axes of a reduction and of a layer norm without a look at the rank.
Status CheckAxes(const OnnxNode& node, std::span<const OperandInfo> operands) {
  if (operands.empty()) return OkStatus();
  const bool is_norm = node.op_type == "LayerNormalization";
  if (!is_norm && !node.op_type.starts_with("Reduce")) return OkStatus();
  std::vector<int64_t> axes;
  for (const OnnxAttribute& attribute : node.attributes) {
    if (is_norm && attribute.name == "axis") axes.push_back(attribute.i);
    if (is_norm || attribute.name != "axes") continue;
    axes.insert(axes.end(), attribute.ints.begin(), attribute.ints.end());
  }
  if (is_norm && axes.empty()) axes = {-1};
  const auto rank = static_cast<int64_t>(operands[0].type.shape.size());
  for (const int64_t axis : axes) {
    if (axis >= -rank && axis < rank) continue;
    return Err(StatusCode::kInvalidArgument, "axis {} is outside [{}, {})", axis, -rank, rank);
  }
  return OkStatus();
}

// The library divides by the length of a part without a look whether it is zero.
Status CheckParts(const OnnxNode& node, std::span<const OperandInfo> operands) {
  const bool has_length = node.op_type == "SplitToSequence" && operands.size() > 1;
  const Tensor* const length = has_length ? operands[1].known : nullptr;
  if (length == nullptr || !length->type().shape.empty()) return OkStatus();
  const DType dtype = length->type().dtype;
  if (dtype != DType::kInt32 && dtype != DType::kInt64) {
    return Err(StatusCode::kInvalidArgument, "split: {} is no i32 or i64",
               length->type().ToString());
  }
  if (length->At(0) >= 1) return OkStatus();
  return Err(StatusCode::kInvalidArgument, "split: {} is below 1", length->At(0));
}

// The library reads as many sizes of the data as the indices of GatherND and its batch have.
Status CheckGather(const OnnxNode& node, std::span<const OperandInfo> operands) {
  if (node.op_type != "GatherND" || operands.size() < 2) return OkStatus();
  const TensorType &data = operands[0].type, &indices = operands[1].type;
  const auto batch = std::ranges::find(node.attributes, "batch_dims", &OnnxAttribute::name);
  const int64_t batch_dims = batch == node.attributes.end() ? 0 : batch->i;
  const auto rank = static_cast<int64_t>(data.shape.size());
  const auto indices_rank = static_cast<int64_t>(indices.shape.size());
  const bool fit = indices_rank > 0 && batch_dims >= 0 &&
                   batch_dims < std::min(rank, indices_rank) && indices.shape.back() >= 1 &&
                   indices.shape.back() <= rank - batch_dims;
  if (fit) return OkStatus();
  return Err(StatusCode::kInvalidArgument, "indices {} with batch_dims {} do not fit {}",
             indices.ToString(), batch_dims, data.ToString());
}

void TypeTo(const TensorType& type, onnx::TypeProto& proto) {
  proto.mutable_tensor_type()->set_elem_type(DTypeToOnnx(type.dtype));
  auto* shape = proto.mutable_tensor_type()->mutable_shape();
  for (const int64_t size : type.shape) shape->add_dim()->set_dim_value(size);
}

// Makes a model of this one node, with inputs "x0", "x1", ... and outputs "y0", "y1", ...
Status ModelOf(const OnnxNode& node, std::span<const OperandInfo> operands,
               onnx::ModelProto& model) {
  model.set_ir_version(8);
  onnx::GraphProto& graph = *model.mutable_graph();
  graph.set_name("node");
  onnx::NodeProto& proto = *graph.add_node();
  if (!proto.ParseFromArray(node.proto.data(), static_cast<int>(node.proto.size()))) {
    return Err(StatusCode::kInvalidArgument, "a kept node is not readable");
  }
  for (int i = 0; i < proto.input_size(); ++i) {
    if (proto.input(i).empty()) continue;
    const std::string name = fmt::format("x{}", i);
    proto.set_input(i, name);
    onnx::ValueInfoProto& info = *graph.add_input();
    info.set_name(name);
    TypeTo(operands[i].type, *info.mutable_type());
    const Tensor* known = operands[i].known;
    if (known == nullptr || known->type().Bytes() > kInferredBytesMax) continue;
    if (known->type().dtype == DType::kString) continue;
    onnx::TensorProto& tensor = *graph.add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(DTypeToOnnx(known->type().dtype));
    for (const int64_t size : known->type().shape) tensor.add_dims(size);
    tensor.set_raw_data(std::string(known->bytes()));
  }
  for (int i = 0; i < proto.output_size(); ++i) {
    if (proto.output(i).empty()) continue;
    proto.set_output(i, fmt::format("y{}", i));
    graph.add_output()->set_name(proto.output(i));
  }
  return OkStatus();
}

StatusOr<TensorType> TypeFrom(const onnx::ValueInfoProto& info) {
  const auto unknown = [](std::string_view what) {
    return Err(StatusCode::kUnimplemented, "ONNX's inference does not know its {}", what);
  };
  if (!info.type().has_tensor_type()) return unknown("output type");
  const auto& tensor = info.type().tensor_type();
  if (!tensor.has_shape()) return unknown("output shape");
  TensorType type;
  AG_LET(type.dtype, DTypeFromOnnx(tensor.elem_type()));
  for (const auto& dim : tensor.shape().dim()) {
    if (!dim.has_dim_value() || dim.dim_value() < 0) return unknown("output shape");
    type.shape.push_back(dim.dim_value());
  }
  AG_TRY(CheckType(type));
  return type;
}

}  // namespace

const std::vector<std::string>& StandardOperators() {
  static const auto& names = *new std::vector<std::string>([] {
    std::vector<std::string> result;
    for (const onnx::OpSchema& schema : onnx::OpSchemaRegistry::get_all_schemas()) {
      if (schema.domain().empty()) result.push_back(schema.Name());
    }
    std::ranges::sort(result);
    return result;
  }());
  return names;
}

bool IsStandard(const OnnxNode& node) {
  return node.domain.empty() && std::ranges::binary_search(StandardOperators(), node.op_type);
}

std::string SimilarOperator(const OnnxNode& node) {
  if (!node.domain.empty() || IsStandard(node)) return "";
  return DidYouMean(node.op_type, StandardOperators());
}

bool MeansTheSame(const std::string& op_type, int64_t opset, int64_t later) {
  if (opset == later) return true;
  // Attributes that became inputs, and operators that went.
  static constexpr std::string_view kReformed[] = {"Clip",  "Pad",     "Resize", "Scan",
                                                   "Slice", "Scatter", "TopK",   "Upsample"};
  const auto* schema = onnx::OpSchemaRegistry::Schema(op_type, static_cast<int>(later), "");
  const bool unchanged = schema != nullptr && schema->since_version() <= opset;
  const bool only_grew = schema != nullptr && later <= kOldFormsEnd && !schema->Deprecated() &&
                         std::ranges::count(kReformed, op_type) == 0;
  return later <= kLibraryOpset && (unchanged || only_grew);
}

StatusOr<std::vector<TensorType>> InferOutputs(
    const OnnxNode& node, std::span<const OperandInfo> operands,
    const std::vector<std::pair<std::string, int64_t>>& opsets) {
  AG_TRY(CheckDivisors(node));
  AG_TRY(CheckRanks(node, operands));
  AG_TRY(CheckAxes(node, operands));
  AG_TRY(CheckParts(node, operands));
  AG_TRY(CheckGather(node, operands));
  if (std::ranges::any_of(operands, [](const auto& o) { return IsNarrow(o.type.dtype); })) {
    return Err(StatusCode::kUnimplemented, "ONNX's inference does not know its element type");
  }
  onnx::ModelProto model;
  AG_TRY(ModelOf(node, operands, model));
  bool beyond = false;
  for (const auto& [domain, version] : opsets) {
    auto* opset = model.add_opset_import();
    opset->set_domain(domain);
    opset->set_version(domain.empty() ? std::min(version, kLibraryOpset) : version);
    if (domain != node.domain || !domain.empty()) continue;
    beyond = version > kLibraryOpset;
    const Status has_operands = CheckOperands(node, version);
    if (!beyond) AG_TRY(has_operands);
    if (!has_operands.ok() || HasLaterForm(node, version)) {
      return Err(StatusCode::kUnimplemented, "ONNX's inference does not know its form");
    }
  }
  try {
    const onnx::ShapeInferenceOptions options(/*check_type=*/true, /*strict_mode=*/1,
                                              /*data_prop=*/false);
    onnx::shape_inference::InferShapes(model, onnx::OpSchemaRegistry::Instance(), options);
  } catch (const std::exception& error) {
    const auto code = beyond ? StatusCode::kUnimplemented : StatusCode::kInvalidArgument;
    return Err(code, "{}", error.what());
  }
  std::vector<TensorType> types;
  for (const auto& output : model.graph().output()) {
    AG_LET(TensorType type, TypeFrom(output));
    types.push_back(std::move(type));
  }
  return types;
}

}  // namespace ag

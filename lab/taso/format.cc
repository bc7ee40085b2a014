#include "lab/taso/format.h"

#include <algorithm>
#include <set>

namespace ag {
namespace {

// TASO's files have up to 3 operators on a side, its generator makes 4. A higher limit would only
// slow the reader down.
constexpr size_t kOperatorsMax = 64;
constexpr int kOutputsMax = 64;
constexpr int kSizeMax = 1 << 20;  // The greatest kernel, stride or count.
constexpr int kRankMax = 8;

struct OperatorRow {
  TasoOpType type;
  const char* name;
  const char* text;  // As in FormatTasoRule's text.
  int inputs_min, inputs_max;
  std::vector<TasoKey> required;
};

const std::vector<OperatorRow>& Rows() {
  using enum TasoKey;
  using enum TasoOpType;
  static const auto& rows = *new std::vector<OperatorRow>{
      {kConv, "CONV2D", "conv", 2, 3, {kStrideHeight, kStrideWidth, kPadding}},
      {kMaxPool,
       "POOL2D_MAX",
       "max_pool",
       1,
       1,
       {kKernelHeight, kKernelWidth, kStrideHeight, kStrideWidth, kPadding}},
      {kAveragePool,
       "POOL2D_AVG",
       "average_pool",
       1,
       1,
       {kKernelHeight, kKernelWidth, kStrideHeight, kStrideWidth, kPadding}},
      {kRelu, "RELU", "relu", 1, 1, {}},
      {kSigmoid, "SIGMOID", "sigmoid", 1, 1, {}},
      {kTanh, "TANH", "tanh", 1, 1, {}},
      {kBatchNorm, "BATCHNORM", "batch_norm", 5, 5, {}},
      {kConcat, "CONCAT", "concat", 1, kOutputsMax, {kAxis, kRank}},
      {kSplit, "SPLIT", "split", 1, 1, {kAxis, kOutputs}},
      {kReshape, "RESHAPE", "reshape", 1, 1, {}},
      {kTranspose, "TRANSPOSE", "transpose", 1, 1, {kRank, kPermutation}},
      {kAdd, "EW_ADD", "add", 2, 2, {}},
      {kMul, "EW_MUL", "mul", 2, 2, {}},
      {kMatMul, "MATMUL", "matmul", 2, 2, {}},
      {kScalarMul, "MUL", "scale", 2, 2, {}},
      {kEnlarge, "ENLARGE", "enlarge", 1, 2, {}},
      {kMergeGroups, "MERGE_GCONV", "merge_groups", 1, 1, {kMergeCount}},
      {kConstantIdentity, "CONSTANT_IMM", "identity", 0, 0, {}},
      {kConstantConv, "CONSTANT_ICONV", "identity_kernel", 0, 0, {kKernelHeight, kKernelWidth}},
      {kConstantOne, "CONSTANT_ONE", "ones", 0, 0, {}},
      {kConstantPool, "CONSTANT_POOL", "pool_kernel", 0, 0, {kKernelHeight, kKernelWidth}},
      {kFoldedWeights, "folded weights", "folded_weights", 3, 3, {}},
      {kFoldedBias, "folded bias", "folded_bias", 4, 4, {}},
  };
  return rows;
}

const OperatorRow* FindRow(TasoOpType type) {
  for (const OperatorRow& row : Rows()) {
    if (row.type == type) return &row;
  }
  return nullptr;
}

Status CheckValue(TasoKey key, int value, const TasoOperator& op) {
  const auto in = [&](std::string_view what, int low, int high) {
    if (value >= low && value <= high) return OkStatus();
    return Err(StatusCode::kInvalidArgument, "{} is {}, not in [{}, {}]", what, value, low, high);
  };
  switch (key) {
    case TasoKey::kKernelHeight:
    case TasoKey::kKernelWidth:
      return in("kernel", 1, kSizeMax);
    case TasoKey::kStrideHeight:
    case TasoKey::kStrideWidth:
      return in("stride", 1, kSizeMax);
    case TasoKey::kPadding:
      return in("padding", kTasoSame, kTasoValid);
    case TasoKey::kActivation:
      return in("activation", 0, 3);
    case TasoKey::kRank:
      return in("rank", 1, kRankMax);
    case TasoKey::kAxis:
      return in("axis", 0, op.Get(TasoKey::kRank, kRankMax) - 1);
    case TasoKey::kOutputs:
      return in("number of outputs", 1, kOutputsMax);
    case TasoKey::kInputs:
      return in("number of inputs", static_cast<int>(op.inputs.size()),
                static_cast<int>(op.inputs.size()));
    case TasoKey::kMergeCount:
      return in("count", 1, kSizeMax);
    case TasoKey::kPermutation:
      if (!TasoPermutation(value, op.Get(TasoKey::kRank, 0)).empty()) return OkStatus();
      return Err(StatusCode::kInvalidArgument, "{} is no permutation of {} axes", value,
                 op.Get(TasoKey::kRank, 0));
    case TasoKey::kOpType:
    case TasoKey::kGroup:
    case TasoKey::kOutShuffle:
    case TasoKey::kAxes:
    case TasoKey::kKeepDims:
    case TasoKey::kEpsilon:
      return OkStatus();
  }
  return Err(StatusCode::kInvalidArgument, "unknown parameter {}", static_cast<int>(key));
}

Status CheckTensor(const std::vector<TasoOperator>& side, const TasoTensor& tensor, int before) {
  if (tensor.op < 0) {
    if (tensor.output == 0) return OkStatus();
    return Err(StatusCode::kInvalidArgument, "variable {} has one output, not {}", tensor.op,
               tensor.output + 1);
  }
  if (tensor.op >= before) {
    return Err(StatusCode::kInvalidArgument, "reads operator {}, which does not stand before",
               tensor.op);
  }
  const int outputs = side[tensor.op].outputs();
  if (tensor.output >= 0 && tensor.output < outputs) return OkStatus();
  return Err(StatusCode::kInvalidArgument, "operator {} has no output {}", tensor.op,
             tensor.output);
}

Status CheckOperator(const std::vector<TasoOperator>& side, int at) {
  const TasoOperator& op = side[at];
  const OperatorRow& row = *FindRow(op.type);
  const int inputs = static_cast<int>(op.inputs.size());
  if (inputs < row.inputs_min || inputs > row.inputs_max) {
    return Err(StatusCode::kInvalidArgument, "takes {} inputs, not {}",
               row.inputs_min == row.inputs_max
                   ? std::to_string(row.inputs_min)
                   : fmt::format("{} to {}", row.inputs_min, row.inputs_max),
               inputs);
  }
  for (const TasoKey key : row.required) {
    if (op.parameters.contains(key)) continue;
    return Err(StatusCode::kInvalidArgument, "lacks parameter {}", static_cast<int>(key));
  }
  for (const auto& [key, value] : op.parameters) AG_TRY(CheckValue(key, value, op));
  for (const TasoTensor& input : op.inputs) AG_TRY(CheckTensor(side, input, at));
  return OkStatus();
}

Status CheckSide(const std::vector<TasoOperator>& side, std::string_view name) {
  if (side.size() > kOperatorsMax) {
    return Err(StatusCode::kInvalidArgument, "{} has {} operators, more than {}", name, side.size(),
               kOperatorsMax);
  }
  for (size_t i = 0; i < side.size(); ++i) {
    if (FindRow(side[i].type) == nullptr) {
      return Err(StatusCode::kInvalidArgument, "{} operator {}: unknown operator type {}", name, i,
                 static_cast<int>(side[i].type));
    }
    AG_TRY(CheckOperator(side, static_cast<int>(i)), "{} operator {} ({})", name, i,
           TasoOpName(side[i].type));
  }
  return OkStatus();
}

std::string FormatTensor(const std::vector<TasoOperator>& side, const TasoTensor& tensor) {
  if (tensor.op < 0) return TasoVariableName(tensor.op);
  const TasoOperator& op = side[tensor.op];
  std::string text = FindRow(op.type)->text;
  if (op.type == TasoOpType::kConcat || op.type == TasoOpType::kSplit) {
    text += std::to_string(op.Get(TasoKey::kAxis, 0));
  }
  static constexpr const char* kActivations[] = {"", "_sigmoid", "_relu", "_tanh"};
  text += kActivations[op.Get(TasoKey::kActivation, 0)];
  text += "(";
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    text += (i > 0 ? ", " : "") + FormatTensor(side, op.inputs[i]);
  }
  text += ")";
  return op.outputs() > 1 ? fmt::format("{}.{}", text, tensor.output) : text;
}

}  // namespace

int TasoOperator::Get(TasoKey key, int otherwise) const {
  const auto found = parameters.find(key);
  return found == parameters.end() ? otherwise : found->second;
}

std::vector<int> TasoRule::Variables() const {
  std::vector<int> variables;
  for (const TasoOperator& op : source) {
    for (const TasoTensor& input : op.inputs) {
      if (input.op >= 0) continue;
      if (std::find(variables.begin(), variables.end(), input.op) == variables.end()) {
        variables.push_back(input.op);
      }
    }
  }
  return variables;
}

std::string_view TasoOpName(TasoOpType type) {
  const OperatorRow* row = FindRow(type);
  return row == nullptr ? "" : row->name;
}

std::string TasoVariableName(int variable) {
  const int n = -variable;
  if (n >= 1 && n <= 3) return fmt::format("x{}", n);
  if (n <= 6) return fmt::format("w{}", n - 3);
  if (n <= 9) return fmt::format("i{}", n - 6);
  if (n <= 19) return fmt::format("w{}", n - 6);
  if (n == 20) return "s0";
  return fmt::format("v{}", n);
}

std::vector<int64_t> TasoPermutation(int code, int rank) {
  std::vector<int64_t> permutation(static_cast<size_t>(std::max(rank, 0)));
  for (size_t i = permutation.size(); i-- > 0; code /= rank) permutation[i] = code % rank;
  const std::set<int64_t> axes(permutation.begin(), permutation.end());
  const bool all = axes.size() == permutation.size() && code == 0 && !axes.empty();
  return all && *axes.begin() >= 0 ? permutation : std::vector<int64_t>();
}

std::string FormatTasoRule(const TasoRule& rule) {
  std::string text;
  for (const TasoMapping& mapping : rule.mappings) {
    text += fmt::format("{}{} => {}", text.empty() ? "" : " and ",
                        FormatTensor(rule.source, mapping.source),
                        FormatTensor(rule.target, mapping.target));
  }
  return text;
}

Status CheckTasoRule(const TasoRule& rule) {
  AG_TRY(CheckSide(rule.source, "source"));
  AG_TRY(CheckSide(rule.target, "target"));
  if (rule.source.empty() || rule.mappings.empty()) {
    return Err(StatusCode::kInvalidArgument, "has {} source operators and {} outputs",
               rule.source.size(), rule.mappings.size());
  }
  for (size_t i = 0; i < rule.mappings.size(); ++i) {
    const auto& [source, target] = rule.mappings[i];
    if (source.op < 0) {
      return Err(StatusCode::kInvalidArgument, "output {}: variable {} cannot be replaced", i,
                 source.op);
    }
    AG_TRY(CheckTensor(rule.source, source, static_cast<int>(rule.source.size())), "output {}", i);
    AG_TRY(CheckTensor(rule.target, target, static_cast<int>(rule.target.size())),
           "output {} of the target", i);
  }
  return OkStatus();
}

}  // namespace ag

#include "device/cpu/post_ops.h"

#include <algorithm>

#include "device/cpu/host.h"
#include "graph/reference/function_numbers.h"

namespace ag::cpu {
namespace {

using Algorithm = dnnl::algorithm;

// What oneDNN 2.6 computes as we define it, with the number p of graph/functions.def as its alpha.
struct Eltwise {
  OpKind op;
  Algorithm algorithm;
};
constexpr Eltwise kEltwise[] = {
    {OpKind::kRelu, Algorithm::eltwise_relu},
    {OpKind::kLeakyRelu, Algorithm::eltwise_relu},
    {OpKind::kSigmoid, Algorithm::eltwise_logistic},
    {OpKind::kTanh, Algorithm::eltwise_tanh},
    {OpKind::kHardSwish, Algorithm::eltwise_hardswish},
    {OpKind::kElu, Algorithm::eltwise_elu},
    {OpKind::kMish, Algorithm::eltwise_mish},
};

// Appends a unary operator, maybe as two operations of oneDNN. Returns false when it has no form.
bool AppendUnary(const Node& node, Tail* tail) {
  const auto number = [&](std::string_view name) { return static_cast<float>(node.Float(name)); };
  const auto append = [&](Algorithm algorithm, float alpha, float beta) {
    tail->ops.append_eltwise(1.0f, algorithm, alpha, beta);
    return true;
  };
  for (const Eltwise& row : kEltwise) {
    if (row.op != node.op) continue;
    return append(row.algorithm, static_cast<float>(FunctionNumbers(node)[0]), 0);
  }
  if (node.op == OpKind::kSwish) return append(Algorithm::eltwise_swish, 1, 0);
  if (node.op == OpKind::kClip) {
    return append(Algorithm::eltwise_clip, number("min"), number("max"));
  }
  if (node.op == OpKind::kHardSigmoid) {
    append(Algorithm::eltwise_linear, number("alpha"), number("beta"));
    return append(Algorithm::eltwise_clip, 0, 1);
  }
  if (node.op != OpKind::kGelu) return false;
  const bool none = node.attributes->String("approximate") == "none";
  return append(none ? Algorithm::eltwise_gelu_erf : Algorithm::eltwise_gelu_tanh, 0, 0);
}

bool AppendBinary(const GroupContext& context, size_t i, const OperandDesc& desc, Tail* tail) {
  const Node& node = context.node(i);
  // With SSE 4.1 oneDNN's 1x1 convolution gives wrong numbers for a product behind an activation.
  const bool multiplies = node.op == OpKind::kMul && InstructionSet() != "sse41";
  if (node.op != OpKind::kAdd && !multiplies) return false;
  const int other = OtherOperand(context, i);
  if (other < 0) return false;
  const OperandDescs operand = desc(context, node.inputs[other]);
  if (operand.desc.is_zero()) return false;
  tail->operands.push_back({tail->ops.len(), node.inputs[other], operand.desc, operand.given});
  tail->ops.append_binary(node.op == OpKind::kAdd ? Algorithm::binary_add : Algorithm::binary_mul,
                          operand.desc);
  return true;
}

}  // namespace

bool Follows(const GroupContext& context, size_t i) {
  const Edge before{context.group.nodes[i - 1], 0};
  for (const Port& port : context.group.outputs) {
    if (port.edge.node == before.node) return false;
  }
  const auto& inputs = context.node(i).inputs;
  return context.node(i - 1).outputs.size() == 1 &&
         std::count(inputs.begin(), inputs.end(), before) == 1;
}

int OtherOperand(const GroupContext& context, size_t i) {
  const Node& node = context.node(i);
  if (node.inputs.size() != 2 || !Follows(context, i)) return -1;
  return node.inputs[0].node == context.group.nodes[i - 1] ? 1 : 0;
}

int ResidualPort(const GroupContext& context, size_t i) {
  const int other = OtherOperand(context, i);
  if (other < 0) return -1;
  const Edge edge = context.node(i).inputs[other];
  const int port = context.InputOf(edge);
  const bool same = port >= 0 && context.graph.type(edge) == context.node(i).outputs[0] &&
                    context.group.inputs[port].layout == context.group.outputs[0].layout;
  return same ? port : -1;
}

std::optional<Edge> ColumnBias(const GroupContext& context, size_t i, int64_t columns) {
  const int other = OtherOperand(context, i);
  if (context.node(i).op != OpKind::kAdd || other < 0) return std::nullopt;
  const Edge edge = context.node(i).inputs[other];
  const TensorType& type = context.graph.type(edge);
  const bool is_vector = context.InputOf(edge) < 0 && !type.shape.empty() &&
                         type.shape.back() == columns && type.NumElements() == columns;
  return is_vector ? std::optional(edge) : std::nullopt;
}

std::optional<ValueBounds> BoundsOf(const Node& node) {
  if (node.op == OpKind::kRelu) return ValueBounds{.low = 0};
  if (node.op != OpKind::kClip) return std::nullopt;
  return ValueBounds{static_cast<float>(node.Float("min")), static_cast<float>(node.Float("max"))};
}

std::optional<RegisterOps> RegisterOpsOf(const Node& node) {
  if (node.op == OpKind::kHardSwish) return RegisterOps{.is_hard_swish = true};
  const std::optional<ValueBounds> bounds = BoundsOf(node);
  return bounds ? std::optional(RegisterOps{*bounds}) : std::nullopt;
}

Tail MakeTail(const GroupContext& context, size_t first, size_t count_max,
              const OperandDesc& desc) {
  Tail tail;
  tail.done = first;
  const size_t end = std::min(context.group.nodes.size(), first + count_max);
  for (size_t i = first; i < end; ++i) {
    const Node& node = context.node(i);
    if (!Follows(context, i) || node.outputs[0] != context.node(0).outputs[0]) break;
    if (!AppendUnary(node, &tail) && !AppendBinary(context, i, desc, &tail)) break;
    tail.done = i + 1;
  }
  return tail;
}

Status BindTail(const GroupContext& context, const Tail& tail, Call* call) {
  for (const TailOperand& operand : tail.operands) {
    const int arg = DNNL_ARG_ATTR_MULTIPLE_POST_OP(operand.post_op) | DNNL_ARG_SRC_1;
    const bool port = context.InputOf(operand.edge) >= 0;
    const Desc& given = port ? operand.desc : operand.given;
    AG_TRY(call->Operand(context, operand.edge, arg, operand.desc, given));
  }
  return OkStatus();
}

}  // namespace ag::cpu

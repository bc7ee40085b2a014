// Shape rules of leaves, element-wise operators, reductions and normalizations.
#include <algorithm>

#include "graph/shapes.h"

namespace ag::internal {
namespace {

Status CheckFloat(const TensorType& type) {
  if (IsFloat(type.dtype)) return OkStatus();
  return Err(StatusCode::kInvalidArgument, "expected floating point, got {}", type.ToString());
}

Status CheckNumber(const TensorType& type) {
  if (type.dtype != DType::kBool) return OkStatus();
  return Err(StatusCode::kInvalidArgument, "expected numbers, got {}", type.ToString());
}

Status CheckBool(const TensorType& type) {
  if (type.dtype == DType::kBool) return OkStatus();
  return Err(StatusCode::kInvalidArgument, "expected bool, got {}", type.ToString());
}

// Returns the broadcast of all operands. kInvalidArgument: other element types, or no broadcast.
StatusOr<TensorType> Broadcast(std::span<const TensorType> inputs) {
  TensorType result = inputs[0];
  for (const TensorType& input : inputs.subspan(1)) {
    if (input.dtype != result.dtype) {
      return Err(StatusCode::kInvalidArgument, "element types differ: {} and {}",
                 DTypeName(result.dtype), DTypeName(input.dtype));
    }
    AG_LET(result.shape, BroadcastShapes(result.shape, input.shape));
  }
  return result;
}

Status CheckVector(std::string_view what, const TensorType& type, int64_t size, DType dtype) {
  const TensorType expected{dtype, {size}};
  if (type == expected) return OkStatus();
  return Err(StatusCode::kInvalidArgument, "{}: expected {}, got {}", what, expected.ToString(),
             type.ToString());
}

}  // namespace

StatusOr<TensorTypes> NoShape(const ShapeCall&) {
  return Err(StatusCode::kInvalidArgument, "has no shape rule");
}

StatusOr<TensorTypes> SameShape(const ShapeCall& call) {
  AG_TRY(CheckNumber(call.inputs[0]));
  return TensorTypes{call.inputs[0]};
}

StatusOr<TensorTypes> FloatShape(const ShapeCall& call) {
  AG_TRY(CheckFloat(call.inputs[0]));
  if (const AttributeValue* form = call.attributes.Find("approximate"); form != nullptr) {
    const std::string& name = std::get<std::string>(*form);
    if (name != "none" && name != "tanh") {
      return Err(StatusCode::kInvalidArgument, "approximate: expected none or tanh, got {}", name);
    }
  }
  return TensorTypes{call.inputs[0]};
}

StatusOr<TensorTypes> LogicShape(const ShapeCall& call) {
  for (const TensorType& input : call.inputs) AG_TRY(CheckBool(input));
  AG_LET(TensorType result, Broadcast(call.inputs));
  return TensorTypes{std::move(result)};
}

StatusOr<TensorTypes> CastShape(const ShapeCall& call) {
  const int64_t to = call.attributes.Int("to");
  if (!IsDType(to) || static_cast<DType>(to) >= DType::kString) {
    return Err(StatusCode::kInvalidArgument, "no element type to cast to has number {}", to);
  }
  return TensorTypes{TensorType{static_cast<DType>(to), call.inputs[0].shape}};
}

StatusOr<TensorTypes> BroadcastShape(const ShapeCall& call) {
  AG_LET(TensorType result, Broadcast(call.inputs));
  AG_TRY(CheckNumber(result));
  return TensorTypes{std::move(result)};
}

StatusOr<TensorTypes> CompareShape(const ShapeCall& call) {
  AG_LET(TensorType result, Broadcast(call.inputs));
  if (call.op != OpKind::kEqual) AG_TRY(CheckNumber(result));
  result.dtype = DType::kBool;
  return TensorTypes{std::move(result)};
}

StatusOr<TensorTypes> TestShape(const ShapeCall& call) {
  AG_TRY(CheckFloat(call.inputs[0]));
  return TensorTypes{TensorType{DType::kBool, call.inputs[0].shape}};
}

StatusOr<TensorTypes> PreluShape(const ShapeCall& call) {
  AG_LET(TensorType result, Broadcast(call.inputs));
  AG_TRY(CheckNumber(result));
  if (result.shape == call.inputs[0].shape) return TensorTypes{std::move(result)};
  return Err(StatusCode::kInvalidArgument, "the slope {} does not broadcast to {}",
             call.inputs[1].ToString(), call.inputs[0].ToString());
}

StatusOr<TensorTypes> WhereShape(const ShapeCall& call) {
  AG_TRY(CheckBool(call.inputs[0]));
  AG_LET(TensorType result, Broadcast(call.inputs.subspan(1)));
  AG_LET(result.shape, BroadcastShapes(result.shape, call.inputs[0].shape));
  return TensorTypes{std::move(result)};
}

StatusOr<TensorTypes> ReduceShape(const ShapeCall& call) {
  const TensorType& input = call.inputs[0];
  const Ints& axes = call.attributes.IntList("axes");
  AG_TRY(CheckNumber(input));
  for (size_t i = 0; i < axes.size(); ++i) {
    AG_TRY(CheckAxis(axes[i], input.shape.size()));
    if (i > 0 && axes[i] == axes[i - 1]) {
      return Err(StatusCode::kInvalidArgument, "axis {} is given twice", axes[i]);
    }
  }
  const bool keep = call.attributes.Int("keepdims") != 0;
  TensorType result{input.dtype, {}};
  for (size_t i = 0; i < input.shape.size(); ++i) {
    const bool reduced = std::binary_search(axes.begin(), axes.end(), static_cast<int64_t>(i));
    if (reduced && input.shape[i] == 0 && call.op == OpKind::kReduceMax) {
      return Err(StatusCode::kInvalidArgument, "axis {} of {} is empty", i, input.ToString());
    }
    if (!reduced) {
      result.shape.push_back(input.shape[i]);
    } else if (keep) {
      result.shape.push_back(1);
    }
  }
  return TensorTypes{std::move(result)};
}

StatusOr<TensorTypes> AxisShape(const ShapeCall& call) {
  AG_TRY(CheckFloat(call.inputs[0]));
  AG_TRY(CheckAxis(call.attributes.Int("axis"), call.inputs[0].shape.size()));
  return TensorTypes{call.inputs[0]};
}

StatusOr<TensorTypes> BatchNormShape(const ShapeCall& call) {
  static constexpr std::string_view kNames[] = {"x", "scale", "bias", "mean", "variance"};
  const TensorType& x = call.inputs[0];
  AG_TRY(CheckFloat(x));
  if (x.shape.size() < 2) {
    return Err(StatusCode::kInvalidArgument, "x: expected rank 2 or more, got {}", x.ToString());
  }
  for (size_t i = 1; i < 5; ++i) {
    AG_TRY(CheckVector(kNames[i], call.inputs[i], x.shape[1], x.dtype));
  }
  return TensorTypes{x};
}

StatusOr<TensorTypes> LayerNormShape(const ShapeCall& call) {
  const TensorType& x = call.inputs[0];
  const int64_t axis = call.attributes.Int("axis");
  AG_TRY(CheckFloat(x));
  AG_TRY(CheckAxis(axis, x.shape.size()));
  const TensorType expected{x.dtype, Shape(x.shape.begin() + axis, x.shape.end())};
  for (size_t i = 1; i < call.inputs.size(); ++i) {  // rms_norm has no bias.
    if (call.inputs[i] == expected) continue;
    return Err(StatusCode::kInvalidArgument, "{}: expected {}, got {}", i == 1 ? "scale" : "bias",
               expected.ToString(), call.inputs[i].ToString());
  }
  return TensorTypes{x};
}

}  // namespace ag::internal

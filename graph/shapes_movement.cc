// Shape rules of movement operators.
#include <algorithm>
#include <limits>

#include "graph/shapes.h"

namespace ag {
namespace {

// Returns the type with the sizes of an attribute. kInvalidArgument: CheckType refuses it.
StatusOr<TensorType> TypeOf(DType dtype, const Ints& shape) {
  TensorType type{dtype, Shape(shape.begin(), shape.end())};
  AG_TRY(CheckType(type));
  return type;
}

Status CheckPads(const TensorType& x, size_t axis, int64_t begin, int64_t end,
                 const std::string& mode) {
  if (std::max(std::abs(begin), std::abs(end)) > kElementsMax) {
    return Err(StatusCode::kInvalidArgument, "pads {} and {} are too large", begin, end);
  }
  const int64_t size = x.shape[axis];
  if (mode == "constant" || (begin == 0 && end == 0)) return OkStatus();
  const int64_t most = mode == "reflect" ? size - 1 : size == 0 ? 0 : kElementsMax;
  if (begin >= 0 && end >= 0 && begin <= most && end <= most) return OkStatus();
  return Err(StatusCode::kInvalidArgument, "{}: pads {} and {} do not fit axis {} of {}", mode,
             begin, end, axis, x.ToString());
}

}  // namespace

SliceRange ResolveSlice(int64_t size, int64_t start, int64_t end, int64_t step) {
  const auto clamp = [size](int64_t at, int64_t low, int64_t high) {
    if (at < 0) at = at < -size ? -1 : at + size;  // Saturates: INT64_MIN + size stays below low.
    return std::clamp(at, low, high);
  };
  if (step > 0) {
    start = start < -size ? 0 : clamp(start, 0, size);
    end = end < -size ? 0 : clamp(end, 0, size);
    const int64_t span = std::max<int64_t>(end - start, 0);
    return {start, step, span == 0 ? 0 : (span - 1) / step + 1};
  }
  start = clamp(start, -1, size - 1);
  end = clamp(end, -1, size - 1);
  const int64_t span = std::max<int64_t>(start - end, 0);
  const uint64_t stride = uint64_t{0} - static_cast<uint64_t>(step);  // INT64_MIN has no negative.
  if (span == 0) return {0, step, 0};
  return {start, step, static_cast<int64_t>(static_cast<uint64_t>(span - 1) / stride) + 1};
}

namespace internal {

StatusOr<TensorTypes> ConcatShape(const ShapeCall& call) {
  const int64_t axis = call.attributes.Int("axis");
  TensorType result = call.inputs[0];
  AG_TRY(CheckAxis(axis, result.shape.size()));
  for (const TensorType& input : call.inputs.subspan(1)) {
    TensorType aligned = input;
    if (aligned.shape.size() == result.shape.size()) aligned.shape[axis] = result.shape[axis];
    if (aligned != result) {
      return Err(StatusCode::kInvalidArgument, "{} and {} differ beyond axis {}",
                 call.inputs[0].ToString(), input.ToString(), axis);
    }
    result.shape[axis] += input.shape[axis];
    AG_TRY(CheckType(result));
  }
  return TensorTypes{std::move(result)};
}

StatusOr<TensorTypes> SplitShape(const ShapeCall& call) {
  const TensorType& input = call.inputs[0];
  const int64_t axis = call.attributes.Int("axis");
  const Ints& sizes = call.attributes.IntList("sizes");
  AG_TRY(CheckAxis(axis, input.shape.size()));
  if (sizes.empty()) return Err(StatusCode::kInvalidArgument, "sizes is empty");
  int64_t left = input.shape[axis];
  TensorTypes results;
  for (const int64_t size : sizes) {
    if (size < 0 || size > left) {
      return Err(StatusCode::kInvalidArgument, "sizes do not add up to {} of axis {}",
                 input.shape[axis], axis);
    }
    left -= size;
    TensorType part = input;
    part.shape[axis] = size;
    results.push_back(std::move(part));
  }
  if (left == 0) return results;
  return Err(StatusCode::kInvalidArgument, "sizes add up to {}, axis {} has {}",
             input.shape[axis] - left, axis, input.shape[axis]);
}

StatusOr<TensorTypes> SliceShape(const ShapeCall& call) {
  TensorType result = call.inputs[0];
  const Ints& axes = call.attributes.IntList("axes");
  const Ints& starts = call.attributes.IntList("starts");
  const Ints& ends = call.attributes.IntList("ends");
  const Ints& steps = call.attributes.IntList("steps");
  if (starts.size() != axes.size() || ends.size() != axes.size() || steps.size() != axes.size()) {
    return Err(StatusCode::kInvalidArgument,
               "axes, starts, ends, steps: lengths {}, {}, {}, {} differ", axes.size(),
               starts.size(), ends.size(), steps.size());
  }
  std::vector<bool> seen(result.shape.size());
  for (size_t i = 0; i < axes.size(); ++i) {
    AG_TRY(CheckAxis(axes[i], result.shape.size()));
    if (seen[axes[i]]) {
      return Err(StatusCode::kInvalidArgument, "axis {} is given twice", axes[i]);
    }
    seen[axes[i]] = true;
    if (steps[i] == 0) return Err(StatusCode::kInvalidArgument, "step of axis {} is 0", axes[i]);
    int64_t& size = result.shape[axes[i]];
    size = ResolveSlice(size, starts[i], ends[i], steps[i]).count;
  }
  return TensorTypes{std::move(result)};
}

StatusOr<TensorTypes> TransposeShape(const ShapeCall& call) {
  const TensorType& input = call.inputs[0];
  const Ints& perm = call.attributes.IntList("perm");
  std::vector<bool> seen(input.shape.size());
  TensorType result{input.dtype, {}};
  for (const int64_t axis : perm) {
    AG_TRY(CheckAxis(axis, input.shape.size()));
    if (seen[axis]) return Err(StatusCode::kInvalidArgument, "axis {} is given twice", axis);
    seen[axis] = true;
    result.shape.push_back(input.shape[axis]);
  }
  if (perm.size() == input.shape.size()) return TensorTypes{std::move(result)};
  return Err(StatusCode::kInvalidArgument, "perm: expected {} axes, got {}", input.shape.size(),
             perm.size());
}

StatusOr<TensorTypes> ReshapeShape(const ShapeCall& call) {
  const TensorType& input = call.inputs[0];
  AG_LET(TensorType result, TypeOf(input.dtype, call.attributes.IntList("shape")));
  if (result.NumElements() == input.NumElements()) return TensorTypes{std::move(result)};
  return Err(StatusCode::kInvalidArgument, "{} has {} elements, {} has {}", input.ToString(),
             input.NumElements(), ShapeToString(result.shape), result.NumElements());
}

StatusOr<TensorTypes> ExpandShape(const ShapeCall& call) {
  const TensorType& input = call.inputs[0];
  AG_LET(TensorType result, TypeOf(input.dtype, call.attributes.IntList("shape")));
  const StatusOr<Shape> broadcast = BroadcastShapes(result.shape, input.shape);
  if (broadcast.ok() && *broadcast == result.shape) return TensorTypes{std::move(result)};
  return Err(StatusCode::kInvalidArgument, "{} does not expand to {}", input.ToString(),
             ShapeToString(result.shape));
}

StatusOr<TensorTypes> PadShape(const ShapeCall& call) {
  TensorType result = call.inputs[0];
  const Ints& pads = call.attributes.IntList("pads");
  const std::string& mode = call.attributes.String("mode");
  const size_t rank = result.shape.size();
  if (mode != "constant" && mode != "reflect" && mode != "edge") {
    return Err(StatusCode::kInvalidArgument, "mode: expected constant, reflect or edge, got {}",
               mode);
  }
  if (pads.size() != 2 * rank) {
    return Err(StatusCode::kInvalidArgument, "pads: expected {} values, got {}", 2 * rank,
               pads.size());
  }
  for (size_t i = 0; i < rank; ++i) {
    if (pads[i] == std::numeric_limits<int64_t>::min() ||
        pads[rank + i] == std::numeric_limits<int64_t>::min()) {
      return Err(StatusCode::kInvalidArgument, "pads of axis {} are too large", i);
    }
    AG_TRY(CheckPads(call.inputs[0], i, pads[i], pads[rank + i], mode));
    result.shape[i] += pads[i] + pads[rank + i];
  }
  return TensorTypes{std::move(result)};
}

StatusOr<TensorTypes> GatherShape(const ShapeCall& call) {
  const TensorType& data = call.inputs[0];
  const TensorType& indices = call.inputs[1];
  const int64_t axis = call.attributes.Int("axis");
  AG_TRY(CheckAxis(axis, data.shape.size()));
  if (indices.dtype != DType::kInt64 && indices.dtype != DType::kInt32) {
    return Err(StatusCode::kInvalidArgument, "indices: expected i64 or i32, got {}",
               indices.ToString());
  }
  TensorType result{data.dtype, Shape(data.shape.begin(), data.shape.begin() + axis)};
  result.shape.insert(result.shape.end(), indices.shape.begin(), indices.shape.end());
  result.shape.insert(result.shape.end(), data.shape.begin() + axis + 1, data.shape.end());
  return TensorTypes{std::move(result)};
}

}  // namespace internal
}  // namespace ag

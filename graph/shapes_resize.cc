// The shape rule of resampling.
#include <algorithm>

#include "base/text.h"
#include "graph/resize.h"
#include "graph/shapes.h"

namespace ag {
namespace {

Status CheckWord(const Attributes& attributes, std::string_view name,
                 std::span<const std::string_view> words) {
  const std::string& word = attributes.String(name);
  if (std::ranges::count(words, word) > 0) return OkStatus();
  return Err(StatusCode::kInvalidArgument, "{}: expected one of {}, got {}", name,
             Join(words, ", "), word);
}

Status CheckScale(const TensorType& x, size_t axis, ResizeScale scale, int64_t size) {
  for (const int64_t term : {scale.over, scale.under}) {
    if (term >= 1 && term <= kScaleTermMax) continue;
    return Err(StatusCode::kInvalidArgument, "scales: {} is outside [1, 2^24]", term);
  }
  const int64_t scaled = ScaledSize(x.shape[axis], QuotientOf(scale));
  if (scaled == size) return OkStatus();
  return Err(StatusCode::kInvalidArgument,
             "axis {} of {} times {}/{} has {} elements, sizes say {}", axis, x.ToString(),
             scale.over, scale.under, scaled, size);
}

}  // namespace

namespace internal {

StatusOr<TensorTypes> ResizeShape(const ShapeCall& call) {
  const TensorType& x = call.inputs[0];
  const Ints& sizes = call.attributes.IntList("sizes");
  const Ints& scales = call.attributes.IntList("scales");
  const size_t rank = x.shape.size();
  AG_TRY(CheckWord(call.attributes, "mode", kResizeModes));
  AG_TRY(CheckWord(call.attributes, "coordinate_transformation_mode", kResizePlaces));
  AG_TRY(CheckWord(call.attributes, "nearest_mode", kResizeRoundings));
  if (call.attributes.String("mode") != "nearest" && !IsFloat(x.dtype)) {
    return Err(StatusCode::kInvalidArgument, "mode {}: expected floating point, got {}",
               call.attributes.String("mode"), x.ToString());
  }
  if (sizes.size() != rank) {
    return Err(StatusCode::kInvalidArgument, "sizes: expected {} values, got {}", rank,
               sizes.size());
  }
  if (!scales.empty() && scales.size() != 2 * rank) {
    return Err(StatusCode::kInvalidArgument, "scales: expected none or {} values, got {}", 2 * rank,
               scales.size());
  }
  for (size_t axis = 0; axis < rank; ++axis) {
    if ((sizes[axis] == 0) != (x.shape[axis] == 0)) {
      return Err(StatusCode::kInvalidArgument, "axis {} of {} cannot get {} elements", axis,
                 x.ToString(), sizes[axis]);
    }
    if (scales.empty()) continue;
    AG_TRY(CheckScale(x, axis, {scales[2 * axis], scales[2 * axis + 1]}, sizes[axis]));
  }
  return TensorTypes{TensorType{x.dtype, Shape(sizes.begin(), sizes.end())}};
}

}  // namespace internal
}  // namespace ag

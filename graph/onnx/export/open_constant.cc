// What makes a constant whose sizes are open: a tensor that is spread, places along an axis, a
// mask.
#include <algorithm>

#include "graph/onnx/export/open_sizes.h"

namespace ag {
namespace {

int64_t InnerOf(const Shape& shape, size_t axis) {
  int64_t inner = 1;
  for (size_t i = axis + 1; i < shape.size(); ++i) inner *= shape[i];
  return inner;
}

// Returns the tensor's elements at place 0 of the axes that are 1 in `shape`, when the others along
// these axes are the same.
std::optional<Tensor> PartOf(const Tensor& tensor, const Shape& shape) {
  const Shape& whole = tensor.type().shape;
  Tensor part = Tensor::Zeros({tensor.type().dtype, shape});
  const size_t width = SizeOf(tensor.type().dtype);
  const std::string_view from = tensor.bytes();
  const std::span<char> to = part.Mutable<char>();
  std::vector<bool> is_set(static_cast<size_t>(part.type().NumElements()));
  for (int64_t i = 0; i < tensor.type().NumElements(); ++i) {
    int64_t at = 0;
    for (size_t axis = 0; axis < whole.size(); ++axis) {
      const int64_t place = i / InnerOf(whole, axis) % whole[axis];
      if (shape[axis] != 1) at += place * InnerOf(shape, axis);
    }
    const std::string_view element = from.substr(static_cast<size_t>(i) * width, width);
    const auto begin = to.begin() + at * static_cast<int64_t>(width);
    if (!is_set[at]) std::ranges::copy(element, begin);
    is_set[at] = true;
    if (!std::equal(element.begin(), element.end(), begin)) return std::nullopt;
  }
  return part;
}

std::optional<OpenConstant> SpreadOf(std::span<const Tensor> tensors) {
  Shape shape = tensors[0].type().shape;
  for (const Tensor& tensor : tensors) {
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      if (tensor.type().shape[axis] != shape[axis]) shape[axis] = 1;
    }
  }
  OpenConstant spread;
  for (const Tensor& tensor : tensors) {
    const std::optional<Tensor> part = PartOf(tensor, shape);
    if (!part || (!spread.part.empty() && part->bytes() != spread.part[0].bytes())) {
      return std::nullopt;
    }
    spread.part = {*part};
  }
  return spread;
}

bool IsPlaces(const Tensor& tensor, const OpenConstant& places) {
  const Shape& shape = tensor.type().shape;
  const int64_t inner = InnerOf(shape, static_cast<size_t>(places.axis));
  for (int64_t i = 0; i < tensor.type().NumElements(); ++i) {
    const int64_t place = i / inner % shape[places.axis];
    if (tensor.At(i) != places.first + places.step * static_cast<double>(place)) return false;
  }
  return true;
}

std::optional<OpenConstant> PlacesOf(std::span<const Tensor> tensors) {
  const Tensor& first = tensors[0];
  if (first.type().dtype != DType::kInt64 && first.type().dtype != DType::kInt32) {
    return std::nullopt;
  }
  const Shape& shape = first.type().shape;
  for (int axis = static_cast<int>(shape.size()) - 1; axis >= 0; --axis) {
    if (shape[axis] < 2) continue;
    OpenConstant places{.kind = OpenConstant::Kind::kPlaces, .axis = axis, .first = first.At(0)};
    places.step = first.At(InnerOf(shape, static_cast<size_t>(axis))) - places.first;
    const auto follows = [&](const Tensor& t) { return IsPlaces(t, places); };
    if (std::ranges::all_of(tensors, follows)) return places;
  }
  return std::nullopt;
}

bool IsMask(const Tensor& tensor, const OpenConstant& mask) {
  const Shape& shape = tensor.type().shape;
  const int64_t columns = shape.back(), rows = shape[shape.size() - 2];
  for (int64_t i = 0; i < tensor.type().NumElements(); ++i) {
    const int64_t column = i % columns, row = i / columns % rows;
    if (tensor.At(i) != (column < row + mask.offset ? mask.first : mask.other)) return false;
  }
  return true;
}

std::optional<OpenConstant> MaskOf(std::span<const Tensor> tensors) {
  const Tensor& first = tensors[0];
  const Shape& shape = first.type().shape;
  if (shape.size() < 2 || shape.back() < 2 || shape[shape.size() - 2] < 2) return std::nullopt;
  OpenConstant mask{.kind = OpenConstant::Kind::kMask};
  mask.first = first.At((shape[shape.size() - 2] - 1) * shape.back());
  mask.other = first.At(shape.back() - 1);
  while (mask.offset < shape.back() && first.At(mask.offset) == mask.first) ++mask.offset;
  const auto is_it = [&](const Tensor& t) { return IsMask(t, mask); };
  return std::ranges::all_of(tensors, is_it) ? std::optional(mask) : std::nullopt;
}

}  // namespace

std::optional<OpenConstant> OpenConstantOf(std::span<const Tensor> tensors) {
  if (tensors[0].type().NumElements() == 0) return std::nullopt;
  if (auto spread = SpreadOf(tensors)) return spread;
  if (auto places = PlacesOf(tensors)) return places;
  return MaskOf(tensors);
}

}  // namespace ag

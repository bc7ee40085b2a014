#include "graph/onnx/import/moved.h"

#include <cstring>
#include <memory>

#include "graph/onnx/operators/layout.h"
#include "graph/shapes.h"

namespace ag {
namespace {

// Where the elements of a result lie in the operand: steps in elements along each of its axes.
struct Source {
  int64_t origin = 0;
  Ints strides;
};

Source SliceSource(const Node& node, const Shape& from) {
  Source source{.strides = onnx_operators::StridesOf(from)};
  const Ints& axes = node.IntList("axes");
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(axes[i]);
    const SliceRange range = ResolveSlice(from[axis], node.IntList("starts")[i],
                                          node.IntList("ends")[i], node.IntList("steps")[i]);
    source.origin += range.start * source.strides[axis];
    // A single element may have any step, and the product with a stride could overflow.
    source.strides[axis] = range.count <= 1 ? 0 : source.strides[axis] * range.step;
  }
  return source;
}

Source TransposeSource(const Node& node, const Shape& from) {
  const Ints strides = onnx_operators::StridesOf(from);
  Source source;
  for (const int64_t axis : node.IntList("perm")) source.strides.push_back(strides[axis]);
  return source;
}

// Copies the elements at `source` in the order of `shape`; those beside each other at once.
void CopyRuns(Shape shape, Source source, const char* from, size_t element, char* to) {
  int64_t run = 1;
  while (!shape.empty() && (shape.back() == 1 || source.strides.back() == run)) {
    run *= shape.back();
    shape.pop_back();
    source.strides.pop_back();
  }
  from += source.origin * static_cast<int64_t>(element);
  if (run == 1) {
    return onnx_operators::CopyStrided(shape, from, source.strides, static_cast<int64_t>(element),
                                       to);
  }
  const size_t bytes = element * static_cast<size_t>(run);
  onnx_operators::Walk<1>(shape, {source.strides}, [&](const std::array<int64_t, 1>& offsets) {
    std::memcpy(to, from + offsets[0] * static_cast<int64_t>(element), bytes);
    to += bytes;
  });
}

}  // namespace

std::optional<Tensor> Moved(const Node& node, const Tensor& operand) {
  const TensorType& type = node.outputs[0];
  const auto element = static_cast<size_t>(SizeOf(type.dtype));
  if (type.dtype == DType::kString || element == 0) return std::nullopt;
  const Shape& from = operand.type().shape;
  if (node.op == OpKind::kReshape) return operand.Retyped(type);
  Source source;
  if (node.op == OpKind::kSlice) {
    source = SliceSource(node, from);
  } else if (node.op == OpKind::kTranspose) {
    source = TransposeSource(node, from);
  } else if (node.op == OpKind::kExpand) {
    source.strides = onnx_operators::BroadcastStrides(from, type.shape);
  } else {
    return std::nullopt;
  }
  Tensor result = Tensor::Zeros(type);
  if (type.NumElements() == 0) return result;
  CopyRuns(type.shape, std::move(source), operand.bytes().data(), element,
           result.Mutable<char>().data());
  return result;
}

}  // namespace ag

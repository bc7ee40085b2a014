#include "device/cuda/cudnn_maker.h"

namespace ag::cuda {
namespace {

using Kind = CudnnBinding::Kind;
using Raw = cudnnBackendDescriptor_t;

// The alignment of every pointer for cuDNN; DeviceSpec::alignment_bytes promises it.
constexpr int64_t kCudnnAlignment = 16;
constexpr int64_t kInnerUid = 1000;  // Above those of tensors in memory.

// Returns the sum in the order of precompiled engines, then the activation.
StatusOr<std::vector<PointwiseStep>> StepsOf(const GroupTail& tail,
                                             const CudnnMaker::Addends& addends) {
  using Operand = PointwiseStep::Operand;
  std::vector<PointwiseStep> steps;
  const auto add = [&](Operand operand) {
    const auto last = static_cast<ChainValue>(steps.size());
    steps.push_back({.mode = CUDNN_POINTWISE_ADD, .x = last, .operand = operand});
  };
  if (addends.addend != nullptr) add(Operand::kAddend);
  if (addends.bias != nullptr) add(Operand::kBias);
  if (tail.activation != nullptr) AG_TRY(AppendActivation(*tail.activation, &steps));
  return steps;
}

}  // namespace

CudnnNumbers CudnnStrides(const CudnnNumbers& dims, bool channels_last) {
  CudnnNumbers strides(dims.size(), 1);
  if (channels_last) {
    strides[1] = 1;
    int64_t stride = dims[1];
    for (size_t i = dims.size(); i-- > 2;) {
      strides[i] = stride;
      stride *= dims[i];
    }
    strides[0] = stride;
  } else {
    for (size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  }
  return strides;
}

StatusOr<CudnnMaker> CudnnMaker::For(DType stored) {
  const auto made = [&](cudnnDataType_t type) {
    CudnnMaker maker(type);
    maker.graph_.stored = stored;
    return maker;
  };
  if (stored == DType::kFloat32) return made(CUDNN_DATA_FLOAT);
  if (stored == DType::kFloat16) return made(CUDNN_DATA_HALF);
  if (stored == DType::kBFloat16) return made(CUDNN_DATA_BFLOAT16);
  return Err(StatusCode::kUnimplemented, "cuDNN: type {}", DTypeName(stored));
}

StatusOr<Raw> CudnnMaker::Bound(const CudnnPlace& place, CudnnBinding binding,
                                int64_t channel_axis) {
  binding.uid = static_cast<int64_t>(graph_.bindings.size()) + 1;
  int64_t elements = 1, padded = 1;
  const int64_t block = type_ == CUDNN_DATA_FLOAT ? 4 : 8;
  for (size_t i = 0; i < place.dims.size(); ++i) {
    const bool pads = static_cast<int64_t>(i) == channel_axis;
    elements *= place.dims[i];
    padded *= pads ? (place.dims[i] + block - 1) / block * block : place.dims[i];
  }
  const int64_t size = SizeOf(graph_.stored);
  graph_.tensor_bytes.push_back(
      {elements * size, padded * size, elements * SizeOf(DType::kFloat32)});
  graph_.bindings.push_back(binding);
  return Tensor(place, type_, binding.uid, {});
}

StatusOr<Raw> CudnnMaker::Constant(const CudnnPlace& place, ConstantRecipe recipe,
                                   int64_t channel_axis) {
  graph_.constants.push_back(std::move(recipe));
  const int index = static_cast<int>(graph_.constants.size()) - 1;
  return Bound(place, {.kind = Kind::kConstant, .index = index}, channel_axis);
}

StatusOr<Raw> CudnnMaker::Operand(const GroupContext& context, Edge edge, const CudnnPlace& place,
                                  ConstantRecipe recipe, int64_t channel_axis) {
  const int port = context.InputOf(edge);
  if (port >= 0) return Bound(place, {.kind = Kind::kInput, .index = port}, channel_axis);
  return Constant(place, std::move(recipe), channel_axis);
}

StatusOr<Raw> CudnnMaker::Scalar(float value, size_t rank) {
  const CudnnPlace one{CudnnNumbers(rank, 1), CudnnNumbers(rank, 1)};
  const int64_t uid = static_cast<int64_t>(graph_.bindings.size()) + 1;
  graph_.bindings.push_back({.uid = uid, .kind = Kind::kScalar, .scalar = value});
  return Tensor(one, CUDNN_DATA_FLOAT, uid, {.is_by_value = true});
}

StatusOr<Raw> CudnnMaker::Inner(const CudnnPlace& place) {
  return Tensor(place, CUDNN_DATA_FLOAT, kInnerUid + inner_++, {.is_virtual = true});
}

StatusOr<Raw> CudnnMaker::Keep(DescriptorBuilder& builder) {
  AG_LET(Descriptor made, builder.Finish());
  graph_.parts.push_back(std::move(made));
  return graph_.parts.back().get();
}

StatusOr<Raw> CudnnMaker::Tensor(const CudnnPlace& place, cudnnDataType_t type, int64_t uid,
                                 const TensorForm& form) {
  Sign(fmt::format("t{} {} [{}] [{}] {}{};", uid, static_cast<int>(type),
                   fmt::join(place.dims, ","), fmt::join(place.strides, ","), form.is_virtual,
                   form.is_by_value));
  const int64_t alignment = form.is_by_value ? SizeOf(DType::kFloat32) : kCudnnAlignment;
  DescriptorBuilder builder(CUDNN_BACKEND_TENSOR_DESCRIPTOR, "tensor");
  builder.Set(CUDNN_ATTR_TENSOR_DATA_TYPE, type)
      .SetAll(CUDNN_ATTR_TENSOR_DIMENSIONS, place.dims)
      .SetAll(CUDNN_ATTR_TENSOR_STRIDES, place.strides)
      .Set(CUDNN_ATTR_TENSOR_UNIQUE_ID, uid)
      .Set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, alignment)
      .Set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, form.is_virtual)
      .Set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, form.is_by_value);
  return Keep(builder);
}

StatusOr<Raw> CudnnMaker::Pointwise(const PointwiseStep& step) {
  DescriptorBuilder builder(CUDNN_BACKEND_POINTWISE_DESCRIPTOR, "pointwise");
  builder.Set(CUDNN_ATTR_POINTWISE_MODE, step.mode)
      .Set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT);
  if (step.mode == CUDNN_POINTWISE_RELU_FWD) {
    constexpr double kMax = std::numeric_limits<float>::max();
    if (step.upper < kMax) builder.Set(CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP, step.upper);
    if (step.slope != 0) builder.Set(CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE, step.slope);
  }
  return Keep(builder);
}

Status CudnnMaker::Emit(const std::vector<PointwiseStep>& steps, const CudnnPlace& place,
                        Raw product, Raw y, const Addends& addends, std::vector<Raw>* operations) {
  using Operand = PointwiseStep::Operand;
  std::vector<Raw> values{product};
  for (size_t i = 0; i < steps.size(); ++i) {
    const PointwiseStep& step = steps[i];
    Sign(fmt::format("p{} {} {} {} {} {} {};", static_cast<int>(step.mode), step.x,
                     static_cast<int>(step.operand), step.b, step.scalar, step.upper, step.slope));
    AG_LET(const Raw pointwise, Pointwise(step));
    Raw out = y;
    if (i + 1 < steps.size()) {
      AG_LET(out, Inner(place));
    }
    DescriptorBuilder builder(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, "pointwise operation");
    builder.Set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, pointwise)
        .Set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, values[step.x])
        .Set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, out);
    Raw second = nullptr;
    if (step.operand == Operand::kValue) second = values[step.b];
    if (step.operand == Operand::kAddend) second = addends.addend;
    if (step.operand == Operand::kBias) second = addends.bias;
    if (step.operand == Operand::kScalar) {
      AG_LET(second, Scalar(step.scalar, place.dims.size()));
    }
    if (second != nullptr) builder.Set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, second);
    AG_LET(const Raw operation, Keep(builder));
    operations->push_back(operation);
    values.push_back(out);
  }
  return OkStatus();
}

StatusOr<CudnnGraph> CudnnMaker::Finish(Raw operation, Raw product, Raw y, const CudnnPlace& place,
                                        const GroupTail& tail, const Addends& addends) && {
  AG_CHECK((product == y) == !HasTail(tail, addends));
  AG_LET(const std::vector<PointwiseStep> steps, StepsOf(tail, addends));
  std::vector<Raw> operations{operation};
  AG_TRY(Emit(steps, place, product, y, addends, &operations));
  AG_LET(graph_.graph, DescriptorBuilder(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, "graph")
                           .SetAll(CUDNN_ATTR_OPERATIONGRAPH_OPS, operations)
                           .Finish());
  return std::move(graph_);
}

}  // namespace ag::cuda

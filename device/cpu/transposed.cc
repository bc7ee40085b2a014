// Transposed convolution on oneDNN.
#include "device/cpu/kept.h"
#include "device/cpu/onednn.h"
#include "graph/onnx/node_attributes.h"

namespace ag::cpu {
namespace {

using Deconvolution = dnnl::deconvolution_forward;

// Sizes of a node with explicit padding, as oneDNN wants them: dilations begin at 0.
struct TransposedProblem {
  Dims strides, dilations, begin, end;
  Dims x, w, y;  // w: output channels (by group: groups first), input channels, kernel.
  Dims w_strides;
  int64_t channels = 0;
};

StatusOr<TransposedProblem> TransposedProblemOf(const GroupContext& context,
                                                const KeptOperator& kept,
                                                const KeptOperands& operands) {
  NodeAttributes attributes(kept.node());
  const std::string auto_pad = attributes.String("auto_pad", "NOTSET");
  if (!operands.Has(0) || !operands.Has(1)) {
    return Err(StatusCode::kUnimplemented, "ConvTranspose: an operand is missing");
  }
  const Shape &x = operands.ShapeOf(0), &w = operands.ShapeOf(1);
  const Shape& y = context.node(0).outputs[0].shape;
  if (attributes.HasAttribute("output_shape") || (auto_pad != "NOTSET" && auto_pad != "VALID") ||
      !operands.IsPlainFloat() || !operands.IsConstant(1) || x.size() < 3 || x.size() > 5 ||
      (operands.Has(2) && !operands.IsConstant(2)) || NumElements(x) == 0) {
    return Err(StatusCode::kUnimplemented, "ConvTranspose: not this form");
  }
  const size_t axes = x.size() - 2;
  const int64_t groups = attributes.Int("group", 1);
  if (w.size() != x.size() || y.size() != x.size() || w[0] != x[1] || groups < 1 ||
      w[0] % groups != 0 || y[1] != w[1] * groups || y[0] != x[0] ||
      (operands.Has(2) && operands.ShapeOf(2) != Shape{y[1]})) {
    return Err(StatusCode::kUnimplemented, "ConvTranspose: sizes do not fit");
  }
  TransposedProblem p{.strides = attributes.IntList("strides").value_or(Ints(axes, 1)),
                      .dilations = attributes.IntList("dilations").value_or(Ints(axes, 1)),
                      .begin = Dims(axes, 0),
                      .end = Dims(axes, 0),
                      .x = ToDims(x),
                      .y = ToDims(y),
                      .channels = y[1]};
  const Ints pads = attributes.IntList("pads").value_or(Ints(2 * axes, 0));
  const int64_t kernel = NumElements(std::span(w).subspan(2));
  const Ints more = attributes.IntList("output_padding").value_or(Ints(axes, 0));
  if (more.size() != axes || p.strides.size() != axes || p.dilations.size() != axes ||
      pads.size() != 2 * axes) {
    return Err(StatusCode::kUnimplemented, "ConvTranspose: lists do not fit");
  }
  for (size_t i = 0; i < axes; ++i) {
    if (auto_pad == "NOTSET") p.begin[i] = pads[i];
    const int64_t span = (w[i + 2] - 1) * p.dilations[i] + 1;
    p.end[i] = p.strides[i] * (x[i + 2] - 1) + span - p.begin[i] - y[i + 2];
    const int64_t end = auto_pad == "NOTSET" ? pads[axes + i] : 0;
    if (p.end[i] != end - more[i]) {
      return Err(StatusCode::kUnimplemented, "ConvTranspose: the result has another size");
    }
    --p.dilations[i];
  }
  // ONNX has the weights as [C, M/group, ...], oneDNN as [group, M/group, C/group, ...].
  p.w = {groups, w[1], w[0] / groups};
  p.w_strides = {w[0] / groups * w[1] * kernel, kernel, w[1] * kernel};
  if (groups == 1) {
    p.w.erase(p.w.begin());
    p.w_strides.erase(p.w_strides.begin());
  }
  int64_t stride = kernel;
  for (size_t i = 0; i < axes; ++i) {
    stride /= w[i + 2];
    p.w.push_back(w[i + 2]);
    p.w_strides.push_back(stride);
  }
  return p;
}

Deconvolution::primitive_desc DescribeTransposed(const TransposedProblem& p, bool has_bias) {
  const auto make = [&](const Desc& bias) {
    const Deconvolution::desc desc(
        dnnl::prop_kind::forward_inference, dnnl::algorithm::deconvolution_direct, AnyDesc(p.x),
        AnyDesc(p.w), bias, AnyDesc(p.y), p.strides, p.dilations, p.begin, p.end);
    return Deconvolution::primitive_desc(desc, UserScratchpad(), Engine(), /*allow_empty=*/true);
  };
  return make(has_bias ? PlainDesc({p.channels}) : Desc());
}

class Transposed : public CallKernel {
 public:
  Status Prepare(const GroupContext& context, const KeptOperator& kept) {
    const KeptOperands operands(context, kept);
    AG_LET(const TransposedProblem p, TransposedProblemOf(context, kept, operands));
    const auto desc = DescribeTransposed(p, operands.Has(2));
    if (!desc) return Err(StatusCode::kUnimplemented, "ConvTranspose: oneDNN lacks the form");
    if (context.constants == nullptr) return OkStatus();
    AG_TRY(call_.Operand(context, operands.At(0), DNNL_ARG_SRC, desc.src_desc(), PlainDesc(p.x)));
    AG_TRY(call_.Constant(context, operands.At(1), DNNL_ARG_WEIGHTS, desc.weights_desc(),
                          Desc(p.w, dnnl::memory::data_type::f32, p.w_strides)));
    if (operands.Has(2)) {
      const Desc bias = PlainDesc({p.channels});
      AG_TRY(call_.Constant(context, operands.At(2), DNNL_ARG_BIAS, bias, bias));
    }
    call_.Output(DNNL_ARG_DST, desc.dst_desc(), PlainDesc(p.y), 0);
    call_.Finish(Deconvolution(desc), desc.scratchpad_desc());
    return OkStatus();
  }
};

}  // namespace

StatusOr<std::unique_ptr<Kernel>> MakeTransposed(const GroupContext& context,
                                                 const KeptOperator& kept) {
  return Prepared<Transposed>("ConvTranspose", context, kept);
}

}  // namespace ag::cpu

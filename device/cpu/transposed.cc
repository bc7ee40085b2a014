// The form of a transposed convolution, and its kernel on oneDNN.
#include "device/cpu/transposed.h"

#include <algorithm>

#include "device/cpu/onednn.h"
#include "graph/onnx/node_attributes.h"

namespace ag::cpu {

StatusOr<TransposedForm> TransposedFormOf(const GroupContext& context, const KeptOperator& kept,
                                          const KeptOperands& operands) {
  NodeAttributes attributes(kept.node());
  const auto refuse = [] {
    return Err(StatusCode::kUnimplemented, "ConvTranspose: not this form");
  };
  if (!operands.Has(0) || !operands.IsConstant(1) || !operands.IsPlainFloat() ||
      (operands.Has(2) && !operands.IsConstant(2))) {
    return refuse();
  }
  TransposedForm f{.groups = attributes.Int("group", 1),
                   .x = operands.ShapeOf(0),
                   .w = operands.ShapeOf(1),
                   .y = context.node(0).outputs[0].shape};
  const size_t axes = f.x.size() - 2;
  if (f.x.size() < 3 || f.x.size() > 5 || f.w.size() != f.x.size() || f.y.size() != f.x.size() ||
      NumElements(f.x) == 0 || NumElements(f.w) == 0 || NumElements(f.y) == 0) {
    return refuse();
  }
  const bool channels_fit = f.w[0] == f.x[1] && f.groups >= 1 && f.w[0] % f.groups == 0 &&
                            f.y[1] == f.w[1] * f.groups && f.y[0] == f.x[0];
  if (!channels_fit || (operands.Has(2) && operands.ShapeOf(2) != Shape{f.y[1]})) return refuse();
  const auto list = [&](const char* name, size_t size, int64_t otherwise) {
    return attributes.IntList(name).value_or(Ints(size, otherwise));
  };
  f.strides = list("strides", axes, 1);
  f.dilations = list("dilations", axes, 1);
  const Ints pads = list("pads", 2 * axes, 0), more = list("output_padding", axes, 0);
  const std::string auto_pad = attributes.String("auto_pad", "NOTSET");
  const bool asked = attributes.HasAttribute("output_shape") || auto_pad.starts_with("SAME_");
  if (more.size() != axes || f.strides.size() != axes || f.dilations.size() != axes ||
      pads.size() != 2 * axes || (!asked && auto_pad != "NOTSET" && auto_pad != "VALID")) {
    return refuse();
  }
  for (size_t i = 0; i < axes; ++i) {
    const int64_t span = (f.w[i + 2] - 1) * f.dilations[i] + 1;
    const int64_t whole = f.strides[i] * (f.x[i + 2] - 1) + span, out = f.y[i + 2];
    if (f.strides[i] < 1 || f.dilations[i] < 1) return refuse();
    const int64_t total = std::max<int64_t>(whole + more[i] - out, 0);
    const bool given = !asked && auto_pad == "NOTSET";
    f.begin.push_back(!asked                     ? (given ? pads[i] : 0)
                      : auto_pad == "SAME_UPPER" ? total / 2
                                                 : total - total / 2);
    f.end.push_back(whole - f.begin[i] - out);
    // A size that was asked for is the result's; else it follows from the padding.
    const int64_t end = given ? pads[axes + i] : 0;
    if (f.begin[i] < 0 || (!asked && f.end[i] != end - more[i])) return refuse();
  }
  return f;
}

namespace {

using Deconvolution = dnnl::deconvolution_forward;

// Sizes as oneDNN wants them: dilations begin at 0.
struct TransposedProblem {
  Dims strides, dilations, begin, end;
  Dims x, w, y;  // w: output channels (by group: groups first), input channels, kernel.
  Dims w_strides;
  int64_t channels = 0;
};

TransposedProblem TransposedProblemOf(const TransposedForm& f) {
  TransposedProblem p{.strides = f.strides,
                      .dilations = f.dilations,
                      .begin = f.begin,
                      .end = f.end,
                      .x = ToDims(f.x),
                      .y = ToDims(f.y),
                      .channels = f.y[1]};
  for (int64_t& dilation : p.dilations) --dilation;
  // ONNX has the weights as [C, M/group, ...], oneDNN as [group, M/group, C/group, ...].
  const int64_t kernel = NumElements(std::span(f.w).subspan(2));
  p.w = {f.groups, f.w[1], f.w[0] / f.groups};
  p.w_strides = {f.w[0] / f.groups * f.w[1] * kernel, kernel, f.w[1] * kernel};
  if (f.groups == 1) {
    p.w.erase(p.w.begin());
    p.w_strides.erase(p.w_strides.begin());
  }
  int64_t stride = kernel;
  for (size_t i = 2; i < f.w.size(); ++i) {
    stride /= f.w[i];
    p.w.push_back(f.w[i]);
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
    AG_LET(const TransposedForm form, TransposedFormOf(context, kept, operands));
    const TransposedProblem p = TransposedProblemOf(form);
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

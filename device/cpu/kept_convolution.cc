// Convolution over three axes on oneDNN, which chooses the layouts.
#include <algorithm>

#include "device/cpu/kept.h"
#include "device/cpu/onednn.h"
#include "graph/onnx/node_attributes.h"

namespace ag::cpu {
namespace {

class KeptConvolution : public CallKernel {
 public:
  Status Prepare(const GroupContext& context, const KeptOperator& kept) {
    AG_LET(const KeptConvolutionForm form, KeptConvolutionFormOf(context, kept));
    const KeptWindow& window = form.window;
    Ints dilations = window.dilations;
    for (int64_t& dilation : dilations) --dilation;  // oneDNN's begin at 0.
    const Dims x = ToDims(form.x), y = ToDims(form.y);
    Dims weights = ToDims(form.w);
    if (form.groups > 1) {
      weights[0] /= form.groups;
      weights.insert(weights.begin(), form.groups);
    }
    const Desc bias = form.bias ? PlainDesc({form.w[0]}) : Desc();
    const auto describe = [&](const Desc& lies) {
      return dnnl::convolution_forward::primitive_desc(
          {dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct, AnyDesc(x),
           lies, bias, AnyDesc(y), Dims(window.strides), Dims(dilations), Dims(window.begin),
           Dims(window.end)},
          UserScratchpad(), Engine(), /*allow_empty=*/true);
    };
    auto made = describe(AnyDesc(weights));
    if (!made) return RefuseForm(kept);
    const std::vector<Desc> all = HeldForms(context, form.weights, PlainDesc(weights));
    for (const Desc& lies : all) {
      if (std::ranges::count(all, made.weights_desc()) > 0) break;
      const auto held = describe(lies);
      if (held && IsAsGood(held.impl_info_str(), made.impl_info_str())) made = held;
    }
    if (context.constants == nullptr) return OkStatus();
    const Edge input = context.node(0).inputs[0];
    AG_TRY(call_.Operand(context, input, DNNL_ARG_SRC, made.src_desc(), PlainDesc(x)));
    AG_TRY(call_.Constant(context, form.weights, DNNL_ARG_WEIGHTS, made.weights_desc(),
                          PlainDesc(weights)));
    if (form.bias) AG_TRY(call_.Constant(context, *form.bias, DNNL_ARG_BIAS, bias, bias));
    call_.Output(DNNL_ARG_DST, made.dst_desc(), PlainDesc(y), 0);
    call_.Finish(dnnl::convolution_forward(made), made.scratchpad_desc());
    return OkStatus();
  }
};

}  // namespace

StatusOr<KeptConvolutionForm> KeptConvolutionFormOf(const GroupContext& context,
                                                    const KeptOperator& kept) {
  const KeptOperands operands(context, kept);
  if (!operands.Has(0) || !operands.IsConstant(1) || !operands.IsPlainFloat() ||
      (operands.Has(2) && !operands.IsConstant(2))) {
    return RefuseForm(kept);
  }
  KeptConvolutionForm form{.x = operands.ShapeOf(0),
                           .w = operands.ShapeOf(1),
                           .y = context.node(0).outputs[0].shape,
                           .groups = NodeAttributes(kept.node()).Int("group", 1),
                           .weights = operands.At(1)};
  if (operands.Has(2)) form.bias = operands.At(2);
  const auto& [x, w, y, groups, window, weights, bias] = form;
  if (x.size() != 5 || w.size() != 5 || y.size() != 5 || NumElements(x) == 0 ||
      NumElements(w) == 0 || NumElements(y) == 0 || groups < 1 || w[0] % groups != 0 ||
      x[1] != w[1] * groups || y[0] != x[0] || y[1] != w[0] ||
      (bias && operands.ShapeOf(2) != Shape{w[0]})) {
    return RefuseForm(kept);
  }
  AG_LET(form.window, KeptWindowOf(kept, x, y, Ints(w.begin() + 2, w.end())));
  return form;
}

StatusOr<std::unique_ptr<Kernel>> MakeKeptConvolution(const GroupContext& context,
                                                      const KeptOperator& kept) {
  return Prepared<KeptConvolution>("Conv", context, kept);
}

}  // namespace ag::cpu

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
    const KeptOperands operands(context, kept);
    if (!operands.Has(0) || !operands.IsConstant(1) || !operands.IsPlainFloat() ||
        (operands.Has(2) && !operands.IsConstant(2))) {
      return RefuseForm(kept);
    }
    const Shape &x = operands.ShapeOf(0), &w = operands.ShapeOf(1);
    const Shape& y = context.node(0).outputs[0].shape;
    const int64_t groups = NodeAttributes(kept.node()).Int("group", 1);
    if (x.size() != 5 || w.size() != 5 || y.size() != 5 || NumElements(x) == 0 ||
        NumElements(w) == 0 || NumElements(y) == 0 || groups < 1 || w[0] % groups != 0 ||
        x[1] != w[1] * groups || y[0] != x[0] || y[1] != w[0] ||
        (operands.Has(2) && operands.ShapeOf(2) != Shape{w[0]})) {
      return RefuseForm(kept);
    }
    AG_LET(KeptWindow window, KeptWindowOf(kept, x, y, Ints(w.begin() + 2, w.end())));
    for (int64_t& dilation : window.dilations) --dilation;  // oneDNN's begin at 0.
    Dims weights = ToDims(w);
    if (groups > 1) {
      weights[0] /= groups;
      weights.insert(weights.begin(), groups);
    }
    const Desc bias = operands.Has(2) ? PlainDesc({w[0]}) : Desc();
    const auto describe = [&](const Desc& form) {
      return dnnl::convolution_forward::primitive_desc(
          {dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct,
           AnyDesc(ToDims(x)), form, bias, AnyDesc(ToDims(y)), Dims(window.strides),
           Dims(window.dilations), Dims(window.begin), Dims(window.end)},
          UserScratchpad(), Engine(), /*allow_empty=*/true);
    };
    auto made = describe(AnyDesc(weights));
    if (!made) return RefuseForm(kept);
    const std::vector<Desc> all = HeldForms(context, operands.At(1), PlainDesc(weights));
    for (const Desc& form : all) {
      if (std::ranges::count(all, made.weights_desc()) > 0) break;
      const auto held = describe(form);
      if (held && IsAsGood(held.impl_info_str(), made.impl_info_str())) made = held;
    }
    if (context.constants == nullptr) return OkStatus();
    const Desc plain_x = PlainDesc(ToDims(x));
    AG_TRY(call_.Operand(context, operands.At(0), DNNL_ARG_SRC, made.src_desc(), plain_x));
    AG_TRY(call_.Constant(context, operands.At(1), DNNL_ARG_WEIGHTS, made.weights_desc(),
                          PlainDesc(weights)));
    if (operands.Has(2)) {
      AG_TRY(call_.Constant(context, operands.At(2), DNNL_ARG_BIAS, bias, bias));
    }
    call_.Output(DNNL_ARG_DST, made.dst_desc(), PlainDesc(ToDims(y)), 0);
    call_.Finish(dnnl::convolution_forward(made), made.scratchpad_desc());
    return OkStatus();
  }
};

}  // namespace

StatusOr<std::unique_ptr<Kernel>> MakeKeptConvolution(const GroupContext& context,
                                                      const KeptOperator& kept) {
  return Prepared<KeptConvolution>("Conv", context, kept);
}

}  // namespace ag::cpu

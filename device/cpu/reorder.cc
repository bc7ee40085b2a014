// Reorders of one tensor from one layout to another, and copies (plan/plan.h), which write a tensor
// to further places.
#include <cstring>

#include "device/cpu/onednn.h"

namespace ag::cpu {
namespace {

class Reorder : public CallKernel {
 public:
  Status Prepare(const GroupContext& context) {
    const TensorType& type = context.graph.type(context.group.inputs[0].edge);
    const Desc from = DescOf(type, context.group.inputs[0].layout);
    const Desc to = DescOf(type, context.group.outputs[0].layout);
    const dnnl::reorder::primitive_desc desc(Engine(), from, Engine(), to, UserScratchpad());
    call_.Input(DNNL_ARG_FROM, from, from, 0);
    call_.Output(DNNL_ARG_TO, to, to, 0);
    call_.Finish(dnnl::reorder(desc), desc.scratchpad_desc());
    return OkStatus();
  }
};

// Writes inputs[0], or a constant, to every output.
class CopyOut : public Kernel {
 public:
  Status Prepare(const GroupContext& context) {
    const Port& port = context.group.outputs[0];
    bytes_ = LayoutBytes(context.graph.type(port.edge), port.layout);
    if (!context.group.inputs.empty()) return OkStatus();
    AG_LET(constant_, context.constants->Get(port.edge));
    return OkStatus();
  }
  Status Run(const RunContext&, Inputs inputs, Outputs outputs) override {
    const void* from = inputs.empty() ? constant_.bytes().data() : inputs[0];
    for (void* to : outputs) std::memcpy(to, from, bytes_);
    return OkStatus();
  }

 private:
  int64_t bytes_ = 0;
  Tensor constant_;
};

Status CheckReorder(const GroupContext& context) {
  const Group& group = context.group;
  if (group.inputs.size() != 1 || group.outputs.size() != 1) {
    return Err(StatusCode::kInvalidArgument,
               "reorder: expected 1 input and 1 output, got {} and {}", group.inputs.size(),
               group.outputs.size());
  }
  const TensorType& type = context.graph.type(group.inputs[0].edge);
  if (!context.IsComputed(type.dtype) && type.dtype != DType::kInt32) {
    return Err(StatusCode::kUnimplemented, "reorder: {}", type.ToString());
  }
  for (const Layout layout : {group.inputs[0].layout, group.outputs[0].layout}) {
    if (CanHave(type, layout)) continue;
    return Err(StatusCode::kInvalidArgument, "reorder: {} cannot be {}", type.ToString(),
               LayoutName(layout));
  }
  return OkStatus();
}

StatusOr<std::vector<std::string>> ReorderNames(const GroupContext& context) {
  if (IsCopy(context.group)) return std::vector<std::string>{"copy"};
  AG_TRY(CheckReorder(context));
  return std::vector<std::string>{"onednn"};
}

StatusOr<std::unique_ptr<Kernel>> MakeReorder(const GroupContext& context, const std::string&,
                                              size_t*) {
  if (IsCopy(context.group)) {
    auto copy = std::make_unique<CopyOut>();
    AG_TRY(copy->Prepare(context));
    return copy;
  }
  AG_TRY(CheckReorder(context));
  return Prepared<Reorder>("reorder", context);
}

}  // namespace

const Family kReorderFamily = {ReorderNames, MakeReorder};

}  // namespace ag::cpu

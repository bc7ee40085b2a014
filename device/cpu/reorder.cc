// Reorders of one tensor from one layout to another, and copies (plan/plan.h), which write a tensor
// to further places.
#include <cstring>

#include "device/cpu/onednn.h"
#include "device/cpu/strided.h"

namespace ag::cpu {
namespace {

constexpr std::string_view kTiles = "tiles";

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

// Moves channels to the end or back, tile by tile.
class DenseReorder : public Kernel {
 public:
  explicit DenseReorder(const GroupContext& context) : cores_(context.cores) {
    const Port &in = context.group.inputs[0], &out = context.group.outputs[0];
    const TensorType& type = context.graph.type(in.edge);
    const std::vector<int64_t> from = DenseStrides(type.shape, in.layout),
                               to = DenseStrides(type.shape, out.layout);
    std::vector<CopyAxis> axes;
    for (size_t d = 0; d < from.size(); ++d) axes.push_back({type.shape[d], from[d], to[d]});
    copy_ = Copy(std::move(axes), 0, 0, SizeOf(type.dtype));
  }
  Status Run(const RunContext&, Inputs inputs, Outputs outputs) override {
    copy_.Run(cores_, inputs[0], outputs[0]);
    return OkStatus();
  }

 private:
  int cores_;
  Copy copy_;
};

constexpr int64_t kTileChannels = 16;  // With fewer, rows are too short to move by tiles.

// Whether tiles may do it: both layouts are dense, and there are enough channels.
bool SuitsTiles(const GroupContext& context) {
  const Group& group = context.group;
  const TensorType& type = context.graph.type(group.inputs[0].edge);
  if (type.shape.size() != 4 || type.shape[1] < kTileChannels) return false;
  return IsDense(group.inputs[0].layout) && IsDense(group.outputs[0].layout);
}

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
  std::vector<std::string> names;
  if (SuitsTiles(context)) names.emplace_back(kTiles);
  names.emplace_back("onednn");
  return names;
}

StatusOr<std::unique_ptr<Kernel>> MakeReorder(const GroupContext& context, const std::string& name,
                                              size_t*) {
  if (IsCopy(context.group)) {
    auto copy = std::make_unique<CopyOut>();
    AG_TRY(copy->Prepare(context));
    return copy;
  }
  AG_TRY(CheckReorder(context));
  if (name == kTiles) return std::make_unique<DenseReorder>(context);
  return Prepared<Reorder>("reorder", context);
}

}  // namespace

const Family kReorderFamily = {ReorderNames, MakeReorder, true};

}  // namespace ag::cpu

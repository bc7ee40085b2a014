// Gather: picks rows of one tensor by the indices in another. Indices count from the end when
// negative; one outside the axis, which the reference refuses, gives zeros.
#include "device/cuda/codegen/families.h"
#include "device/cuda/codegen/lanes.h"
#include "graph/array.h"

namespace ag::cuda {
namespace {

struct GatherProblem {
  TensorArgument data, indices, to;
  AxisView view;
  Space space;  // Outer axes, indices, inner axes; tensors: output, data, indices.
};

StatusOr<GatherProblem> GatherProblemOf(GroupText* group) {
  const GroupContext& context = group->context();
  const Node& node = context.node(0);
  for (const Port& port : context.group.inputs) {
    if (port.layout == Layout::kPlain) continue;
    return Err(StatusCode::kUnimplemented, "layout {}", LayoutName(port.layout));
  }
  GatherProblem p;
  group->BeginKernel("gather");
  const DType stored = StoredDType(node.outputs[0].dtype, context.precision);
  AG_LET(p.data, group->Source(node.inputs[0], {.stored = stored}));
  AG_LET(p.indices, group->Source(node.inputs[1]));
  AG_LET(p.to, group->Target(0));
  p.view = ViewAxis(p.data.shape, node.Int("axis"));
  const int64_t count = NumElements(p.indices.shape), inner = p.view.inner;
  p.space = {.sizes = {p.view.outer, count, inner},
             .strides = {{count * inner, inner, 1}, {p.view.axis * inner, 0, 1}, {0, 1, 0}}};
  return p;
}

StatusOr<std::vector<std::string>> GatherVariants(const GroupContext& context) {
  GroupText group(context);
  AG_LET(const GatherProblem p, GatherProblemOf(&group));
  const int64_t vector = VectorOf(p.space, 16 / SizeOf(p.to.stored));
  std::vector<std::string> names{fmt::format("v{}/128", vector), fmt::format("v{}/256", vector)};
  if (vector > 1) names.push_back("v1/128");
  return names;
}

StatusOr<GeneratedGroup> GenerateGather(const GroupContext& context, const std::string& variant) {
  GroupText group(context);
  AG_LET(const GatherProblem p, GatherProblemOf(&group));
  const Lanes lanes = LanesOf(p.space, variant);
  Text text;
  const std::vector<std::string> at = BeginLanes(&text, lanes, "ag_block_x()");
  text.Line("long long row = {}[{}];", p.indices.name, Offset(at, lanes.space.strides[2]));
  text.Line("if (row < 0) row += {};", p.view.axis);
  text.Line("ag_pack<{}, {}> y = {{}};", p.to.type(), lanes.vector);
  if (p.view.axis > 0) {
    const std::string from = Plus(p.data.name, Offset(at, lanes.space.strides[1]));
    text.Line("if (row >= 0 && row < {}) y = {};", p.view.axis,
              LoadLanes(lanes, 1, fmt::format("{} + row * {}", from, p.view.inner)));
  }
  StoreLanes(&text, lanes, 0, Plus(p.to.name, Offset(at, lanes.space.strides[0])), "y");
  AG_TRY(group.EndKernel({.grid = {lanes.blocks(), 1, 1}, .threads = lanes.threads}, text));
  return group.Take();
}

}  // namespace

const Family kGatherFamily = {GatherVariants, GenerateGather};

}  // namespace ag::cuda

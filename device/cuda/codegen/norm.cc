// Layer norm and RMS norm: rows of neighbours, several threads each.
#include "device/cuda/codegen/families.h"
#include "device/cuda/codegen/rows.h"

namespace ag::cuda {
namespace {

struct NormProblem {
  TensorArgument from, to;
  std::vector<TensorArgument> vectors;  // Scale and bias, or scale.
  int64_t rows = 1, count = 1, vector = 1;
};

StatusOr<NormProblem> NormProblemOf(GroupText* group) {
  const GroupContext& context = group->context();
  const Node& node = context.node(0);
  NormProblem p;
  group->BeginKernel("norm_rows");
  AG_LET(p.from, group->Source(node.inputs[0]));
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    AG_LET(p.vectors.emplace_back(), group->Source(node.inputs[i]));
  }
  AG_LET(p.to, group->Target(0));
  for (const auto* ports : {&context.group.inputs, &context.group.outputs}) {
    for (const Port& port : *ports) {
      if (port.layout == Layout::kPlain) continue;
      return Err(StatusCode::kUnimplemented, "layout {}", LayoutName(port.layout));
    }
  }
  p.count = NumElements(p.vectors[0].shape);
  p.rows = NumElements(p.from.shape) / p.count;
  p.vector = RowVectorOf(p.count, SizeOf(p.from.stored));
  return p;
}

StatusOr<std::vector<std::string>> NormVariants(const GroupContext& context) {
  GroupText group(context);
  AG_LET(const NormProblem p, NormProblemOf(&group));
  return RowVariants(p.count, p.vector);
}

StatusOr<GeneratedGroup> GenerateNorm(const GroupContext& context, const std::string& variant) {
  GroupText group(context);
  AG_LET(const NormProblem p, NormProblemOf(&group));
  const Node& node = context.node(0);
  const bool has_mean = node.op == OpKind::kLayerNorm;
  const std::string epsilon = Literal(node.Float("epsilon"), node.outputs[0].dtype);
  const std::string count = Literal(static_cast<double>(p.count), node.outputs[0].dtype);
  Text text;
  RowText rows(&text, CutOf(p.rows, p.count, p.vector, variant), p.from);
  if (has_mean) {
    text.Line("{} mean = 0;", rows.type());
    rows.ForEach("mean += v;");
    rows.Fold("ag_sum", "mean");
    text.Line("mean /= {};", count);
  }
  text.Line("{} squares = 0;", rows.type());
  rows.ForEach(has_mean ? "squares += (v - mean) * (v - mean);" : "squares += v * v;");
  rows.Fold("ag_sum", "squares");
  text.Line("const {0} factor = ({0})1 / ag_sqrt(squares / {1} + {2});", rows.type(), count,
            epsilon);
  rows.Store(p.to, has_mean ? "(v - mean) * factor * c0 + c1" : "v * factor * c0", p.vectors);
  AG_TRY(group.EndKernel(rows.launch(), text));
  return group.Take();
}

}  // namespace

const Family kNormFamily = {NormVariants, GenerateNorm};

}  // namespace ag::cuda

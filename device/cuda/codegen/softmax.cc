// Softmax along any axis: several threads share a row of neighbours; along other axes one thread
// has one line, and neighbouring threads have neighbouring lines.
#include "device/cuda/codegen/families.h"
#include "device/cuda/codegen/rows.h"
#include "graph/array.h"
#include "plan/spec/layout.h"

namespace ag::cuda {
namespace {

struct SoftmaxProblem {
  TensorArgument from, to;
  AxisView view;
};

StatusOr<SoftmaxProblem> SoftmaxProblemOf(GroupText* group) {
  const GroupContext& context = group->context();
  const Node& node = context.node(0);
  SoftmaxProblem p;
  group->BeginKernel("softmax");
  AG_LET(p.from, group->Source(node.inputs[0]));
  AG_LET(p.to, group->Target(0));
  if (p.from.strides != DenseStrides(p.from.shape, Layout::kPlain) ||
      p.to.strides != p.from.strides) {
    const bool is_input = p.from.strides != DenseStrides(p.from.shape, Layout::kPlain);
    return Err(StatusCode::kUnimplemented, "layout {}",
               LayoutName((is_input ? context.group.inputs : context.group.outputs)[0].layout));
  }
  p.view = ViewAxis(p.from.shape, node.Int("axis"));
  return p;
}

StatusOr<std::vector<std::string>> SoftmaxVariants(const GroupContext& context) {
  GroupText group(context);
  AG_LET(const SoftmaxProblem p, SoftmaxProblemOf(&group));
  if (p.view.inner > 1) return std::vector<std::string>{"lines/128", "lines/32"};
  return RowVariants(p.view.axis, RowVectorOf(p.view.axis, SizeOf(p.from.stored)));
}

GroupText::Launch Rows(const SoftmaxProblem& p, const std::string& variant, Text* text) {
  const int64_t count = p.view.axis, vector = RowVectorOf(count, SizeOf(p.from.stored));
  RowText rows(text, CutOf(p.view.outer, count, vector, variant), p.from);
  const std::string lowest = Literal(-std::numeric_limits<double>::infinity(),
                                     rows.type() == "double" ? DType::kFloat64 : DType::kFloat32);
  text->Line("{} most = {}, sum = 0;", rows.type(), lowest);
  rows.ForEach("most = ag_max(most, v);");
  rows.Fold("ag_most", "most");
  rows.ForEach(rows.keeps() ? "sum += v = ag_exp(v - most);" : "sum += ag_exp(v - most);");
  rows.Fold("ag_sum", "sum");
  rows.Store(p.to, rows.keeps() ? "v / sum" : "ag_exp(v - most) / sum");
  return rows.launch();
}

GroupText::Launch Lines(const SoftmaxProblem& p, int64_t threads, Text* text) {
  const AxisView& view = p.view;
  const int64_t lines = view.outer * view.inner;
  const bool is_wide = IsWide(lines * view.axis);
  const std::string index = is_wide ? "long long" : "int";
  const std::string_view type = ComputedType(p.from.stored);
  const std::string each = fmt::format("for (int j = 0; j < {}; ++j)", view.axis);
  const std::string x =
      fmt::format("ag_get({}[base + ({})j * {}])", p.from.name, index, view.inner);
  text->Line("const {} at = ({})ag_block_x() * {} + ag_thread();", index, index, threads);
  text->Line("if (at >= {}) return;", lines);
  text->Line("const {} base = at / {} * {} + at % {};", index, view.inner, view.axis * view.inner,
             view.inner);
  text->Line("{} most = {};", type,
             Literal(-std::numeric_limits<double>::infinity(), p.from.stored));
  text->Line("{} sum = 0;", type);
  text->Line("{} most = ag_max(most, {});", each, x);
  text->Line("{} sum += ag_exp({} - most);", each, x);
  text->Line("{} ag_put({}[base + ({})j * {}], ag_exp({} - most) / sum);", each, p.to.name, index,
             view.inner, x);
  return {.grid = {CeilDiv(lines, threads), 1, 1}, .threads = threads};
}

StatusOr<GeneratedGroup> GenerateSoftmax(const GroupContext& context, const std::string& variant) {
  GroupText group(context);
  AG_LET(const SoftmaxProblem p, SoftmaxProblemOf(&group));
  Text text;
  const GroupText::Launch launch = variant.starts_with("rows")
                                       ? Rows(p, variant, &text)
                                       : Lines(p, NumbersIn(variant)[0], &text);
  AG_TRY(group.EndKernel(launch, text));
  return group.Take();
}

}  // namespace

const Family kSoftmaxFamily = {SoftmaxVariants, GenerateSoftmax};

}  // namespace ag::cuda

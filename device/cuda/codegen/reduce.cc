// Sums, means and maxima over any axes. "rows/T": T neighbouring threads fold one result; for axes
// that are folded along memory. "columns/TvV": 32 neighbouring threads have V results each, and T
// such rows of threads share the terms; for axes that are kept along memory.
#include <algorithm>

#include "device/cuda/codegen/families.h"

namespace ag::cuda {
namespace {

struct ReduceProblem {
  TensorArgument from, to;
  Space kept;    // Tensors: output, input.
  Space folded;  // Tensor: input.
  DType dtype = DType::kFloat32;
  OpKind op = OpKind::kReduceSum;

  std::string type() const { return std::string(ComputedType(dtype)); }
  std::string_view fold() const { return op == OpKind::kReduceMax ? "ag_most" : "ag_sum"; }
  // Returns the initial value of a fold.
  std::string Nothing() const {
    if (op != OpKind::kReduceMax) return Literal(0, dtype);
    if (IsFloat(dtype)) return Literal(-std::numeric_limits<double>::infinity(), dtype);
    return "-9223372036854775807ll - 1";
  }
  std::string Finished(const std::string& value) const {
    if (op != OpKind::kReduceMean) return value;
    const std::string count = IsFloat(dtype) ? Literal(static_cast<double>(folded.Count()), dtype)
                                             : IntegerLiteral(folded.Count());
    return fmt::format("ag_div({}, {})", value, count);
  }
  // Returns the type for positions in kept and folded axes together.
  std::string Index() const {
    const bool is_wide = IndexType(kept) != "int" || IndexType(folded) != "int" ||
                         IsWide(kept.Count() * std::max<int64_t>(folded.Count(), 1));
    return is_wide ? "long long" : "int";
  }
};

StatusOr<ReduceProblem> ReduceProblemOf(GroupText* group) {
  const GroupContext& context = group->context();
  const Node& node = context.node(0);
  ReduceProblem p{.dtype = node.outputs[0].dtype, .op = node.op};
  group->BeginKernel("reduce");
  AG_LET(p.from, group->Source(node.inputs[0]));
  AG_LET(p.to, group->Target(0));
  const Ints& axes = node.IntList("axes");
  const bool keeps = node.Int("keepdims") != 0;
  if (!keeps && context.group.outputs[0].layout != Layout::kPlain) {
    return Err(StatusCode::kUnimplemented, "layout channels_last without keepdims");
  }
  p.kept.strides.resize(2);
  p.folded.strides.resize(1);
  size_t to_axis = 0;
  for (size_t axis = 0; axis < p.from.shape.size(); ++axis) {
    if (std::ranges::count(axes, static_cast<int64_t>(axis)) > 0) {
      p.folded.sizes.push_back(p.from.shape[axis]);
      p.folded.strides[0].push_back(p.from.strides[axis]);
      to_axis += keeps ? 1 : 0;
      continue;
    }
    p.kept.sizes.push_back(p.from.shape[axis]);
    p.kept.strides[0].push_back(p.to.strides[to_axis++]);
    p.kept.strides[1].push_back(p.from.strides[axis]);
  }
  p.kept.Simplify();
  p.folded.Simplify();
  return p;
}

bool IsAlongRows(const ReduceProblem& p) {
  return p.folded.strides[0].back() == 1 && p.folded.Count() > 1 &&
         !(p.kept.strides[1].back() == 1 && p.kept.sizes.back() >= 32);
}

// Returns the number of neighbouring terms that are read at once.
int64_t RowVector(const ReduceProblem& p) {
  Space both = p.folded;
  for (const int64_t stride : p.kept.strides[1]) {
    both.sizes.insert(both.sizes.begin(), 2);
    both.strides[0].insert(both.strides[0].begin(), stride);
  }
  return VectorOf(both, 16 / SizeOf(p.from.stored));
}

// Returns the number of neighbouring results whose terms are read at once.
int64_t ColumnVector(const ReduceProblem& p) {
  if (p.kept.strides[0].back() != 1 || p.kept.strides[1].back() != 1) return 1;
  Space both = p.kept;
  for (const int64_t stride : p.folded.strides[0]) {
    both.sizes.insert(both.sizes.begin(), 2);
    both.strides[0].insert(both.strides[0].begin(), 0);
    both.strides[1].insert(both.strides[1].begin(), stride);
  }
  return VectorOf(both, std::min<int64_t>(16 / SizeOf(p.from.stored), 4));
}

StatusOr<std::vector<std::string>> ReduceVariants(const GroupContext& context) {
  GroupText group(context);
  AG_LET(const ReduceProblem p, ReduceProblemOf(&group));
  std::vector<std::string> names;
  if (IsAlongRows(p)) {
    const int64_t vectors = p.folded.Count() / RowVector(p);
    names = {"rows/32"};
    if (vectors < 32) names.push_back("rows/8");
    if (vectors >= 128) names.push_back("rows/128");
    if (vectors >= 1024) names.push_back("rows/512");
    if (vectors >= 512) std::reverse(names.begin(), names.end());
    return names;
  }
  const int64_t vector = ColumnVector(p);
  for (const int64_t rows : {8, 1, 16}) {
    if (rows > 1 && p.folded.Count() < rows) continue;
    names.push_back(fmt::format("columns/{}v1", rows));
    if (vector > 1) names.push_back(fmt::format("columns/{}v{}", rows, vector));
  }
  return names;
}

StatusOr<GroupText::Launch> Rows(const ReduceProblem& p, int64_t threads, Text* text) {
  const std::string index = p.Index();
  const int64_t vector = RowVector(p), results = std::max<int64_t>(1, 128 / threads);
  const int64_t per_block = threads <= 32 ? results : 1;
  Space folded = p.folded;
  folded.CountVectors(vector);
  text->Line("const int lane = ag_thread() % {};", threads);
  text->Line("const {} at = ag_block_x() * {} + ag_thread() / {};", index, per_block, threads);
  text->Line("{} sum = {};", p.type(), p.Nothing());
  if (threads > 32) text->Line("AG_SHARED {} scratch[{}];", p.type(), threads / 32);
  text->Open("if (at < {})", p.kept.Count());
  std::vector<std::string> at = Coordinates(text, p.kept.sizes, "at", "a", index);
  text->Line("const {}* from = {};", p.from.type(),
             Plus(p.from.name, Offset(at, p.kept.strides[1])));
  text->Open("for ({} j = lane; j < {}; j += {})", index, folded.Count(), threads);
  const std::vector<std::string> term = Coordinates(text, folded.sizes, "j", "f", index);
  text->Line("const ag_pack<{}, {}> x = ag_load<{}>({});", p.from.type(), vector, vector,
             Plus("from", Offset(term, folded.strides[0])));
  text->Line("AG_UNROLL");
  text->Line("for (int k = 0; k < {}; ++k) sum = {}::of(sum, ag_get(x.at[k]));", vector, p.fold());
  text->Close();
  text->Close();
  text->Line("sum = ag_fold<{}, {}>(sum, {});", p.fold(), threads,
             threads > 32 ? "scratch" : fmt::format("({}*)0", p.type()));
  text->Line("if (lane != 0 || at >= {}) return;", p.kept.Count());
  at = Coordinates(text, p.kept.sizes, "at", "a", index);
  text->Line("ag_put({}[{}], {});", p.to.name, Offset(at, p.kept.strides[0]), p.Finished("sum"));
  return GroupText::Launch{.grid = {CeilDiv(p.kept.Count(), per_block), 1, 1},
                           .threads = threads * per_block};
}

StatusOr<GroupText::Launch> Columns(const ReduceProblem& p, int64_t rows, int64_t vector,
                                    Text* text) {
  const std::string index = p.Index();
  Space kept = p.kept;
  kept.CountVectors(vector);
  const std::string lanes = fmt::format("for (int k = 0; k < {}; ++k)", vector);
  text->Line("const int lane = ag_thread() % 32, row = ag_thread() / 32;");
  text->Line("const {} at = ag_block_x() * 32 + lane;", index);
  const std::vector<std::string> at = Coordinates(text, kept.sizes, "at", "a", index);
  text->Line("{} sum[{}];", p.type(), vector);
  text->Line("AG_UNROLL");
  text->Line("{} sum[k] = {};", lanes, p.Nothing());
  text->Open("if (at < {})", kept.Count());
  text->Line("const {}* from = {};", p.from.type(), Plus(p.from.name, Offset(at, kept.strides[1])));
  text->Open("for ({} j = row; j < {}; j += {})", index, p.folded.Count(), rows);
  const std::vector<std::string> term = Coordinates(text, p.folded.sizes, "j", "f", index);
  text->Line("const ag_pack<{}, {}> x = ag_load<{}>({});", p.from.type(), vector, vector,
             Plus("from", Offset(term, p.folded.strides[0])));
  text->Line("AG_UNROLL");
  text->Line("{} sum[k] = {}::of(sum[k], ag_get(x.at[k]));", lanes, p.fold());
  text->Close();
  text->Close();
  if (rows > 1) {
    text->Line("AG_SHARED {} parts[{}][{}];", p.type(), rows, 32 * vector);
    text->Line("AG_UNROLL");
    text->Line("{} parts[row][k * 32 + lane] = sum[k];", lanes);
    text->Line("ag_barrier();");
    text->Line("if (row != 0) return;");
    text->Open("for (int r = 1; r < {}; ++r)", rows);
    text->Line("AG_UNROLL");
    text->Line("{} sum[k] = {}::of(sum[k], parts[r][k * 32 + lane]);", lanes, p.fold());
    text->Close();
  }
  text->Line("if (at >= {}) return;", kept.Count());
  text->Line("ag_pack<{}, {}> y;", p.to.type(), vector);
  text->Line("AG_UNROLL");
  text->Line("{} ag_put(y.at[k], {});", lanes, p.Finished("sum[k]"));
  text->Line("ag_store({}, y);", Plus(p.to.name, Offset(at, kept.strides[0])));
  return GroupText::Launch{.grid = {CeilDiv(kept.Count(), 32), 1, 1}, .threads = 32 * rows};
}

StatusOr<GeneratedGroup> GenerateReduce(const GroupContext& context, const std::string& variant) {
  GroupText group(context);
  AG_LET(const ReduceProblem p, ReduceProblemOf(&group));
  const std::vector<int64_t> numbers = NumbersIn(variant);
  Text text;
  const bool is_rows = variant.starts_with("rows");
  AG_LET(const GroupText::Launch launch,
         is_rows ? Rows(p, numbers[0], &text) : Columns(p, numbers[0], numbers[1], &text));
  AG_TRY(group.EndKernel(launch, text));
  return group.Take();
}

}  // namespace

const Family kReduceFamily = {ReduceVariants, GenerateReduce};

}  // namespace ag::cuda

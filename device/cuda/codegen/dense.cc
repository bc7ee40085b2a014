// Matrix products with what follows them: tiles through shared memory, with the depth cut where
// there are few tiles, and for few rows a kernel in which neighbouring threads read neighbouring
// columns.
#include <algorithm>

#include "device/cuda/codegen/families.h"
#include "device/cuda/codegen/product.h"
#include "graph/array.h"

namespace ag::cuda {
namespace {

constexpr int64_t kThinRowsMax = 8;  // Of the kernel for few rows.

struct DenseProblem {
  TensorArgument left, right;
  Product product;
  Sizes batches, left_batches, right_batches;  // Batch axes and the operands' strides along them.

  bool is_thin() const {
    return product.rows <= kThinRowsMax && right.strides[right.strides.size() - 1] == 1;
  }
};

// Returns the widest vector for lines `apart` from each other (and all batches), of `count`
// elements.
int64_t VectorFor(const TensorArgument& tensor, int64_t count) {
  int64_t vector = std::min<int64_t>(16 / SizeOf(tensor.stored), 8);
  while (count % vector != 0) vector /= 2;
  return vector;
}

Sizes BatchStrides(const TensorArgument& tensor, const Sizes& batches) {
  const size_t axes = tensor.shape.size() - 2;
  return BroadcastTo(std::span(tensor.shape).first(axes), std::span(tensor.strides).first(axes),
                     batches);
}

// Returns operands, batches and cuts. Finish makes the product's functions when nothing moves any
// more. `by_depth`: a constant right operand has the depth innermost.
StatusOr<DenseProblem> DenseProblemOf(GroupText* group, bool by_depth) {
  const GroupContext& context = group->context();
  const Node& node = context.node(0);
  for (const auto* ports : {&context.group.inputs, &context.group.outputs}) {
    for (const Port& port : *ports) {
      if (port.layout == Layout::kPlain) continue;
      return Err(StatusCode::kUnimplemented, "layout {}", LayoutName(port.layout));
    }
  }
  DenseProblem p;
  group->BeginKernel("dense");
  const DType stored = StoredDType(node.outputs[0].dtype, context.precision);
  AG_LET(p.left, group->Source(node.inputs[0], {.stored = stored}));
  ConstantForm form{.stored = stored};
  const int rank = static_cast<int>(context.graph.type(node.inputs[1]).shape.size());
  for (int axis = 0; by_depth && axis < rank; ++axis) form.order.push_back(axis);
  if (by_depth) std::swap(form.order[rank - 2], form.order[rank - 1]);
  AG_LET(p.right, group->Source(node.inputs[1], form));
  const Shape& out = node.outputs[0].shape;
  Product& product = p.product;
  product.dtype = node.outputs[0].dtype;
  product.allows_tf32 = context.precision == Precision::kTf32;
  product.rows = out[out.size() - 2];
  product.columns = out.back();
  product.depth = p.left.shape.back();
  p.batches.assign(out.begin(), out.end() - 2);
  p.left_batches = BatchStrides(p.left, p.batches);
  p.right_batches = BatchStrides(p.right, p.batches);
  const int64_t batches = NumElements(p.batches);
  // One right operand for all: batches of the left one are further rows, where it has them all.
  const bool is_shared = std::ranges::all_of(p.right_batches, [](int64_t s) { return s == 0; });
  if (is_shared && NumElements(p.left.shape) == batches * product.rows * product.depth) {
    product.rows *= batches;
    p.batches = p.left_batches = p.right_batches = {};
  }
  product.batches = NumElements(p.batches);
  return p;
}

void Finish(DenseProblem* problem) {
  DenseProblem& p = *problem;
  Product& product = p.product;
  product.left = {.type = p.left.type(), .along_depth = true};
  product.left.vector = VectorFor(p.left, product.depth);
  product.left.address = [&p](Text*, std::string*) {
    return Plus(
        "a", Offset(Widened({"line", "k"}, NumElements(p.left.shape)), Sizes{p.product.depth, 1}));
  };
  const int64_t line_stride = p.right.strides.back(), depth_stride = p.right.strides.end()[-2];
  product.right = {.type = p.right.type(), .along_depth = depth_stride == 1};
  product.right.vector = VectorFor(p.right, depth_stride == 1 ? product.depth : product.columns);
  product.right.address = [&p, line_stride, depth_stride](Text*, std::string*) {
    return Plus("b", Offset(Widened({"k", "line"}, NumElements(p.right.shape)),
                            Sizes{depth_stride, line_stride}));
  };
  product.split_batch = [](Text*) {};
  product.begin_reading = [&p](Text* text) {
    const int64_t most = std::max(NumElements(p.left.shape), NumElements(p.right.shape));
    const std::vector<std::string> at =
        Widened(Coordinates(text, p.batches, "batch", "n", "int"), most);
    text->Line("const {}* a = {};", p.left.type(), Plus(p.left.name, Offset(at, p.left_batches)));
    text->Line("const {}* b = {};", p.right.type(),
               Plus(p.right.name, Offset(at, p.right_batches)));
  };
  // Where all batches are rows of one product, the epilogue's rows are its first two axes.
  const bool has_batches = product.batches > 1;
  product.at = [has_batches](const std::string& row, const std::string& column) {
    return std::vector<std::string>{has_batches ? "batch" : "0", row, column};
  };
}

// Returns names "thin/<slices>v<vector>/<parts>": a block has 32 x vector columns and slices of the
// depth.
std::vector<std::string> ThinVariants(const DenseProblem& p, const Chip& chip) {
  const int64_t vector = std::min<int64_t>(VectorFor(p.right, p.product.columns), 4);
  std::vector<std::string> names;
  for (const int64_t v : {vector, int64_t{1}}) {
    const int64_t blocks = CeilDiv(p.product.columns, 32 * v) * p.product.batches;
    int64_t parts = 1;
    while (blocks * parts * 2 <= chip.sms && p.product.depth / (parts * 2) >= 64) parts *= 2;
    if (parts > 1) names.push_back(fmt::format("thin/8v{}/{}", v, parts));
    names.push_back(fmt::format("thin/8v{}/1", v));
    if (vector == 1) break;
  }
  return names;
}

StatusOr<std::vector<std::string>> DenseVariants(const GroupContext& context) {
  GroupText group(context);
  AG_TRY(Epilogue::Make(context));
  AG_LET(DenseProblem p, DenseProblemOf(&group, false));
  Finish(&p);
  std::vector<std::string> names;
  if (p.is_thin()) names = ThinVariants(p, context.chip);
  std::ranges::copy(TileVariants(p.product, context.chip), std::back_inserter(names));
  return names;
}

// Writes the sums of all rows for the thread's columns: each warp has a slice of the depth, added
// in shared memory.
GroupText::Launch ThinKernel(const DenseProblem& p, int64_t slices, int64_t vector, int64_t parts,
                             const Epilogue& epilogue, const TensorArgument* partial, Text* text) {
  const Product& product = p.product;
  const std::string_view type = ComputedType(product.dtype);
  const int64_t part_depth = CeilDiv(product.depth, parts), rows = product.rows;
  const int64_t across = CeilDiv(product.columns, 32 * vector);
  const std::string each = fmt::format("for (int v = 0; v < {}; ++v)", vector);
  const std::string each_row = fmt::format("for (int i = 0; i < {}; ++i)", rows);
  text->Line("const int lane = ag_thread() % 32, slice = ag_thread() / 32;");
  const std::vector<std::string> at =
      Coordinates(text, {product.batches, parts, across}, "ag_block_x()", "b", "int");
  text->Line("const int batch = {}, part = {}, column = ({} * 32 + lane) * {};", at[0], at[1],
             at[2], vector);
  text->Line("const int begin = part * {0}, end = ag_min({1}, begin + {0});", part_depth,
             product.depth);
  product.begin_reading(text);
  text->Line("{} acc[{}][{}] = {{}};", type, rows, vector);
  text->Open("if (column < {})", product.columns);
  text->Line("AG_UNROLL_4");
  text->Open("for (int k = begin + slice; k < end; k += {})", slices);
  text->Line("const ag_pack<{0}, {1}> w = ag_load<{1}>(b + (long long)k * {2} + column);",
             p.right.type(), vector, product.columns);
  text->Line("AG_UNROLL");
  text->Open("{}", each_row);
  text->Line("const {} x = ag_get(a[i * {} + k]);", type, product.depth);
  text->Line("AG_UNROLL");
  text->Line("{} acc[i][v] += x * ag_get(w.at[v]);", each);
  text->Close();
  text->Close();
  text->Close();
  text->Line("AG_SHARED {} sums[{}][{}];", type, slices, 32 * vector);
  text->Line("AG_UNROLL");
  text->Open("for (int row = 0; row < {}; ++row)", rows);
  text->Line("AG_UNROLL");
  text->Line("{} sums[slice][v * 32 + lane] = acc[row][v];", each);
  text->Line("ag_barrier();");
  text->Open("if (slice == row % {} && column < {})", slices, product.columns);
  text->Line("{} sum[{}] = {{}};", type, vector);
  text->Open("for (int s = 0; s < {}; ++s)", slices);
  text->Line("AG_UNROLL");
  text->Line("{} sum[v] += sums[s][v * 32 + lane];", each);
  text->Close();
  if (partial == nullptr) {
    epilogue.Apply(text, product.at("row", "column"), product.column_axis, vector, "sum[k]");
  } else {
    StorePart(product, *partial, vector, "sum[k]", text);
  }
  text->Close();
  text->Line("ag_barrier();");
  text->Close();
  return {.grid = {across * product.batches * parts, 1, 1}, .threads = 32 * slices};
}

StatusOr<GeneratedGroup> GenerateDense(const GroupContext& context, const std::string& variant) {
  GroupText group(context);
  AG_LET(Epilogue epilogue, Epilogue::Make(context));
  AG_LET(DenseProblem p, DenseProblemOf(&group, variant.starts_with("mma")));
  Finish(&p);
  const std::vector<int64_t> numbers = NumbersIn(variant);
  const bool is_thin = variant.starts_with("thin");
  const int64_t parts = is_thin ? numbers[2] : TileCutOf(variant).parts;
  const auto body = [&](const TensorArgument* partial, Text* text) {
    if (is_thin) return ThinKernel(p, numbers[0], numbers[1], parts, epilogue, partial, text);
    return TileKernel(p.product, TileCutOf(variant), epilogue, partial, text);
  };
  AG_TRY(EndProduct(&group, p.product, parts, {.epilogue = &epilogue}, body));
  return group.Take();
}

}  // namespace

const Family kDenseFamily = {DenseVariants, GenerateDense};

}  // namespace ag::cuda

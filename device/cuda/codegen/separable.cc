// A depthwise convolution, the operators after it, and the pointwise convolution that reads them,
// as one kernel: a matrix product of tiles whose left operand is computed while a tile is filled,
// so that the values between the two are never in memory. A tile's channels are computed once for
// each tile of output channels.
#include <algorithm>

#include "device/cuda/codegen/convolution.h"
#include "device/cuda/codegen/families.h"

namespace ag::cuda {
namespace {

// The two convolutions and the operators between them, in the kernel that is being written.
struct Separable {
  Convolution depthwise;
  TensorArgument bias;       // Of the depthwise convolution.
  size_t pointwise = 1;      // Its position in the group.
  TensorArgument weights;    // Of the pointwise convolution: output channels, channels.
  bool is_by_depth = false;  // Neighbours of these weights are neighbouring channels.
  int64_t channels = 1;      // Between the two; includes the input's padding, which is set to zero.
  int64_t channels_out = 1;
  int64_t vector = 1;  // Neighbouring channels that are computed at once.
};

// Returns the second convolution of the group. REQUIRES: there is one.
size_t PointwiseOf(const GroupContext& context) {
  size_t i = 1;
  while (context.node(i).op != OpKind::kConv) ++i;
  return i;
}

Status CheckForms(const GroupContext& context, const Convolution& c, const Node& pointwise) {
  const Shape& weights = context.graph.type(pointwise.inputs[1]).shape;
  const auto is_one = [](int64_t number) { return number == 1; };
  const bool is_pointwise =
      std::ranges::all_of(std::span(weights).subspan(2), is_one) && pointwise.Int("group") == 1 &&
      std::ranges::all_of(pointwise.IntList("strides"), is_one) &&
      std::ranges::count(pointwise.IntList("pads"), 0) == std::ssize(pointwise.IntList("pads"));
  if (c.is_depthwise() && is_pointwise && c.is_last && c.index == "int") return OkStatus();
  return Err(StatusCode::kUnimplemented,
             "expected a depthwise convolution before a pointwise one with channels last, of less "
             "than 2^31 elements");
}

StatusOr<Separable> SeparableOf(GroupText* group, bool by_depth) {
  const GroupContext& context = group->context();
  Separable s{.pointwise = PointwiseOf(context), .is_by_depth = by_depth};
  AG_LET(s.depthwise, ConvolutionOf(group, false));
  const Convolution& c = s.depthwise;
  const Node& pointwise = context.node(s.pointwise);
  AG_TRY(CheckForms(context, c, pointwise));
  s.channels = c.groups + c.padding;
  ConstantForm form{.stored = c.x.stored, .order = {2, 3, 1, 0}};
  if (by_depth) form.order = {0, 2, 3, 1};
  ConstantForm bias;
  if (c.padding > 0) {
    bias.padded = {s.channels};
    form.padded = context.graph.type(pointwise.inputs[1]).shape;
    form.padded[1] = s.channels;
  }
  AG_LET(s.bias, group->Source(c.bias, bias));
  AG_LET(s.weights, group->Source(pointwise.inputs[1], form));
  s.channels_out = pointwise.outputs[0].shape[1];
  if (c.x.strides[1] == 1 && c.w.strides[0] == 1) {
    s.vector = std::min<int64_t>(16 / SizeOf(c.x.stored), 8);
    const int64_t pixel = c.x.strides[3];
    while (s.channels % s.vector != 0 || pixel % s.vector != 0) s.vector /= 2;
  }
  return s;
}

// Writes the sums of the channels from k on at position `line`, and the operators that make the
// pointwise convolution's operand from them; returns that pack.
std::string ComputedChannels(const Separable& s, Text* text) {
  const Convolution& c = s.depthwise;
  const std::string lanes = fmt::format("for (int v = 0; v < {}; ++v)", s.vector);
  DeclareWindow(c, "line", text);
  text->Line("{} sum[{}];", ComputedType(c.x.stored), s.vector);
  text->Line("{} sum[v] = ag_get({}[k + v]);", lanes, s.bias.name);
  text->Line("AG_UNROLL");
  text->Open("for (int k0 = 0; k0 < {}; ++k0)", c.windows[0].kernel);
  text->Line("const int p0 = first_0 + k0 * {};", c.windows[0].dilation);
  if (!c.windows[0].is_inside()) text->Line("if (p0 < 0 || p0 >= {}) continue;", c.windows[0].in);
  text->Line("AG_UNROLL");
  text->Open("for (int k1 = 0; k1 < {}; ++k1)", c.windows[1].kernel);
  text->Line("const int p1 = first_1 + k1 * {};", c.windows[1].dilation);
  if (!c.windows[1].is_inside()) text->Line("if (p1 < 0 || p1 >= {}) continue;", c.windows[1].in);
  text->Line("const ag_pack<{0}, {1}> near = ag_load<{1}>(x + {2});", c.x.type(), s.vector,
             Offset({"k", "p0", "p1"}, std::span(c.x.strides).subspan(1)));
  text->Line("const ag_pack<{0}, {1}> filter = ag_load<{1}>({2} + {3});", c.w.type(), s.vector,
             c.w.name, WeightOffset(c, "k", "0", {"k0", "k1"}));
  text->Line("AG_UNROLL");
  text->Line("{} sum[v] += ag_get(near.at[v]) * ag_get(filter.at[v]);", lanes);
  text->Close();
  text->Close();
  text->Line("ag_pack<{}, {}> between;", c.x.type(), s.vector);
  text->Line("AG_UNROLL");
  text->Line("{} between_at(sum[v], between.at[v]);", lanes);
  return "between";
}

ProductOperand WeightOperand(const Separable& s) {
  ProductOperand operand{.type = s.weights.type(), .along_depth = s.is_by_depth};
  operand.vector = std::min<int64_t>(16 / SizeOf(s.weights.stored), 8);
  const int64_t run = s.is_by_depth ? s.channels : s.channels_out;
  while (run % operand.vector != 0) operand.vector /= 2;
  operand.address = [&s](Text*, std::string*) {
    return Plus(s.weights.name, Offset({"line", "k"}, std::span(s.weights.strides).first(2)));
  };
  return operand;
}

// REQUIRES: `s` outlives the product.
Product ProductOf(const Separable& s) {
  const Convolution& c = s.depthwise;
  Product p{.batches = c.images, .depth = s.channels, .dtype = c.x.stored};
  p.rows = c.positions;
  p.columns = s.channels_out;
  p.left = {.type = c.x.type(), .along_depth = true, .vector = s.vector};
  p.left.address = [&s](Text* text, std::string*) { return ComputedChannels(s, text); };
  p.left.is_computed = true;
  if (c.padding > 0) p.left.is_zero = fmt::format("k + v >= {}", c.groups);
  p.left.work = static_cast<double>(c.taps);
  p.right = WeightOperand(s);
  p.column_axis = 1;
  p.allows_tf32 = c.allows_tf32;
  p.split_batch = [](Text* text) { text->Line("const int image = batch;"); };
  p.begin_reading = [&c](Text* text) {
    text->Line("const {}* x = {} + image * {};", c.x.type(), c.x.name, c.x.strides[0]);
  };
  p.at = [](const std::string& row, const std::string& column) {
    return std::vector<std::string>{"image", column, row};
  };
  return p;
}

StatusOr<std::vector<std::string>> SeparableVariants(const GroupContext& context) {
  GroupText group(context);
  group.BeginKernel("separable");
  AG_LET(const Separable s, SeparableOf(&group, false));
  AG_LET(Epilogue epilogue, Epilogue::Make(context, s.pointwise + 1));
  AG_TRY(Pointwise::Between(context, 1, s.pointwise));
  AG_TRY(epilogue.Bind(&group, Epilogue::View::kConvolution, context.node(s.pointwise).inputs[2]));
  return TileVariants(ProductOf(s), context.chip);
}

StatusOr<GeneratedGroup> GenerateSeparable(const GroupContext& context,
                                           const std::string& variant) {
  const TileCut cut = TileCutOf(variant);
  GroupText group(context);
  group.BeginKernel("separable");
  AG_LET(const Separable s, SeparableOf(&group, cut.uses_matrix_cores));
  AG_LET(Epilogue epilogue, Epilogue::Make(context, s.pointwise + 1));
  AG_LET(const Pointwise between, Pointwise::Between(context, 1, s.pointwise));
  group.Function(between.Define("between_at", {}, std::span(&s.depthwise.x, 1)));
  const Product product = ProductOf(s);
  const ProductEnd end{&epilogue, Epilogue::View::kConvolution,
                       context.node(s.pointwise).inputs[2]};
  AG_TRY(
      EndProduct(&group, product, cut.parts, end, [&](const TensorArgument* partial, Text* text) {
        return TileKernel(product, cut, epilogue, partial, text);
      }));
  return group.Take();
}

}  // namespace

const Family kSeparableFamily = {SeparableVariants, GenerateSeparable};

}  // namespace ag::cuda

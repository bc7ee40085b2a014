// Convolutions with what follows them, for any strides, pads, dilations, groups and spatial axes.
// In the direct kernel here a thread has one sum, or one per neighbouring channel; it supports
// everything. depthwise.cc and tiled_convolution.cc have kernels for common cases.
#include "device/cuda/codegen/convolution.h"

#include <algorithm>

#include "device/cuda/codegen/families.h"

namespace ag::cuda {
namespace {

// Returns the output channels of one thread of the direct kernel.
int64_t DirectVector(const Convolution& c) {
  if (!c.is_last || c.w.strides[0] != 1) return 1;
  int64_t vector = std::min<int64_t>(16 / SizeOf(c.w.stored), 4);
  while (c.channels_out % vector != 0) vector /= 2;
  return vector;
}

StatusOr<std::vector<std::string>> ConvolutionVariants(const GroupContext& context) {
  GroupText group(context);
  group.BeginKernel("conv");
  AG_LET(const Convolution c, ConvolutionOf(&group, false));
  AG_LET(Epilogue epilogue, Epilogue::Make(context));
  AG_TRY(epilogue.Bind(&group, Epilogue::View::kConvolution, c.bias, c.padding));
  std::vector<std::string> direct{fmt::format("direct/{}", DirectVector(c))};
  if (direct[0] != "direct/1") direct.push_back("direct/1");
  std::vector<std::string> names = DepthwiseVariants(c, epilogue);
  const bool is_narrow = c.channels_out < 16;
  if (is_narrow) std::ranges::move(direct, std::back_inserter(names));
  if (!c.is_depthwise()) {
    std::ranges::copy(ConvolutionTiles(c, context.chip), std::back_inserter(names));
  }
  if (!is_narrow) std::ranges::move(direct, std::back_inserter(names));
  return names;
}

// Writes the sums of the thread's output, as acc[vector].
void DirectSums(const Convolution& c, int64_t vector, Text* text) {
  const std::string_view type = ComputedType(c.x.stored);
  text->Line(
      "const {}* image_x = {};", c.x.type(),
      Plus(c.x.name, Offset({c.index == "int" ? "image" : "(long long)image",
                             fmt::format("(channel / {} * {})", c.channels_out, c.channels_in)},
                            Sizes{c.x.strides[0], c.x.strides[1]})));
  text->Line("{} acc[{}] = {{}};", type, vector);
  std::vector<std::string> taps;
  std::string place = "image_x";
  for (size_t i = 0; i < c.windows.size(); ++i) {
    const WindowAxis& w = c.windows[i];
    text->Open("for (int k{0} = 0; k{0} < {1}; ++k{0})", i, w.kernel);
    text->Line("const int p{0} = first_{0} + k{0} * {1};", i, w.dilation);
    if (!w.is_inside()) text->Line("if (p{0} < 0 || p{0} >= {1}) continue;", i, w.in);
    place += fmt::format(" + ({})p{} * {}", c.index, i, c.x.strides[i + 2]);
    taps.push_back(fmt::format("k{}", i));
  }
  text->Line("const {}* from = {};", c.x.type(), place);
  text->Line("AG_UNROLL_4");
  text->Open("for (int c = 0; c < {}; ++c)", c.channels_in);
  text->Line("const {} x = ag_get(from[c * {}]);", type, c.x.strides[1]);
  text->Line("const ag_pack<{0}, {1}> w = ag_load<{1}>({2} + {3});", c.w.type(), vector, c.w.name,
             WeightOffset(c, "channel", "c", taps));
  text->Line("AG_UNROLL");
  text->Line("for (int k = 0; k < {}; ++k) acc[k] += x * ag_get(w.at[k]);", vector);
  text->Close();
  for (size_t i = 0; i < c.windows.size(); ++i) text->Close();
}

Status Direct(GroupText* group, const Convolution& c, Epilogue* epilogue, int64_t vector) {
  constexpr int64_t kThreads = 128;
  AG_TRY(epilogue->Bind(group, Epilogue::View::kConvolution, c.bias));
  const int64_t channels = c.groups * c.channels_out;
  const Sizes sizes = c.is_last ? Sizes{c.images, c.positions, channels / vector}
                                : Sizes{c.images, channels, c.positions};
  const int64_t count = c.images * c.positions * (channels / vector);
  Text text;
  text.Line("const {0} at = ({0})ag_block_x() * {1} + ag_thread();", c.index, kThreads);
  text.Line("if (at >= {}) return;", count);
  std::vector<std::string> at = Coordinates(&text, sizes, "at", "a", c.index);
  if (c.is_last) std::swap(at[1], at[2]);
  text.Line("const int image = {}, position = {};", at[0], at[2]);
  text.Line("const int channel = ({}) * {};", at[1], vector);
  DeclareWindow(c, "position", &text);
  DirectSums(c, vector, &text);
  // The output's layout may not allow vectors; then its elements are written one by one.
  const int64_t written = epilogue->VectorOf(1, vector);
  if (written == vector) {
    epilogue->Apply(&text, {"image", "channel", "position"}, 1, vector, "acc[k]");
  } else {
    text.Line("AG_UNROLL");
    text.Open("for (int j = 0; j < {}; ++j)", vector);
    epilogue->Apply(&text, {"image", "channel + j", "position"}, 1, 1, "acc[j + k]");
    text.Close();
  }
  return group->EndKernel({.grid = {CeilDiv(count, kThreads), 1, 1}, .threads = kThreads}, text);
}

StatusOr<GeneratedGroup> GenerateConvolution(const GroupContext& context,
                                             const std::string& variant) {
  GroupText group(context);
  group.BeginKernel("conv");
  AG_LET(const Convolution c, ConvolutionOf(&group, variant.starts_with("mma")));
  AG_LET(Epilogue epilogue, Epilogue::Make(context));
  if (variant.starts_with("direct")) {
    AG_TRY(Direct(&group, c, &epilogue, NumbersIn(variant)[0]));
  } else if (variant.starts_with("depthwise")) {
    AG_TRY(Depthwise(&group, c, &epilogue, variant));
  } else {
    AG_TRY(TiledConvolution(&group, c, &epilogue, variant));
  }
  return group.Take();
}

}  // namespace

StatusOr<Convolution> ConvolutionOf(GroupText* group, bool by_depth) {
  const GroupContext& context = group->context();
  const Node& node = context.node(0);
  const TensorType& out = node.outputs[0];
  Convolution c{.bias = node.inputs[2]};
  c.is_last = IsChannelsLast(context.group.outputs[0].layout);
  c.allows_tf32 = context.precision == Precision::kTf32;
  AG_LET(c.x, group->Source(node.inputs[0], {.stored = StoredDType(out.dtype, context.precision)}));
  ConstantForm form{.stored = StoredDType(out.dtype, context.precision)};
  const Shape& weights = context.graph.type(node.inputs[1]).shape;
  if (c.is_last) {
    if (by_depth) form.order.push_back(0);
    for (size_t i = 2; i < weights.size(); ++i) form.order.push_back(static_cast<int>(i));
    form.order.push_back(1);
    if (!by_depth) form.order.push_back(0);
  }
  const bool is_depthwise = weights[0] == node.Int("group") && weights[1] == 1;
  const bool is_known = context.graph.is_constant(node.inputs[1].node);
  if (is_known && is_depthwise) {
    c.padding = IsSeparable(context) ? c.x.padding : Epilogue::PaddingOf(context);
  }
  const bool is_summed = is_known && c.is_last && node.Int("group") == 1;
  c.channels_summed = weights[1] + (is_summed ? c.x.padding : 0);
  form.padded = weights;
  form.padded[0] += c.padding;
  form.padded[1] = c.channels_summed;
  if (form.padded == weights) form.padded.clear();
  AG_LET(c.w, group->Source(node.inputs[1], form));
  c.windows = WindowAxesOf(node, c.x.shape, std::span(weights).subspan(2));
  c.groups = node.Int("group");
  c.images = out.shape[0];
  c.channels_in = weights[1];
  c.channels_out = out.shape[1] / c.groups;
  c.positions = NumElements(std::span(out.shape).subspan(2));
  c.taps = NumElements(std::span(weights).subspan(2));
  const auto elements = [](const Shape& shape, Layout layout) {
    return LayoutBytes({DType::kInt8, shape}, layout);
  };
  const int port = context.InputOf(node.inputs[0]);
  const int64_t most =
      std::max({elements(c.x.shape, port < 0 ? Layout::kPlain : context.group.inputs[port].layout),
                NumElements(weights), elements(out.shape, context.group.outputs[0].layout)});
  c.index = IsWide(most) ? "long long" : "int";
  return c;
}

bool IsSeparable(const GroupContext& context) {
  const auto is_convolution = [&](NodeId id) { return context.graph.node(id).op == OpKind::kConv; };
  return std::ranges::count_if(context.group.nodes, is_convolution) > 1;
}

void DeclareWindow(const Convolution& c, const std::string& position, Text* text) {
  Sizes sizes;
  for (const WindowAxis& w : c.windows) sizes.push_back(w.out);
  const std::vector<std::string> at = Coordinates(text, sizes, position, "q", "int");
  for (size_t i = 0; i < c.windows.size(); ++i) {
    text->Line("const int first_{} = {} * {} - {};", i, at[i], c.windows[i].stride,
               c.windows[i].pad_begin);
  }
}

std::string WeightOffset(const Convolution& c, const std::string& out, const std::string& in,
                         const std::vector<std::string>& taps) {
  std::vector<std::string> at{out, in};
  std::ranges::copy(taps, std::back_inserter(at));
  for (size_t axis = 0; axis < at.size(); ++axis) {
    if (c.w.shape[axis] == 1) at[axis] = "0";
  }
  return Offset(at, c.w.strides);
}

const Family kConvolutionFamily = {ConvolutionVariants, GenerateConvolution};

}  // namespace ag::cuda

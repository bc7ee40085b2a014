#include "device/cpu/winograd.h"

#include <algorithm>

#include "device/cpu/post_ops.h"
#include "device/cpu/winograd_tiles.h"
#include "plan/spec/kernel_family.h"

namespace ag::cpu {
namespace {

// With fewer tiles the products are bound by reading the weights.
constexpr int64_t kTilesMin = 6;
// With more tiles of 4x4 outputs than this they are bound by computing, of which small tiles need
// 1.8 times as much: two cores read one number in the time of some 40 products.
constexpr int64_t kTilesMaxOfSmall = 40;

WinogradImage ImageOf(const Shape& shape, Layout layout) {
  WinogradImage image{.height = shape[2], .width = shape[3]};
  image.channels = ChannelsInMemory(shape, layout);
  image.block = layout == Layout::kChannelsLast ? image.channels : BlockOf(layout);
  image.pixel = image.block;
  image.plane = image.height * image.width * image.block;
  return image;
}

WinogradTile TileOf(std::string_view name) { return {name == kSmallWinogradName ? 2 : 4}; }

WinogradProblem WinogradProblemOf(const GroupContext& context, const WinogradTile& tile) {
  const Node& node = context.node(0);
  const Shape &x = context.graph.type(node.inputs[0]).shape, &y = node.outputs[0].shape;
  const Ints& pads = node.IntList("pads");
  WinogradProblem p{.tile = tile};
  p.in = ImageOf(x, context.group.inputs[context.InputOf(node.inputs[0])].layout);
  p.out = ImageOf(y, context.group.outputs[0].layout);
  p.is_bf16 = node.outputs[0].dtype == DType::kBFloat16;
  p.images = x[0];
  p.channels = x[1];
  p.results = y[1];
  p.pad_y = pads[0];
  p.pad_x = pads[1];
  return p;
}

// What follows the convolution and is computed with it.
struct Fused {
  int residual = -1;  // Input port.
  ValueBounds bounds;
  size_t done = 1;
};

// Bounds that leave zeros as they are, since the padding of blocked channels must stay zero.
bool SetBounds(const Node& node, Fused* fused) {
  const std::optional<ValueBounds> bounds = BoundsOf(node);
  if (!bounds || !bounds->HasZero()) return false;
  fused->bounds = *bounds;
  return true;
}

Fused FusedOf(const GroupContext& context) {
  Fused fused;
  for (size_t i = 1; i < context.group.nodes.size(); ++i) {
    const Node& node = context.node(i);
    if (!Follows(context, i) || node.outputs[0] != context.node(0).outputs[0]) break;
    if (node.op == OpKind::kAdd && fused.residual < 0) {
      fused.residual = ResidualPort(context, i);
      if (fused.residual < 0) break;
    } else {
      if (!SetBounds(node, &fused)) break;
      fused.done = i + 1;
      break;  // The bounds come last.
    }
    fused.done = i + 1;
  }
  return fused;
}

class WinogradConvolution : public Kernel {
 public:
  Status Prepare(const GroupContext& context, const WinogradTile& tile, size_t* done) {
    fused_ = FusedOf(context);
    *done = fused_.done;
    const Node& node = context.node(0);
    x_ = context.InputOf(node.inputs[0]);
    tiles_.Prepare(WinogradProblemOf(context, tile), context.cores);
    if (context.constants == nullptr) return OkStatus();
    return tiles_.SetWeights(context, node.inputs[1], node.inputs[2]);
  }
  Status Run(const RunContext& context, Inputs inputs, Outputs outputs) override {
    WinogradTail tail{.low = fused_.bounds.low, .high = fused_.bounds.high};
    if (fused_.residual >= 0) tail.residual = inputs[fused_.residual];
    tiles_.Run(inputs[x_], tail, outputs[0], context.scratch);
    return OkStatus();
  }
  size_t scratch_bytes() const override { return tiles_.scratch_bytes(); }

 private:
  WinogradTiles tiles_;
  Fused fused_;
  int x_ = -1;
};

bool AllAre(const Ints& values, int64_t wanted) {
  return std::ranges::all_of(values, [wanted](int64_t v) { return v == wanted; });
}

Status Lacks(const Node& node, std::string_view name, std::string_view what) {
  return Err(StatusCode::kUnimplemented, "conv: {} has no {}: {}", node.outputs[0].ToString(), name,
             what);
}

}  // namespace

Status CheckWinograd(const GroupContext& context, std::string_view name) {
  const Node& node = context.node(0);
  const Shape& w = context.graph.type(node.inputs[1]).shape;
  const Ints& pads = node.IntList("pads");
  if (w.size() != 4 || w[2] != 3 || w[3] != 3 || node.Int("group") != 1 ||
      !AllAre(node.IntList("strides"), 1) || !AllAre(node.IntList("dilations"), 1)) {
    return Lacks(node, name, "not 3x3 taps, stride 1 and one group");
  }
  if (context.InputOf(node.inputs[1]) >= 0 || context.InputOf(node.inputs[2]) >= 0) {
    return Lacks(node, name, "weights and bias are no constants");
  }
  if (std::ranges::any_of(pads, [](int64_t pad) { return pad < 0; })) {
    return Lacks(node, name, "negative pads");
  }
  const WinogradProblem p = WinogradProblemOf(context, TileOf(name));
  if (name == kSmallWinogradName &&
      WinogradProblemOf(context, TileOf(kWinogradName)).tiles() > kTilesMaxOfSmall) {
    return Lacks(node, name, "so many tiles that larger ones are better");
  }
  if (p.tiles() < kTilesMin || p.channels < kWinogradChannelsMin ||
      p.results < kWinogradChannelsMin) {
    return Lacks(node, name, "too few tiles or channels");
  }
  if (!WinogradTiles::Fits(p)) return Lacks(node, name, "channels do not lie in whole vectors");
  return OkStatus();
}

bool PacksHeldWeights(const GroupContext& context, std::string_view name) {
  const WinogradProblem p = WinogradProblemOf(context, TileOf(name));
  const Edge weights = context.node(0).inputs[1];
  const Desc given = WinogradTiles::GivenForm(p);
  return !HeldForms(context, weights, given).empty() &&
         HeldForms(context, weights, given, WinogradTiles::PackedForm(p).dims()).empty();
}

StatusOr<std::unique_ptr<Kernel>> MakeWinograd(const GroupContext& context, std::string_view name,
                                               size_t* done) {
  auto kernel = std::make_unique<WinogradConvolution>();
  AG_TRY(kernel->Prepare(context, TileOf(name), done));
  return kernel;
}

}  // namespace ag::cpu

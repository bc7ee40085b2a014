#include "device/cpu/winograd.h"

#include <algorithm>
#include <limits>

#include "device/cpu/host.h"
#include "device/cpu/packed_weights.h"
#include "device/cpu/parallel.h"
#include "device/cpu/post_ops.h"
#include "device/cpu/winograd_loops.h"

namespace ag::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// With fewer tiles the products are bound by reading the weights.
constexpr int64_t kTilesMin = 6;
// With more tiles of 4x4 outputs than this they are bound by computing, of which small tiles need
// 1.8 times as much: two cores read one number in the time of some 40 products.
constexpr int64_t kTilesMaxOfSmall = 40;
constexpr int64_t kChannelsMin = 16;

// Floats between the points of a transformed tile beyond its own: without them the stores of the
// points of wide tiles would fall into the same few sets of the cache.
constexpr int64_t kStepPadding = 16;

struct WinogradProblem {
  WinogradTile tile;
  WinogradImage in, out;
  bool is_bf16 = false;  // What the images hold; else f32.
  int64_t images = 0;
  int64_t channels = 0, results = 0;  // Without padding.
  int64_t pad_y = 0, pad_x = 0;
  int64_t rows = 0, columns = 0;  // Of tiles in an image.

  int64_t tiles() const { return images * rows * columns; }
  // Of an image in memory.
  int64_t Bytes(const WinogradImage& image) const {
    return image.channels * image.height * image.width * (is_bf16 ? 2 : 4);
  }
};

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
  p.rows = (y[2] + tile.outputs - 1) / tile.outputs;
  p.columns = (y[3] + tile.outputs - 1) / tile.outputs;
  return p;
}

// Returns the widest loops whose vectors fit into the channels of both images; null: none.
const WinogradLoops* LoopsFor(const WinogradProblem& p) {
  const std::string isa = InstructionSet();
  const auto fit = [&](const WinogradLoops& loops) {
    return p.in.channels % loops.lanes == 0 && p.out.channels % loops.lanes == 0 &&
           p.in.block % loops.lanes == 0 && p.out.block % loops.lanes == 0;
  };
  for (const std::string_view set : {"avx512", "avx2", "sse41"}) {
    if (set == "avx512" && isa != "avx512") continue;
    if (set == "avx2" && isa == "sse41") continue;
    const WinogradLoops& loops = WinogradLoopsFor(set, p.tile.outputs, p.is_bf16);
    if (fit(loops)) return &loops;
  }
  return nullptr;
}

// The form of packed weights: by point, panel, channel. No primitive of oneDNN has it.
Desc FormOf(const WinogradProblem& p, const WinogradLoops& loops) {
  const int64_t width = loops.vectors * loops.lanes;
  return PlainDesc({p.tile.points(), (p.out.channels + width - 1) / width, p.channels, width});
}

Desc GivenForm(const WinogradProblem& p) { return PlainDesc({p.results, p.channels, 3, 3}); }

// What follows the convolution and is computed with it.
struct Fused {
  int residual = -1;  // Input port.
  float low = -kInfinity, high = kInfinity;
  size_t done = 1;
};

// Returns the port of node i's other operand when that lies as the output does; -1: it does not.
int ResidualPort(const GroupContext& context, size_t i) {
  const int other = OtherOperand(context, i);
  if (other < 0) return -1;
  const Edge edge = context.node(i).inputs[other];
  const int port = context.InputOf(edge);
  const bool same = port >= 0 && context.graph.type(edge) == context.node(0).outputs[0] &&
                    context.group.inputs[port].layout == context.group.outputs[0].layout;
  return same ? port : -1;
}

// Bounds that leave zeros as they are, since the padding of blocked channels must stay zero.
bool SetBounds(const Node& node, Fused* fused) {
  if (node.op == OpKind::kRelu) {
    fused->low = 0;
    return true;
  }
  if (node.op != OpKind::kClip) return false;
  fused->low = static_cast<float>(node.Float("min"));
  fused->high = static_cast<float>(node.Float("max"));
  return fused->low <= 0 && fused->high >= 0;
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
      Fused bounded = fused;
      if (!SetBounds(node, &bounded)) break;
      fused = bounded;
      fused.done = i + 1;
      break;  // The bounds come last.
    }
    fused.done = i + 1;
  }
  return fused;
}

class WinogradTiles : public Kernel {
 public:
  Status Prepare(const GroupContext& context, const WinogradTile& tile, size_t* done);
  Status Run(const RunContext& context, Inputs inputs, Outputs outputs) override;
  size_t scratch_bytes() const override {
    const int64_t areas = by_chunks_ ? cores_ : 1;
    return AlignUp(static_cast<size_t>(areas * AreaFloats()) * sizeof(float));
  }

 private:
  // The memory of some tiles between the steps: transformed inputs, then products.
  struct Area {
    float* in = nullptr;
    float* out = nullptr;
  };
  // Tiles [begin, end), counted over all images; they lie in an area from its begin on.
  struct Tiles {
    int64_t begin = 0, end = 0;
  };

  int64_t InStep() const { return area_tiles_ * p_.in.channels + kStepPadding; }
  int64_t OutStep() const { return area_tiles_ * p_.out.channels + kStepPadding; }
  int64_t Points() const { return p_.tile.points(); }
  int64_t AreaFloats() const { return Points() * (InStep() + OutStep()); }
  int64_t PanelWidth() const { return loops_->vectors * loops_->lanes; }
  int64_t Panels() const { return (p_.out.channels + PanelWidth() - 1) / PanelWidth(); }
  Area AreaAt(std::byte* scratch, int64_t index) const {
    float* begin = reinterpret_cast<float*>(scratch) + index * AreaFloats();
    return {begin, begin + Points() * InStep()};
  }

  void Divide();
  Status Pack(const GroupContext& context);
  void PackPoint(const float* w, int64_t result, int64_t channel, float* to) const;
  StatusOr<AlignedBuffer> PackWeights(const Tensor& weights) const;
  void TransformInputs(const std::byte* x, const Area& area, const Tiles& tiles,
                       int64_t first) const;
  void Multiply(const Area& area, int64_t count, int64_t begin, int64_t end) const;
  void TransformOutputs(const Area& area, const Tiles& tiles, int64_t first,
                        const WinogradTail& tail, std::byte* y) const;

  WinogradProblem p_;
  const WinogradLoops* loops_ = nullptr;
  Fused fused_;
  int cores_ = 1;
  int x_ = -1;
  bool by_chunks_ = false;  // Each core takes chunks of tiles; else all take parts of each step.
  int64_t chunks_ = 1;
  int64_t area_tiles_ = 0;                        // Of the largest chunk.
  std::shared_ptr<const AlignedBuffer> weights_;  // By point, panel, channel.
  AlignedBuffer bias_;                            // By channel in memory.
};

Status WinogradTiles::Prepare(const GroupContext& context, const WinogradTile& tile, size_t* done) {
  p_ = WinogradProblemOf(context, tile);
  loops_ = LoopsFor(p_);
  fused_ = FusedOf(context);
  cores_ = context.cores;
  x_ = context.InputOf(context.node(0).inputs[0]);
  *done = fused_.done;
  Divide();
  return context.constants == nullptr ? OkStatus() : Pack(context);
}

// A chunk's transforms stay in the nearest large cache, and the weights are read once a chunk, so
// chunks grow with the weights. Measured on one core of a Zen 3 (512 KiB of L2): 12 to 48 tiles a
// chunk take the same time within 5 % from 64 to 64 and from 128 to 128 channels.
void WinogradTiles::Divide() {
  const int64_t weights_bytes = Points() * p_.channels * p_.out.channels * 4;
  int64_t chunk = 2 * loops_->rows;
  while (chunk < 8 * loops_->rows && weights_bytes > chunk * (int64_t{1} << 17)) chunk *= 2;
  const int64_t tiles = p_.tiles();
  by_chunks_ = tiles >= 2 * loops_->rows * cores_ * 2;
  if (by_chunks_) {
    chunks_ = RoundUp((tiles + chunk - 1) / chunk, cores_);
    area_tiles_ = (tiles + chunks_ - 1) / chunks_;
  } else {
    area_tiles_ = tiles;
  }
}

// Writes the points of one filter to their places.
void WinogradTiles::PackPoint(const float* w, int64_t result, int64_t channel, float* to) const {
  double points[kWinogradPointsMax];
  TransformWinogradFilter(p_.tile, w, points);
  const int64_t panel = result / PanelWidth(), begin = panel * PanelWidth();
  const int64_t width = std::min(PanelWidth(), p_.out.channels - begin);
  float* at = to + begin * p_.channels + channel * width + (result - begin);
  for (int64_t point = 0; point < Points(); ++point) {
    at[point * p_.channels * p_.out.channels] = static_cast<float>(points[point]);
  }
}

StatusOr<AlignedBuffer> WinogradTiles::PackWeights(const Tensor& weights) const {
  const int64_t floats = Points() * p_.channels * p_.out.channels;
  AG_LET(AlignedBuffer packed, AlignedBuffer::Make(static_cast<size_t>(floats) * sizeof(float)));
  const float* w = weights.As<float>().data();
  ParallelFor(cores_, p_.channels, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t channel = begin; channel < end; ++channel) {
      for (int64_t result = 0; result < p_.results; ++result) {
        const float* filter = w + (result * p_.channels + channel) * 9;
        PackPoint(filter, result, channel, packed.As<float>());
      }
    }
  });
  return packed;
}

Status WinogradTiles::Pack(const GroupContext& context) {
  const Node& node = context.node(0);
  const auto pack = [&]() -> StatusOr<AlignedBuffer> {
    AG_LET(const Tensor weights, context.FloatConstants()->Get(node.inputs[1]));
    return PackWeights(weights);
  };
  const std::optional<Digest> name =
      context.packed == nullptr ? std::nullopt : context.FloatConstants()->Name(node.inputs[1]);
  if (name.has_value()) {
    AG_LET(weights_, context.packed->Get(*name, FormOf(p_, *loops_), GivenForm(p_), pack));
  } else {
    AG_LET(AlignedBuffer own, pack());
    weights_ = std::make_shared<const AlignedBuffer>(std::move(own));
  }
  AG_LET(bias_, AlignedBuffer::Make(static_cast<size_t>(p_.out.channels) * sizeof(float)));
  AG_LET(const Tensor bias, context.FloatConstants()->Get(node.inputs[2]));
  std::ranges::copy(bias.As<float>(), bias_.As<float>());
  return OkStatus();
}

void WinogradTiles::TransformInputs(const std::byte* x, const Area& area, const Tiles& tiles,
                                    int64_t first) const {
  const int64_t of_image = p_.rows * p_.columns;
  for (int64_t t = tiles.begin; t < tiles.end; ++t) {
    const int64_t row = t % of_image / p_.columns, column = t % p_.columns;
    const std::byte* image = x + t / of_image * p_.Bytes(p_.in);
    loops_->input(p_.in, image, row * p_.tile.outputs - p_.pad_y,
                  column * p_.tile.outputs - p_.pad_x, area.in + (t - first) * p_.in.channels,
                  InStep());
  }
}

// Computes units [begin, end) of (point, panel) for `count` tiles.
void WinogradTiles::Multiply(const Area& area, int64_t count, int64_t begin, int64_t end) const {
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t point = unit / Panels(), result = unit % Panels() * PanelWidth();
    const float* panel = weights_->As<float>() + (point * p_.out.channels + result) * p_.channels;
    const int64_t width = std::min(PanelWidth(), p_.out.channels - result);
    loops_->products(area.in + point * InStep(), p_.in.channels, panel, p_.channels,
                     width / loops_->lanes, count, area.out + point * OutStep() + result,
                     p_.out.channels);
  }
}

void WinogradTiles::TransformOutputs(const Area& area, const Tiles& tiles, int64_t first,
                                     const WinogradTail& tail, std::byte* y) const {
  const int64_t of_image = p_.rows * p_.columns;
  for (int64_t t = tiles.begin; t < tiles.end; ++t) {
    const int64_t row = t % of_image / p_.columns, column = t % p_.columns;
    const int64_t image = t / of_image * p_.Bytes(p_.out);
    WinogradTail of_image_tail = tail;
    if (tail.residual != nullptr) {
      of_image_tail.residual = static_cast<const std::byte*>(tail.residual) + image;
    }
    loops_->output(p_.out, area.out + (t - first) * p_.out.channels, OutStep(), of_image_tail,
                   row * p_.tile.outputs, column * p_.tile.outputs, y + image);
  }
}

Status WinogradTiles::Run(const RunContext& context, Inputs inputs, Outputs outputs) {
  const auto* x = static_cast<const std::byte*>(inputs[x_]);
  auto* y = static_cast<std::byte*>(outputs[0]);
  WinogradTail tail{.bias = bias_.As<float>(), .low = fused_.low, .high = fused_.high};
  if (fused_.residual >= 0) tail.residual = inputs[fused_.residual];
  const int64_t tiles = p_.tiles(), units = Points() * Panels();
  if (by_chunks_) {
    ParallelFor(cores_, chunks_, 1, [&](int64_t begin, int64_t end, int worker) {
      const Area area = AreaAt(context.scratch, worker);
      for (int64_t chunk = begin; chunk < end; ++chunk) {
        const Tiles part{tiles * chunk / chunks_, tiles * (chunk + 1) / chunks_};
        TransformInputs(x, area, part, part.begin);
        Multiply(area, part.end - part.begin, 0, units);
        TransformOutputs(area, part, part.begin, tail, y);
      }
    });
    return OkStatus();
  }
  const Area area = AreaAt(context.scratch, 0);
  ParallelFor(cores_, tiles, 1, [&](int64_t begin, int64_t end, int) {
    TransformInputs(x, area, {begin, end}, 0);
  });
  ParallelFor(cores_, units, 1,
              [&](int64_t begin, int64_t end, int) { Multiply(area, tiles, begin, end); });
  ParallelFor(cores_, tiles, 1, [&](int64_t begin, int64_t end, int) {
    TransformOutputs(area, {begin, end}, 0, tail, y);
  });
  return OkStatus();
}

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
  if (p.tiles() < kTilesMin || p.channels < kChannelsMin || p.results < kChannelsMin) {
    return Lacks(node, name, "too few tiles or channels");
  }
  if (LoopsFor(p) == nullptr) return Lacks(node, name, "channels do not lie in whole vectors");
  return OkStatus();
}

bool PacksHeldWeights(const GroupContext& context, std::string_view name) {
  const WinogradProblem p = WinogradProblemOf(context, TileOf(name));
  const Edge weights = context.node(0).inputs[1];
  const Desc given = GivenForm(p);
  return !HeldForms(context, weights, given).empty() &&
         HeldForms(context, weights, given, FormOf(p, *LoopsFor(p)).dims()).empty();
}

StatusOr<std::unique_ptr<Kernel>> MakeWinograd(const GroupContext& context, std::string_view name,
                                               size_t* done) {
  auto kernel = std::make_unique<WinogradTiles>();
  AG_TRY(kernel->Prepare(context, TileOf(name), done));
  return kernel;
}

}  // namespace ag::cpu

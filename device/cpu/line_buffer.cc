// The kernel "line_buffer": a convolution of one tap and the depthwise one behind it, as in the
// blocks of MobileNetV2 (Sandler and others 2018, section 3.3), in f32. What the first one makes is
// the largest tensor of such a block, and is never whole in memory: of a few vectors of channels,
// the lines that a window covers stay in a near cache, and each line is made once. The mean of each
// channel, for squeeze and excitation (Hu and others 2018, section 3), is added up meanwhile.
#include <algorithm>
#include <optional>

#include "device/cpu/block_ops.h"
#include "device/cpu/host.h"
#include "device/cpu/image_places.h"
#include "device/cpu/kernel.h"
#include "device/cpu/packed_weights.h"
#include "device/cpu/parallel.h"
#include "device/cpu/post_ops.h"
#include "device/cpu/product_loops.h"
#include "device/cpu/window_loops.h"

namespace ag::cpu {
namespace {

constexpr std::string_view kName = "line_buffer";

// What follows a convolution.
struct Activation {
  RegisterOps ops;
  std::optional<BlockOp<float>> other;  // In the place of `ops`.
};

Activation ActivationOf(const Node& node) {
  const std::optional<RegisterOps> ops = RegisterOpsOf(node);
  return ops ? Activation{.ops = *ops} : Activation{.other = BlockOpOf<float>(node)};
}

// The nodes of a group; null: there is no activation.
struct Nodes {
  const Node *expand = nullptr, *after_expand = nullptr;
  const Node *window = nullptr, *after_window = nullptr;
  const Node* mean = nullptr;
};

Nodes NodesOf(const GroupContext& context) {
  Nodes nodes{.expand = &context.node(0)};
  for (size_t i = 1; i < context.group.nodes.size(); ++i) {
    const Node& node = context.node(i);
    if (node.op == OpKind::kConv) {
      nodes.window = &node;
    } else if (Has(node.op, kReduction)) {
      nodes.mean = &node;
    } else {
      (nodes.window == nullptr ? nodes.after_expand : nodes.after_window) = &node;
    }
  }
  return nodes;
}

class LineBuffer : public Kernel {
 public:
  Status Prepare(const GroupContext& context) {
    const Nodes nodes = NodesOf(context);
    const Edge x = nodes.expand->inputs[0];
    const Shape &in = context.graph.type(x).shape, &out = nodes.window->outputs[0].shape;
    x_ = context.InputOf(x);
    cores_ = context.cores;
    in_ = ImageSide(in, context.group.inputs[x_].layout);
    SetOutputs(context, nodes);
    out_ = ImageSide(out, context.group.outputs[0].layout);
    images_ = out[0];
    inner_ = in[1];
    channels_ = out[1];
    y_axis_ = AxisOf(context.graph, *nodes.window, 0);
    x_axis_ = AxisOf(context.graph, *nodes.window, 1);
    if (nodes.after_expand != nullptr) expand_after_ = ActivationOf(*nodes.after_expand);
    if (nodes.after_window != nullptr) window_after_ = ActivationOf(*nodes.after_window);
    parts_ = ChooseParts();
    if (context.constants == nullptr) return OkStatus();
    AG_LET(expand_weights_, Pack(context, *nodes.expand, inner_));
    AG_LET(window_weights_, Pack(context, *nodes.window, taps()));
    AG_LET(expand_bias_, Bias(context, *nodes.expand));
    AG_LET(window_bias_, Bias(context, *nodes.window));
    return OkStatus();
  }

  Status Run(const RunContext& context, Inputs inputs, Outputs outputs) override {
    const auto* x = static_cast<const float*>(inputs[x_]);
    auto* y = image_port_ < 0 ? nullptr : static_cast<float*>(outputs[image_port_]);
    auto* const sums = reinterpret_cast<float*>(context.scratch + cores_ * AreaBytes());
    ParallelFor(cores_, parts_.rows * parts_.columns, 1,
                [&](int64_t begin, int64_t end, int worker) {
                  const Area area = AreaAt(context.scratch + worker * AreaBytes());
                  for (int64_t i = begin; i < end; ++i) RunPart(i, x, y, area, sums);
                });
    if (mean_port_ >= 0) StoreMeans(sums, static_cast<float*>(outputs[mean_port_]));
    return OkStatus();
  }

  size_t scratch_bytes() const override {
    const int64_t sums = mean_port_ < 0 ? 0 : parts_.rows * images_ * SumFloats();
    return static_cast<size_t>(cores_ * AreaBytes() + sums * int64_t{sizeof(float)});
  }

 private:
  // The memory of one worker.
  struct Area {
    float* lines = nullptr;          // The last lines, each [pixels with padding][vectors * lanes].
    float* zeros = nullptr;          // A line of zeros.
    float* tile = nullptr;           // Results of one tile on which an operator works.
    const float** window = nullptr;  // The lines of one tile's windows.
  };
  void SetOutputs(const GroupContext& context, const Nodes& nodes) {
    for (size_t i = 0; i < context.group.outputs.size(); ++i) {
      const bool is_mean =
          nodes.mean != nullptr && context.group.outputs[i].edge.node == context.group.nodes.back();
      (is_mean ? mean_port_ : image_port_) = static_cast<int>(i);
    }
  }

  // Some vectors of channels, all of whose lines are made and read before the next ones.
  struct Slice {
    Range vectors;
    const char* ahead = nullptr;  // Weights of the next slice that were not fetched yet.
    int64_t ahead_bytes = 0;
    int64_t ahead_lines = 0;  // To fetch with each piece of a row.
    float* sums = nullptr;    // Of the first image, [images][SumFloats]; null: none are wanted.
  };

  int64_t taps() const { return y_axis_.taps * x_axis_.taps; }
  // With those that are padding of the result's blocks.
  int64_t Vectors() const { return PartsOfAtMost(out_.channels, products_.lanes); }
  int64_t Width() const { return products_.vectors * products_.lanes; }
  int64_t SumFloats() const { return Vectors() * products_.lanes; }
  int64_t LinePixels() const {
    return std::max(x_axis_.pad + in_.width, (out_.width - 1) * x_axis_.stride + x_axis_.span());
  }
  int64_t LineFloats() const { return LinePixels() * Width(); }
  int64_t AreaBytes() const {
    const int64_t floats = (y_axis_.span() + 1) * LineFloats() + kWindowPixelsMax * Width();
    const int64_t pointers = y_axis_.taps * int64_t{sizeof(float*)};
    return RoundUp(floats * int64_t{sizeof(float)} + pointers, 64);
  }
  Area AreaAt(std::byte* at) const {
    Area area{.lines = reinterpret_cast<float*>(at)};
    area.zeros = area.lines + y_axis_.span() * LineFloats();
    area.tile = area.zeros + LineFloats();
    area.window = reinterpret_cast<const float**>(area.tile + kWindowPixelsMax * Width());
    return area;
  }

  // Returns the parts whose largest one has the least to do: lines at the border of a part are made
  // by both sides of it.
  Parts ChooseParts() const {
    const auto cost = [&](const Parts& parts) {
      const int64_t lines = PartsOfAtMost(images_ * out_.height, parts.rows);
      const int64_t vectors = PartsOfAtMost(Vectors(), parts.columns);
      const int64_t made = lines * y_axis_.stride + (parts.rows > 1 ? y_axis_.span() - 1 : 0);
      return vectors * (made * in_.width * inner_ + lines * out_.width * taps());
    };
    return LeastParts(cores_, cost);
  }

  // Returns weights [channels][count] as [vectors][count][lanes], with zeros behind the last one.
  StatusOr<std::shared_ptr<const AlignedBuffer>> Pack(const GroupContext& context, const Node& conv,
                                                      int64_t count) const {
    const int64_t lanes = products_.lanes, vectors = Vectors(), channels = channels_;
    const auto pack = [&](const Tensor& values) -> StatusOr<AlignedBuffer> {
      const auto floats = static_cast<size_t>(vectors * count * lanes);
      AG_LET(AlignedBuffer packed, AlignedBuffer::Make(floats * sizeof(float)));
      const float* const from = values.As<float>().data();
      for (int64_t c = 0; c < channels; ++c) {
        float* const to = packed.As<float>() + c / lanes * count * lanes + c % lanes;
        for (int64_t i = 0; i < count; ++i) to[i * lanes] = from[c * count + i];
      }
      return packed;
    };
    const Edge weights = conv.inputs[1];
    const Shape& given = context.graph.type(weights).shape;
    return PackedConstant(context, weights, PlainDesc({vectors, count, lanes}),
                          PlainDesc({given.begin(), given.end()}), pack);
  }

  StatusOr<AlignedBuffer> Bias(const GroupContext& context, const Node& conv) const {
    const auto floats = static_cast<size_t>(Vectors() * products_.lanes);
    AG_LET(AlignedBuffer bias, AlignedBuffer::Make(floats * sizeof(float)));
    AG_LET(const Tensor values, context.FloatConstants()->Get(conv.inputs[2]));
    std::ranges::copy(values.As<float>(), bias.As<float>());
    return bias;
  }

  // Tiles of one line of the first convolution, and pieces of a row in them.
  int64_t TilesOfLine() const { return PartsOfAtMost(in_.width, products_.rows); }
  int64_t Piece() const { return std::min(in_.block, kProductPiece); }
  int64_t Pieces() const { return PartsOfAtMost(inner_, Piece()); }

  const float* ExpandWeights(int64_t vector) const {
    return expand_weights_->As<float>() + vector * inner_ * products_.lanes;
  }

  // `sums`: [parts of lines][images][SumFloats].
  void RunPart(int64_t part, const float* x, float* y, const Area& area, float* sums) const {
    const Range lines = Range{0, images_ * out_.height}.Part(part / parts_.columns, parts_.rows);
    const Range vectors = Range{0, Vectors()}.Part(part % parts_.columns, parts_.columns);
    const int64_t slices = PartsOfAtMost(vectors.count(), products_.vectors);
    std::fill_n(area.zeros, LineFloats(), 0.0f);
    sums += part / parts_.columns * images_ * SumFloats();
    for (int64_t s = 0; s < slices; ++s) {
      Slice slice{.vectors = vectors.Part(s, slices)};
      if (s + 1 < slices) {
        const Range next = vectors.Part(s + 1, slices);
        slice.ahead = reinterpret_cast<const char*>(ExpandWeights(next.begin));
        slice.ahead_bytes = reinterpret_cast<const char*>(ExpandWeights(next.end)) - slice.ahead;
      }
      const int64_t pieces = lines.count() * y_axis_.stride * TilesOfLine() * Pieces();
      slice.ahead_lines = PartsOfAtMost(slice.ahead_bytes, pieces * kProductLineBytes);
      if (mean_port_ >= 0) {
        slice.sums = sums + slice.vectors.begin * products_.lanes;
        for (int64_t i = 0; i < images_; ++i) {
          std::fill_n(slice.sums + i * SumFloats(), slice.vectors.count() * products_.lanes, 0.0f);
        }
      }
      RunSlice(lines, &slice, x, y, area);
    }
  }

  void RunSlice(const Range& lines, Slice* slice, const float* x, float* y,
                const Area& area) const {
    for (int64_t at = lines.begin; at < lines.end;) {
      const int64_t image = at / out_.height, first = at % out_.height;
      const int64_t end = std::min(out_.height, first + lines.end - at);
      int64_t made = 0;
      for (int64_t line = first; line < end; ++line) {
        made = std::max(made, y_axis_.TapOf(line, 0));
        const int64_t needed = std::min(in_.height, y_axis_.TapOf(line, y_axis_.taps - 1) + 1);
        for (; made < needed; ++made) {
          MakeLine(x + image * in_.image + made * in_.line, slice, LineAt(made, *slice, area));
        }
        MakeResult({image, line}, *slice, y, area);
      }
      at += end - first;
    }
  }

  float* LineAt(int64_t line, const Slice& slice, const Area& area) const {
    const int64_t floats = LinePixels() * slice.vectors.count() * products_.lanes;
    return area.lines + line % y_axis_.span() * floats;
  }

  // One line of the first convolution's result.
  void MakeLine(const float* x, Slice* slice, float* line) const {
    const int64_t width = slice->vectors.count() * products_.lanes;
    const int64_t tiles = TilesOfLine();
    float* const first = line + x_axis_.pad * width;
    float* const behind = first + in_.width * width;
    std::fill(line, first, 0.0f);
    std::fill(behind, line + LinePixels() * width, 0.0f);
    ProductTile tile{.vectors = slice->vectors.count(), .k = inner_};
    tile.row_step = in_.pixel;
    tile.piece = Piece();
    tile.piece_step = in_.block < inner_ ? in_.plane : tile.piece;
    tile.right = ExpandWeights(slice->vectors.begin);
    tile.right_step = inner_ * products_.lanes;
    float* to[kProductRowsMax];
    ProductTail tail{.bias = expand_bias_.As<float>() + slice->vectors.begin * products_.lanes,
                     .ops = expand_after_.ops,
                     .to = to,
                     .to_step = products_.lanes};
    for (int64_t t = 0; t < tiles; ++t) {
      const Range pixels = Range{0, in_.width}.Part(t, tiles);
      tile.rows = pixels.count();
      tile.left = x + pixels.begin * in_.pixel;
      tile.next_left = tile.left + pixels.count() * in_.pixel;
      tile.ahead = slice->ahead;
      tile.ahead_lines = slice->ahead_bytes > 0 ? slice->ahead_lines : 0;
      for (int64_t r = 0; r < tile.rows; ++r) to[r] = first + (pixels.begin + r) * width;
      products_.finish(tile, tail);
      const int64_t fetched = Pieces() * tile.ahead_lines * kProductLineBytes;
      slice->ahead += fetched;
      slice->ahead_bytes -= fetched;
    }
    if (expand_after_.other) {
      expand_after_.other->run(first, first, first, first, in_.width * width,
                               expand_after_.other->p, expand_after_.other->q);
    }
  }

  struct Line {
    int64_t image = 0, y = 0;
  };

  // One line of the depthwise convolution's result.
  void MakeResult(const Line& line, const Slice& slice, float* y, const Area& area) const {
    const int64_t lanes = products_.lanes, width = slice.vectors.count() * lanes;
    const int64_t first = slice.vectors.begin, channel = first * lanes;
    const int64_t used = std::min(width, out_.channels - channel);
    const bool is_even = out_.block == lanes || out_.block == out_.channels;
    const bool is_direct = y != nullptr && used == width && !window_after_.other && is_even;
    if (y != nullptr) y += line.image * out_.image + line.y * out_.line;
    WindowTile tile{.vectors = slice.vectors.count(),
                    .taps_y = y_axis_.taps,
                    .taps_x = x_axis_.taps,
                    .from = area.window,
                    .tap_step = x_axis_.dilation * width,
                    .from_step = x_axis_.stride * width,
                    .weights = window_weights_->As<float>() + first * taps() * lanes,
                    .bias = window_bias_.As<float>() + channel,
                    .ops = window_after_.ops,
                    .to = area.tile,
                    .to_step = is_direct ? out_.pixel : width,
                    .to_vector_step = is_direct ? out_.VectorStep(lanes) : lanes};
    const int64_t tiles = PartsOfAtMost(out_.width, kWindowPixelsMax);
    for (int64_t t = 0; t < tiles; ++t) {
      const Range pixels = Range{0, out_.width}.Part(t, tiles);
      SetWindow(line.y, pixels.begin * x_axis_.stride, slice, area);
      tile.pixels = pixels.count();
      if (is_direct) tile.to = y + pixels.begin * out_.pixel + out_.PlaceOf(channel);
      windows_.run(tile);
      if (window_after_.other) {
        window_after_.other->run(area.tile, area.tile, area.tile, area.tile, tile.pixels * width,
                                 window_after_.other->p, window_after_.other->q);
      }
      if (slice.sums != nullptr) {
        windows_.add({tile.pixels, tile.vectors, tile.to, tile.to_step, tile.to_vector_step,
                      slice.sums + line.image * SumFloats()});
      }
      if (is_direct || y == nullptr) continue;
      for (int64_t i = 0; i < tile.pixels; ++i) {
        StorePixel(area.tile + i * width, channel, used, y + (pixels.begin + i) * out_.pixel);
      }
    }
  }

  // Adds up what the parts have and writes the means, with zeros behind the last channel.
  void StoreMeans(const float* sums, float* means) const {
    const float scale = 1.0f / static_cast<float>(out_.height * out_.width);
    for (int64_t image = 0; image < images_; ++image, means += out_.channels) {
      for (int64_t c = 0; c < out_.channels; ++c) {
        float sum = 0;
        for (int64_t part = 0; part < parts_.rows && c < channels_; ++part) {
          sum += sums[(part * images_ + image) * SumFloats() + c];
        }
        means[c] = sum * scale;
      }
    }
  }

  // Sets where the lines of a pixel's window lie. `at`: its first tap in a line with padding.
  void SetWindow(int64_t line, int64_t at, const Slice& slice, const Area& area) const {
    const int64_t width = slice.vectors.count() * products_.lanes;
    for (int64_t i = 0; i < y_axis_.taps; ++i) {
      const int64_t in_y = y_axis_.TapOf(line, i);
      const bool is_inside = in_y >= 0 && in_y < in_.height;
      area.window[i] = (is_inside ? LineAt(in_y, slice, area) : area.zeros) + at * width;
    }
  }

  // Copies a pixel's numbers to the result, whose blocks may be longer than a vector.
  void StorePixel(const float* from, int64_t channel, int64_t used, float* pixel) const {
    for (int64_t at = 0, n = 0; at < used; at += n) {
      n = std::min(out_.block - (channel + at) % out_.block, used - at);
      std::copy_n(from + at, n, pixel + out_.PlaceOf(channel + at));
    }
  }

  const ProductLoops& products_ = ProductLoopsFor(InstructionSet());
  const WindowLoops& windows_ = WindowLoopsFor(InstructionSet());
  Side in_, out_;  // Of the group.
  int64_t images_ = 1, inner_ = 0, channels_ = 0;
  Axis y_axis_, x_axis_;
  Activation expand_after_, window_after_;
  Parts parts_;
  int x_ = -1, image_port_ = -1, mean_port_ = -1;
  int cores_ = 1;
  std::shared_ptr<const AlignedBuffer> expand_weights_, window_weights_;
  AlignedBuffer expand_bias_, window_bias_;
};

Status Check(const GroupContext& context) {
  const Nodes nodes = NodesOf(context);
  const auto lacks = [](std::string_view what) {
    return Err(StatusCode::kUnimplemented, "{}: {}", kName, what);
  };
  if (nodes.expand->outputs[0].dtype != DType::kFloat32) return lacks("not f32");
  const std::vector<Port>& outputs = context.group.outputs;
  if (outputs.size() > (nodes.mean == nullptr ? 1 : 2)) return lacks("further outputs");
  const Layout in = context.group.inputs[context.InputOf(nodes.expand->inputs[0])].layout;
  const auto is_plain = [](const Port& port) { return port.layout == Layout::kPlain; };
  if (in == Layout::kPlain || std::ranges::any_of(outputs, is_plain)) {
    return lacks("a port is plain");
  }
  if (outputs.front().layout != outputs.back().layout) return lacks("outputs lie differently");
  return OkStatus();
}

StatusOr<std::vector<std::string>> ExpansionNames(const GroupContext& context) {
  AG_TRY(Check(context));
  return std::vector<std::string>{std::string(kName)};
}

StatusOr<std::unique_ptr<Kernel>> MakeExpansion(const GroupContext& context, const std::string&,
                                                size_t* done) {
  AG_TRY(Check(context));
  *done = context.group.nodes.size();
  auto kernel = std::make_unique<LineBuffer>();
  AG_TRY(kernel->Prepare(context));
  return kernel;
}

}  // namespace

const Family kExpansionFamily = {ExpansionNames, MakeExpansion, true};

}  // namespace ag::cpu

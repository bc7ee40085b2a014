// Transposed convolution as a product of its weights with tiles of pixels, each tile's result added
// to the output while it is in the cache. A thread has rows of the output of its own, or channels.
#include <algorithm>
#include <array>

#include "device/cpu/host.h"
#include "device/cpu/parallel.h"
#include "device/cpu/tile_loops.h"
#include "device/cpu/transposed.h"

namespace ag::cpu {
namespace {

struct TransposedAxis {
  int64_t in = 1, out = 1, kernel = 1, stride = 1, begin = 0, dilation = 1;

  // Returns the inputs that reach outputs [from, to).
  std::pair<int64_t, int64_t> Reaching(int64_t from, int64_t to) const {
    const int64_t first = from + begin - (kernel - 1) * dilation;
    const int64_t low = first <= 0 ? 0 : (first + stride - 1) / stride;
    return {low, std::min(in, (to - 1 + begin) / stride + 1)};
  }
};

// The node with three axes, of which the middle one (or two) may be 1. A row lies along the last.
struct TransposedSizes {
  std::array<TransposedAxis, 3> axes;
  int64_t images = 1, groups = 1;
  int64_t channels = 1;  // Of the input, by group.
  int64_t results = 1;   // Channels of the output, by group.
  // Each output comes from exactly one input, and each tap from all inputs.
  bool covers = true;

  explicit TransposedSizes(const TransposedForm& f)
      : images(f.x[0]), groups(f.groups), channels(f.x[1] / f.groups), results(f.w[1]) {
    const size_t count = f.strides.size();
    for (size_t i = 0; i < count; ++i) {
      TransposedAxis& axis = axes[i + 1 == count ? 2 : i];
      axis = {f.x[i + 2], f.y[i + 2], f.w[i + 2], f.strides[i], f.begin[i], f.dilations[i]};
      covers = covers && axis.kernel == axis.stride && axis.begin == 0 && axis.dilation == 1 &&
               axis.out == axis.in * axis.stride;
    }
  }
  int64_t Taps() const { return axes[0].kernel * axes[1].kernel * axes[2].kernel; }
  int64_t InPixels() const { return axes[0].in * axes[1].in * axes[2].in; }
  int64_t OutPixels() const { return axes[0].out * axes[1].out * axes[2].out; }
};

// Rows (of channel and tap) of a block: their tile fits into the nearest cache.
constexpr int64_t kBlockRows = 128;

class TransposedTiles : public Kernel {
 public:
  Status Prepare(const GroupContext& context, const KeptOperator& kept);
  Status Run(const RunContext& context, Inputs inputs, Outputs outputs) override;
  size_t scratch_bytes() const override {
    return AlignUp(static_cast<size_t>(cores_ * ScratchFloats()) * sizeof(float));
  }

 private:
  // What one thread computes: outputs [begin, end) of the first axis, and these blocks.
  struct Part {
    int64_t begin = 0, end = 0;
    int64_t first_block = 0, last_block = 0;
    float* scratch = nullptr;
  };
  // A tile: pixels of the input, and where the results of a block lie.
  struct Tile {
    int64_t pixel = 0, count = 0;
    int64_t width = 0;  // Of a row of results; at least count.
    const float* results = nullptr;
  };

  // What goes to one row of the output: tap t gets `from` + t * step, times weights[t].
  struct Taps {
    const float* from = nullptr;
    int64_t step = 0;
    const float* weights = nullptr;  // Null: 1.

    const float* Of(int64_t t) const { return from + t * step; }
    float Weight(int64_t t) const { return weights == nullptr ? 1.0f : weights[t]; }
  };

  int64_t TileFloats() const { return s_->channels * kTileVectorsMax * loops_->lanes; }
  int64_t PanelsOfBlock() const { return (block_ * s_->Taps() + loops_->rows - 1) / loops_->rows; }
  int64_t ScratchFloats() const {
    const int64_t rows = PanelsOfBlock() * loops_->rows;
    return TileFloats() + rows * kTileVectorsMax * loops_->lanes;
  }
  Status Pack(const Tensor& weights, const Tensor* bias);
  void Split();
  void RunPart(const Part& part, const float* x, float* y) const;
  void RunTile(const Part& part, const float* x, float* y, int64_t group, Tile tile,
               int64_t vectors) const;
  void AddTile(const Part& part, const Tile& tile, int64_t channels, float* y) const;
  void AddRow(const Taps& taps, int64_t x, int64_t n, float* row) const;
  void PutRow(const Taps& taps, int64_t x, int64_t n, float* row) const;
  void RunPlane(int64_t plane, const float* x, float* y) const;
  void FillBias(const Part& part, int64_t channel, int64_t count, float* y) const;

  std::optional<TransposedSizes> s_;
  const TileLoops* loops_ = nullptr;
  int cores_ = 1;
  int64_t parts_ = 1;
  bool by_rows_ = false;  // Each part has rows of the output; else blocks of channels.
  int64_t block_ = 1;     // Channels of a block.
  int64_t blocks_ = 1;    // Of a group.
  int x_ = -1;
  AlignedBuffer panels_;               // By group, block, panel.
  AlignedBuffer start_;                // What the products begin with, by group, block, row.
  std::vector<float> bias_, weights_;  // weights_: of one input channel by group, as given.
};

Status TransposedTiles::Prepare(const GroupContext& context, const KeptOperator& kept) {
  const KeptOperands operands(context, kept);
  AG_LET(const TransposedForm form, TransposedFormOf(context, kept, operands));
  s_.emplace(form);
  x_ = context.InputOf(operands.At(0));
  loops_ = &TileLoopsFor(InstructionSet());
  if (x_ < 0 || (s_->channels > 1 && 2 * s_->InPixels() < loops_->lanes)) {
    return Err(StatusCode::kUnimplemented, "ConvTranspose: no tiles of so few pixels");
  }
  cores_ = context.cores;
  Split();
  if (context.constants == nullptr) return OkStatus();
  AG_LET(const Tensor weights, context.constants->Get(operands.At(1)));
  Tensor bias;
  if (operands.Has(2)) {
    AG_LET(bias, context.constants->Get(operands.At(2)));
  }
  return Pack(weights, operands.Has(2) ? &bias : nullptr);
}

// Parts by rows compute the inputs between two parts twice; parts by channels copy all tiles.
void TransposedTiles::Split() {
  const TransposedAxis& outer = s_->axes[0];
  const int64_t results = s_->groups * s_->results, row = s_->axes[1].in * s_->axes[2].in;
  block_ = std::clamp<int64_t>(kBlockRows / s_->Taps(), 1, s_->results);
  blocks_ = (s_->results + block_ - 1) / block_;
  parts_ = std::min<int64_t>(cores_, outer.in);
  // Both in vectors of a row of the product; a copy of a vector counts as four.
  const auto vectors = [&](int64_t pixels) { return (pixels + loops_->lanes - 1) / loops_->lanes; };
  const int64_t shared = (outer.kernel - 1) * outer.dilation / outer.stride;
  const int64_t rows = results * s_->Taps(), copy = 4;
  const int64_t own = (outer.in + parts_ - 1) / parts_ + (parts_ > 1 ? shared : 0);
  const int64_t by_rows = vectors(std::min(own, outer.in) * row) * (rows + copy);
  const int64_t parts = std::min<int64_t>(cores_, results);
  const int64_t own_results = (results + parts - 1) / parts;
  by_rows_ = by_rows <= vectors(outer.in * row) * (own_results * s_->Taps() + copy);
  if (by_rows_) return;
  parts_ = parts;
  if (s_->groups == 1) blocks_ = std::min((blocks_ + parts_ - 1) / parts_ * parts_, s_->results);
  block_ = (s_->results + blocks_ - 1) / blocks_;
  blocks_ = (s_->results + block_ - 1) / block_;
}

Status TransposedTiles::Pack(const Tensor& weights, const Tensor* bias) {
  const std::span<const float> w = weights.As<float>();
  bias_.assign(static_cast<size_t>(s_->groups * s_->results), 0.0f);
  if (bias != nullptr) std::ranges::copy(bias->As<float>(), bias_.begin());
  if (s_->channels == 1) {
    weights_.assign(w.begin(), w.end());
    return OkStatus();
  }
  const int64_t taps = s_->Taps(), rows = PanelsOfBlock() * loops_->rows;
  const auto bytes = [](int64_t floats) { return static_cast<size_t>(floats) * sizeof(float); };
  AG_LET(panels_, AlignedBuffer::Make(bytes(s_->groups * blocks_ * rows * s_->channels)));
  AG_LET(start_, AlignedBuffer::Make(bytes(s_->groups * blocks_ * rows)));
  for (int64_t g = 0; g < s_->groups; ++g) {
    for (int64_t m = 0; m < s_->results; ++m) {
      for (int64_t tap = 0; tap < taps; ++tap) {
        const int64_t row = m % block_ * taps + tap;  // Of the block.
        const int64_t begin = (g * blocks_ + m / block_) * rows;
        if (s_->covers) start_.As<float>()[begin + row] = bias_[g * s_->results + m];
        const int64_t panel = begin + row / loops_->rows * loops_->rows;
        float* to = panels_.As<float>() + panel * s_->channels + row % loops_->rows;
        for (int64_t k = 0; k < s_->channels; ++k) {
          to[k * loops_->rows] = w[((g * s_->channels + k) * s_->results + m) * taps + tap];
        }
      }
    }
  }
  return OkStatus();
}

Status TransposedTiles::Run(const RunContext& context, Inputs inputs, Outputs outputs) {
  const auto* x = static_cast<const float*>(inputs[x_]);
  auto* y = static_cast<float*>(outputs[0]);
  if (s_->channels == 1) {
    const int64_t planes = s_->images * s_->groups * s_->results;
    const int64_t grain = std::max<int64_t>(1, kLightGrain / s_->OutPixels());
    ParallelFor(cores_, planes, grain, [&](int64_t begin, int64_t end, int) {
      for (int64_t plane = begin; plane < end; ++plane) RunPlane(plane, x, y);
    });
    return OkStatus();
  }
  const int64_t blocks = s_->groups * blocks_, outer = s_->axes[0].out, unit = s_->axes[0].stride;
  const int64_t units = (outer + unit - 1) / unit;
  ParallelFor(cores_, parts_, 1, [&](int64_t begin, int64_t end, int worker) {
    float* scratch = reinterpret_cast<float*>(context.scratch) + worker * ScratchFloats();
    Part part{0, outer, 0, blocks, scratch};
    if (by_rows_) {
      part.begin = units * begin / parts_ * unit;
      part.end = std::min(outer, units * end / parts_ * unit);
    } else {
      part.first_block = blocks * begin / parts_;
      part.last_block = blocks * end / parts_;
    }
    RunPart(part, x, y);
  });
  return OkStatus();
}

void TransposedTiles::FillBias(const Part& part, int64_t channel, int64_t count, float* y) const {
  const int64_t row = s_->axes[1].out * s_->axes[2].out;
  for (int64_t i = 0; i < count; ++i) {
    std::fill_n(y + i * s_->OutPixels() + part.begin * row, (part.end - part.begin) * row,
                bias_[channel + i]);
  }
}

void TransposedTiles::RunPart(const Part& part, const float* x, float* y) const {
  const auto [low, high] = s_->axes[0].Reaching(part.begin, part.end);
  const int64_t row = s_->axes[1].in * s_->axes[2].in, lanes = loops_->lanes;
  for (int64_t image = 0; image < s_->images; ++image) {
    for (int64_t g = part.first_block / blocks_; g * blocks_ < part.last_block; ++g) {
      const int64_t at = image * s_->groups + g;
      const float* from = x + at * s_->channels * s_->InPixels();
      float* to = y + at * s_->results * s_->OutPixels();
      const int64_t first = std::max(part.first_block - g * blocks_, int64_t{0}) * block_;
      const int64_t last = std::min((part.last_block - g * blocks_) * block_, s_->results);
      if (!s_->covers) {
        FillBias(part, g * s_->results + first, last - first, to + first * s_->OutPixels());
      }
      int64_t vectors = (std::max<int64_t>(0, high - low) * row + lanes - 1) / lanes;
      for (int64_t pixel = low * row; pixel < high * row;) {
        // Four vectors are two tiles of two.
        const int64_t now = vectors == 4 ? 2 : std::min(vectors, kTileVectorsMax);
        const int64_t count = std::min(now * lanes, high * row - pixel);
        RunTile(part, from, to, g, {.pixel = pixel, .count = count}, now);
        pixel += count;
        vectors -= now;
      }
    }
  }
}

// `x` and `y` are of the group's channels.
void TransposedTiles::RunTile(const Part& part, const float* x, float* y, int64_t group, Tile tile,
                              int64_t vectors) const {
  tile.width = vectors * loops_->lanes;
  float* packed = part.scratch;
  float* results = packed + TileFloats();
  tile.results = results;
  for (int64_t k = 0; k < s_->channels; ++k) {
    float* to = packed + k * tile.width;
    std::copy_n(x + k * s_->InPixels() + tile.pixel, tile.count, to);
    std::fill(to + tile.count, to + tile.width, 0.0f);
  }
  const int64_t rows = PanelsOfBlock() * loops_->rows;
  const int64_t first = std::max(part.first_block, group * blocks_);
  const int64_t last = std::min(part.last_block, (group + 1) * blocks_);
  for (int64_t block = first; block < last; ++block) {
    const int64_t channel = (block - group * blocks_) * block_;
    const int64_t channels = std::min(block_, s_->results - channel);
    for (int64_t row = 0; row < channels * s_->Taps(); row += loops_->rows) {
      const int64_t at = block * rows + row;
      loops_->product(panels_.As<float>() + at * s_->channels, packed, s_->channels, vectors,
                      start_.As<float>() + at, results + row * tile.width);
    }
    AddTile(part, tile, channels, y + channel * s_->OutPixels());
  }
}

// Adds the results of a tile to the part's rows of the output. `y` is of the block's channels.
void TransposedTiles::AddTile(const Part& part, const Tile& tile, int64_t channels,
                              float* y) const {
  const auto& [outer, middle, inner] = s_->axes;
  const int64_t end = tile.pixel + tile.count;
  for (int64_t pixel = tile.pixel, n = 0; pixel < end; pixel += n) {
    const int64_t row = pixel / inner.in, x = pixel % inner.in;
    n = std::min(inner.in - x, end - pixel);
    const float* results = tile.results + pixel - tile.pixel;
    for (int64_t m = 0; m < channels; ++m) {
      for (int64_t i = 0; i < outer.kernel; ++i) {
        const int64_t a = row / middle.in * outer.stride + i * outer.dilation - outer.begin;
        for (int64_t j = 0; j < middle.kernel; ++j, results += inner.kernel * tile.width) {
          const int64_t b = row % middle.in * middle.stride + j * middle.dilation - middle.begin;
          if (a < part.begin || a >= part.end || b < 0 || b >= middle.out) continue;
          float* to = y + m * s_->OutPixels() + (a * middle.out + b) * inner.out;
          const Taps taps{results, tile.width};
          s_->covers ? PutRow(taps, x, n, to) : AddRow(taps, x, n, to);
        }
      }
    }
  }
}

// Adds what inputs [x, x + n) of a row give to a row of the output.
void TransposedTiles::AddRow(const Taps& taps, int64_t x, int64_t n, float* row) const {
  const TransposedAxis& axis = s_->axes[2];
  const int64_t stride = axis.stride;
  // Returns the inputs of these whose output `at` + i * stride is inside.
  const auto inside = [&](int64_t at) -> std::pair<int64_t, int64_t> {
    const int64_t low = at >= 0 ? 0 : (-at + stride - 1) / stride;
    const int64_t high = at >= axis.out ? 0 : (axis.out - at + stride - 1) / stride;
    return {std::min(low, n), std::min(high, n)};
  };
  for (int64_t t = 0; t < axis.kernel; ++t) {
    const int64_t at = x * stride + t * axis.dilation - axis.begin;
    auto [low, high] = inside(at);
    if (stride == 2 && axis.dilation == 1 && t + 1 < axis.kernel) {
      const auto [next_low, next_high] = inside(at + 1);
      const int64_t from = std::max(low, next_low), to = std::min(high, next_high);
      const float *a = taps.Of(t), *b = taps.Of(t + 1);
      const float wa = taps.Weight(t), wb = taps.Weight(t + 1);
      if (from < to) {
        loops_->add_pairs(row + at + 2 * from, a + from, b + from, to - from, wa, wb);
        for (int64_t i = low; i < from; ++i) row[at + 2 * i] += a[i] * wa;
        for (int64_t i = to; i < high; ++i) row[at + 2 * i] += a[i] * wa;
        for (int64_t i = next_low; i < from; ++i) row[at + 2 * i + 1] += b[i] * wb;
        for (int64_t i = to; i < next_high; ++i) row[at + 2 * i + 1] += b[i] * wb;
        ++t;
        continue;
      }
    }
    if (low < high) {
      loops_->add(row + at + low * stride, taps.Of(t) + low, high - low, stride, taps.Weight(t));
    }
  }
}

// Writes them, where each output comes from one input.
void TransposedTiles::PutRow(const Taps& taps, int64_t x, int64_t n, float* row) const {
  const int64_t stride = s_->axes[2].stride;
  row += x * stride;
  if (stride == 2) return loops_->put_pairs(row, taps.Of(0), taps.Of(1), n);
  for (int64_t t = 0; t < stride; ++t) {
    for (int64_t i = 0; i < n; ++i) row[i * stride + t] = taps.Of(t)[i];
  }
}

// Computes one channel of the output where it comes from one channel of the input.
void TransposedTiles::RunPlane(int64_t plane, const float* x, float* y) const {
  const auto& [outer, middle, inner] = s_->axes;
  const int64_t channel = plane % (s_->groups * s_->results);
  const float* from = x + plane / s_->results * s_->InPixels();
  const float* weights = &weights_[channel * s_->Taps()];
  float* to = y + plane * s_->OutPixels();
  std::fill_n(to, s_->OutPixels(), bias_[channel]);
  for (int64_t row = 0; row < outer.in * middle.in; ++row) {
    for (int64_t i = 0; i < outer.kernel; ++i) {
      const int64_t a = row / middle.in * outer.stride + i * outer.dilation - outer.begin;
      for (int64_t j = 0; j < middle.kernel; ++j) {
        const int64_t b = row % middle.in * middle.stride + j * middle.dilation - middle.begin;
        if (a < 0 || a >= outer.out || b < 0 || b >= middle.out) continue;
        const float* taps = weights + (i * middle.kernel + j) * inner.kernel;
        AddRow({from + row * inner.in, 0, taps}, 0, inner.in,
               to + (a * middle.out + b) * inner.out);
      }
    }
  }
}

}  // namespace

StatusOr<std::unique_ptr<Kernel>> MakeTransposedTiles(const GroupContext& context,
                                                      const KeptOperator& kept) {
  return PreparedKept<TransposedTiles>(context, kept);
}

}  // namespace ag::cpu

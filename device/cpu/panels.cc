#include "device/cpu/panels.h"

#include <algorithm>
#include <optional>

#include "device/cpu/block_ops.h"
#include "device/cpu/host.h"
#include "device/cpu/image_places.h"
#include "device/cpu/packed_weights.h"
#include "device/cpu/parallel.h"
#include "device/cpu/post_ops.h"
#include "device/cpu/product_loops.h"

namespace ag::cpu {
namespace {

// Numbers of a row that are multiplied before the next tile: with them a panel of weights stays in
// the first cache while all rows pass.
constexpr int64_t kInnerBlock = 192;
// Bytes of rows, with their results, that pass all weights of a part before the next rows; they
// stay in the second cache. Where weights come from memory, bytes of rows alone, and more of them,
// since each such chunk of rows reads all weights.
constexpr int64_t kChunkBytes = int64_t{1} << 18, kLongChunkBytes = int64_t{3} << 20;
constexpr int64_t kNearWeightsBytes = int64_t{1} << 20;
// With fewer tiles the processor fetches the weights by itself as fast as memory gives them.
constexpr int64_t kTilesMinToFetch = 3;
// With more numbers in a row that lies in one piece, or in blocks, copying the rows of a tile side
// by side saves more than it takes.
constexpr int64_t kInPlaceMax = 1024, kInPlaceMaxOfBlocks = 128;
// With more pixels and several taps packing the rows takes longer than oneDNN's kernels lose.
constexpr int64_t kRowsMaxOfTaps = 128;

// rows[pixels, inner] times weights[inner, columns]. A row has the channels of each tap around the
// pixel; a matrix is an image of one line whose window has one tap.
struct Problem {
  int64_t images = 1;
  int64_t channels = 0, columns = 0;
  Axis y, x;
  Side in, out;
  bool is_convolution = false;  // The weights are given as [columns, channels, taps].

  int64_t taps() const { return y.taps * x.taps; }
  int64_t inner() const { return taps() * channels; }
  int64_t rows() const { return images * out.height * out.width; }
  int64_t Vectors(int64_t lanes) const { return PartsOfAtMost(columns, lanes); }
  int64_t Blocks() const { return PartsOfAtMost(inner(), kInnerBlock); }
  // Begins at a multiple of 16, where blocks of channels do.
  Range Block(int64_t i) const {
    const Range part = Range{0, PartsOfAtMost(inner(), 16)}.Part(i, Blocks());
    return {part.begin * 16, std::min(part.end * 16, inner())};
  }
  // Whether rows lie at equal distances.
  bool IsEven() const {
    const bool is_one_tap =
        taps() == 1 && y.stride == 1 && x.stride == 1 && y.pad == 0 && x.pad == 0;
    const bool is_same = in.height == out.height && in.width == out.width;
    return is_one_tap && is_same && (images == 1 || in.image == in.height * in.line);
  }
};

// Returns the position of the product in the group: 0, or 1 behind a Mul that scales its image.
size_t ProductAt(const GroupContext& context) {
  return Has(context.node(0).op, kContraction) ? 0 : 1;
}

// What the rows of a group are made of.
struct Rows {
  Edge x;
  std::optional<Edge> scale;  // One number a channel of each image.
};

Rows RowsOf(const GroupContext& context) {
  const Node& first = context.node(0);
  if (ProductAt(context) == 0) return {first.inputs[0], std::nullopt};
  const bool is_left = context.graph.type(first.inputs[0]) == first.outputs[0];
  return is_left ? Rows{first.inputs[0], first.inputs[1]} : Rows{first.inputs[1], first.inputs[0]};
}

Problem ProblemOf(const GroupContext& context) {
  const Node& node = context.node(ProductAt(context));
  const Edge x = RowsOf(context).x;
  const Shape& in = context.graph.type(x).shape;
  const Shape& out = node.outputs[0].shape;
  Problem p;
  if (node.op == OpKind::kMatMul) {
    p.channels = in.back();
    p.columns = out.back();
    const int64_t rows = NumElements(in) / std::max<int64_t>(p.channels, 1);
    p.in = PlainSide(rows, p.channels);
    p.out = PlainSide(rows, p.columns);
    return p;
  }
  p.images = out[0];
  p.channels = in[1];
  p.columns = out[1];
  p.y = AxisOf(context.graph, node, 0);
  p.x = AxisOf(context.graph, node, 1);
  p.in = ImageSide(in, context.group.inputs[context.InputOf(x)].layout);
  p.out = ImageSide(out, context.group.outputs[0].layout);
  p.is_convolution = true;
  return p;
}

// Whether rows are multiplied as they lie, without a packed copy.
bool IsReadInPlace(const Problem& p) {
  const bool is_one_piece = p.in.block >= p.channels;
  return p.IsEven() && p.inner() <= (is_one_piece ? kInPlaceMax : kInPlaceMaxOfBlocks);
}

const ProductLoops& Loops() { return ProductLoopsFor(InstructionSet()); }

Desc GivenForm(const Problem& p) {
  return p.is_convolution ? PlainDesc({p.columns, p.channels, p.y.taps, p.x.taps})
                          : PlainDesc({p.channels, p.columns});
}

// The numbers of a row that are multiplied together are one block; the weights lie by block, vector
// of columns, number, column. No primitive of oneDNN has this form.
Desc PackedForm(const Problem& p) {
  return PlainDesc({p.Blocks(), p.Vectors(Loops().lanes), p.inner(), Loops().lanes});
}

// One node behind the product, which neither bias, residual nor bounds take.
struct Step {
  BlockOp<float> op;
  int port = -1;  // Of the other operand, which lies as the result does; -1: none.
};

// What follows the product and is computed with it.
struct Fused {
  std::optional<Edge> bias;
  int residual = -1;  // Input port.
  std::optional<RegisterOps> ops;
  std::vector<Step> steps;  // In this order behind `ops`.
  size_t done = 1;          // Nodes of the group, with the product.
};

bool AppendStep(const GroupContext& context, size_t i, std::vector<Step>* steps) {
  const Node& node = context.node(i);
  if (!Has(node.op, kElementwise) || node.op == OpKind::kCast) return false;
  const bool is_unary = node.inputs.size() == 1;
  const int port = is_unary ? -1 : ResidualPort(context, i);
  const bool is_symmetric = node.op == OpKind::kAdd || node.op == OpKind::kMul;
  if (!is_unary && (!is_symmetric || port < 0)) return false;
  steps->push_back({BlockOpOf<float>(node), port});
  return true;
}

// Takes one node into `fused`; returns false where it does not fit behind what is there.
bool Append(const GroupContext& context, size_t i, const Problem& p, Fused* fused) {
  const bool is_last = fused->ops || !fused->steps.empty();
  if (!is_last && fused->residual < 0) {
    if (!fused->bias && !p.is_convolution) {
      fused->bias = ColumnBias(context, i, p.columns);
      if (fused->bias) return true;
    }
    if (context.node(i).op == OpKind::kAdd) fused->residual = ResidualPort(context, i);
    if (fused->residual >= 0) return true;
  }
  // The padding of blocked channels must stay zero.
  const bool is_padded = p.out.channels != p.columns;
  const std::optional<RegisterOps> ops = RegisterOpsOf(context.node(i));
  if (ops && !is_last) {
    if (is_padded && !ops->bounds.HasZero()) return false;
    fused->ops = ops;
    return true;
  }
  return !is_padded && AppendStep(context, i, &fused->steps);
}

Fused FusedOf(const GroupContext& context, const Problem& p) {
  const size_t product = ProductAt(context);
  Fused fused{.done = product + 1};
  for (size_t i = product + 1; i < context.group.nodes.size(); ++i) {
    const bool is_alike = context.node(i).outputs[0] == context.node(product).outputs[0];
    if (!Follows(context, i) || !is_alike) break;
    if (!Append(context, i, p, &fused)) break;
    fused.done = i + 1;
  }
  return fused;
}

// Returns the parts whose largest one has the least to do: products, rows that every part packs,
// weights that every part reads from a far cache. In cycles / 16 for each number of a row, on a
// core that multiplies two vectors a cycle.
Parts PartsOf(const Problem& p, const ProductLoops& loops, int cores) {
  const auto cost = [&](const Parts& parts) {
    const int64_t rows = PartsOfAtMost(p.rows(), parts.rows);
    const int64_t vectors = PartsOfAtMost(p.Vectors(loops.lanes), parts.columns);
    const int64_t padded = RoundUp(rows, std::min(loops.rows, int64_t{4}));
    return padded * vectors * 8 + rows * 32 + vectors * 48;
  };
  return LeastParts(cores, cost);
}

class Panels : public Kernel {
 public:
  Status Prepare(const GroupContext& context, size_t* done) {
    p_ = ProblemOf(context);
    fused_ = FusedOf(context, p_);
    *done = fused_.done;
    const Node& node = context.node(ProductAt(context));
    const Rows rows = RowsOf(context);
    x_ = context.InputOf(rows.x);
    if (rows.scale) {
      scale_ = context.InputOf(*rows.scale);
      scale_step_ = ChannelsInMemory(context.graph.type(*rows.scale).shape,
                                     context.group.inputs[scale_].layout);
    }
    cores_ = context.cores;
    parts_ = PartsOf(p_, loops_, cores_);
    is_in_place_ = IsReadInPlace(p_);
    SetSizes();
    if (p_.is_convolution) fused_.bias = node.inputs[2];
    if (context.constants == nullptr) return OkStatus();
    AG_TRY(SetWeights(context, node.inputs[1]));
    return SetBias(context);
  }

  Status Run(const RunContext& context, Inputs inputs, Outputs outputs) override {
    const Values values{.x = static_cast<const float*>(inputs[x_]),
                        .scale = scale_ < 0 ? nullptr : static_cast<const float*>(inputs[scale_]),
                        .y = static_cast<float*>(outputs[0]),
                        .inputs = inputs};
    ParallelFor(cores_, parts_.rows * parts_.columns, 1,
                [&](int64_t begin, int64_t end, int worker) {
                  const Area area = AreaAt(context.scratch, worker);
                  for (int64_t i = begin; i < end; ++i) RunPart(i, values, area);
                });
    return OkStatus();
  }

  size_t scratch_bytes() const override {
    return static_cast<size_t>(cores_ * AreaFloats()) * sizeof(float);
  }

 private:
  // What a run reads and writes.
  struct Values {
    const float* x = nullptr;
    const float* scale = nullptr;  // Of the image, one number a channel; null: none.
    float* y = nullptr;
    Inputs inputs;  // Of the group.
  };
  // The memory of one worker.
  struct Area {
    float* right = nullptr;    // Weights of a unit times the scale.
    float* left = nullptr;     // The rows of a chunk, by tile: [inner][rows].
    float* sums = nullptr;     // Of a panel, by tile: [rows][vectors * lanes].
    float* tile = nullptr;     // Results of one tile on which steps work.
    float* operand = nullptr;  // A step's operand of one tile.
  };
  void SetSizes() {
    const int64_t rows = PartsOfAtMost(p_.rows(), parts_.rows);
    const int64_t vectors = PartsOfAtMost(p_.Vectors(loops_.lanes), parts_.columns);
    const int64_t columns = vectors * loops_.lanes, size = sizeof(float);
    const bool is_near = columns * p_.inner() * size <= kNearWeightsBytes;
    const int64_t most = is_near ? kChunkBytes / ((p_.inner() + columns) * size)
                                 : kLongChunkBytes / (p_.inner() * size);
    chunk_rows_ = std::min(rows, RoundUp(std::max<int64_t>(most, 1), loops_.rows));
  }
  int64_t TileFloats() const { return loops_.rows * loops_.vectors * loops_.lanes; }
  int64_t Width() const { return loops_.vectors * loops_.lanes; }
  int64_t LeftFloats() const { return is_in_place_ ? 0 : RoundUp(chunk_rows_ * p_.inner(), 16); }
  int64_t SumFloats() const { return p_.inner() > kInnerBlock ? chunk_rows_ * Width() : 0; }
  // Blocks are at most one vector of the widest kind longer than others.
  int64_t RightFloats() const { return scale_ < 0 ? 0 : Width() * (kInnerBlock + 16); }
  int64_t AreaFloats() const {
    return RoundUp(RightFloats() + LeftFloats() + SumFloats() + 2 * TileFloats(), 16);
  }
  Area AreaAt(std::byte* scratch, int64_t worker) const {
    Area area{.right = reinterpret_cast<float*>(scratch) + worker * AreaFloats()};
    area.left = area.right + RightFloats();
    area.sums = area.left + LeftFloats();
    area.tile = area.sums + SumFloats();
    area.operand = area.tile + TileFloats();
    return area;
  }

  // A row's pixel of the result.
  struct Pixel {
    int64_t image = 0, y = 0, x = 0;
  };
  Pixel PixelOf(int64_t row) const {
    const int64_t line = row / p_.out.width;
    return {line / p_.out.height, line % p_.out.height, row % p_.out.width};
  }
  int64_t PlaceOf(int64_t row) const {
    const int64_t pixels = p_.out.height * p_.out.width;
    if (p_.out.image == pixels * p_.out.pixel || p_.images == 1) return row * p_.out.pixel;
    return row / pixels * p_.out.image + row % pixels * p_.out.pixel;
  }
  // Returns the pixel of x that a tap has for a pixel of the result; null: it is outside.
  const float* TapOf(const float* x, const Pixel& at, int64_t tap_y, int64_t tap_x) const {
    const int64_t in_y = p_.y.TapOf(at.y, tap_y), in_x = p_.x.TapOf(at.x, tap_x);
    if (in_y < 0 || in_y >= p_.in.height || in_x < 0 || in_x >= p_.in.width) return nullptr;
    return x + at.image * p_.in.image + in_y * p_.in.line + in_x * p_.in.pixel;
  }

  StatusOr<AlignedBuffer> PackWeights(const Tensor& weights) const {
    const int64_t lanes = loops_.lanes, vectors = p_.Vectors(lanes);
    const auto floats = static_cast<size_t>(vectors * p_.inner() * lanes);
    AG_LET(AlignedBuffer packed, AlignedBuffer::Make(floats * sizeof(float)));
    const float* const w = weights.As<float>().data();
    // From a column, channel and tap to the next one.
    const int64_t column_step = p_.is_convolution ? p_.inner() : 1;
    const int64_t channel_step = p_.is_convolution ? p_.taps() : p_.columns;
    ParallelFor(cores_, p_.Blocks(), 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t b = begin; b < end; ++b) {
        const Range block = p_.Block(b);
        float* to = packed.As<float>() + block.begin * vectors * lanes;
        for (int64_t v = 0; v < vectors; ++v) {
          const int64_t used = std::min(lanes, p_.columns - v * lanes);
          for (int64_t i = block.begin; i < block.end; ++i, to += lanes) {
            const float* from =
                w + i % p_.channels * channel_step + i / p_.channels + v * lanes * column_step;
            for (int64_t j = 0; j < used; ++j) to[j] = from[j * column_step];
          }
        }
      }
    });
    return packed;
  }

  Status SetWeights(const GroupContext& context, Edge edge) {
    const auto pack = [&](const Tensor& values) { return PackWeights(values); };
    AG_LET(weights_, PackedConstant(context, edge, PackedForm(p_), GivenForm(p_), pack));
    return OkStatus();
  }

  Status SetBias(const GroupContext& context) {
    const int64_t columns = p_.Vectors(loops_.lanes) * loops_.lanes;
    AG_LET(bias_, AlignedBuffer::Make(static_cast<size_t>(columns) * sizeof(float)));
    if (!fused_.bias) return OkStatus();
    AG_LET(const Tensor values, context.FloatConstants()->Get(*fused_.bias));
    std::ranges::copy(values.As<float>(), bias_.As<float>());
    return OkStatus();
  }

  // The weights of some vectors of columns in one block: what stays in the first cache while the
  // rows of a chunk pass.
  struct Unit {
    Range vectors;
    int64_t block = 0;
  };
  Range BytesOf(const Unit& unit) const {
    const Range block = p_.Block(unit.block);
    const int64_t vectors = p_.Vectors(loops_.lanes), bytes = loops_.lanes * int64_t{sizeof(float)};
    const int64_t begin = (block.begin * vectors + unit.vectors.begin * block.count()) * bytes;
    return {begin, begin + unit.vectors.count() * block.count() * bytes};
  }
  const char* weights_bytes() const { return weights_->As<char>(); }

  void RunPart(int64_t part, const Values& values, const Area& area) const {
    const Range rows = Range{0, p_.rows()}.Part(part / parts_.columns, parts_.rows);
    const Range vectors =
        Range{0, p_.Vectors(loops_.lanes)}.Part(part % parts_.columns, parts_.columns);
    if (values.scale == nullptr) return RunRows(rows, vectors, values, area);
    // Each image scales the weights by numbers of its own.
    const int64_t pixels = p_.out.height * p_.out.width;
    for (Range of_image = rows; of_image.begin < rows.end; of_image.begin = of_image.end) {
      const int64_t image = of_image.begin / pixels;
      of_image.end = std::min(rows.end, (image + 1) * pixels);
      Values scaled = values;
      scaled.scale += image * scale_step_;
      RunRows(of_image, vectors, scaled, area);
    }
  }

  void RunRows(const Range& rows, const Range& vectors, const Values& values,
               const Area& area) const {
    const int64_t chunks = PartsOfAtMost(rows.count(), chunk_rows_);
    const int64_t panels = PartsOfAtMost(vectors.count(), loops_.vectors);
    const int64_t units = panels * p_.Blocks();
    if (units == 0) return;  // There are fewer vectors than parts.
    const auto unit = [&](int64_t i) {
      return Unit{vectors.Part(i / p_.Blocks(), panels), i % p_.Blocks()};
    };
    for (int64_t i = 0; i < chunks; ++i) {
      const Range chunk = rows.Part(i, chunks);
      if (!is_in_place_) PackRows(values.x, chunk, BytesOf(unit(0)), area);
      for (int64_t j = 0; j < units; ++j) {
        const Range ahead = j + 1 < units ? BytesOf(unit(j + 1)) : Range{};
        MultiplyUnit(values, chunk, unit(j), ahead, area);
      }
    }
  }

  int64_t Tiles(const Range& chunk) const { return PartsOfAtMost(chunk.count(), loops_.rows); }

  // The weights `ahead` are fetched meanwhile.
  void PackRows(const float* x, const Range& chunk, const Range& ahead, const Area& area) const {
    const int64_t tiles = Tiles(chunk);
    for (int64_t t = 0; t < tiles; ++t) {
      const Range part = ahead.Part(t, tiles);
      for (int64_t at = part.begin; at < part.end; at += kProductLineBytes) {
        __builtin_prefetch(weights_bytes() + at, /*rw=*/0, /*locality=*/2);
      }
      const Range rows = chunk.Part(t, tiles);
      PackTile(x, rows, std::min(rows.end + kProductRowsMax, chunk.end),
               area.left + (rows.begin - chunk.begin) * p_.inner());
    }
  }

  // `known`: the end of the rows of the next tile.
  void PackTile(const float* x, const Range& rows, int64_t known, float* to) const {
    Pixel pixels[2 * kProductRowsMax];
    const int64_t count = known - rows.begin;
    for (int64_t r = 0; r < count; ++r) pixels[r] = PixelOf(rows.begin + r);
    for (int64_t tap_y = 0; tap_y < p_.y.taps; ++tap_y) {
      for (int64_t tap_x = 0; tap_x < p_.x.taps; ++tap_x) {
        const float* from[2 * kProductRowsMax];
        for (int64_t r = 0; r < count; ++r) from[r] = TapOf(x, pixels[r], tap_y, tap_x);
        PackProductRows({from, rows.count(), count}, p_.in.block, p_.in.plane, p_.channels, to);
        to += rows.count() * p_.channels;
      }
    }
  }

  // All rows of the chunk times one unit; the weights `ahead` are fetched meanwhile.
  void MultiplyUnit(const Values& values, const Range& chunk, const Unit& unit, const Range& ahead,
                    const Area& area) const {
    const int64_t tiles = Tiles(chunk), blocks = p_.Blocks();
    const Range inner = p_.Block(unit.block);
    const Side& in = p_.in;
    ProductTile tile{.vectors = unit.vectors.count(), .k = inner.count()};
    tile.right = reinterpret_cast<const float*>(weights_bytes() + BytesOf(unit).begin);
    tile.right_step = inner.count() * loops_.lanes;
    if (values.scale != nullptr) {
      loops_.scale(tile.right, values.scale + inner.begin, tile.vectors, tile.k, area.right);
      tile.right = area.right;
    }
    tile.ahead = weights_bytes() + ahead.begin;
    const int64_t pieces = PartsOfAtMost(inner.count(), kProductPiece);
    if (tiles >= kTilesMinToFetch) {
      tile.ahead_lines = PartsOfAtMost(ahead.count(), tiles * pieces * kProductLineBytes);
    }
    const float* x = values.x;
    if (is_in_place_) {
      tile.row_step = in.pixel;
      if (in.block < p_.channels) {
        tile.piece = std::min(in.block, kProductPiece);
        tile.piece_step = in.plane;
      }
      x += inner.begin / in.block * in.plane + inner.begin % in.block;
    }
    Range rows{chunk.begin, chunk.begin};
    for (int64_t t = 0; t < tiles; ++t) {
      rows = {rows.end, chunk.Part(t, tiles).end};
      const int64_t first = rows.begin - chunk.begin;
      tile.rows = rows.count();
      if (is_in_place_) {
        tile.left = x + rows.begin * in.pixel;
        tile.next_left = tile.left + rows.count() * in.pixel;
      } else {
        tile.left = area.left + first * p_.inner() + inner.begin * rows.count();
        tile.next_left = tile.left + rows.count() * p_.inner();
      }
      float* const sums = area.sums + first * unit.vectors.count() * loops_.lanes;
      tile.start = unit.block > 0 ? sums : nullptr;
      if (unit.block + 1 < blocks) {
        loops_.add(tile, sums);
      } else {
        FinishTile(tile, rows.begin, unit.vectors, values, area);
      }
      tile.ahead += tile.ahead_lines * pieces * kProductLineBytes;
    }
  }

  // `row`: the first one of the tile.
  void FinishTile(const ProductTile& tile, int64_t row, const Range& vectors, const Values& values,
                  const Area& area) const {
    const Inputs inputs = values.inputs;
    float* const y = values.y;
    const int64_t lanes = loops_.lanes, width = vectors.count() * lanes;
    const bool is_whole = vectors.end * lanes <= p_.out.channels;
    const int64_t place = p_.out.PlaceOf(vectors.begin * lanes);
    const int64_t step = p_.out.VectorStep(lanes);
    int64_t places[kProductRowsMax];
    float* to[kProductRowsMax];
    const float* residual[kProductRowsMax];
    for (int64_t r = 0; r < tile.rows; ++r) {
      places[r] = PlaceOf(row + r) + place;
      to[r] = y + places[r];
    }
    const auto* added =
        fused_.residual < 0 ? nullptr : static_cast<const float*>(inputs[fused_.residual]);
    ProductTail tail{.bias = bias_.As<float>() + vectors.begin * lanes,
                     .ops = fused_.ops.value_or(RegisterOps{}),
                     .to = to,
                     .to_step = step};
    if (is_whole && fused_.steps.empty()) {
      if (added != nullptr) {
        for (int64_t r = 0; r < tile.rows; ++r) residual[r] = added + places[r];
        tail.residual = residual;
      }
      loops_.finish(tile, tail);
      return;
    }
    // On a copy of the tile, whose columns lie side by side.
    const int64_t used = std::min(width, p_.out.channels - vectors.begin * lanes);
    float* in_tile[kProductRowsMax];
    for (int64_t r = 0; r < tile.rows; ++r) {
      in_tile[r] = area.tile + r * width;
      residual[r] = area.operand + r * width;
    }
    if (added != nullptr) {
      Gather(added, places, tile.rows, width, used, step, area.operand);
      tail.residual = residual;
    }
    tail.to = in_tile;
    tail.to_step = lanes;
    loops_.finish(tile, tail);
    // Where a row of the tile is one piece of the result the last step writes it there.
    const bool is_one_piece = used == width && (step == lanes || width == lanes);
    for (const Step& s : fused_.steps) {
      const float* operand = area.tile;
      if (s.port >= 0) {
        Gather(static_cast<const float*>(inputs[s.port]), places, tile.rows, width, used, step,
               area.operand);
        operand = area.operand;
      }
      if (&s < &fused_.steps.back() || !is_one_piece) {
        s.op.run(area.tile, operand, operand, area.tile, tile.rows * width, s.op.p, s.op.q);
        continue;
      }
      for (int64_t r = 0; r < tile.rows; ++r) {
        const float* const other = operand + r * width;
        s.op.run(in_tile[r], other, other, to[r], width, s.op.p, s.op.q);
      }
      return;
    }
    for (int64_t r = 0; r < tile.rows; ++r)
      CopyVectors(in_tile[r], lanes, used, lanes, to[r], step);
  }

  // Copies a tile's numbers to `to`, [rows][width].
  void Gather(const float* from, const int64_t* places, int64_t rows, int64_t width, int64_t used,
              int64_t step, float* to) const {
    for (int64_t r = 0; r < rows; ++r) {
      CopyVectors(from + places[r], step, used, loops_.lanes, to + r * width, loops_.lanes);
    }
  }

  const ProductLoops& loops_ = Loops();
  Problem p_;
  Fused fused_;
  int x_ = -1, scale_ = -1;
  int64_t scale_step_ = 0;  // From an image's scale to the next one's.
  int cores_ = 1;
  Parts parts_;
  int64_t chunk_rows_ = 1;
  bool is_in_place_ = false;
  std::shared_ptr<const AlignedBuffer> weights_;  // PackedForm.
  AlignedBuffer bias_;                            // By column, zero behind the last one.
};

Status Lacks(const Node& node, std::string_view what) {
  return Err(StatusCode::kUnimplemented, "{}: {} has no {}: {}", Info(node.op).name,
             node.outputs[0].ToString(), kPanelsName, what);
}

Status CheckConvolution(const GroupContext& context) {
  const Node& node = context.node(ProductAt(context));
  if (node.outputs[0].shape.size() != 4 || node.Int("group") != 1) {
    return Lacks(node, "not two axes and one group");
  }
  const Problem p = ProblemOf(context);
  if (p.taps() > 1 && p.rows() > kRowsMaxOfTaps) return Lacks(node, "several taps of many pixels");
  if (context.InputOf(node.inputs[2]) >= 0) return Lacks(node, "bias is no constant");
  const Rows rows = RowsOf(context);
  const Layout in = context.group.inputs[context.InputOf(rows.x)].layout;
  for (const Layout layout : {in, context.group.outputs[0].layout}) {
    const bool fits = layout == Layout::kChannelsLast || BlockOf(layout) == Loops().lanes;
    if (!fits) return Lacks(node, "channels do not lie in whole vectors");
  }
  if (!rows.scale) return OkStatus();
  if (context.InputOf(*rows.scale) < 0) return Lacks(node, "the scale is a constant");
  const bool is_whole = FusedOf(context, p).done == context.group.nodes.size();
  return is_whole ? OkStatus() : Lacks(node, "all that follows it");
}

StatusOr<std::vector<std::string>> ScaledNames(const GroupContext& context) {
  AG_TRY(CheckPanels(context));
  return std::vector<std::string>{std::string(kPanelsName)};
}

StatusOr<std::unique_ptr<Kernel>> MakeScaled(const GroupContext& context, const std::string&,
                                             size_t* done) {
  AG_TRY(CheckPanels(context));
  return MakePanels(context, done);
}

}  // namespace

Status CheckPanels(const GroupContext& context) {
  const Node& node = context.node(ProductAt(context));
  const TensorType& type = node.outputs[0];
  if (type.dtype != DType::kFloat32) return Lacks(node, "not f32");
  if (context.InputOf(RowsOf(context).x) < 0) return Lacks(node, "both sides are constants");
  if (context.InputOf(node.inputs[1]) >= 0) return Lacks(node, "weights are no constants");
  if (node.op == OpKind::kConv) return CheckConvolution(context);
  if (context.graph.type(node.inputs[1]).shape.size() != 2) return Lacks(node, "several matrices");
  if (ProblemOf(context).inner() == 0) return Lacks(node, "sums over nothing");
  return ArePlain(context.group) ? OkStatus() : Lacks(node, "ports are not plain");
}

bool PanelsPackHeldWeights(const GroupContext& context) {
  const Problem p = ProblemOf(context);
  const Edge weights = context.node(ProductAt(context)).inputs[1];
  return !HeldForms(context, weights, GivenForm(p)).empty() &&
         HeldForms(context, weights, GivenForm(p), PackedForm(p).dims()).empty();
}

StatusOr<std::unique_ptr<Kernel>> MakePanels(const GroupContext& context, size_t* done) {
  auto kernel = std::make_unique<Panels>();
  AG_TRY(kernel->Prepare(context, done));
  return kernel;
}

const Family kScaledFamily = {ScaledNames, MakeScaled, true};

}  // namespace ag::cpu

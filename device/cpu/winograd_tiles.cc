#include "device/cpu/winograd_tiles.h"

#include <algorithm>

#include "device/cpu/host.h"
#include "device/cpu/packed_weights.h"
#include "device/cpu/parallel.h"

namespace ag::cpu {
namespace {

// Floats between the points of a transformed tile beyond its own: without them the stores of the
// points of wide tiles would fall into the same few sets of the cache.
constexpr int64_t kStepPadding = 16;

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

}  // namespace

bool WinogradTiles::Fits(const WinogradProblem& problem) { return LoopsFor(problem) != nullptr; }

Desc WinogradTiles::PackedForm(const WinogradProblem& problem) {
  const WinogradLoops& loops = *LoopsFor(problem);
  const int64_t width = loops.vectors * loops.lanes;
  return PlainDesc({problem.tile.points(), (problem.out.channels + width - 1) / width,
                    problem.taps * problem.channels, width});
}

Desc WinogradTiles::GivenForm(const WinogradProblem& problem) {
  Dims dims{problem.results, problem.channels, 3, 3};
  if (problem.taps > 1) dims.insert(dims.begin() + 2, problem.taps);
  return PlainDesc(dims);
}

void WinogradTiles::Prepare(const WinogradProblem& problem, int cores) {
  p_ = problem;
  loops_ = LoopsFor(p_);
  cores_ = cores;
  Divide();
}

int64_t WinogradTiles::InStep() const {
  return p_.frames_in * area_positions_ * p_.in.channels + kStepPadding;
}

int64_t WinogradTiles::OutStep() const {
  return p_.frames_out * area_positions_ * p_.out.channels + kStepPadding;
}

WinogradTiles::Area WinogradTiles::AreaAt(std::byte* scratch, int64_t index) const {
  float* begin = reinterpret_cast<float*>(scratch) + index * AreaFloats();
  return {begin, begin + Points() * InStep()};
}

size_t WinogradTiles::scratch_bytes() const {
  const int64_t areas = by_chunks_ ? cores_ : 1;
  return AlignUp(static_cast<size_t>(areas * AreaFloats()) * sizeof(float));
}

// A chunk's transforms stay in the nearest large cache, and the weights are read once a chunk, so
// chunks grow with the weights. Measured on one core of a Zen 3 (512 KiB of L2): 12 to 48 tiles a
// chunk take the same time within 5 % from 64 to 64 and from 128 to 128 channels. The tiles of a
// frame are multiplied together, so a chunk has loops_->rows of each at least.
void WinogradTiles::Divide() {
  const int64_t weights_bytes = Points() * PanelRows() * p_.out.channels * 4;
  const int64_t rows = loops_->rows, positions = p_.positions();
  int64_t tiles = 2 * rows;
  while (tiles < 8 * rows && weights_bytes > tiles * (int64_t{1} << 17)) tiles *= 2;
  const int64_t least = p_.frames_out > 1 ? rows : 2 * rows;
  by_chunks_ = positions >= least * cores_ * 2;
  if (by_chunks_) {
    const int64_t chunk = std::max(tiles / p_.frames_out, least);
    chunks_ = RoundUp((positions + chunk - 1) / chunk, cores_);
    area_positions_ = (positions + chunks_ - 1) / chunks_;
  } else {
    area_positions_ = positions;
  }
}

// Writes the points of one filter of 3x3 taps to their places; `row`: of its panel.
void WinogradTiles::PackPoint(const float* w, int64_t result, int64_t row, float* to) const {
  double points[kWinogradPointsMax];
  TransformWinogradFilter(p_.tile, w, points);
  const int64_t panel = result / PanelWidth(), begin = panel * PanelWidth();
  const int64_t width = std::min(PanelWidth(), p_.out.channels - begin);
  float* at = to + begin * PanelRows() + row * width + (result - begin);
  for (int64_t point = 0; point < Points(); ++point) {
    at[point * PanelRows() * p_.out.channels] = static_cast<float>(points[point]);
  }
}

StatusOr<AlignedBuffer> WinogradTiles::PackWeights(const Tensor& weights) const {
  const int64_t floats = Points() * PanelRows() * p_.out.channels;
  AG_LET(AlignedBuffer packed, AlignedBuffer::Make(static_cast<size_t>(floats) * sizeof(float)));
  const float* w = weights.As<float>().data();
  ParallelFor(cores_, PanelRows(), 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t tap = row / p_.channels, channel = row % p_.channels;
      for (int64_t result = 0; result < p_.results; ++result) {
        const int64_t filter = (result * p_.channels + channel) * p_.taps + tap;
        PackPoint(w + filter * 9, result, row, packed.As<float>());
      }
    }
  });
  return packed;
}

Status WinogradTiles::SetWeights(const GroupContext& context, Edge weights,
                                 std::optional<Edge> bias) {
  const auto pack = [&](const Tensor& values) { return PackWeights(values); };
  AG_LET(weights_, PackedConstant(context, weights, PackedForm(p_), GivenForm(p_), pack));
  AG_LET(bias_, AlignedBuffer::Make(static_cast<size_t>(p_.out.channels) * sizeof(float)));
  if (!bias) return OkStatus();
  AG_LET(const Tensor values, context.FloatConstants()->Get(*bias));
  std::ranges::copy(values.As<float>(), bias_.As<float>());
  return OkStatus();
}

WinogradTiles::Place WinogradTiles::PlaceOf(const Chunk& chunk, int64_t tile) const {
  const int64_t position = chunk.begin + tile % chunk.count(), columns = p_.columns();
  const int64_t in_frame = position % (p_.rows() * columns);
  return {.image = position / (p_.rows() * columns),
          .frame = tile / chunk.count(),
          .y = in_frame / columns * p_.tile.outputs,
          .x = in_frame % columns * p_.tile.outputs};
}

void WinogradTiles::TransformInputs(const std::byte* x, const Area& area, const Chunk& chunk,
                                    int64_t begin, int64_t end) const {
  const int64_t element = p_.is_bf16 ? 2 : 4;
  for (int64_t tile = begin; tile < end; ++tile) {
    const Place at = PlaceOf(chunk, tile);
    const std::byte* frame = x + (at.image * p_.InElements() + at.frame * p_.InFrame()) * element;
    loops_->input(p_.in, frame, at.y - p_.pad_y, at.x - p_.pad_x, area.in + tile * p_.in.channels,
                  InStep());
  }
}

void WinogradTiles::Multiply(const Area& area, int64_t count, int64_t begin, int64_t end) const {
  const int64_t in_frame = count * p_.in.channels, out_frame = count * p_.out.channels;
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t point = unit / Panels(), result = unit % Panels() * PanelWidth();
    const float* panel = weights_->As<float>() + (point * p_.out.channels + result) * PanelRows();
    const int64_t width = std::min(PanelWidth(), p_.out.channels - result);
    const float* in = area.in + point * InStep();
    float* out = area.out + point * OutStep() + result;
    // The next panel comes from a far cache or memory.
    const int64_t share = unit + 1 < end ? PanelRows() * width / p_.frames_out : 0;
    const float* const next = panel + PanelRows() * width;
    for (int64_t to = 0; to < p_.frames_out; ++to) {
      const int64_t tap = std::max<int64_t>(0, p_.pad_frames - to);
      const int64_t taps = std::min(p_.taps, p_.frames_in + p_.pad_frames - to) - tap;
      loops_->products({.first = in + (to + tap - p_.pad_frames) * in_frame,
                        .count = count,
                        .step = p_.in.channels,
                        .channels = p_.channels,
                        .taps = taps,
                        .tap_step = in_frame,
                        .ahead = next + to * share,
                        .ahead_bytes = share * 4},
                       panel + tap * p_.channels * width, width / loops_->lanes,
                       out + to * out_frame, p_.out.channels);
    }
  }
}

void WinogradTiles::TransformOutputs(const Area& area, const Chunk& chunk, const WinogradTail& tail,
                                     std::byte* y, int64_t begin, int64_t end) const {
  const int64_t element = p_.is_bf16 ? 2 : 4;
  for (int64_t tile = begin; tile < end; ++tile) {
    const Place at = PlaceOf(chunk, tile);
    const int64_t frame = (at.image * p_.OutElements() + at.frame * p_.OutFrame()) * element;
    WinogradTail of_frame = tail;
    if (tail.residual != nullptr) {
      of_frame.residual = static_cast<const std::byte*>(tail.residual) + frame;
    }
    loops_->output(p_.out, area.out + tile * p_.out.channels, OutStep(), of_frame, at.y, at.x,
                   y + frame);
  }
}

void WinogradTiles::Run(const void* x, WinogradTail tail, void* y, std::byte* scratch) const {
  const auto* const from = static_cast<const std::byte*>(x);
  auto* const to = static_cast<std::byte*>(y);
  tail.bias = bias_.As<float>();
  const int64_t positions = p_.positions(), units = Points() * Panels();
  if (by_chunks_) {
    ParallelFor(cores_, chunks_, 1, [&](int64_t begin, int64_t end, int worker) {
      const Area area = AreaAt(scratch, worker);
      for (int64_t i = begin; i < end; ++i) {
        const Chunk chunk{positions * i / chunks_, positions * (i + 1) / chunks_};
        TransformInputs(from, area, chunk, 0, chunk.count() * p_.frames_in);
        Multiply(area, chunk.count(), 0, units);
        TransformOutputs(area, chunk, tail, to, 0, chunk.count() * p_.frames_out);
      }
    });
    return;
  }
  const Area area = AreaAt(scratch, 0);
  const Chunk all{0, positions};
  ParallelFor(cores_, positions * p_.frames_in, 1, [&](int64_t begin, int64_t end, int) {
    TransformInputs(from, area, all, begin, end);
  });
  ParallelFor(cores_, units, 1,
              [&](int64_t begin, int64_t end, int) { Multiply(area, positions, begin, end); });
  ParallelFor(cores_, positions * p_.frames_out, 1, [&](int64_t begin, int64_t end, int) {
    TransformOutputs(area, all, tail, to, begin, end);
  });
}

}  // namespace ag::cpu

#include "device/cpu/window_loops.h"

#include <utility>

#include "device/cpu/lanes.h"

namespace ag::cpu {
namespace {

// Taps of a line, and the distance of neighbouring pixels in taps; taps 0: both as the tile says.
template <WindowForm form>
struct Form {
  static constexpr bool kIsThree = form == WindowForm::kThree || form == WindowForm::kThreeByTwo;
  static constexpr bool kIsNext = form == WindowForm::kThree || form == WindowForm::kFive;
  static constexpr int kTaps = form == WindowForm::kAny ? 0 : kIsThree ? 3 : 5;
  static constexpr int kStride = kIsNext ? 1 : 2;
};

// Adds one line of the window to the sums of all pixels.
template <int64_t lanes, int kPixels, class Form>
AG_INLINE void AddLine(const WindowTile& tile, const float* from, const float* weights,
                       typename Lanes<lanes>::Vector (&sum)[kPixels]) {
  using V = typename Lanes<lanes>::Vector;
  if constexpr (Form::kTaps == 0) {
    for (int64_t t = 0; t < tile.taps_x; ++t, weights += lanes, from += tile.tap_step) {
      const V weight = *reinterpret_cast<const V*>(weights);
#pragma GCC unroll 8
      for (int i = 0; i < kPixels; ++i) {
        V x;
        LoadLanes<lanes>(from + i * tile.from_step, &x);
        sum[i] += x * weight;
      }
    }
  } else {
    V weight[Form::kTaps];
#pragma GCC unroll 8
    for (int t = 0; t < Form::kTaps; ++t) {
      weight[t] = *reinterpret_cast<const V*>(weights + t * lanes);
    }
#pragma GCC unroll 32
    for (int at = 0; at < (kPixels - 1) * Form::kStride + Form::kTaps; ++at) {
      V x;
      LoadLanes<lanes>(from, &x);
      from += tile.tap_step;
#pragma GCC unroll 8
      for (int i = 0; i < kPixels; ++i) {
        const int t = at - i * Form::kStride;
        if (t >= 0 && t < Form::kTaps) sum[i] += x * weight[t];
      }
    }
  }
}

template <int64_t lanes, int kPixels, class Form>
AG_INLINE void Run(const WindowTile& tile) {
  using V = typename Lanes<lanes>::Vector;
  const float* weights = tile.weights;
  const int64_t to_step = tile.to_step;
  const V low = V{} + tile.ops.bounds.low, high = V{} + tile.ops.bounds.high;
  const bool is_hard_swish = tile.ops.is_hard_swish;
  for (int64_t v = 0; v < tile.vectors; ++v) {
    V sum[kPixels];
    LoadLanes<lanes>(tile.bias + v * lanes, &sum[0]);
#pragma GCC unroll 8
    for (int i = 1; i < kPixels; ++i) sum[i] = sum[0];
    for (int64_t line = 0; line < tile.taps_y; ++line, weights += tile.taps_x * lanes) {
      AddLine<lanes, kPixels, Form>(tile, tile.from[line] + v * lanes, weights, sum);
    }
    float* const to = tile.to + v * tile.to_vector_step;
#pragma GCC unroll 8
    for (int i = 0; i < kPixels; ++i) {
      ApplyOps<lanes>(low, high, is_hard_swish, &sum[i]);
      StoreLanes<lanes>(sum[i], to + i * to_step);
    }
  }
}

template <int64_t lanes>
AG_INLINE void Add(const PixelSums& pixels) {
  for (int64_t v = 0; v < pixels.vectors; ++v) {
    typename Lanes<lanes>::Vector sum, x;
    LoadLanes<lanes>(pixels.sums + v * lanes, &sum);
    const float* from = pixels.from + v * pixels.vector_step;
    for (int64_t i = 0; i < pixels.pixels; ++i, from += pixels.pixel_step) {
      LoadLanes<lanes>(from, &x);
      sum += x;
    }
    StoreLanes<lanes>(sum, pixels.sums + v * lanes);
  }
}

// What place i of WindowLoops::runs is for. Narrow results, of fewer pixels, are left to the loops
// of any form. So are shorter vectors, since each form adds to every program: what sharing the
// loads gains was measured with AVX-512 only.
constexpr int kFormPixelsMin = 4;
constexpr int PixelsAt(size_t i) { return static_cast<int>(i) % kWindowPixelsMax + 1; }
constexpr WindowForm FormAt(size_t i, int64_t lanes) {
  return lanes < 16 || PixelsAt(i) < kFormPixelsMin ? WindowForm::kAny
                                                    : WindowForm(i / kWindowPixelsMax);
}

#define AG_WINDOW_LOOPS(isa, lanes, mark)                                   \
  template <int kPixels, WindowForm form>                                   \
  mark void Run##isa(const WindowTile& tile) {                              \
    Run<lanes, kPixels, Form<form>>(tile);                                  \
  }                                                                         \
  mark void Add##isa(const PixelSums& pixels) { Add<lanes>(pixels); }       \
  template <size_t... i>                                                    \
  constexpr WindowLoops Loops##isa(std::index_sequence<i...>) {             \
    return {lanes, {Run##isa<PixelsAt(i), FormAt(i, lanes)>...}, Add##isa}; \
  }                                                                         \
  constexpr WindowLoops k##isa =                                            \
      Loops##isa(std::make_index_sequence<kWindowForms * kWindowPixelsMax>());

AG_WINDOW_LOOPS(Avx512, 16, AG_AVX512)
AG_WINDOW_LOOPS(Avx2, 8, AG_AVX2)
AG_WINDOW_LOOPS(Sse, 4, )

WindowForm FormOf(const WindowTile& tile) {
  const bool is_next = tile.from_step == tile.tap_step;
  if (!is_next && tile.from_step != 2 * tile.tap_step) return WindowForm::kAny;
  if (tile.taps_x == 3) return is_next ? WindowForm::kThree : WindowForm::kThreeByTwo;
  if (tile.taps_x == 5) return is_next ? WindowForm::kFive : WindowForm::kFiveByTwo;
  return WindowForm::kAny;
}

}  // namespace

void WindowLoops::run(const WindowTile& tile) const {
  runs[static_cast<int64_t>(FormOf(tile)) * kWindowPixelsMax + tile.pixels - 1](tile);
}

const WindowLoops& WindowLoopsFor(std::string_view isa) {
  return ForInstructionSet(isa, kAvx512, kAvx2, kSse);
}

}  // namespace ag::cpu

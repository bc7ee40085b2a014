#include "device/cpu/winograd_loops.h"

#include "device/cpu/fast_math.h"
#include "device/cpu/lanes.h"

namespace ag::cpu {
namespace {

// One column of the transform of inputs: to = B^T from.
template <class V>
AG_INLINE void InputColumn(const V (&d)[6], V (&to)[6]) {
  const V a = d[4] - 4.0f * d[2], b = d[3] - 4.0f * d[1];
  const V c = d[4] - d[2], e = 2.0f * (d[3] - d[1]);
  to[0] = 4.0f * d[0] - 5.0f * d[2] + d[4];
  to[1] = a + b;
  to[2] = a - b;
  to[3] = c + e;
  to[4] = c - e;
  to[5] = 4.0f * d[1] - 5.0f * d[3] + d[5];
}

template <class V>
AG_INLINE void InputColumn(const V (&d)[4], V (&to)[4]) {
  to[0] = d[0] - d[2];
  to[1] = d[1] + d[2];
  to[2] = d[2] - d[1];
  to[3] = d[1] - d[3];
}

// One column of the transform back: to = A^T from.
template <class V>
AG_INLINE void OutputColumn(const V (&m)[6], V (&to)[4]) {
  const V a = m[1] + m[2], b = m[1] - m[2];
  const V c = m[3] + m[4], d = m[3] - m[4];
  to[0] = m[0] + a + c;
  to[1] = b + 2.0f * d;
  to[2] = a + 4.0f * c;
  to[3] = b + 8.0f * d + m[5];
}

template <class V>
AG_INLINE void OutputColumn(const V (&m)[4], V (&to)[2]) {
  to[0] = m[0] + m[1] + m[2];
  to[1] = m[1] - m[2] - m[3];
}

template <int64_t lanes, int kIn, class T>
AG_INLINE void InputOf(const WinogradImage& image, const T* from, int64_t y, int64_t x, float* to,
                       int64_t step) {
  using V = typename Lanes<lanes>::Vector;
  using U = typename Lanes<lanes>::Loose;
  const bool inside = y >= 0 && x >= 0 && y + kIn <= image.height && x + kIn <= image.width;
  const T* pixels[kIn][kIn];  // Null: outside.
  for (int64_t i = 0; i < kIn; ++i) {
    for (int64_t j = 0; j < kIn; ++j) {
      const bool in = y + i >= 0 && y + i < image.height && x + j >= 0 && x + j < image.width;
      pixels[i][j] = in ? from + ((y + i) * image.width + x + j) * image.pixel : nullptr;
    }
  }
  for (int64_t c = 0; c < image.channels; c += lanes) {
    const int64_t channel = image.Channel(c);
    V half[kIn][kIn];
#pragma GCC unroll 6
    for (int j = 0; j < kIn; ++j) {
      V d[kIn], column[kIn];
#pragma GCC unroll 6
      for (int i = 0; i < kIn; ++i) {
        if (inside || pixels[i][j] != nullptr) {
          LoadLanes<lanes>(pixels[i][j] + channel, &d[i]);
        } else {
          d[i] = V{};
        }
      }
      InputColumn(d, column);
#pragma GCC unroll 6
      for (int i = 0; i < kIn; ++i) half[i][j] = column[i];
    }
#pragma GCC unroll 6
    for (int i = 0; i < kIn; ++i) {
      V row[kIn];
      InputColumn(half[i], row);
#pragma GCC unroll 6
      for (int j = 0; j < kIn; ++j) *reinterpret_cast<U*>(to + (i * kIn + j) * step + c) = row[j];
    }
  }
}

template <int64_t lanes, int kRows, int kVectors>
AG_INLINE void ProductOf(const WinogradRows& in, const float* panel, int64_t ahead_step, float* out,
                         int64_t out_step) {
  using V = typename Lanes<lanes>::Vector;
  using U = typename Lanes<lanes>::Loose;
  V sum[kRows][kVectors] = {};
  const V* b = reinterpret_cast<const V*>(panel);
  const char* ahead = static_cast<const char*>(in.ahead);
  for (int64_t tap = 0; tap < in.taps; ++tap) {
    const float* const from = in.first + tap * in.tap_step;
    for (int64_t i = 0; i < in.channels; ++i, b += kVectors, ahead += ahead_step) {
      __builtin_prefetch(ahead, /*rw=*/0, /*locality=*/2);
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) sum[r][v] += from[r * in.step + i] * b[v];
      }
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      *reinterpret_cast<U*>(out + r * out_step + v * lanes) = sum[r][v];
    }
  }
}

// Computes `count` rows, at most kRows together.
template <int64_t lanes, int kRows, int kVectors>
AG_INLINE void ProductOfRows(int64_t count, const WinogradRows& in, const float* panel,
                             int64_t ahead_step, float* out, int64_t out_step) {
  if constexpr (kRows > 0) {
    if (count == kRows) {
      return ProductOf<lanes, kRows, kVectors>(in, panel, ahead_step, out, out_step);
    }
    ProductOfRows<lanes, kRows - 1, kVectors>(count, in, panel, ahead_step, out, out_step);
  }
}

template <int64_t lanes, int kRows, int kVectors>
AG_INLINE void ProductsOf(const WinogradRows& in, const float* panel, int64_t panel_vectors,
                          float* out, int64_t out_step) {
  const int64_t steps = (in.count + kRows - 1) / kRows;
  const int64_t reads = in.taps * in.channels;  // Of a step.
  const int64_t ahead_step = in.ahead_bytes / (steps * reads);
  for (int64_t s = 0; s < steps; ++s) {
    const int64_t begin = in.count * s / steps, rows = in.count * (s + 1) / steps - begin;
    WinogradRows part = in;
    part.first += begin * in.step;
    part.ahead = static_cast<const char*>(in.ahead) + s * reads * ahead_step;
    float* to = out + begin * out_step;
    if (panel_vectors == kVectors) {
      ProductOfRows<lanes, kRows, kVectors>(rows, part, panel, ahead_step, to, out_step);
    } else {
      ProductOfRows<lanes, kRows, 1>(rows, part, panel, ahead_step, to, out_step);
    }
  }
}

template <int64_t lanes, int kIn, class T>
AG_INLINE void OutputOf(const WinogradImage& image, const float* from, int64_t step,
                        const WinogradTail& tail, int64_t y, int64_t x, T* to) {
  using V = typename Lanes<lanes>::Vector;
  constexpr int kOut = kIn - 2;
  const int64_t height = image.height - y, width = image.width - x;  // Of what is inside.
  for (int64_t c = 0; c < image.channels; c += lanes) {
    V half[kOut][kIn];
#pragma GCC unroll 6
    for (int j = 0; j < kIn; ++j) {
      V m[kIn], column[kOut];
#pragma GCC unroll 6
      for (int i = 0; i < kIn; ++i) LoadLanes<lanes>(from + (i * kIn + j) * step + c, &m[i]);
      OutputColumn(m, column);
#pragma GCC unroll 4
      for (int i = 0; i < kOut; ++i) half[i][j] = column[i];
    }
    V bias;
    LoadLanes<lanes>(tail.bias + c, &bias);
    const V low = V{} + tail.low, high = V{} + tail.high;
    const int64_t first = (y * image.width + x) * image.pixel + image.Channel(c);
#pragma GCC unroll 4
    for (int i = 0; i < kOut; ++i) {
      V row[kOut];
      OutputColumn(half[i], row);
#pragma GCC unroll 4
      for (int j = 0; j < kOut; ++j) {
        if (i >= height || j >= width) continue;
        const int64_t at = first + (i * image.width + j) * image.pixel;
        V value = row[j] + bias;
        if (tail.residual != nullptr) {
          V residual;
          LoadLanes<lanes>(static_cast<const T*>(tail.residual) + at, &residual);
          value += residual;
        }
        value = value < low ? low : value;
        value = value > high ? high : value;
        StoreLanes<lanes>(value, to + at);
      }
    }
  }
}

#define AG_WINOGRAD_PRODUCTS(isa, lanes, rows, vectors, mark)                                \
  mark void Products##isa(const WinogradRows& in, const float* panel, int64_t panel_vectors, \
                          float* out, int64_t out_step) {                                    \
    ProductsOf<lanes, rows, vectors>(in, panel, panel_vectors, out, out_step);               \
  }

#define AG_WINOGRAD_TILE(name, T, inputs, isa, lanes, rows, vectors, mark)                  \
  mark void Input##name(const WinogradImage& image, const void* from, int64_t y, int64_t x, \
                        float* to, int64_t step) {                                          \
    InputOf<lanes, inputs>(image, static_cast<const T*>(from), y, x, to, step);             \
  }                                                                                         \
  mark void Output##name(const WinogradImage& image, const float* from, int64_t step,       \
                         const WinogradTail& tail, int64_t y, int64_t x, void* to) {        \
    OutputOf<lanes, inputs>(image, from, step, tail, y, x, static_cast<T*>(to));            \
  }                                                                                         \
  constexpr WinogradLoops k##name{{inputs - 2}, lanes,         rows,        vectors,        \
                                  Input##name,  Products##isa, Output##name};

#define AG_WINOGRAD_LOOPS(isa, lanes, rows, vectors, mark)                       \
  AG_WINOGRAD_PRODUCTS(isa, lanes, rows, vectors, mark)                          \
  AG_WINOGRAD_TILE(Tiles##isa, float, 6, isa, lanes, rows, vectors, mark)        \
  AG_WINOGRAD_TILE(SmallTiles##isa, float, 4, isa, lanes, rows, vectors, mark)   \
  AG_WINOGRAD_TILE(Bf16Tiles##isa, uint16_t, 6, isa, lanes, rows, vectors, mark) \
  AG_WINOGRAD_TILE(Bf16SmallTiles##isa, uint16_t, 4, isa, lanes, rows, vectors, mark)

AG_WINOGRAD_LOOPS(Avx512, 16, 8, 2, AG_AVX512)
AG_WINOGRAD_LOOPS(Avx2, 8, 6, 2, AG_AVX2)
AG_WINOGRAD_LOOPS(Sse, 4, 4, 2, )

}  // namespace

const WinogradLoops& WinogradLoopsFor(std::string_view isa, int64_t outputs, bool is_bf16) {
  const auto of = [&](const WinogradLoops& avx512, const WinogradLoops& avx2,
                      const WinogradLoops& any) -> const WinogradLoops& {
    return ForInstructionSet(isa, avx512, avx2, any);
  };
  if (is_bf16) {
    if (outputs == 2) return of(kBf16SmallTilesAvx512, kBf16SmallTilesAvx2, kBf16SmallTilesSse);
    return of(kBf16TilesAvx512, kBf16TilesAvx2, kBf16TilesSse);
  }
  if (outputs == 2) return of(kSmallTilesAvx512, kSmallTilesAvx2, kSmallTilesSse);
  return of(kTilesAvx512, kTilesAvx2, kTilesSse);
}

void TransformWinogradFilter(const WinogradTile& tile, const float* w, double* to) {
  using Row = double[3];
  static constexpr Row kG4[6] = {{1.0 / 4, 0, 0},
                                 {-1.0 / 6, -1.0 / 6, -1.0 / 6},
                                 {-1.0 / 6, 1.0 / 6, -1.0 / 6},
                                 {1.0 / 24, 1.0 / 12, 1.0 / 6},
                                 {1.0 / 24, -1.0 / 12, 1.0 / 6},
                                 {0, 0, 1}};
  static constexpr Row kG2[4] = {{1, 0, 0}, {0.5, 0.5, 0.5}, {0.5, -0.5, 0.5}, {0, 0, 1}};
  const Row* g = tile.outputs == 2 ? kG2 : kG4;
  const int64_t inputs = tile.inputs();
  double half[6][3];
  for (int64_t i = 0; i < inputs; ++i) {
    for (int j = 0; j < 3; ++j) {
      half[i][j] = g[i][0] * w[j] + g[i][1] * w[3 + j] + g[i][2] * w[6 + j];
    }
  }
  for (int64_t i = 0; i < inputs; ++i) {
    for (int64_t j = 0; j < inputs; ++j) {
      to[i * inputs + j] = half[i][0] * g[j][0] + half[i][1] * g[j][1] + half[i][2] * g[j][2];
    }
  }
}

}  // namespace ag::cpu

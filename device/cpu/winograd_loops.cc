#include "device/cpu/winograd_loops.h"

#include "device/cpu/fast_math.h"
#include "device/cpu/lanes.h"

namespace ag::cpu {
namespace {

template <class Loose, class Vector>
AG_INLINE void LoadLoose(const float* from, Vector* to) {
  *to = *reinterpret_cast<const Loose*>(from);
}

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

template <int64_t lanes>
AG_INLINE void InputOf(const WinogradImage& image, const float* from, int64_t y, int64_t x,
                       float* to, int64_t step) {
  using V = typename Lanes<lanes>::Vector;
  using U = typename Lanes<lanes>::Loose;
  const bool inside = y >= 0 && x >= 0 && y + 6 <= image.height && x + 6 <= image.width;
  const float* pixels[6][6];  // Null: outside.
  for (int64_t i = 0; i < 6; ++i) {
    for (int64_t j = 0; j < 6; ++j) {
      const bool in = y + i >= 0 && y + i < image.height && x + j >= 0 && x + j < image.width;
      pixels[i][j] = in ? from + ((y + i) * image.width + x + j) * image.pixel : nullptr;
    }
  }
  for (int64_t c = 0; c < image.channels; c += lanes) {
    const int64_t channel = image.Channel(c);
    V half[6][6];
#pragma GCC unroll 6
    for (int j = 0; j < 6; ++j) {
      V d[6], column[6];
#pragma GCC unroll 6
      for (int i = 0; i < 6; ++i) {
        if (inside || pixels[i][j] != nullptr) {
          LoadLoose<U>(pixels[i][j] + channel, &d[i]);
        } else {
          d[i] = V{};
        }
      }
      InputColumn(d, column);
#pragma GCC unroll 6
      for (int i = 0; i < 6; ++i) half[i][j] = column[i];
    }
#pragma GCC unroll 6
    for (int i = 0; i < 6; ++i) {
      V row[6];
      InputColumn(half[i], row);
#pragma GCC unroll 6
      for (int j = 0; j < 6; ++j) *reinterpret_cast<U*>(to + (i * 6 + j) * step + c) = row[j];
    }
  }
}

template <int64_t lanes, int kRows, int kVectors>
AG_INLINE void ProductOf(const float* in, int64_t in_step, const float* panel, int64_t k,
                         float* out, int64_t out_step) {
  using V = typename Lanes<lanes>::Vector;
  using U = typename Lanes<lanes>::Loose;
  V sum[kRows][kVectors] = {};
  const V* b = reinterpret_cast<const V*>(panel);
  for (int64_t i = 0; i < k; ++i, b += kVectors) {
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sum[r][v] += in[r * in_step + i] * b[v];
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
AG_INLINE void ProductOfRows(int64_t count, const float* in, int64_t in_step, const float* panel,
                             int64_t k, float* out, int64_t out_step) {
  if constexpr (kRows > 0) {
    if (count == kRows) {
      return ProductOf<lanes, kRows, kVectors>(in, in_step, panel, k, out, out_step);
    }
    ProductOfRows<lanes, kRows - 1, kVectors>(count, in, in_step, panel, k, out, out_step);
  }
}

template <int64_t lanes, int kRows, int kVectors>
AG_INLINE void ProductsOf(const float* in, int64_t in_step, const float* panel, int64_t k,
                          int64_t panel_vectors, int64_t count, float* out, int64_t out_step) {
  const int64_t steps = (count + kRows - 1) / kRows;
  for (int64_t s = 0; s < steps; ++s) {
    const int64_t begin = count * s / steps, rows = count * (s + 1) / steps - begin;
    const float* from = in + begin * in_step;
    float* to = out + begin * out_step;
    if (panel_vectors == kVectors) {
      ProductOfRows<lanes, kRows, kVectors>(rows, from, in_step, panel, k, to, out_step);
    } else {
      ProductOfRows<lanes, kRows, 1>(rows, from, in_step, panel, k, to, out_step);
    }
  }
}

template <int64_t lanes>
AG_INLINE void OutputOf(const WinogradImage& image, const float* from, int64_t step,
                        const WinogradTail& tail, int64_t y, int64_t x, float* to) {
  using V = typename Lanes<lanes>::Vector;
  using U = typename Lanes<lanes>::Loose;
  const int64_t height = image.height - y, width = image.width - x;  // Of what is inside.
  for (int64_t c = 0; c < image.channels; c += lanes) {
    V half[4][6];
#pragma GCC unroll 6
    for (int j = 0; j < 6; ++j) {
      V m[6], column[4];
#pragma GCC unroll 6
      for (int i = 0; i < 6; ++i) LoadLoose<U>(from + (i * 6 + j) * step + c, &m[i]);
      OutputColumn(m, column);
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) half[i][j] = column[i];
    }
    V bias;
    LoadLoose<U>(tail.bias + c, &bias);
    const V low = V{} + tail.low, high = V{} + tail.high;
    const int64_t first = (y * image.width + x) * image.pixel + image.Channel(c);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      V row[4];
      OutputColumn(half[i], row);
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j) {
        if (i >= height || j >= width) continue;
        const int64_t at = first + (i * image.width + j) * image.pixel;
        V value = row[j] + bias;
        if (tail.residual != nullptr) {
          V residual;
          LoadLoose<U>(tail.residual + at, &residual);
          value += residual;
        }
        value = value < low ? low : value;
        value = value > high ? high : value;
        *reinterpret_cast<U*>(to + at) = value;
      }
    }
  }
}

#define AG_WINOGRAD_LOOPS(name, lanes, rows, vectors, mark)                                       \
  mark void Input##name(const WinogradImage& image, const float* from, int64_t y, int64_t x,      \
                        float* to, int64_t step) {                                                \
    InputOf<lanes>(image, from, y, x, to, step);                                                  \
  }                                                                                               \
  mark void Products##name(const float* in, int64_t in_step, const float* panel, int64_t k,       \
                           int64_t panel_vectors, int64_t count, float* out, int64_t out_step) {  \
    ProductsOf<lanes, rows, vectors>(in, in_step, panel, k, panel_vectors, count, out, out_step); \
  }                                                                                               \
  mark void Output##name(const WinogradImage& image, const float* from, int64_t step,             \
                         const WinogradTail& tail, int64_t y, int64_t x, float* to) {             \
    OutputOf<lanes>(image, from, step, tail, y, x, to);                                           \
  }                                                                                               \
  constexpr WinogradLoops kWinograd##name{lanes,       rows,           vectors,                   \
                                          Input##name, Products##name, Output##name};

AG_WINOGRAD_LOOPS(Avx512, 16, 8, 2, AG_AVX512)
AG_WINOGRAD_LOOPS(Avx2, 8, 6, 2, AG_AVX2)
AG_WINOGRAD_LOOPS(Sse, 4, 4, 2, )

}  // namespace

const WinogradLoops& WinogradLoopsFor(std::string_view isa) {
  return ForInstructionSet(isa, kWinogradAvx512, kWinogradAvx2, kWinogradSse);
}

void TransformWinogradFilter(const float* w, double* to) {
  constexpr double kG[6][3] = {{1.0 / 4, 0, 0},
                               {-1.0 / 6, -1.0 / 6, -1.0 / 6},
                               {-1.0 / 6, 1.0 / 6, -1.0 / 6},
                               {1.0 / 24, 1.0 / 12, 1.0 / 6},
                               {1.0 / 24, -1.0 / 12, 1.0 / 6},
                               {0, 0, 1}};
  double half[6][3];
  for (int i = 0; i < 6; ++i) {
    for (int j = 0; j < 3; ++j) {
      half[i][j] = kG[i][0] * w[j] + kG[i][1] * w[3 + j] + kG[i][2] * w[6 + j];
    }
  }
  for (int i = 0; i < 6; ++i) {
    for (int j = 0; j < 6; ++j) {
      to[i * 6 + j] = half[i][0] * kG[j][0] + half[i][1] * kG[j][1] + half[i][2] * kG[j][2];
    }
  }
}

}  // namespace ag::cpu

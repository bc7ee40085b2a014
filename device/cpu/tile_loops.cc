#include "device/cpu/tile_loops.h"

#include "device/cpu/fast_math.h"
#include "device/cpu/lanes.h"

namespace ag::cpu {
namespace {

template <int64_t lanes, int kRows, int kVectors>
AG_INLINE void TileOf(const float* panel, const float* tile, int64_t k, const float* start,
                      float* out) {
  using Vector = typename Lanes<lanes>::Vector;
  Vector sum[kRows][kVectors];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sum[r][v] = Vector{} + start[r];
  }
  const Vector* b = reinterpret_cast<const Vector*>(tile);
  for (int64_t i = 0; i < k; ++i, panel += kRows, b += kVectors) {
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sum[r][v] += panel[r] * b[v];
    }
  }
  Vector* to = reinterpret_cast<Vector*>(out);
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) to[r * kVectors + v] = sum[r][v];
  }
}

template <int64_t lanes, int kRows>
AG_INLINE void TileProductOf(const float* panel, const float* tile, int64_t k, int64_t vectors,
                             const float* start, float* out) {
  if (vectors == 3) return TileOf<lanes, kRows, 3>(panel, tile, k, start, out);
  if (vectors == 2) return TileOf<lanes, kRows, 2>(panel, tile, k, start, out);
  TileOf<lanes, kRows, 1>(panel, tile, k, start, out);
}

AG_INLINE void AddPairsOf(float* out, const float* a, const float* b, int64_t n, float wa,
                          float wb) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    out[2 * i] += a[i] * wa;
    out[2 * i + 1] += b[i] * wb;
  }
}

AG_INLINE void PutPairsOf(float* out, const float* a, const float* b, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    out[2 * i] = a[i];
    out[2 * i + 1] = b[i];
  }
}

AG_INLINE void AddStridedOf(float* out, const float* a, int64_t n, int64_t stride, float w) {
  if (stride != 1) {
    for (int64_t i = 0; i < n; ++i) out[i * stride] += a[i] * w;
    return;
  }
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) out[i] += a[i] * w;
}

#define AG_TILE_LOOPS(name, lanes, rows, mark)                                                 \
  mark void Tile##name(const float* panel, const float* tile, int64_t k, int64_t vectors,      \
                       const float* start, float* out) {                                       \
    TileProductOf<lanes, rows>(panel, tile, k, vectors, start, out);                           \
  }                                                                                            \
  mark void AddPairs##name(float* out, const float* a, const float* b, int64_t n, float wa,    \
                           float wb) {                                                         \
    AddPairsOf(out, a, b, n, wa, wb);                                                          \
  }                                                                                            \
  mark void PutPairs##name(float* out, const float* a, const float* b, int64_t n) {            \
    PutPairsOf(out, a, b, n);                                                                  \
  }                                                                                            \
  mark void AddStrided##name(float* out, const float* a, int64_t n, int64_t stride, float w) { \
    AddStridedOf(out, a, n, stride, w);                                                        \
  }                                                                                            \
  constexpr TileLoops kTile##name{lanes,          rows,           Tile##name,                  \
                                  AddPairs##name, PutPairs##name, AddStrided##name};

AG_TILE_LOOPS(Avx512, 16, 8, AG_AVX512)
AG_TILE_LOOPS(Avx2, 8, 4, AG_AVX2)
AG_TILE_LOOPS(Sse, 4, 4, )

}  // namespace

const TileLoops& TileLoopsFor(std::string_view isa) {
  return ForInstructionSet(isa, kTileAvx512, kTileAvx2, kTileSse);
}

}  // namespace ag::cpu

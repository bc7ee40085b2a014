// The inner loops of products of two matrices whose result is used at once, a tile at a time: a
// panel of the left matrix times a tile of the right one, then sums into strided places. Written
// for each instruction set. Pure functions.
#pragma once

#include <cstdint>
#include <string_view>

namespace ag::cpu {

// A panel is `rows` rows of the left matrix, column by column: [k][rows]. A tile is so many vectors
// of columns of the right matrix, row by row: [k][vectors * lanes], 64-byte aligned.
inline constexpr int64_t kTileVectorsMax = 3;

struct TileLoops {
  int64_t lanes = 1;  // Floats of a vector.
  int64_t rows = 1;   // Of a panel.
  // out[rows][vectors * lanes] = start[row] + panel * tile. REQUIRES: vectors in [1,
  // kTileVectorsMax].
  void (*product)(const float* panel, const float* tile, int64_t k, int64_t vectors,
                  const float* start, float* out) = nullptr;
  // out[2 i] += a[i] * wa, out[2 i + 1] += b[i] * wb, for i in [0, n).
  void (*add_pairs)(float* out, const float* a, const float* b, int64_t n, float wa,
                    float wb) = nullptr;
  // out[2 i] = a[i], out[2 i + 1] = b[i].
  void (*put_pairs)(float* out, const float* a, const float* b, int64_t n) = nullptr;
  // out[i * stride] += a[i] * w.
  void (*add)(float* out, const float* a, int64_t n, int64_t stride, float w) = nullptr;
};

// Returns the loops for an instruction set of InstructionSet().
const TileLoops& TileLoopsFor(std::string_view isa);

}  // namespace ag::cpu

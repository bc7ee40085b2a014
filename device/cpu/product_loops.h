// The inner loops of matrix products whose right side is packed once: a tile of a few rows by a few
// vectors of columns stays in registers while k numbers of each row are multiplied (Goto and van de
// Geijn 2008, "Anatomy of High-Performance Matrix Multiplication", section 4). Written for each
// instruction set. Pure functions.
#pragma once

#include <cstdint>
#include <string_view>

#include "device/cpu/register_ops.h"

namespace ag::cpu {

inline constexpr int64_t kProductRowsMax = 8;

// Numbers of a row between two fetches of what comes next: those of a line of the caches.
inline constexpr int64_t kProductPiece = 16;
inline constexpr int64_t kProductLineBytes = 64;

// A tile of the product, and what both sides have for it.
struct ProductTile {
  int64_t rows = 0, vectors = 0, k = 0;
  // Number i of row r is left[r + i * rows] (PackProductRows); or, where row_step is not 0,
  // left[r * row_step + i / piece * piece_step + i % piece].
  const float* left = nullptr;
  int64_t row_step = 0, piece = kProductPiece, piece_step = kProductPiece;
  const float* right = nullptr;  // Each vector of columns is [k][lanes], 64-byte aligned.
  int64_t right_step = 0;        // From a vector to the next one.
  const float* start = nullptr;  // Sums of earlier k, [rows][vectors * lanes]; null: none.
  // What is read after this tile is fetched meanwhile: so many lines of weights with each piece
  // into the second cache, as many rows, which lie as those of `left`, into the first.
  const char* ahead = nullptr;
  int64_t ahead_lines = 0;
  const float* next_left = nullptr;
};

// What is done to the sums of all k before they are stored, and where.
struct ProductTail {
  const float* bias = nullptr;             // One number a column; null: none.
  const float* const* residual = nullptr;  // What is added, lies as `to` does; null: none.
  RegisterOps ops;
  float* const* to = nullptr;  // The first column of each row.
  int64_t to_step = 0;         // From a vector to the next one.
};

inline constexpr int64_t kProductSizes = 24;  // Of a tile: rows by vectors, at most.

struct ProductLoops {
  using Run = void (*)(const ProductTile& tile, float* sums, const ProductTail* tail);

  int64_t lanes = 1;    // Floats of a vector.
  int64_t rows = 1;     // Of a tile, at most.
  int64_t vectors = 1;  // Likewise.
  // By (rows - 1) * ProductLoops::vectors + (vectors - 1) of the tile.
  Run runs[kProductSizes] = {};
  // Multiplies row i of each vector of columns by factors[i]: weights and `to` are
  // [vectors][k][lanes], 64-byte aligned.
  void (*scale)(const float* weights, const float* factors, int64_t vectors, int64_t k,
                float* to) = nullptr;

  // Stores the sums to sums[rows][vectors * lanes], which may be `start`.
  void add(const ProductTile& tile, float* sums) const { RunOf(tile)(tile, sums, nullptr); }
  void finish(const ProductTile& tile, const ProductTail& tail) const {
    RunOf(tile)(tile, nullptr, &tail);
  }
  Run RunOf(const ProductTile& tile) const {
    return runs[(tile.rows - 1) * vectors + tile.vectors - 1];
  }
};

// Returns the loops for an instruction set of InstructionSet().
const ProductLoops& ProductLoopsFor(std::string_view isa);

// Where rows begin: those of a tile, and behind them rows of the next one, which are fetched
// meanwhile.
struct ProductRows {
  const float* const* first = nullptr;  // Null: a row of zeros.
  int64_t count = 0;                    // At most kProductRowsMax.
  int64_t known = 0;                    // With those of the next tile.
};

// Writes number i of each row of a tile to to[i * count + row], for i in [0, n). It lies at
// first[row][i / block * plane + i % block]. REQUIRES: where block is below n, it is a multiple of
// 4.
void PackProductRows(const ProductRows& rows, int64_t block, int64_t plane, int64_t n, float* to);

}  // namespace ag::cpu

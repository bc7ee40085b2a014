// The inner loops of Winograd's convolutions F(4x4, 3x3) and F(2x2, 3x3) (Lavin and Gray 2016,
// "Fast Algorithms for Convolutional Neural Networks", sections 4.1 and 4.3): a tile of 4x4 outputs
// needs 6x6 inputs, and after transforms of both it takes 36 products in the place of 144; one of
// 2x2 takes 16 in the place of 36, with less than half of the transformed weights. Written for each
// instruction set. Pure functions.
#pragma once

#include <cstdint>
#include <limits>
#include <string_view>

namespace ag::cpu {

// The sizes of a tile, along each axis.
struct WinogradTile {
  int64_t outputs = 4;
  int64_t inputs() const { return outputs + 2; }
  int64_t points() const { return inputs() * inputs(); }  // Of the transformed tile.
};
inline constexpr int64_t kWinogradPointsMax = 36;

// Where the pixels of an image lie, which are f32 or bf16. Offsets and sizes are in elements.
struct WinogradImage {
  int64_t height = 0, width = 0;
  int64_t channels = 0;  // In memory, with padding: a multiple of the loops' lanes.
  int64_t block = 1;     // Channels that lie side by side.
  int64_t pixel = 0;     // From a pixel to the next one of its row.
  int64_t plane = 0;     // From a block of channels to the next one.

  int64_t Channel(int64_t channel) const { return channel / block * plane + channel % block; }
};

// What is done to the sums before they are stored.
struct WinogradTail {
  const float* bias = nullptr;     // One number for each channel in memory.
  const void* residual = nullptr;  // Lies as the output does, of its type; null: none.
  // Bounds of the result. NaN stays NaN.
  float low = -std::numeric_limits<float>::infinity();
  float high = std::numeric_limits<float>::infinity();
};

// The left matrix of a product: `count` rows, each of `taps` pieces of `channels` numbers. Row r
// has piece t at first + r * step + t * tap_step.
struct WinogradRows {
  const float* first = nullptr;
  int64_t count = 0, step = 0;
  int64_t channels = 0, taps = 1, tap_step = 0;
  // What is read after this product; it is fetched meanwhile.
  const void* ahead = nullptr;
  int64_t ahead_bytes = 0;
};

struct WinogradLoops {
  WinogradTile tile;
  int64_t lanes = 1;    // Floats of a vector.
  int64_t rows = 1;     // Tiles whose products are computed together.
  int64_t vectors = 1;  // Vectors of a panel of weights; the last panel may have fewer.
  // to[point * step + channel] = the transform of the inputs from (y, x) on; what is outside the
  // image is zero.
  void (*input)(const WinogradImage& image, const void* from, int64_t y, int64_t x, float* to,
                int64_t step) = nullptr;
  // out[row * out_step + i] = sum over the taps and channels k of the row of its number k times
  // panel[k * width + i], with width = panel_vectors * lanes. REQUIRES: panel_vectors in [1,
  // vectors].
  void (*products)(const WinogradRows& in, const float* panel, int64_t panel_vectors, float* out,
                   int64_t out_step) = nullptr;
  // Transforms from[point * step + channel] back and stores the outputs from (y, x) on that are
  // inside the image.
  void (*output)(const WinogradImage& image, const float* from, int64_t step,
                 const WinogradTail& tail, int64_t y, int64_t x, void* to) = nullptr;
};

// Returns the loops for an instruction set of InstructionSet(), tiles of 4x4 or 2x2 outputs, and
// images of f32 or bf16. They compute in f32.
const WinogradLoops& WinogradLoopsFor(std::string_view isa, int64_t outputs, bool is_bf16);

// Writes the transform of a filter of 3x3 taps, w[9], to to[tile.points()].
void TransformWinogradFilter(const WinogradTile& tile, const float* w, double* to);

}  // namespace ag::cpu

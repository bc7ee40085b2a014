// The inner loops of depthwise convolutions whose channels lie in vectors: a few pixels side by
// side stay in registers while the taps of their windows pass. Written for each instruction set.
// Pure functions.
#pragma once

#include <cstdint>
#include <string_view>

#include "device/cpu/register_ops.h"

namespace ag::cpu {

inline constexpr int64_t kWindowPixelsMax = 8;

struct WindowTile {
  int64_t pixels = 0, vectors = 0, taps_y = 0, taps_x = 0;
  // Where the first tap of each line of the window lies for the first pixel, [vectors * lanes];
  // from a tap to the next one, and from a pixel to the next one.
  const float* const* from = nullptr;
  int64_t tap_step = 0, from_step = 0;
  const float* weights = nullptr;  // [vectors][taps_y][taps_x][lanes], 64-byte aligned.
  const float* bias = nullptr;     // One number a channel.
  RegisterOps ops;
  float* to = nullptr;
  int64_t to_step = 0;         // From a pixel to the next one.
  int64_t to_vector_step = 0;  // From a vector to the next one.
};

// The loops for windows of three and five taps in a line load a number once for all the pixels
// whose windows it is in.
enum class WindowForm {
  kAny,
  kThree,
  kThreeByTwo,
  kFive,
  kFiveByTwo
};  // ByTwo: every other pixel.
inline constexpr int kWindowForms = 5;

// Some pixels whose numbers are added up by channel.
struct PixelSums {
  int64_t pixels = 0, vectors = 0;
  const float* from = nullptr;
  int64_t pixel_step = 0, vector_step = 0;
  float* sums = nullptr;  // [vectors * lanes], to which the numbers are added.
};

struct WindowLoops {
  using Run = void (*)(const WindowTile& tile);

  int64_t lanes = 1;                               // Floats of a vector.
  Run runs[kWindowForms * kWindowPixelsMax] = {};  // By form and WindowTile::pixels - 1.
  void (*add)(const PixelSums& pixels) = nullptr;

  void run(const WindowTile& tile) const;
};

// Returns the loops for an instruction set of InstructionSet().
const WindowLoops& WindowLoopsFor(std::string_view isa);

}  // namespace ag::cpu

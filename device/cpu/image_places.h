// Where the pixels of images lie in memory, and how work on them is cut into parts. Pure functions.
#pragma once

#include <cstdint>

#include "graph/graph.h"
#include "plan/spec/layout.h"

namespace ag::cpu {

struct Range {
  int64_t begin = 0, end = 0;
  int64_t count() const { return end - begin; }
  // Part i of n.
  Range Part(int64_t i, int64_t n) const {
    return {begin + count() * i / n, begin + count() * (i + 1) / n};
  }
};

// Returns into how many parts n things are cut, each of `most` or fewer.
inline int64_t PartsOfAtMost(int64_t n, int64_t most) { return (n + most - 1) / most; }

// How cores share work on rows (or lines) and columns: each of rows * columns parts has a range of
// both.
struct Parts {
  int64_t rows = 1, columns = 1;
};

// Returns the parts, as many as cores, with the least cost(Parts); of equals those with the most
// parts of columns.
template <class Cost>
Parts LeastParts(int cores, const Cost& cost) {
  Parts best{.rows = cores};
  for (int64_t columns = 2; columns <= cores; ++columns) {
    const Parts parts{.rows = cores / columns, .columns = columns};
    if (cores % columns == 0 && cost(parts) <= cost(best)) best = parts;
  }
  return best;
}

// Where one side's pixels lie: channel c of pixel (y, x) of an image at
// y * line + x * pixel + c / block * plane + c % block.
struct Side {
  int64_t height = 1, width = 1;
  int64_t image = 0, line = 0, pixel = 0;
  int64_t block = 1, plane = 0;
  int64_t channels = 0;  // In memory, with padding.

  // Returns how far a channel lies from the first one.
  int64_t PlaceOf(int64_t channel) const { return channel / block * plane + channel % block; }
  // Returns the distance between vectors of so many channels, each of which lies in one block.
  int64_t VectorStep(int64_t lanes) const { return block == lanes ? plane : lanes; }
};

// Returns the side of a matrix, whose rows are the pixels of one line.
Side PlainSide(int64_t rows, int64_t channels);

// Returns the side of an image of four axes in channels_last or in blocks.
Side ImageSide(const Shape& shape, Layout layout);

// One axis of a convolution's window.
struct Axis {
  int64_t taps = 1, stride = 1, dilation = 1, pad = 0;

  // Returns the position that a tap has for a position of the result; it may be outside.
  int64_t TapOf(int64_t position, int64_t tap) const {
    return position * stride + tap * dilation - pad;
  }
  // Positions from the first tap to behind the last one.
  int64_t span() const { return (taps - 1) * dilation + 1; }
};

// Returns axis i, 0 or 1, of a convolution of images.
Axis AxisOf(const Graph& graph, const Node& conv, size_t i);

// Copies `used` numbers of a pixel. The steps are from a vector of `lanes` numbers to the next one.
void CopyVectors(const float* from, int64_t from_step, int64_t used, int64_t lanes, float* to,
                 int64_t to_step);

}  // namespace ag::cpu

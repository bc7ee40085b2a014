// The loops of every instruction set that this machine has, against windows number by number.
#include "device/cpu/window_loops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "device/cpu/loops_testing.h"

namespace ag::cpu {
namespace {

struct Window {
  int64_t taps_y, taps_x, dilation, stride;
};

// A tile's operands: lines of pixels, each of some vectors.
struct Operands {
  Operands(const Window& w, int64_t pixels, int64_t width)
      : width(width),
        line((pixels - 1) * w.stride + (w.taps_x - 1) * w.dilation + 1),
        image(w.taps_y * line * width, 1),
        weights(w.taps_y * w.taps_x * width, 2),
        bias(width, 3) {
    for (int64_t y = 0; y < w.taps_y; ++y) lines.push_back(image.data() + y * line * width);
  }
  int64_t width, line;
  Waves image, weights, bias;
  std::vector<const float*> lines;
};

double Expected(const Operands& o, const Window& w, int64_t lanes, int64_t pixel, int64_t channel) {
  double sum = o.bias.data()[channel];
  for (int64_t y = 0; y < w.taps_y; ++y) {
    for (int64_t x = 0; x < w.taps_x; ++x) {
      const int64_t tap = channel / lanes * w.taps_y * w.taps_x + y * w.taps_x + x;
      const int64_t at = pixel * w.stride + x * w.dilation;
      sum += double{o.lines[y][at * o.width + channel]} *
             o.weights.data()[tap * lanes + channel % lanes];
    }
  }
  return sum;
}

void CheckTile(const WindowLoops& loops, const Window& w, int64_t pixels, int64_t vectors) {
  SCOPED_TRACE(std::to_string(loops.lanes) + " lanes, " + std::to_string(pixels) + " pixels, " +
               std::to_string(w.taps_y) + "x" + std::to_string(w.taps_x));
  const Operands o(w, pixels, vectors * loops.lanes);
  const int64_t pixel_step = loops.lanes + 3, vector_step = pixels * pixel_step;
  std::vector<float> results(vectors * vector_step, 99.0f);
  WindowTile tile{.pixels = pixels,
                  .vectors = vectors,
                  .taps_y = w.taps_y,
                  .taps_x = w.taps_x,
                  .from = o.lines.data(),
                  .tap_step = w.dilation * o.width,
                  .from_step = w.stride * o.width,
                  .weights = o.weights.data(),
                  .bias = o.bias.data(),
                  .ops = {{.low = -0.75f, .high = 0.5f}, true},
                  .to = results.data(),
                  .to_step = pixel_step,
                  .to_vector_step = vector_step};
  loops.run(tile);
  for (int64_t p = 0; p < pixels; ++p) {
    for (int64_t c = 0; c < o.width; ++c) {
      const double x = std::clamp(Expected(o, w, loops.lanes, p, c), -0.75, 0.5);
      float& result = results[c / loops.lanes * vector_step + p * pixel_step + c % loops.lanes];
      ASSERT_NEAR(result, x * std::clamp(x + 3, 0.0, 6.0) / 6, 1e-5) << p << " " << c;
      result = 99.0f;
    }
  }
  EXPECT_EQ(std::ranges::count(results, 99.0f), std::ssize(results));  // Nothing else was touched.
}

TEST(WindowLoops, EveryFormAndNumberOfPixels) {
  for (const std::string& isa : UsableInstructionSets()) {
    const WindowLoops& loops = WindowLoopsFor(isa);
    for (const Window& w : {Window{3, 3, 1, 1},
                            {3, 3, 1, 2},
                            {5, 5, 1, 1},
                            {5, 5, 1, 2},
                            {3, 3, 2, 2},
                            {3, 3, 2, 1},
                            {3, 3, 1, 3},
                            {1, 1, 1, 1},
                            {2, 7, 1, 1}}) {
      for (int64_t pixels = 1; pixels <= kWindowPixelsMax; ++pixels) {
        for (const int64_t vectors : {1, 3}) CheckTile(loops, w, pixels, vectors);
      }
    }
  }
}

TEST(WindowLoops, PixelsAddUp) {
  for (const std::string& isa : UsableInstructionSets()) {
    const WindowLoops& loops = WindowLoopsFor(isa);
    constexpr int64_t kPixels = 5, kVectors = 2;
    const int64_t width = kVectors * loops.lanes;
    const Waves numbers(kPixels * width, 1);
    std::vector<float> sums(width, 0.5f);
    loops.add({kPixels, kVectors, numbers.data(), width, loops.lanes, sums.data()});
    for (int64_t c = 0; c < width; ++c) {
      double sum = 0.5;
      for (int64_t p = 0; p < kPixels; ++p) sum += numbers.data()[p * width + c];
      ASSERT_NEAR(sums[c], sum, 1e-5) << isa << " " << c;
    }
  }
}

}  // namespace
}  // namespace ag::cpu

// The loops of every instruction set that this machine has, against a convolution tap by tap.
#include "device/cpu/winograd_loops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "device/cpu/half_loops.h"
#include "device/cpu/loops_testing.h"

namespace ag::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Channels last.
WinogradImage ImageOf(int64_t height, int64_t width, int64_t channels) {
  return {height, width, channels, channels, channels, height * width * channels};
}

// The sum of 3x3 taps around (y, x), of pixels with `channels` channels; zero outside.
double SumAt(const WinogradImage& image, const float* from, const float* taps, int64_t channel,
             int64_t y, int64_t x) {
  double sum = 0;
  for (int64_t i = 0; i < 9; ++i) {
    const int64_t at_y = y + i / 3, at_x = x + i % 3;
    if (at_y < 0 || at_x < 0 || at_y >= image.height || at_x >= image.width) continue;
    sum += double{taps[i]} * from[(at_y * image.width + at_x) * image.pixel + channel];
  }
  return sum;
}

// Every instruction set with every size of tiles.
std::vector<std::pair<std::string, int64_t>> Cases() {
  std::vector<std::pair<std::string, int64_t>> cases;
  for (const std::string& isa : UsableInstructionSets()) {
    for (const int64_t outputs : {4, 2}) cases.emplace_back(isa, outputs);
  }
  return cases;
}

// A depthwise convolution by the transforms alone.
TEST(WinogradLoops, TransformsThereAndBackAreAConvolution) {
  for (const auto& [isa, outputs] : Cases()) {
    const WinogradLoops& loops = WinogradLoopsFor(isa, outputs, /*is_bf16=*/false);
    const int64_t all = loops.tile.points();
    const int64_t channels = 2 * loops.lanes, step = channels + 4;
    const WinogradImage in = ImageOf(7, 9, channels), out = ImageOf(7, 9, channels);
    const Waves x(7 * 9 * channels, 1), taps(9, 2), bias(channels, 3),
        residual(7 * 9 * channels, 4);
    double filter[kWinogradPointsMax];
    TransformWinogradFilter(loops.tile, taps.data(), filter);
    std::vector<float> points(all * step), y(7 * 9 * channels, 99.0f);
    const WinogradTail tail{bias.data(), residual.data(), -0.5f, 1.5f};
    for (int64_t top = 0; top < 7; top += outputs) {
      for (int64_t left = 0; left < 9; left += outputs) {
        loops.input(in, x.data(), top - 1, left - 1, points.data(), step);
        for (int64_t i = 0; i < all * step; ++i) {
          points[i] *= static_cast<float>(filter[i / step]);
        }
        loops.output(out, points.data(), step, tail, top, left, y.data());
      }
    }
    for (int64_t i = 0; i < 7 * 9 * channels; ++i) {
      const int64_t c = i % channels, pixel = i / channels;
      const double sum = SumAt(in, x.data(), taps.data(), c, pixel / 9 - 1, pixel % 9 - 1) +
                         bias.data()[c] + residual.data()[i];
      ASSERT_NEAR(y[i], std::clamp(sum, -0.5, 1.5), 2e-5) << isa << " " << outputs << " " << i;
    }
  }
}

// What loops on f32 give of the same numbers, rounded; NaN and infinities too.
TEST(WinogradLoops, ReadAndWriteBf16) {
  for (const auto& [isa, outputs] : Cases()) {
    const WinogradLoops& loops = WinogradLoopsFor(isa, outputs, /*is_bf16=*/true);
    const WinogradLoops& floats = WinogradLoopsFor(isa, outputs, /*is_bf16=*/false);
    const int64_t n = 7 * 9 * loops.lanes, step = loops.lanes;
    const WinogradImage image = ImageOf(7, 9, loops.lanes);
    const Waves x(n, 1), bias(loops.lanes, 3);
    x.data()[5] = std::numeric_limits<float>::quiet_NaN();
    x.data()[loops.lanes + 6] = kInfinity;
    std::vector<uint16_t> narrow(n), y(n), expected(n);
    NarrowToHalf(DType::kBFloat16, x.data(), narrow.data(), n);
    WidenHalf(DType::kBFloat16, narrow.data(), x.data(), n);
    std::vector<float> points(loops.tile.points() * step), wide(n);
    for (int64_t top = 0; top < 7; top += outputs) {
      for (int64_t left = 0; left < 9; left += outputs) {
        floats.input(image, x.data(), top - 1, left - 1, points.data(), step);
        floats.output(image, points.data(), step, {bias.data(), x.data(), -1, 2}, top, left,
                      wide.data());
        loops.input(image, narrow.data(), top - 1, left - 1, points.data(), step);
        loops.output(image, points.data(), step, {bias.data(), narrow.data(), -1, 2}, top, left,
                     y.data());
      }
    }
    NarrowToHalf(DType::kBFloat16, wide.data(), expected.data(), n);
    EXPECT_EQ(y, expected) << isa << " " << outputs;
  }
}

// Rows of 9 numbers in two pieces of 3, three numbers apart.
TEST(WinogradLoops, ProductsAddUp) {
  for (const auto& [isa, outputs] : Cases()) {
    const WinogradLoops& loops = WinogradLoopsFor(isa, outputs, /*is_bf16=*/false);
    for (int64_t vectors = 1; vectors <= loops.vectors; ++vectors) {
      const int64_t width = vectors * loops.lanes, k = 6;
      for (int64_t count = 1; count <= 2 * loops.rows + 1; ++count) {
        const Waves in(count * 9, 1), panel(k * width, 2);
        std::vector<float> out(count * (width + 1), 99.0f);
        loops.products({in.data(), count, 9, 3, 2, 6}, panel.data(), vectors, out.data(),
                       width + 1);
        for (int64_t i = 0; i < count * width; ++i) {
          double sum = 0;
          for (int64_t j = 0; j < k; ++j) {
            const float value = in.data()[i / width * 9 + j / 3 * 6 + j % 3];
            sum += double{value} * panel.data()[j * width + i % width];
          }
          ASSERT_NEAR(out[i / width * (width + 1) + i % width], sum, 1e-5)
              << isa << " " << count << " rows, " << vectors << " vectors";
        }
      }
    }
  }
}

TEST(WinogradLoops, NaNStaysNaNWithinBounds) {
  for (const auto& [isa, outputs] : Cases()) {
    const WinogradLoops& loops = WinogradLoopsFor(isa, outputs, /*is_bf16=*/false);
    const WinogradImage image = ImageOf(1, 1, loops.lanes);
    std::vector<float> points(loops.tile.points() * loops.lanes), y(loops.lanes);
    std::vector<float> bias(loops.lanes, std::numeric_limits<float>::quiet_NaN());
    bias[0] = -1;
    loops.output(image, points.data(), loops.lanes, {bias.data(), nullptr, 0, kInfinity}, 0, 0,
                 y.data());
    EXPECT_EQ(y[0], 0) << isa;
    EXPECT_TRUE(std::isnan(y[1])) << isa;
  }
}

}  // namespace
}  // namespace ag::cpu

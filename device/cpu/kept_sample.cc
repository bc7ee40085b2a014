// GridSample over planes: what each position of the grid reads is worked out once for all channels.
#include <algorithm>
#include <cmath>

#include "device/cpu/block_ops.h"
#include "device/cpu/kept.h"
#include "device/cpu/parallel.h"
#include "graph/onnx/node_attributes.h"
#include "graph/onnx/operators/sampling.h"

namespace ag::cpu {
namespace {

using onnx_operators::AxisTaps;
using onnx_operators::PlaceIn;
using onnx_operators::Sampling;

constexpr int64_t kTile = 256;  // Positions that are read together.
constexpr int kCorners = 4;

// What the positions of a tile read: elements of a plane, -1 for zero, with their weights.
struct Corners {
  int32_t offsets[kCorners][kTile];
  float weights[kCorners][kTile];
  bool are_inside = true;
};

AG_CLONES void ReadFour(const float* plane, const Corners& corners, int64_t n, float* to) {
  std::fill_n(to, n, 0.0F);
  for (int corner = 0; corner < kCorners; ++corner) {
    const int32_t* offsets = corners.offsets[corner];
    const float* weights = corners.weights[corner];
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) {
      const float value = offsets[i] < 0 ? 0.0F : plane[offsets[i] < 0 ? 0 : offsets[i]];
      to[i] += weights[i] * value;
    }
  }
}

// The same where no corner is outside.
void ReadFourInside(const float* plane, const Corners& corners, int64_t n, float* to) {
  const auto& o = corners.offsets;
  const auto& w = corners.weights;
  for (int64_t i = 0; i < n; ++i) {
    to[i] = w[0][i] * plane[o[0][i]] + w[1][i] * plane[o[1][i]] + w[2][i] * plane[o[2][i]] +
            w[3][i] * plane[o[3][i]];
  }
}

AG_CLONES void ReadOne(const float* plane, const int32_t* offsets, int64_t n, float* to) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    to[i] = offsets[i] < 0 ? 0.0F : plane[offsets[i] < 0 ? 0 : offsets[i]];
  }
}

// Two elements of an axis, -1 for zero, with their weights.
struct Pair {
  int64_t elements[2] = {-1, -1};
  float weights[2] = {0, 0};
};

class KeptGridSample : public Kernel {
 public:
  Status Prepare(const GroupContext& context, const KeptOperator& kept) {
    const KeptOperands operands(context, kept);
    NodeAttributes attributes(kept.node());
    const auto sampling = onnx_operators::ReadSampling(attributes);
    if (!sampling.ok() || sampling->taps > 2 || !operands.Has(0) || !operands.Has(1) ||
        !operands.IsPlainFloat()) {
      return RefuseForm(kept);
    }
    sampling_ = *sampling;
    const Shape &x = operands.ShapeOf(0), &grid = operands.ShapeOf(1);
    const bool fits = x.size() == 4 && grid.size() == 4 && grid[0] == x[0] && grid[3] == 2 &&
                      NumElements(x) > 0 && NumElements(grid) > 0 &&
                      operands.ResultIs(0, {x[0], x[1], grid[1], grid[2]});
    if (!fits || x[2] * x[3] >= (int64_t{1} << 31)) return RefuseForm(kept);
    batch_ = x[0];
    channels_ = x[1];
    height_ = x[2];
    width_ = x[3];
    positions_ = grid[1] * grid[2];
    cores_ = context.cores;
    AG_LET(x_, KeptOperand::Of(context, operands, 0));
    AG_LET(grid_, KeptOperand::Of(context, operands, 1));
    return OkStatus();
  }

  size_t scratch_bytes() const override {
    return AlignUp(sizeof(Corners)) * static_cast<size_t>(cores_);
  }

  Status Run(const RunContext& context, Inputs inputs, Outputs outputs) override {
    const auto* x = static_cast<const float*>(x_.At(inputs));
    const auto* grid = static_cast<const float*>(grid_.At(inputs));
    auto* y = static_cast<float*>(outputs[0]);
    const int64_t tiles = (positions_ + kTile - 1) / kTile;
    ParallelFor(cores_, batch_ * tiles, 1, [&](int64_t begin, int64_t end, int worker) {
      auto& corners = *reinterpret_cast<Corners*>(
          context.scratch + AlignUp(sizeof(Corners)) * static_cast<size_t>(worker));
      for (int64_t i = begin; i < end; ++i) {
        const int64_t n = i / tiles, first = i % tiles * kTile;
        const int64_t count = std::min(kTile, positions_ - first);
        FindCorners(grid + (n * positions_ + first) * 2, count, corners);
        for (int64_t c = n * channels_; c < (n + 1) * channels_; ++c) {
          const float* plane = x + c * height_ * width_;
          float* to = y + c * positions_ + first;
          if (sampling_.taps == 1) {
            ReadOne(plane, corners.offsets[0], count, to);
          } else {
            (corners.are_inside ? ReadFourInside : ReadFour)(plane, corners, count, to);
          }
        }
      }
    });
    return OkStatus();
  }

 private:
  Pair PairAt(float coordinate, int64_t size) const {
    const double place = PlaceIn<float>(coordinate, size, sampling_.align_corners);
    const double below = std::floor(place);
    Pair pair;
    // Between two elements, where most places are.
    if (sampling_.taps == 2 && below >= 0 && below + 1 < static_cast<double>(size)) {
      const auto first = static_cast<int64_t>(below);
      pair.elements[0] = first;
      pair.elements[1] = first + 1;
      pair.weights[1] = static_cast<float>(place - below);
      pair.weights[0] = static_cast<float>(1 - (place - below));
      return pair;
    }
    const AxisTaps taps = onnx_operators::TapsAt(sampling_, place, size);
    for (int64_t t = 0; t < taps.count; ++t) {
      pair.elements[t] = taps.elements[static_cast<size_t>(t)];
      pair.weights[t] = static_cast<float>(taps.weights[static_cast<size_t>(t)]);
    }
    return pair;
  }

  void FindCorners(const float* grid, int64_t count, Corners& corners) const {
    const int taps = static_cast<int>(sampling_.taps);
    corners.are_inside = true;
    for (int64_t i = 0; i < count; ++i) {
      const Pair x = PairAt(grid[2 * i], width_), y = PairAt(grid[2 * i + 1], height_);
      for (int a = 0; a < taps; ++a) {
        for (int b = 0; b < taps; ++b) {
          const bool inside = y.elements[a] >= 0 && x.elements[b] >= 0;
          const int corner = a * taps + b;
          corners.are_inside = corners.are_inside && inside;
          corners.offsets[corner][i] =
              inside ? static_cast<int32_t>(y.elements[a] * width_ + x.elements[b]) : -1;
          corners.weights[corner][i] = y.weights[a] * x.weights[b];
        }
      }
    }
  }

  KeptOperand x_, grid_;
  Sampling sampling_;
  int64_t batch_ = 1, channels_ = 1, height_ = 1, width_ = 1, positions_ = 1;
  int cores_ = 1;
};

}  // namespace

StatusOr<std::unique_ptr<Kernel>> MakeGridSample(const GroupContext& context,
                                                 const KeptOperator& kept) {
  return PreparedKept<KeptGridSample>(context, kept);
}

}  // namespace ag::cpu

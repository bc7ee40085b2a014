// Convolution over three axes by Winograd's tiles over the last two, in channels last.
#include <algorithm>

#include "device/cpu/kept.h"
#include "device/cpu/strided.h"
#include "device/cpu/winograd_tiles.h"
#include "graph/onnx/node_attributes.h"
#include "plan/spec/kernel_family.h"

namespace ag::cpu {
namespace {

// With fewer tiles reading the transformed weights, four times as large as the weights, takes
// longer than the operations that they save: two cores read one number in the time of some 40
// products.
constexpr int64_t kStackTilesMin = 16;

bool AllAreOne(const Ints& values) {
  return std::ranges::all_of(values, [](int64_t value) { return value == 1; });
}

// Returns a frame of [_, channels, _, height, width], in channels last.
WinogradImage FrameOf(const Shape& shape) {
  return {shape[3], shape[4], shape[1], shape[1], shape[1], shape[3] * shape[4] * shape[1]};
}

// The sizes of the convolution, or kUnimplemented.
StatusOr<WinogradProblem> ProblemOf(const GroupContext& context, const KeptOperator& kept) {
  const KeptOperands operands(context, kept);
  if (!operands.Has(0) || context.InputOf(operands.At(0)) < 0 || !operands.IsConstant(1) ||
      !operands.IsPlainFloat() || (operands.Has(2) && !operands.IsConstant(2))) {
    return RefuseForm(kept);
  }
  const Shape &x = operands.ShapeOf(0), &w = operands.ShapeOf(1);
  const Shape& y = context.node(0).outputs[0].shape;
  if (x.size() != 5 || w.size() != 5 || y.size() != 5 || w[3] != 3 || w[4] != 3 ||
      NodeAttributes(kept.node()).Int("group", 1) != 1 || x[1] != w[1] || y[0] != x[0] ||
      y[1] != w[0] || (operands.Has(2) && operands.ShapeOf(2) != Shape{w[0]})) {
    return RefuseForm(kept);
  }
  AG_LET(const KeptWindow window, KeptWindowOf(kept, x, y, Ints(w.begin() + 2, w.end())));
  // Every frame of the result has a tap inside the image.
  const bool is_padded_little = window.begin[0] < w[2] && window.end[0] < w[2];
  if (!AllAreOne(window.strides) || !AllAreOne(window.dilations) || !is_padded_little) {
    return RefuseForm(kept);
  }
  WinogradProblem p;
  p.in = FrameOf(x);
  p.out = FrameOf(y);
  p.images = x[0];
  p.channels = x[1];
  p.results = y[1];
  p.pad_y = window.begin[1];
  p.pad_x = window.begin[2];
  p.rows = (y[3] + p.tile.outputs - 1) / p.tile.outputs;
  p.columns = (y[4] + p.tile.outputs - 1) / p.tile.outputs;
  p.taps = w[2];
  if (p.taps == 1 && window.begin[0] == 0 && window.end[0] == 0) {
    p.images *= x[2];  // Frames are images.
  } else {
    p.frames_in = x[2];
    p.frames_out = y[2];
    p.pad_frames = window.begin[0];
    p.in_frame = p.in.plane;
    p.out_frame = p.out.plane;
  }
  if (p.tiles() < kStackTilesMin || p.channels < kWinogradChannelsMin ||
      p.results < kWinogradChannelsMin || !WinogradTiles::Fits(p)) {
    return RefuseForm(kept);
  }
  return p;
}

class KeptWinograd : public Kernel {
 public:
  Status Prepare(const GroupContext& context, const KeptOperator& kept) {
    AG_LET(const WinogradProblem problem, ProblemOf(context, kept));
    if (context.constants == nullptr) return OkStatus();
    const KeptOperands operands(context, kept);
    const Shape &x = operands.ShapeOf(0), &y = context.node(0).outputs[0].shape;
    cores_ = context.cores;
    x_ = context.InputOf(operands.At(0));
    x_bytes_ = AlignUp(static_cast<size_t>(NumElements(x)) * sizeof(float));
    y_bytes_ = AlignUp(static_cast<size_t>(NumElements(y)) * sizeof(float));
    const int64_t x_pixels = x[2] * x[3] * x[4], y_pixels = y[2] * y[3] * y[4];
    to_last_ =
        Copy({{x[0], x[1] * x_pixels, x[1] * x_pixels}, {x[1], x_pixels, 1}, {x_pixels, 1, x[1]}},
             0, 0, sizeof(float));
    from_last_ =
        Copy({{y[0], y[1] * y_pixels, y[1] * y_pixels}, {y[1], 1, y_pixels}, {y_pixels, y[1], 1}},
             0, 0, sizeof(float));
    tiles_.Prepare(problem, cores_);
    const std::optional<Edge> bias = operands.Has(2) ? std::optional(operands.At(2)) : std::nullopt;
    return tiles_.SetWeights(context, operands.At(1), bias);
  }

  Status Run(const RunContext& context, Inputs inputs, Outputs outputs) override {
    std::byte* const x = context.scratch;
    std::byte* const y = x + x_bytes_;
    to_last_.Run(cores_, inputs[x_], x);
    tiles_.Run(x, {}, y, y + y_bytes_);
    from_last_.Run(cores_, y, outputs[0]);
    return OkStatus();
  }
  size_t scratch_bytes() const override { return x_bytes_ + y_bytes_ + tiles_.scratch_bytes(); }

 private:
  int cores_ = 1;
  int x_ = -1;
  size_t x_bytes_ = 0, y_bytes_ = 0;
  Copy to_last_, from_last_;
  WinogradTiles tiles_;
};

}  // namespace

StatusOr<std::unique_ptr<Kernel>> MakeKeptWinograd(const GroupContext& context,
                                                   const KeptOperator& kept) {
  return PreparedKept<KeptWinograd>(context, kept);
}

}  // namespace ag::cpu

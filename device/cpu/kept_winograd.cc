// Convolution over three axes by Winograd's tiles over the last two, in channels last.
#include "device/cpu/kept.h"
#include "device/cpu/strided.h"
#include "device/cpu/winograd_tiles.h"
#include "plan/spec/kernel_family.h"

namespace ag::cpu {
namespace {

// With fewer tiles reading the transformed weights, four times as large as the weights, takes
// longer than the operations that they save: two cores read one number in the time of some 40
// products.
constexpr int64_t kStackTilesMin = 16;

// Returns a frame of [_, channels, _, height, width], in channels last.
WinogradImage FrameOf(const Shape& shape) {
  return {shape[3], shape[4], shape[1], shape[1], shape[1], shape[3] * shape[4] * shape[1]};
}

// The sizes of the convolution, or kUnimplemented.
StatusOr<WinogradProblem> ProblemOf(const KeptOperator& kept, const KeptConvolutionForm& form) {
  const auto& [x, w, y, groups, window, weights, bias] = form;
  const Ints ones(3, 1);
  // Every frame of the result has a tap inside the image.
  const bool is_padded_little = window.begin[0] < w[2] && window.end[0] < w[2];
  if (w[3] != 3 || w[4] != 3 || groups != 1 || window.strides != ones || window.dilations != ones ||
      !is_padded_little) {
    return RefuseForm(kept);
  }
  WinogradProblem p;
  p.in = FrameOf(x);
  p.out = FrameOf(y);
  p.taps = w[2];
  p.images = x[0];
  p.channels = x[1];
  p.results = y[1];
  p.pad_y = window.begin[1];
  p.pad_x = window.begin[2];
  if (p.taps == 1) {
    p.images *= x[2];  // Frames are images: they have no padding, and lie behind each other.
  } else {
    p.frames_in = x[2];
    p.frames_out = y[2];
    p.pad_frames = window.begin[0];
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
    AG_LET(const KeptConvolutionForm form, KeptConvolutionFormOf(context, kept));
    AG_LET(const WinogradProblem problem, ProblemOf(kept, form));
    x_ = context.InputOf(context.node(0).inputs[0]);
    if (x_ < 0) return RefuseForm(kept);
    if (context.constants == nullptr) return OkStatus();
    const Shape &x = form.x, &y = form.y;
    cores_ = context.cores;
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
    return tiles_.SetWeights(context, form.weights, form.bias);
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

// Winograd's convolutions (winograd_loops.h) over whole images, and over stacks of images: of a
// convolution over three axes the first one has taps whose products are added up, frame by frame,
// between the transforms of the other two. For images in channels last or in blocks.
#pragma once

#include <optional>

#include "device/cpu/kernel.h"
#include "device/cpu/onednn.h"
#include "device/cpu/winograd_loops.h"

namespace ag::cpu {

// 3x3 taps (taps x 3x3 over three axes), stride and dilation 1, one group.
struct WinogradProblem {
  WinogradTile tile;
  WinogradImage in, out;  // One frame.
  bool is_bf16 = false;   // What the images hold; else f32.
  int64_t images = 0;
  int64_t channels = 0, results = 0;  // Without padding.
  int64_t pad_y = 0, pad_x = 0;
  // Along the axis of frames; two axes are one frame and one tap. Every frame of the result has a
  // tap inside.
  int64_t frames_in = 1, frames_out = 1, taps = 1, pad_frames = 0;

  // Tiles below and beside each other in a frame.
  int64_t rows() const { return (out.height + tile.outputs - 1) / tile.outputs; }
  int64_t columns() const { return (out.width + tile.outputs - 1) / tile.outputs; }
  int64_t positions() const { return images * rows() * columns(); }
  int64_t tiles() const { return positions() * frames_out; }
  // Elements from a frame to the next one of its image.
  int64_t InFrame() const { return in.height * in.width * in.block; }
  int64_t OutFrame() const { return out.height * out.width * out.block; }
  int64_t InElements() const { return in.channels * in.height * in.width * frames_in; }
  int64_t OutElements() const { return out.channels * out.height * out.width * frames_out; }
};

class WinogradTiles {
 public:
  // Whether there are loops whose vectors fit into the channels of both images.
  static bool Fits(const WinogradProblem& problem);
  // The form of packed weights: by point, panel, tap, channel. No primitive of oneDNN has it.
  // REQUIRES: Fits.
  static Desc PackedForm(const WinogradProblem& problem);
  static Desc GivenForm(const WinogradProblem& problem);

  // REQUIRES: Fits.
  void Prepare(const WinogradProblem& problem, int cores);
  // Packs constants of the group, which other kernels of the process share. No bias: zeros.
  Status SetWeights(const GroupContext& context, Edge weights, std::optional<Edge> bias);

  // Computes y, which lies as `out` says, from x. `tail` lacks the bias. REQUIRES: the weights are
  // set; `scratch` has scratch_bytes().
  void Run(const void* x, WinogradTail tail, void* y, std::byte* scratch) const;
  size_t scratch_bytes() const;

 private:
  // The memory of some tiles between the steps: transformed inputs, then products.
  struct Area {
    float* in = nullptr;
    float* out = nullptr;
  };
  // Positions [begin, end) of tiles, counted over all images. In an area those of a frame lie
  // behind each other, then those of the next one.
  struct Chunk {
    int64_t begin = 0, end = 0;
    int64_t count() const { return end - begin; }
  };
  // Where the tile of a frame of an image is.
  struct Place {
    int64_t image = 0, frame = 0, y = 0, x = 0;
  };

  int64_t InStep() const;
  int64_t OutStep() const;
  int64_t Points() const { return p_.tile.points(); }
  int64_t AreaFloats() const { return Points() * (InStep() + OutStep()); }
  int64_t PanelWidth() const { return loops_->vectors * loops_->lanes; }
  int64_t Panels() const { return (p_.out.channels + PanelWidth() - 1) / PanelWidth(); }
  int64_t PanelRows() const { return p_.taps * p_.channels; }
  Area AreaAt(std::byte* scratch, int64_t index) const;
  Place PlaceOf(const Chunk& chunk, int64_t tile) const;

  void Divide();
  void PackPoint(const float* w, int64_t result, int64_t row, float* to) const;
  StatusOr<AlignedBuffer> PackWeights(const Tensor& weights) const;
  // Of tiles [begin, end) of the chunk's frames.
  void TransformInputs(const std::byte* x, const Area& area, const Chunk& chunk, int64_t begin,
                       int64_t end) const;
  // Of units [begin, end) of (point, panel), for `count` positions.
  void Multiply(const Area& area, int64_t count, int64_t begin, int64_t end) const;
  void TransformOutputs(const Area& area, const Chunk& chunk, const WinogradTail& tail,
                        std::byte* y, int64_t begin, int64_t end) const;

  WinogradProblem p_;
  const WinogradLoops* loops_ = nullptr;
  int cores_ = 1;
  bool by_chunks_ = false;  // Each core takes chunks; else all take parts of each step.
  int64_t chunks_ = 1;
  int64_t area_positions_ = 0;                    // Of the largest chunk.
  std::shared_ptr<const AlignedBuffer> weights_;  // By point, panel, tap, channel.
  AlignedBuffer bias_;                            // By channel in memory.
};

}  // namespace ag::cpu

// Kernel families of a device as data: what each takes, and how fast it is, for estimates and first
// guesses (docs/device-spec.md, "Kernels"). Plain data and pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "plan/spec/layout.h"

namespace ag {

// What a family takes of its pattern.
enum class KernelForm : uint8_t {
  kAny,
  kFull,       // A convolution that is not depthwise.
  kDepthwise,  // One filter a channel.
  kPointwise,  // A convolution of one tap a channel, one group, no padding, constant weights.
  // Winograd's minimal filtering F(2x2, 3x3) and F(4x4, 3x3) (Lavin and Gray 2016, "Fast algorithms
  // for convolutional neural networks", section 4): 3x3 taps, stride and dilation 1, one group, at
  // least kWinogradChannelsMin channels on both sides.
  kWinograd2,
  kWinograd4,
  kProduct,  // A matrix product whose right side is a constant matrix.
};
inline constexpr int64_t kWinogradChannelsMin = 16;

struct KernelFamily {
  std::string name;     // As the device calls the kernel.
  std::string pattern;  // Of the spec, or "reorder".
  KernelForm form = KernelForm::kAny;
  double share = 1;             // Of flops_per_second that it reaches.
  double bytes_share = 1;       // Of the bandwidth of memory or cache that it reaches.
  double far_share = 1;         // Likewise, for constants from memory; above 1: fetched ahead.
  double fixed_ns = 0;          // Besides both.
  std::vector<Layout> layouts;  // Of the result; empty: any.
  bool operator==(const KernelFamily&) const = default;
};

// Parses "winograd_tiles = conv winograd4 share 1.3 bytes 0.7 fixed_ns 15000 layouts blocked16".
StatusOr<KernelFamily> ParseKernelFamily(std::string_view text);
// Returns a text that parses to an equal family.
std::string FormatKernelFamily(const KernelFamily& family);

}  // namespace ag

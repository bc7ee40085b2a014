// Winograd's convolutions F(4x4, 3x3) and F(2x2, 3x3) of our own, for every instruction set and for
// channels last or in blocks; oneDNN has F(4x4, 3x3) for AVX-512 only. Pure functions.
#pragma once

#include "device/cpu/kernel.h"

namespace ag::cpu {

// Tiles of 4x4 outputs.
inline constexpr std::string_view kWinogradName = "winograd_tiles";
// Tiles of 2x2: for images of few tiles, where reading the weights takes the time.
inline constexpr std::string_view kSmallWinogradName = "winograd_small_tiles";

// `name` is one of these. kUnimplemented: the group's convolution is none of 3x3 taps, stride and
// dilation 1, one group, constant weights and bias, whose layouts hold whole vectors of channels,
// or it has too few tiles to pay for reading the transformed weights, which are 4 times as large as
// the weights (small tiles: 1.8 times), or too many for small tiles.
Status CheckWinograd(const GroupContext& context, std::string_view name);

// Returns true when the kernel would pack the group's weights, which the device holds for oneDNN's
// kernels already, and the group prefers those (HeldForms). REQUIRES: CheckWinograd is OK.
bool PacksHeldWeights(const GroupContext& context, std::string_view name);

// Makes the kernel for the group's first *done nodes: the convolution, an add of a tensor that lies
// as the output does, and bounds (relu, clip). REQUIRES: CheckWinograd is OK.
StatusOr<std::unique_ptr<Kernel>> MakeWinograd(const GroupContext& context, std::string_view name,
                                               size_t* done);

}  // namespace ag::cpu

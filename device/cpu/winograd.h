// Winograd's convolution F(4x4, 3x3) of our own, for every instruction set and for channels last or
// in blocks; oneDNN has one for AVX-512 only. Pure functions.
#pragma once

#include "device/cpu/kernel.h"

namespace ag::cpu {

inline constexpr std::string_view kWinogradName = "winograd_tiles";

// kUnimplemented: the group's convolution is none of 3x3 taps, stride and dilation 1, one group,
// constant weights and bias, whose layouts hold whole vectors of channels, or it has too few tiles
// to pay for reading the transformed weights, which are four times as large.
Status CheckWinograd(const GroupContext& context);

// Returns true when the kernel would pack the group's weights, which the device holds for oneDNN's
// kernels already, and the group prefers those (HeldForms). REQUIRES: CheckWinograd(context) is OK.
bool PacksHeldWeights(const GroupContext& context);

// Makes the kernel for the group's first *done nodes: the convolution, an add of a tensor that lies
// as the output does, and bounds (relu, clip). REQUIRES: CheckWinograd(context) is OK.
StatusOr<std::unique_ptr<Kernel>> MakeWinograd(const GroupContext& context, size_t* done);

}  // namespace ag::cpu

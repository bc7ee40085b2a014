// The loops of sigmoid and swish over floats, written for each instruction set: networks of mobile
// devices and detectors have one behind almost every convolution. Pure functions.
#pragma once

#include <string_view>

#include "device/cpu/block_ops.h"

namespace ag::cpu {

// Blocks of BlockFn; the operands b and c and the numbers are not read. Errors against exact
// results (sigmoid_loops_test.cc checks them): sigmoid 2e-7 absolute, swish 2e-7 of max(1, |x|).
// NaN stays NaN; swish of -inf is NaN, as x * sigmoid(x) is.
struct SigmoidLoops {
  BlockFn<float> sigmoid = nullptr;
  BlockFn<float> swish = nullptr;
};

// Returns the loops for an instruction set of InstructionSet() (device/cpu/host.h).
const SigmoidLoops& SigmoidLoopsFor(std::string_view isa);

}  // namespace ag::cpu

// Copies of f32 values from strides to oneDNN's blocked forms of weights, in f32 or bf16. oneDNN
// (2.6) has fast reorders for some pairs of forms; the others, those of a matrix product's weights
// among them, go by its reference at 30 ns an element. Pure functions.
#pragma once

#include "device/cpu/onednn.h"

namespace ag::cpu {

// Copies the values at `from`, which lie as `given` says, to `to` in the form `wanted`, rounded
// to its type, with zeros where it pads. Returns false, and writes nothing, for forms that it does
// not know: of another type, with blocks in `given`, or of oneDNN's own kind (Winograd's weights).
bool CopyToBlocks(const Desc& wanted, const Desc& given, const float* from, void* to);

}  // namespace ag::cpu

// The facts of this machine: cores, instruction set, and the device spec and environment that
// follow from them. Thread-safe.
#pragma once

#include <string>

#include "plan/spec/device_spec.h"

namespace ag::cpu {

// Returns "avx512", "avx2" or "sse41", by which oneDNN's and our loops are chosen.
std::string InstructionSet();

// Returns the spec of the CPU device with `cores` cores, as text for ParseDeviceSpec.
std::string SpecText(int cores);

// Returns true where oneDNN's products of bytes are exact: with AVX-512 VNNI or AMX. With less they
// saturate in between.
bool HasExactByteProducts();

// Returns true where oneDNN multiplies bf16 by instructions for it: AVX512-BF16 or AMX-BF16.
bool HasBf16Products();

// Returns the environment, e.g. "cores=2;cpu=AMD EPYC;isa=avx512;onednn=2.6.3;policy=8".
Environment EnvironmentOf(int cores);

}  // namespace ag::cpu

// What this machine is: cores, instruction set, the device spec and environment made of them.
#pragma once

#include <string>

#include "plan/device_spec.h"

namespace ag::cpu {

// Cores that this process may run on.
int UsableCores();

// "avx512", "avx2" or "sse41": what oneDNN and our loops are chosen by.
std::string InstructionSet();

// The spec of the CPU device with `cores` cores; the text is ParseDeviceSpec's.
std::string SpecText(int cores);

// "cores=2;cpu=AMD EPYC;isa=avx512;onednn=2.6.3;policy=2".
Environment EnvironmentOf(int cores);

}  // namespace ag::cpu

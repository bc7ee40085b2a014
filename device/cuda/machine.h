// The facts of a GPU, read from the driver, and the spec, environment and chip made of them.
// ReadMachine needs a GPU; the others are pure functions.
#pragma once

#include <string>

#include "device/cuda/codegen/group_context.h"

namespace ag::cuda {

struct MachineFacts {
  std::string name;  // "NVIDIA H200"
  int capability_major = 0, capability_minor = 0;
  int sms = 0;
  int64_t shared_bytes_max = 0;  // Dynamic, for one block that asks for it.
  int clock_mhz = 0;             // Of the SMs, at most.
  int memory_clock_mhz = 0;
  int memory_bus_bits = 0;
  int64_t memory_bytes = 0;
  int64_t l2_bytes = 0;
  std::string pci_bus_id;
  int cuda_driver = 0, cuda_runtime = 0;  // 1000 * major + 10 * minor.
  std::string driver;                     // "580.65.06"; "" where NVML is absent.
  bool is_mig = false;                    // A slice of a chip (multi-instance GPU).
  int other_processes = 0;                // That compute on it now; 0 where unknown.
};

// Reads device `ordinal`. Loads NVML, which may be absent.
StatusOr<MachineFacts> ReadMachine(int ordinal);

// The versions of the libraries that kernels come from.
struct LibraryVersions {
  size_t cublaslt = 0;  // 10000 * major + 100 * minor + patch.
  size_t cudnn = 0;     // Likewise.
};

// Returns the spec; its rates are estimates from the chip's generation, clocks and bus, until
// measurements exist. kUnimplemented: a chip older than compute capability 7.5.
StatusOr<DeviceSpec> SpecOf(const MachineFacts& facts);
Environment EnvironmentOf(const MachineFacts& facts, const LibraryVersions& versions);
Chip ChipOf(const MachineFacts& facts);

}  // namespace ag::cuda

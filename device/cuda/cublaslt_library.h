// The calls of cuBLASLt that need a device, as an interface: the library implements it, and so do
// tests. One thread at a time.
#pragma once

#include <memory>
#include <vector>

#include "device/cuda/cublaslt_problem.h"
#include "device/cuda/launch/driver.h"

namespace ag::cuda {

struct CublasLtAlgorithm {
  cublasLtMatmulAlgo_t algo{};
  int64_t workspace_bytes = 0;
};

class CublasLtLibrary {
 public:
  virtual ~CublasLtLibrary() = default;

  // Returns the library's suggestions, best guess first, at most `max`. kUnimplemented: none.
  virtual StatusOr<std::vector<CublasLtChoice>> Suggest(const CublasLtProblem& problem,
                                                        MatmulForm form, int max) = 0;

  // Returns the algorithm of a choice. kInvalidArgument: it does not exist for this problem and
  // device, or the problem's masks forbid it.
  virtual StatusOr<CublasLtAlgorithm> Build(const CublasLtProblem& problem,
                                            const CublasLtChoice& choice) = 0;

  // Pointers in cuBLASLt's terms; `c` is read when the problem has an addend.
  struct Pointers {
    const std::byte* a = nullptr;
    const std::byte* b = nullptr;
    const std::byte* c = nullptr;
    std::byte* d = nullptr;
    std::byte* workspace = nullptr;
  };
  virtual Status Multiply(const CublasLtProblem& problem, const CublasLtAlgorithm& algorithm,
                          const Pointers& pointers, StreamRef stream) = 0;
};

// Opens the library for the calling thread's current device. kFailedPrecondition: no driver or no
// device.
StatusOr<std::unique_ptr<CublasLtLibrary>> OpenCublasLt();

// Returns the version of the loaded library, e.g. "13.1.0".
std::string CublasLtVersion();

}  // namespace ag::cuda

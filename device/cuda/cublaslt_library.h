// The calls of cuBLASLt that need a device, as a seam: one implementation is the library, tests
// have another. Used by one thread at a time.
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

  // What the library would take, best guess first, at most `max`. kUnimplemented: nothing.
  virtual StatusOr<std::vector<CublasLtChoice>> Suggest(const CublasLtProblem& problem,
                                                        MatmulForm form, int max) = 0;

  // The algorithm of a choice. kInvalidArgument: none such for this problem and device, or one that
  // the problem's masks forbid.
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

// For the calling thread's current device. kFailedPrecondition: no driver or no device.
StatusOr<std::unique_ptr<CublasLtLibrary>> OpenCublasLt();

// "13.1.0", of the library that is loaded.
std::string CublasLtVersion();

}  // namespace ag::cuda

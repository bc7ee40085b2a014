// A dense group in the terms of cuBLASLt: column-major matrices. Row-major D = A B is column-major
// D' = B' A', so cuBLASLt's A is our right side and its B our left one; nothing is copied. Pure
// functions; descriptors need no device.
//
//   cuBLASLt's   is our   rows x columns   leading   operation
//   A            B        n x k            n         none        MatmulForm::kRows
//                         k x n            k         transpose   MatmulForm::kColumns
//   B            A        k x m            k         none
//   C, D         addend,D n x m            n
//
// The addend is beta C, a vector over our columns is the bias along rows of D', and the epilogue is
// none, ReLU or GELU. Its GELU is the tanh form: it is used for approximate=tanh only, and only in
// f16 and bf16, because it may use the device's approximate tanh. (The two forms differ by up to
// 4.7e-4, which is many units of f16 and of bf16 where results are small.)
//
// Policies: fp32 computes in 32F on FMA units, tf32 in 32F_FAST_TF32, f16 and bf16 in 32F. Split
// sums are added in f32 where the result is narrower.
#pragma once

#include <cublasLt.h>

#include "base/handle.h"
#include "device/cuda/cublaslt_choice.h"
#include "device/cuda/dense_problem.h"
#include "device/cuda/library_status.h"

namespace ag::cuda {

struct MatmulDescTraits {
  using Raw = cublasLtMatmulDesc_t;
  static constexpr Raw kNone = nullptr;
  static void Free(Raw raw) { cublasLtMatmulDescDestroy(raw); }
};
struct MatrixLayoutTraits {
  using Raw = cublasLtMatrixLayout_t;
  static constexpr Raw kNone = nullptr;
  static void Free(Raw raw) { cublasLtMatrixLayoutDestroy(raw); }
};
struct MatmulPreferenceTraits {
  using Raw = cublasLtMatmulPreference_t;
  static constexpr Raw kNone = nullptr;
  static void Free(Raw raw) { cublasLtMatmulPreferenceDestroy(raw); }
};

struct CublasLtProblem {
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  cudaDataType_t type = CUDA_R_32F;  // Of A, B, C, D and the bias; the scale is f32.
  bool has_addend = false;
  bool has_bias = false;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  uint32_t reduction_mask = 0;  // Allowed schemes for split sums.
  uint64_t numerical_mask = 0;  // Allowed kinds of kernels (NUMERICAL_IMPL_FLAGS).
  UniqueHandle<MatmulDescTraits> desc;
  UniqueHandle<MatrixLayoutTraits> a, b, c, d;

  // Sets the bias, which is part of the description. Later biases must have this one's alignment.
  Status SetBias(const std::byte* bias);
};

// The largest workspace of an algorithm: cuBLAS's recommendation for Hopper.
inline constexpr uint64_t kCublasLtWorkspaceMax = 32u << 20;

// Returns the problem. kUnimplemented: an activation that no epilogue computes exactly under the
// policy.
StatusOr<CublasLtProblem> MakeCublasLtProblem(const DenseProblem& problem, Precision precision,
                                              MatmulForm form);

// Returns the preference for the library's list. Pointers at ports are aligned to 16 bytes.
StatusOr<UniqueHandle<MatmulPreferenceTraits>> PreferenceOf(const CublasLtProblem& problem);

}  // namespace ag::cuda

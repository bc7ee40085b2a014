#include "device/cuda/cublaslt_problem.h"

namespace ag::cuda {
namespace {

constexpr uint32_t kPortAlignment = 16;

// A placeholder for the bias while lists are made: the library only looks at its alignment, which
// is that of packed weights.
alignas(256) constexpr std::byte kAnyBias{};

template <class T>
Status SetDesc(CublasLtProblem* p, cublasLtMatmulDescAttributes_t name, T value) {
  return FromCublas(cublasLtMatmulDescSetAttribute(p->desc.get(), name, &value, sizeof(value)),
                    "set attribute {} of a product", static_cast<int>(name));
}

template <class T>
Status SetLayout(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t name, T value) {
  return FromCublas(cublasLtMatrixLayoutSetAttribute(layout, name, &value, sizeof(value)),
                    "set attribute {} of a matrix", static_cast<int>(name));
}

// A column-major matrix, one for each of the batch, `stride` elements apart.
struct Matrix {
  int64_t rows = 0, columns = 0;
  int64_t batch = 1, stride = 0;
};

Status MakeLayout(const Matrix& m, cudaDataType_t type, UniqueHandle<MatrixLayoutTraits>* layout) {
  AG_TRY(FromCublas(cublasLtMatrixLayoutCreate(layout->out(), type, m.rows, m.columns, m.rows),
                    "make a matrix of {}x{}", m.rows, m.columns));
  if (m.batch == 1) return OkStatus();
  AG_TRY(
      SetLayout(layout->get(), CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<int32_t>(m.batch)));
  return SetLayout(layout->get(), CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, m.stride);
}

// Returns the epilogue without its bias.
StatusOr<cublasLtEpilogue_t> EpilogueOf(const DenseProblem& p) {
  const Node* node = p.tail.activation;
  if (node == nullptr) return CUBLASLT_EPILOGUE_DEFAULT;
  if (node->op == OpKind::kRelu) return CUBLASLT_EPILOGUE_RELU;
  if (node->op != OpKind::kGelu) {
    return Err(StatusCode::kUnimplemented, "cuBLASLt: no epilogue for {}", Info(node->op).name);
  }
  const std::string& form = node->attributes->String("approximate");
  if (form == "tanh" && p.stored != DType::kFloat32) return CUBLASLT_EPILOGUE_GELU;
  return Err(StatusCode::kUnimplemented, "cuBLASLt: its GELU is no {} GELU of {}",
             form == "none" ? "erf" : form, DTypeName(p.stored));
}

cublasLtEpilogue_t WithBias(cublasLtEpilogue_t epilogue) {
  if (epilogue == CUBLASLT_EPILOGUE_RELU) return CUBLASLT_EPILOGUE_RELU_BIAS;
  if (epilogue == CUBLASLT_EPILOGUE_GELU) return CUBLASLT_EPILOGUE_GELU_BIAS;
  return CUBLASLT_EPILOGUE_BIAS;
}

// Sets the computation of a policy.
void SetPolicy(DType stored, Precision precision, CublasLtProblem* p) {
  const bool is_f32 = stored == DType::kFloat32;
  p->type = is_f32 ? CUDA_R_32F : stored == DType::kFloat16 ? CUDA_R_16F : CUDA_R_16BF;
  const bool is_tf32 = is_f32 && precision == Precision::kTf32;
  p->compute = is_tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  p->reduction_mask = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  if (is_f32) p->reduction_mask = CUBLASLT_REDUCTION_SCHEME_MASK;
  uint64_t forbidden = CUBLASLT_NUMERICAL_IMPL_FLAGS_ACCUMULATOR_16F;
  if (is_f32) {
    forbidden |= CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_16F | CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_16BF;
    if (!is_tf32) {
      forbidden |=
          CUBLASLT_NUMERICAL_IMPL_FLAGS_TENSOR_OP_MASK | CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_TF32;
    }
  }
  p->numerical_mask = ~forbidden;
}

Status MakeLayouts(const DenseProblem& problem, MatmulForm form, CublasLtProblem* p) {
  const bool columns = form == MatmulForm::kColumns;
  const int64_t batch = problem.batch;
  const Matrix right{columns ? problem.k : problem.n, columns ? problem.n : problem.k, batch,
                     problem.b_stride};
  const Matrix left{problem.k, problem.m, batch, problem.a_stride};
  const Matrix result{problem.n, problem.m, batch, problem.d_stride};
  AG_TRY(MakeLayout(right, p->type, &p->a));
  AG_TRY(MakeLayout(left, p->type, &p->b));
  AG_TRY(MakeLayout(result, p->type, &p->c));
  return MakeLayout(result, p->type, &p->d);
}

}  // namespace

Status CublasLtProblem::SetBias(const std::byte* bias) {
  const void* pointer = bias;
  return SetDesc(this, CUBLASLT_MATMUL_DESC_BIAS_POINTER, pointer);
}

StatusOr<CublasLtProblem> MakeCublasLtProblem(const DenseProblem& problem, Precision precision,
                                              MatmulForm form) {
  CublasLtProblem p;
  AG_LET(p.epilogue, EpilogueOf(problem));
  SetPolicy(problem.stored, precision, &p);
  p.has_addend = problem.tail.addend.has_value();
  p.has_bias = !problem.tail.vectors.empty();
  if (p.has_bias) p.epilogue = WithBias(p.epilogue);
  AG_TRY(
      FromCublas(cublasLtMatmulDescCreate(p.desc.out(), p.compute, CUDA_R_32F), "make a product"));
  const cublasOperation_t operation = form == MatmulForm::kColumns ? CUBLAS_OP_T : CUBLAS_OP_N;
  AG_TRY(SetDesc(&p, CUBLASLT_MATMUL_DESC_TRANSA, static_cast<int32_t>(operation)));
  AG_TRY(SetDesc(&p, CUBLASLT_MATMUL_DESC_EPILOGUE, static_cast<uint32_t>(p.epilogue)));
  if (p.has_bias) {
    AG_TRY(SetDesc(&p, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, static_cast<int32_t>(p.type)));
    AG_TRY(p.SetBias(&kAnyBias));
  }
  AG_TRY(MakeLayouts(problem, form, &p));
  return p;
}

StatusOr<UniqueHandle<MatmulPreferenceTraits>> PreferenceOf(const CublasLtProblem& problem) {
  UniqueHandle<MatmulPreferenceTraits> preference;
  AG_TRY(FromCublas(cublasLtMatmulPreferenceCreate(preference.out()), "make a preference"));
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t name, auto value) {
    return FromCublas(
        cublasLtMatmulPreferenceSetAttribute(preference.get(), name, &value, sizeof(value)),
        "set preference {}", static_cast<int>(name));
  };
  AG_TRY(set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kCublasLtWorkspaceMax));
  AG_TRY(set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, problem.reduction_mask));
  AG_TRY(set(CUBLASLT_MATMUL_PREF_IMPL_MASK, problem.numerical_mask));
  for (const auto name :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    AG_TRY(set(name, kPortAlignment));
  }
  return preference;
}

}  // namespace ag::cuda

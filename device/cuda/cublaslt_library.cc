#include "device/cuda/cublaslt_library.h"

namespace ag::cuda {
namespace {

struct HandleTraits {
  using Raw = cublasLtHandle_t;
  static constexpr Raw kNone = nullptr;
  static void Free(Raw raw) { cublasLtDestroy(raw); }
};
using Handle = UniqueHandle<HandleTraits>;

template <class T>
Status Read(const cublasLtMatmulAlgo_t& algo, cublasLtMatmulAlgoConfigAttributes_t name, T* value) {
  size_t written = 0;
  AG_TRY(FromCublas(cublasLtMatmulAlgoConfigGetAttribute(&algo, name, value, sizeof(T), &written),
                    "read setting {} of an algorithm", static_cast<int>(name)));
  if (written == sizeof(T)) return OkStatus();
  return Err(StatusCode::kInternal, "cuBLASLt: setting {} has {} bytes, not {}",
             static_cast<int>(name), written, sizeof(T));
}

StatusOr<CublasLtChoice> ChoiceOf(const cublasLtMatmulAlgo_t& algo, MatmulForm form) {
  CublasLtChoice c{.form = form};
  AG_TRY(Read(algo, CUBLASLT_ALGO_CONFIG_ID, &c.id));
  AG_TRY(Read(algo, CUBLASLT_ALGO_CONFIG_TILE_ID, &c.tile));
  AG_TRY(Read(algo, CUBLASLT_ALGO_CONFIG_STAGES_ID, &c.stages));
  AG_TRY(Read(algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, &c.split));
  AG_TRY(Read(algo, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, &c.reduce));
  AG_TRY(Read(algo, CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, &c.swizzle));
  AG_TRY(Read(algo, CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION, &c.custom));
  AG_TRY(Read(algo, CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID, &c.inner));
  AG_TRY(Read(algo, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, &c.cluster));
  return c;
}

// Sets a value that differs from AlgoInit's: some algorithms take no value for a setting that they
// do not have.
template <class T>
Status Set(cublasLtMatmulAlgo_t* algo, cublasLtMatmulAlgoConfigAttributes_t name, T value) {
  T before{};
  AG_TRY(Read(*algo, name, &before));
  if (before == value) return OkStatus();
  return FromCublas(cublasLtMatmulAlgoConfigSetAttribute(algo, name, &value, sizeof(value)),
                    "set setting {} of an algorithm", static_cast<int>(name));
}

Status Configure(const CublasLtChoice& c, cublasLtMatmulAlgo_t* algo) {
  AG_TRY(Set(algo, CUBLASLT_ALGO_CONFIG_TILE_ID, c.tile));
  AG_TRY(Set(algo, CUBLASLT_ALGO_CONFIG_STAGES_ID, c.stages));
  AG_TRY(Set(algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, c.split));
  AG_TRY(Set(algo, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, c.reduce));
  AG_TRY(Set(algo, CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, c.swizzle));
  AG_TRY(Set(algo, CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION, c.custom));
  AG_TRY(Set(algo, CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID, c.inner));
  return Set(algo, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, c.cluster);
}

Status CheckMasks(const CublasLtProblem& problem, const CublasLtChoice& choice,
                  const cublasLtMatmulAlgo_t& algo) {
  if ((choice.reduce & ~problem.reduction_mask) != 0) {
    return Err(StatusCode::kInvalidArgument, "adds parts in less than f32");
  }
  uint64_t flags = 0;
  size_t written = 0;
  AG_TRY(FromCublas(cublasLtMatmulAlgoCapGetAttribute(&algo, CUBLASLT_ALGO_CAP_NUMERICAL_IMPL_FLAGS,
                                                      &flags, sizeof(flags), &written),
                    "read how an algorithm computes"));
  if ((flags & ~problem.numerical_mask) == 0) return OkStatus();
  return Err(StatusCode::kInvalidArgument, "computes in a way {:#x} that the policy forbids",
             flags & ~problem.numerical_mask);
}

class Library : public CublasLtLibrary {
 public:
  explicit Library(Handle handle) : handle_(std::move(handle)) {}

  StatusOr<std::vector<CublasLtChoice>> Suggest(const CublasLtProblem& problem, MatmulForm form,
                                                int max) override {
    AG_LET(const auto preference, PreferenceOf(problem));
    std::vector<cublasLtMatmulHeuristicResult_t> results(max);
    int count = 0;
    AG_TRY(FromCublas(
        cublasLtMatmulAlgoGetHeuristic(handle_.get(), problem.desc.get(), problem.a.get(),
                                       problem.b.get(), problem.c.get(), problem.d.get(),
                                       preference.get(), max, results.data(), &count),
        "list algorithms"));
    std::vector<CublasLtChoice> choices;
    for (int i = 0; i < count; ++i) {
      if (results[i].state != CUBLAS_STATUS_SUCCESS) continue;
      AG_LET(const CublasLtChoice choice, ChoiceOf(results[i].algo, form));
      choices.push_back(choice);
    }
    return choices;
  }

  StatusOr<CublasLtAlgorithm> Build(const CublasLtProblem& problem,
                                    const CublasLtChoice& choice) override {
    StatusOr<CublasLtAlgorithm> built = TryBuild(problem, choice);
    if (built.ok() || built.status().code() == StatusCode::kResourceExhausted) return built;
    return Err(StatusCode::kInvalidArgument, "{}: {}", CublasLtName(choice),
               Message(built.status()));
  }

  Status Multiply(const CublasLtProblem& problem, const CublasLtAlgorithm& algorithm,
                  const Pointers& pointers, StreamRef stream) override {
    const float alpha = 1, beta = problem.has_addend ? 1 : 0;
    return FromCublas(
        cublasLtMatmul(handle_.get(), problem.desc.get(), &alpha, pointers.a, problem.a.get(),
                       pointers.b, problem.b.get(), &beta, pointers.c, problem.c.get(), pointers.d,
                       problem.d.get(), &algorithm.algo, pointers.workspace,
                       static_cast<size_t>(algorithm.workspace_bytes),
                       reinterpret_cast<cudaStream_t>(stream)),
        "multiply");
  }

 private:
  StatusOr<CublasLtAlgorithm> TryBuild(const CublasLtProblem& p, const CublasLtChoice& choice) {
    CublasLtAlgorithm built;
    AG_TRY(FromCublas(cublasLtMatmulAlgoInit(handle_.get(), p.compute, CUDA_R_32F, p.type, p.type,
                                             p.type, p.type, choice.id, &built.algo),
                      "init"));
    AG_TRY(Configure(choice, &built.algo));
    AG_TRY(CheckMasks(p, choice, built.algo));
    cublasLtMatmulHeuristicResult_t result{};
    AG_TRY(FromCublas(cublasLtMatmulAlgoCheck(handle_.get(), p.desc.get(), p.a.get(), p.b.get(),
                                              p.c.get(), p.d.get(), &built.algo, &result),
                      "check"));
    AG_TRY(FromCublas(result.state, "check"));
    built.workspace_bytes = static_cast<int64_t>(result.workspaceSize);
    return built;
  }

  Handle handle_;
};

}  // namespace

StatusOr<std::unique_ptr<CublasLtLibrary>> OpenCublasLt() {
  Handle handle;
  AG_TRY(FromCublas(cublasLtCreate(handle.out()), "open cuBLASLt {}", CublasLtVersion()));
  return std::make_unique<Library>(std::move(handle));
}

std::string CublasLtVersion() {
  const size_t version = cublasLtGetVersion();  // 130100 for 13.1.0.
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace ag::cuda

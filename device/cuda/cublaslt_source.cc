#include "device/cuda/cublaslt_source.h"

#include <algorithm>
#include <numeric>

#include "device/cuda/packed_constant.h"

namespace ag::cuda {
namespace {

constexpr uintptr_t kCublasAlignment = 16;

// Of the workspace, which lies in the arena at a multiple of the matrices' alignment: algorithms
// that add parts of a sum are CUBLAS_STATUS_INVALID_VALUE elsewhere.
constexpr uintptr_t kWorkspaceAlignment = 256;

std::byte* AlignedWorkspace(std::byte* workspace) {
  const uintptr_t past = reinterpret_cast<uintptr_t>(workspace) % kWorkspaceAlignment;
  return past == 0 ? workspace : workspace + (kWorkspaceAlignment - past);
}

// The source of an operand: a port of the group, or packed memory.
struct Source {
  int port = -1;
  const std::byte* constant = nullptr;
};

class CublasLtKernel : public GroupKernel {
 public:
  struct Parts {
    std::string name;
    CublasLtProblem problem;
    CublasLtAlgorithm algorithm;
    Source left, right, addend;
  };
  CublasLtKernel(std::shared_ptr<CublasLtLibrary> library, Parts parts)
      : library_(std::move(library)), parts_(std::move(parts)) {}

  Status Enqueue(StreamRef stream, const Operands& operands, bool) override {
    const auto pointer_of = [&](const Source& source) {
      return source.port >= 0 ? operands.inputs[source.port] : source.constant;
    };
    CublasLtLibrary::Pointers pointers{.a = pointer_of(parts_.right),
                                       .b = pointer_of(parts_.left),
                                       .c = operands.outputs[0],
                                       .d = operands.outputs[0],
                                       .workspace = AlignedWorkspace(operands.workspace)};
    if (parts_.problem.has_addend) pointers.c = pointer_of(parts_.addend);
    for (const std::byte* pointer : {pointers.a, pointers.b, pointers.c}) {
      AG_TRY(CheckAlignment(pointer));
    }
    AG_TRY(CheckAlignment(pointers.d));
    if (workspace_bytes() > 0 && pointers.workspace == nullptr) {
      return Err(StatusCode::kInvalidArgument, "{}: no workspace, {} bytes are needed", parts_.name,
                 workspace_bytes());
    }
    return Within(library_->Multiply(parts_.problem, parts_.algorithm, pointers, stream),
                  parts_.name);
  }

  int64_t workspace_bytes() const override {
    const int64_t bytes = parts_.algorithm.workspace_bytes;
    return bytes == 0 ? 0 : bytes + static_cast<int64_t>(kWorkspaceAlignment - kCublasAlignment);
  }

 private:
  Status CheckAlignment(const std::byte* pointer) const {
    if (pointer != nullptr && reinterpret_cast<uintptr_t>(pointer) % kCublasAlignment == 0) {
      return OkStatus();
    }
    return Err(StatusCode::kInvalidArgument, "{}: a matrix at {} is not aligned to {} bytes",
               parts_.name, static_cast<const void*>(pointer), kCublasAlignment);
  }

  std::shared_ptr<CublasLtLibrary> library_;
  Parts parts_;
};

// Returns true for a right side that is one constant matrix, which may be packed column by column.
bool HasColumns(const GroupContext& context, const DenseProblem& problem) {
  return context.InputOf(problem.b) < 0 && problem.b_stride == 0 &&
         (problem.b_is_transposed || context.graph.type(problem.b).shape.size() == 2);
}

// Returns the axes of the right side for `form`: the first two exchanged where the graph has them
// in the other order.
std::vector<int> RightOrder(const GroupContext& context, const DenseProblem& problem,
                            MatmulForm form) {
  if (problem.b_is_transposed == (form == MatmulForm::kColumns)) return {};
  std::vector<int> order(context.graph.type(problem.b).shape.size());
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[0], order[1]);
  return order;
}

// Returns the axes of a constant addend in the result's order.
std::vector<int> AddendOrder(const DenseProblem& problem) {
  std::vector<int> order;
  if (!problem.is_channels_last) return order;
  for (size_t i = 0; i < problem.result.size(); ++i) {
    if (i != 1) order.push_back(static_cast<int>(i));
  }
  order.push_back(1);
  return order;
}

// Returns the length of the axes of a constant right side or addend in memory; empty: as they are.
std::vector<int64_t> PaddedRight(const GroupContext& context, const DenseProblem& problem) {
  if (!problem.is_channels_last) return {};
  const Shape& w = context.graph.type(problem.b).shape;
  std::vector<int64_t> padded(w.begin(), w.end());
  padded[0] = problem.n;
  padded[1] = problem.k;
  return padded;
}
std::vector<int64_t> PaddedAddend(const DenseProblem& problem) {
  if (!problem.is_channels_last) return {};
  std::vector<int64_t> padded(problem.result.begin(), problem.result.end());
  padded[1] = problem.n;
  return padded;
}

// Packs constants and puts them into device memory.
class Packer {
 public:
  Packer(const GroupContext& context, DType stored, Constants& constants, WeightMemory& memory)
      : context_(context), stored_(stored), constants_(constants), memory_(memory) {}

  StatusOr<const std::byte*> Put(ConstantRecipe recipe) {
    recipe.stored = stored_;
    AG_LET(const std::vector<std::byte> bytes, PackConstant(recipe, constants_));
    return memory_.Put(bytes);
  }
  StatusOr<Source> Operand(Edge edge, std::vector<int> order, std::vector<int64_t> padded) {
    Source source{.port = context_.InputOf(edge)};
    if (source.port >= 0) return source;
    AG_LET(source.constant, Put({.sum = {edge},
                                 .shape = context_.graph.type(edge).shape,
                                 .order = std::move(order),
                                 .padded = std::move(padded)}));
    return source;
  }

 private:
  const GroupContext& context_;
  DType stored_;
  Constants& constants_;
  WeightMemory& memory_;
};

// Returns the suggestions that their names rebuild, once each. kUnimplemented: none does.
StatusOr<std::vector<CublasLtChoice>> Rebuilt(CublasLtLibrary& library,
                                              const CublasLtProblem& problem,
                                              const std::vector<CublasLtChoice>& suggested) {
  std::vector<CublasLtChoice> kept;
  Status last;
  for (const CublasLtChoice& choice : suggested) {
    if (std::ranges::find(kept, choice) != kept.end()) continue;
    const Status built = library.Build(problem, choice).status();
    if (built.ok()) {
      kept.push_back(choice);
    } else if (built.code() == StatusCode::kInvalidArgument) {
      last = built;
    } else {
      return built;
    }
  }
  if (!kept.empty() || last.ok()) return kept;
  return Err(StatusCode::kUnimplemented, "cuBLASLt: none of {} algorithms can be rebuilt: {}",
             suggested.size(), Message(last));
}

// Merges the lists, one of each in turn.
std::vector<CublasLtChoice> InTurn(const std::vector<std::vector<CublasLtChoice>>& lists) {
  std::vector<CublasLtChoice> merged;
  size_t longest = 0;
  for (const auto& list : lists) longest = std::max(longest, list.size());
  for (size_t i = 0; i < longest; ++i) {
    for (const auto& list : lists) {
      if (i < list.size()) merged.push_back(list[i]);
    }
  }
  return merged;
}

}  // namespace

StatusOr<std::vector<std::string>> CublasLtSource::Kernels(const GroupContext& context) {
  AG_LET(const DenseProblem dense, DenseProblemOf(context));
  std::vector<MatmulForm> forms{MatmulForm::kRows};
  if (HasColumns(context, dense)) forms.push_back(MatmulForm::kColumns);
  std::vector<std::vector<CublasLtChoice>> lists;
  Status refused;
  for (const MatmulForm form : forms) {
    AG_LET(const CublasLtProblem problem, MakeCublasLtProblem(dense, context.precision, form));
    const auto suggested = library_->Suggest(problem, form, kSuggestedMax);
    if (suggested.status().code() == StatusCode::kUnimplemented) continue;
    AG_TRY(suggested);
    StatusOr<std::vector<CublasLtChoice>> kept = Rebuilt(*library_, problem, *suggested);
    if (kept.status().code() == StatusCode::kUnimplemented) {  // The other form may work.
      refused = kept.status();
      continue;
    }
    AG_TRY(kept);
    lists.push_back(*std::move(kept));
  }
  if (lists.empty()) AG_TRY(refused);  // OK where nothing was suggested.
  std::vector<std::string> names;
  for (const CublasLtChoice& choice : InTurn(lists)) names.push_back(CublasLtName(choice));
  return names;
}

StatusOr<std::unique_ptr<GroupKernel>> CublasLtSource::Make(const GroupContext& context,
                                                            const std::string& kernel,
                                                            Constants& constants,
                                                            WeightMemory& memory) {
  AG_LET(const CublasLtChoice choice, ParseCublasLtName(kernel));
  AG_LET(const DenseProblem dense, DenseProblemOf(context));
  const bool columns = choice.form == MatmulForm::kColumns;
  if (columns && !HasColumns(context, dense)) {
    return Err(StatusCode::kInvalidArgument, "{}: the right side is no constant matrix", kernel);
  }
  CublasLtKernel::Parts parts{.name = kernel};
  AG_LET(parts.problem, MakeCublasLtProblem(dense, context.precision, choice.form));
  Packer packer(context, dense.stored, constants, memory);
  AG_LET(parts.left, packer.Operand(dense.a, {}, {}));
  AG_LET(parts.right, packer.Operand(dense.b, RightOrder(context, dense, choice.form),
                                     PaddedRight(context, dense)));
  if (dense.tail.addend) {
    AG_LET(parts.addend,
           packer.Operand(*dense.tail.addend, AddendOrder(dense), PaddedAddend(dense)));
  }
  if (parts.problem.has_bias) {
    const int64_t exact = dense.is_channels_last ? dense.result[1] : dense.n;
    AG_LET(const std::byte* bias,
           packer.Put({.sum = dense.tail.vectors, .shape = {exact}, .padded = {dense.n}}));
    AG_TRY(parts.problem.SetBias(bias));
  }
  AG_LET(parts.algorithm, library_->Build(parts.problem, choice));
  return std::make_unique<CublasLtKernel>(library_, std::move(parts));
}

}  // namespace ag::cuda

#include "worker/check_outputs.h"

#include <algorithm>
#include <cmath>

#include "base/thread.h"
#include "graph/reference/evaluate.h"
#include "plan/equivalence.h"

namespace ag {
namespace {

// A model that moves by a part of this size of what the candidate differs by is too sensitive for
// the difference to say something.
constexpr double kSensitivityShare = 1.0 / 8;

constexpr const char* kNotFinite = "the model's outputs are not finite on them";
constexpr const char* kSensitive = "a rounding of the inputs moves the model's outputs as far";
constexpr const char* kNoTime = "no time was left";

bool IsFinite(const Tensor& tensor) {
  if (!IsFloat(tensor.type().dtype)) return true;
  for (int64_t i = 0; i < tensor.type().NumElements(); ++i) {
    if (!std::isfinite(tensor.At(i))) return false;
  }
  return true;
}

class Checker {
 public:
  Checker(const OutputsToCheck& request, Clock& clock)
      : request_(request),
        clock_(clock),
        specs_(DescribeInputs(request.graph)),
        largest_(request.graph.outputs().size()) {}

  StatusOr<CheckResult> Run() {
    const size_t outputs = request_.candidate_graph.outputs().size();
    if (outputs != largest_.size()) {
      return Err(StatusCode::kDataLoss, "candidate has {} outputs, the input has {}", outputs,
                 largest_.size());
    }
    begin_ = clock_.Now();
    CheckResult result;
    for (const CheckInputs& inputs : request_.inputs) {
      request_.on_progress();
      ComparedInputs& compared = result.compared.emplace_back();
      compared.inputs = inputs.set ? inputs.name : std::string(InputKindName(inputs.kind));
      if (inputs.optional && !IsTimeFor(runs_take_)) {
        compared.left_out = kNoTime;
        continue;
      }
      AG_TRY(Compare(inputs, &compared), "{} inputs", compared.inputs);
    }
    result.errors = largest_;
    return result;
  }

 private:
  using Errors = std::vector<OutputError>;

  // Whether what takes so long ends in the time for what is optional.
  bool IsTimeFor(Nanos takes) const {
    return takes < request_.optional_max - (clock_.Now() - begin_);
  }

  Errors Differences(const std::vector<Tensor>& expected, const std::vector<Tensor>& actual) const {
    Errors errors;
    for (size_t i = 0; i < expected.size(); ++i) {
      errors.push_back(CompareOutput(request_.graph, i, expected[i], actual[i]));
    }
    return errors;
  }

  bool AreEquivalent(const Errors& errors) const {
    return std::ranges::all_of(
        errors, [&](const OutputError& error) { return IsEquivalent(error, request_.tolerance); });
  }

  Status Compare(const CheckInputs& inputs, ComparedInputs* compared) {
    AG_LET(const std::vector<Tensor> data, DataOf(inputs, specs_));
    std::vector<Tensor> expected = EmptyOutputs(request_.graph);
    std::vector<Tensor> actual = EmptyOutputs(request_.candidate_graph);
    const Nanos before = clock_.Now();
    AG_TRY(request_.reference.Run(data, expected), "reference");
    const bool is_edge = !inputs.set && IsEdgeKind(inputs.kind);
    if (is_edge && !std::ranges::all_of(expected, IsFinite)) {
      compared->left_out = kNotFinite;
      return OkStatus();
    }
    AG_TRY(request_.candidate.Run(data, actual), "candidate");
    runs_take_ = clock_.Now() - before;
    const Errors errors = Differences(expected, actual);
    if (is_edge && !AreEquivalent(errors)) {
      AG_LET(const bool is_sensitive, IsSensitive(data, expected, errors));
      if (is_sensitive) {
        compared->left_out = kSensitive;
        return OkStatus();
      }
    }
    Take(errors, compared);
    const bool is_first = reference_takes_ == Nanos::max();
    if (!inputs.reference_kernels || !(is_first || IsTimeFor(reference_takes_))) return OkStatus();
    return CompareWithKernels(data, actual, compared);
  }

  Status CompareWithKernels(const std::vector<Tensor>& data, const std::vector<Tensor>& actual,
                            ComparedInputs* compared) {
    const Nanos before = clock_.Now();
    const auto tick = [&](NodeId) {
      request_.on_progress();
      return OkStatus();
    };
    AG_LET(const std::vector<Tensor> expected,
           Evaluate(request_.graph, data, request_.weights,
                    {.threads = UsableCores(), .on_node = tick}));
    reference_takes_ = clock_.Now() - before;
    compared->reference_kernels = true;
    Take(Differences(expected, actual), compared);
    return OkStatus();
  }

  void Take(const Errors& errors, ComparedInputs* compared) {
    for (size_t i = 0; i < errors.size(); ++i) largest_[i] = Larger(errors[i], largest_[i]);
    compared->differs |= !AreEquivalent(errors);
  }

  // Whether each output that differs moves nearly as far when the inputs move by a rounding.
  StatusOr<bool> IsSensitive(const std::vector<Tensor>& data, const std::vector<Tensor>& expected,
                             const Errors& errors) {
    std::vector<Tensor> moved = EmptyOutputs(request_.graph);
    AG_TRY(request_.reference.Run(Nudged(data, kNudgeSeed), moved), "reference");
    const Errors own = Differences(expected, moved);
    for (size_t i = 0; i < errors.size(); ++i) {
      if (IsEquivalent(errors[i], request_.tolerance) || own[i].nonfinite_differs) continue;
      if (errors[i].nonfinite_differs) return false;
      if (own[i].max_rel < kSensitivityShare * errors[i].max_rel) return false;
    }
    return true;
  }

  static constexpr uint64_t kNudgeSeed = 1;

  const OutputsToCheck& request_;
  Clock& clock_;
  const std::vector<InputSpec> specs_;
  Errors largest_;
  Nanos begin_{0};
  Nanos runs_take_{0};                    // What the last ones took.
  Nanos reference_takes_ = Nanos::max();  // Before the first: max.
};

}  // namespace

StatusOr<std::vector<Tensor>> DataOf(const CheckInputs& inputs,
                                     const std::vector<InputSpec>& specs) {
  std::vector<Tensor> data = MakeInputs(specs, inputs.kind, inputs.seed);
  if (inputs.set) AG_TRY(TakeFromSet(*inputs.set, specs, &data));
  return data;
}

StatusOr<CheckResult> CheckOutputs(const OutputsToCheck& request, Clock& clock) {
  return Checker(request, clock).Run();
}

}  // namespace ag

// Losses of classifications: NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss.
#include <cmath>

#include "graph/onnx/operators/operator_call.h"

namespace ag::onnx_operators {
namespace {

using Doubles = std::vector<double>;

// Operands: scores [N,C,...], the class of each position [N,...], and perhaps weights [C].
struct Classified {
  int64_t batch = 0, classes = 0, inside = 0;
  Ints labels;
  Doubles weights;                // Of each class.
  std::optional<int64_t> ignore;  // A label that does not count.
  std::string reduction;
};

StatusOr<Classified> ReadClassified(OperatorCall& call) {
  AG_TRY(call.CheckInputs(2, 3));
  if (!IsFloat(call.TypeOf(0))) return RefuseType(call.TypeOf(0));
  const Shape& x = call.ShapeOf(0);
  Shape labels = x;
  if (x.size() >= 2) labels.erase(labels.begin() + 1);
  if (x.size() < 2 || call.ShapeOf(1) != labels) {
    return Err(StatusCode::kInvalidArgument, "labels {} do not fit {}", call.Type(1).ToString(),
               call.Type(0).ToString());
  }
  Classified loss{.batch = x[0],
                  .classes = x[1],
                  .inside = NumElements(std::span(x).subspan(2)),
                  .reduction = call.String("reduction", "mean")};
  if (loss.reduction != "mean" && loss.reduction != "sum" && loss.reduction != "none") {
    return Err(StatusCode::kInvalidArgument, "reduction {} is not known", Quoted(loss.reduction));
  }
  if (call.HasAttribute("ignore_index")) loss.ignore = call.Int("ignore_index", 0);
  AG_LET(loss.labels, call.IntsAt(1));
  for (const int64_t label : loss.labels) {
    if (label == loss.ignore || (label >= 0 && label < loss.classes)) continue;
    return Err(StatusCode::kOutOfRange, "label {} is outside [0, {})", label, loss.classes);
  }
  if (!call.Has(2)) return loss;
  if (call.ShapeOf(2) != Shape{loss.classes}) {
    return Err(StatusCode::kInvalidArgument, "input 2: expected {} weights, got {}", loss.classes,
               call.Type(2).ToString());
  }
  loss.weights = call.In(2).ToDoubles();
  return loss;
}

// Makes result 0 from the logarithms of probabilities.
Status GiveLoss(OperatorCall& call, const Classified& loss, const Doubles& logs) {
  Doubles each;
  double sum = 0, weight_sum = 0;
  for (size_t i = 0; i < loss.labels.size(); ++i) {
    const int64_t label = loss.labels[i];
    const auto at = static_cast<int64_t>(i);
    double weight = 0;
    if (label != loss.ignore) {
      weight = loss.weights.empty() ? 1 : loss.weights[static_cast<size_t>(label)];
    }
    const int64_t row = at / loss.inside * loss.classes + label;
    const double log =
        label == loss.ignore ? 0 : logs[static_cast<size_t>(row * loss.inside + at % loss.inside)];
    each.push_back(-log * weight);
    sum += each.back();
    weight_sum += weight;
  }
  TensorType type{call.TypeOf(0), {}};
  if (loss.reduction == "none") {
    type.shape = call.ShapeOf(1);
  } else {
    each = {loss.reduction == "mean" ? sum / weight_sum : sum};
  }
  AG_TRY(call.MakeBytes(0, type));
  call.Give(0, Tensor::FromDoubles(type, each));
  return OkStatus();
}

Status RunNegativeLogLikelihoodLoss(OperatorCall& call) {
  AG_LET(const Classified loss, ReadClassified(call));
  return GiveLoss(call, loss, call.In(0).ToDoubles());
}

// Replaces scores by the logarithms of their softmax over the classes.
void TakeLogSoftmax(const Classified& loss, Doubles& scores) {
  for (int64_t i = 0; i < loss.batch * loss.inside && loss.classes > 0; ++i) {
    double* first = scores.data() + i / loss.inside * loss.classes * loss.inside + i % loss.inside;
    double most = -INFINITY, sum = 0;
    for (int64_t c = 0; c < loss.classes; ++c) most = std::max(most, first[c * loss.inside]);
    for (int64_t c = 0; c < loss.classes; ++c) sum += std::exp(first[c * loss.inside] - most);
    for (int64_t c = 0; c < loss.classes; ++c) first[c * loss.inside] -= most + std::log(sum);
  }
}

// Result 1 is the logarithms of probabilities.
Status RunSoftmaxCrossEntropyLoss(OperatorCall& call) {
  AG_LET(const Classified loss, ReadClassified(call));
  Doubles logs = call.In(0).ToDoubles();
  TakeLogSoftmax(loss, logs);
  if (call.Wants(1)) {
    AG_TRY(call.MakeBytes(1, call.Type(0)));
    call.Give(1, Tensor::FromDoubles(call.Type(0), logs));
  }
  return GiveLoss(call, loss, logs);
}

}  // namespace

std::span<const OperatorRow> LossOperators() {
  static constexpr OperatorRow kRows[] = {
      {"NegativeLogLikelihoodLoss", RunNegativeLogLikelihoodLoss},
      {"SoftmaxCrossEntropyLoss", RunSoftmaxCrossEntropyLoss},
  };
  return kRows;
}

}  // namespace ag::onnx_operators

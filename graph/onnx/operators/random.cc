// Random numbers of nodes that give a seed. ONNX defines no generator: these are the numbers of the
// first run of a session of ONNX Runtime built with GNU's library, and the same in every run.
// Without a seed there is no kernel (HasOperator).
#include <algorithm>
#include <cmath>
#include <random>

#include "graph/onnx/operators/operator_call.h"
#include "graph/onnx/operators/wide.h"

namespace ag::onnx_operators {
namespace {

using Engine = std::minstd_rand0;

Engine EngineOf(OperatorCall& call) {
  return Engine(static_cast<uint32_t>(Truncated<int64_t>(call.Float("seed", 0))));
}

// Returns the type of the result: shape and element type of attributes, or of operand 0.
StatusOr<TensorType> DrawnType(OperatorCall& call) {
  const bool is_like = call.node().op_type.ends_with("Like");
  AG_TRY(call.CheckInputs(is_like ? 1 : 0, is_like ? 1 : 0));
  TensorType type;
  if (is_like) {
    type = call.Type(0);
  } else {
    std::optional<Ints> shape = call.IntList("shape");
    if (!shape.has_value()) {
      return Err(StatusCode::kInvalidArgument, "attribute \"shape\" is missing");
    }
    type = {DType::kFloat32, Shape(shape->begin(), shape->end())};
  }
  AG_LET(type.dtype, call.ResultType(type.dtype));
  if (!IsFloat(type.dtype)) {
    return Err(StatusCode::kInvalidArgument, "random numbers of type {} are none",
               DTypeName(type.dtype));
  }
  return type;
}

// Fills result 0 with numbers of a distribution with these two parameters. Types of 16 bits are
// drawn in f32.
template <template <class> class Distribution>
Status Draw(OperatorCall& call, double first, double second) {
  AG_LET(const TensorType type, DrawnType(call));
  Engine engine = EngineOf(call);
  AG_TRY(call.MakeBytes(0, type));
  if (call.types_only()) return OkStatus();
  std::vector<double> numbers(static_cast<size_t>(type.NumElements()));
  const auto fill = [&](auto distribution) {
    for (double& number : numbers) number = distribution(engine);
  };
  if (type.dtype == DType::kFloat64) {
    fill(Distribution<double>(first, second));
  } else {
    fill(Distribution<float>(static_cast<float>(first), static_cast<float>(second)));
  }
  call.Give(0, Tensor::FromDoubles(type, numbers));
  return OkStatus();
}

// The attributes are read first: a call's arguments have no order.
Status RunRandomNormal(OperatorCall& call) {
  const double mean = call.Float("mean", 0), scale = call.Float("scale", 1);
  if (!(scale > 0)) return Err(StatusCode::kInvalidArgument, "scale is {}, not above 0", scale);
  return Draw<std::normal_distribution>(call, mean, scale);
}

Status RunRandomUniform(OperatorCall& call) {
  const double low = call.Float("low", 0), high = call.Float("high", 1);
  if (!(low <= high))
    return Err(StatusCode::kInvalidArgument, "low {} is above high {}", low, high);
  return Draw<std::uniform_real_distribution>(call, low, high);
}

// Gives 1 with the probability that the operand says, else 0.
Status RunBernoulli(OperatorCall& call) {
  AG_TRY(call.CheckInputs(1, 1));
  TensorType type = call.Type(0);
  if (!IsFloat(type.dtype)) return RefuseType(type.dtype);
  AG_LET(type.dtype, call.ResultType(type.dtype));
  Engine engine = EngineOf(call);
  std::uniform_real_distribution<float> distribution(0, 1);
  AG_TRY(call.MakeBytes(0, type));
  std::vector<double> numbers;
  for (const double probability : call.In(0).ToDoubles()) {
    numbers.push_back(distribution(engine) < probability ? 1 : 0);
  }
  call.Give(0, Tensor::FromDoubles(type, numbers));
  return OkStatus();
}

// Draws classes of each row by its logarithms of weights [batch, classes]; gives [batch, samples].
Status RunMultinomial(OperatorCall& call) {
  AG_TRY(call.CheckInputs(1, 1));
  AG_TRY(call.CheckRank(0, 2));
  if (!IsFloat(call.TypeOf(0))) return RefuseType(call.TypeOf(0));
  const int64_t rows = call.ShapeOf(0)[0], classes = call.ShapeOf(0)[1];
  TensorType type{DType::kInt32, {rows, call.Int("sample_size", 1)}};
  AG_LET(type.dtype, call.ResultType(type.dtype));
  if (type.dtype != DType::kInt32 && type.dtype != DType::kInt64) return RefuseType(type.dtype);
  if (type.shape[1] < 1 || classes < 1) {
    return Err(StatusCode::kInvalidArgument, "{} samples of {} classes", type.shape[1], classes);
  }
  Engine engine = EngineOf(call);
  AG_TRY(call.MakeBytes(0, type));
  const std::vector<double> weights = call.In(0).ToDoubles();
  std::uniform_real_distribution<double> distribution(0, 1);
  std::vector<double> sums(static_cast<size_t>(classes)), drawn;
  for (int64_t row = 0; row < rows; ++row) {
    const double* const logs = weights.data() + row * classes;
    const double most = *std::max_element(logs, logs + classes);
    double sum = 0;
    for (int64_t i = 0; i < classes; ++i) sums[i] = sum += std::exp(logs[i] - most);
    for (int64_t i = 0; i < type.shape[1]; ++i) {
      const auto at = std::upper_bound(sums.begin(), sums.end(), distribution(engine) * sum);
      drawn.push_back(static_cast<double>(std::min(at - sums.begin(), classes - 1)));
    }
  }
  call.Give(0, Tensor::FromDoubles(type, drawn));
  return OkStatus();
}

}  // namespace

std::span<const OperatorRow> RandomOperators() {
  static constexpr OperatorRow kRows[] = {
      {"RandomNormal", RunRandomNormal},   {"RandomNormalLike", RunRandomNormal},
      {"RandomUniform", RunRandomUniform}, {"RandomUniformLike", RunRandomUniform},
      {"Bernoulli", RunBernoulli},         {"Multinomial", RunMultinomial},
  };
  return kRows;
}

}  // namespace ag::onnx_operators

// Normalizations that the IR has no form for.
#include <cmath>

#include "graph/onnx/operators/layout.h"
#include "graph/onnx/operators/normalize.h"

namespace ag::onnx_operators {
namespace {

using Doubles = std::vector<double>;

Status RefuseIntegers(const OperatorCall& call) {
  return IsFloat(call.TypeOf(0)) ? OkStatus() : RefuseType(call.TypeOf(0));
}

Status GiveLike(OperatorCall& call, size_t i, Shape shape, const Doubles& values) {
  AG_TRY(call.MakeBytes(i, {call.TypeOf(0), shape}));
  call.Give(i, Tensor::FromDoubles({call.TypeOf(0), std::move(shape)}, values));
  return OkStatus();
}

Status CheckVector(const OperatorCall& call, size_t i, int64_t size) {
  if (call.ShapeOf(i) == Shape{size}) return OkStatus();
  return Err(StatusCode::kInvalidArgument, "input {}: expected {} values, got {}", i, size,
             call.Type(i).ToString());
}

struct Moments {
  double mean = 0, variance = 0;
};
Moments MomentsOf(std::span<const double> values) {
  Moments moments;
  for (const double v : values) moments.mean += v;
  moments.mean /= static_cast<double>(values.size());
  for (const double v : values) {
    moments.variance += (v - moments.mean) * (v - moments.mean);
  }
  moments.variance /= static_cast<double>(values.size());
  return moments;
}

// Scales each channel after its group was normalized. `per_group`: scale and bias are given by
// group and not by channel.
Status ScaleGroups(OperatorCall& call, int64_t groups, bool per_group) {
  AG_TRY(call.CheckInputs(3, 3));
  AG_TRY(RefuseIntegers(call));
  const Shape x = call.ShapeOf(0);
  if (x.size() < 2 || groups < 1 || x[1] % groups != 0) {
    return Err(StatusCode::kInvalidArgument, "{} groups of {}", groups, call.Type(0).ToString());
  }
  for (const size_t i : {1, 2}) AG_TRY(CheckVector(call, i, per_group ? groups : x[1]));
  const double epsilon = call.Float("epsilon", 1e-5);
  const Doubles scale = call.In(1).ToDoubles(), bias = call.In(2).ToDoubles();
  Doubles values = call.In(0).ToDoubles();
  const int64_t inside = NumElements(std::span(x).subspan(2));
  NormalizeRows(values, x[1] / groups * inside, epsilon, RowNorm::kDeviation);
  const int64_t same = per_group ? x[1] / groups * inside : inside;  // Values of one scale.
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t at = i / static_cast<size_t>(same) % scale.size();
    values[i] = values[i] * scale[at] + bias[at];
  }
  return GiveLike(call, 0, x, values);
}

Status RunInstanceNormalization(OperatorCall& call) {
  AG_TRY(call.CheckInputs(3, 3));
  call.Ignore("consumed_inputs");
  return ScaleGroups(call, call.Rank(0) < 2 ? 0 : call.ShapeOf(0)[1], false);
}

// Until opset 21 scale and bias were by group.
Status RunGroupNormalization(OperatorCall& call) {
  call.Ignore("stash_type");
  return ScaleGroups(call, call.Int("num_groups", 0), call.opset() < 21);
}

// x / (bias + alpha / size * sum of squares over `size` neighbouring channels) ^ beta.
Status RunLrn(OperatorCall& call) {
  AG_TRY(call.CheckInputs(1, 1));
  AG_TRY(RefuseIntegers(call));
  const Shape x = call.ShapeOf(0);
  const int64_t size = call.Int("size", 0);
  if (x.size() < 2 || size < 1) {
    return Err(StatusCode::kInvalidArgument, "size {} of {}", size, call.Type(0).ToString());
  }
  const double alpha = call.Float("alpha", 1e-4) / static_cast<double>(size);
  const double beta = call.Float("beta", 0.75), bias = call.Float("bias", 1);
  const Doubles in = call.In(0).ToDoubles();
  Doubles out(in.size());
  const int64_t inside = NumElements(std::span(x).subspan(2)), channels = x[1];
  for (int64_t i = 0; i < static_cast<int64_t>(in.size()); ++i) {
    const int64_t c = i / inside % channels;
    const int64_t low = std::max<int64_t>(c - (size - 1) / 2, 0);
    const int64_t high = std::min(c + size / 2, channels - 1);
    double sum = 0;
    for (int64_t k = low; k <= high; ++k) {
      const double v = in[static_cast<size_t>(i + (k - c) * inside)];
      sum += v * v;
    }
    const auto at = static_cast<size_t>(i);
    out[at] = in[at] / std::pow(bias + alpha * sum, beta);
  }
  return GiveLike(call, 0, x, out);
}

// Divides each line along the axis by its norm; a line of zeros stays.
Status RunLpNormalization(OperatorCall& call) {
  AG_TRY(call.CheckInputs(1, 1));
  AG_TRY(RefuseIntegers(call));
  AG_LET(const int64_t axis, call.Axis(-1));
  const bool absolute = call.Int("p", 2) == 1;
  const Shape x = call.ShapeOf(0);
  const int64_t inner = NumElements(std::span(x).subspan(static_cast<size_t>(axis) + 1));
  const int64_t size = x[static_cast<size_t>(axis)];
  Doubles values = call.In(0).ToDoubles();
  const auto lines = static_cast<int64_t>(values.size()) / std::max<int64_t>(size, 1);
  for (int64_t line = 0; line < lines; ++line) {
    double* first = values.data() + line / inner * size * inner + line % inner;
    double norm = 0;
    for (int64_t i = 0; i < size; ++i) {
      const double v = first[i * inner];
      norm += absolute ? std::fabs(v) : v * v;
    }
    if (!absolute) norm = std::sqrt(norm);
    for (int64_t i = 0; i < size && norm != 0; ++i) first[i * inner] /= norm;
  }
  return GiveLike(call, 0, x, values);
}

// (x - mean) / (deviation + 1e-9) over the axes.
Status RunMeanVarianceNormalization(OperatorCall& call) {
  AG_TRY(call.CheckInputs(1, 1));
  AG_TRY(RefuseIntegers(call));
  const Shape x = call.ShapeOf(0);
  AG_LET(const Ints axes, ResolveAxes(call.IntList("axes").value_or(Ints{0, 2, 3}), call.Rank(0)));
  std::vector<bool> over(x.size());
  for (const int64_t axis : axes) over[static_cast<size_t>(axis)] = true;
  Doubles values = call.In(0).ToDoubles();
  if (values.empty()) return GiveLike(call, 0, x, values);
  std::vector<size_t> bucket_of(values.size());
  size_t buckets = 1;
  for (size_t i = 0; i < x.size(); ++i) buckets *= over[i] ? 1 : static_cast<size_t>(x[i]);
  for (size_t e = 0; e < values.size(); ++e) {
    size_t rest = e, stride = 1, bucket = 0;
    for (size_t i = x.size(); i-- > 0;) {
      const auto size = static_cast<size_t>(x[i]);
      if (!over[i]) {
        bucket += rest % size * stride;
        stride *= size;
      }
      rest /= size;
    }
    bucket_of[e] = bucket;
  }
  std::vector<Doubles> members(buckets);
  for (size_t e = 0; e < values.size(); ++e) members[bucket_of[e]].push_back(values[e]);
  std::vector<Moments> moments;
  for (const Doubles& bucket : members) moments.push_back(MomentsOf(bucket));
  for (size_t e = 0; e < values.size(); ++e) {
    const Moments& m = moments[bucket_of[e]];
    values[e] = (values[e] - m.mean) / (std::sqrt(m.variance) + 1e-9);
  }
  return GiveLike(call, 0, x, values);
}

// Returns operand `i` broadcast to `shape`. One with the elements of a row, but other axes, goes
// with the elements of each row.
StatusOr<Doubles> SpreadOver(const OperatorCall& call, size_t i, const Shape& shape, int64_t size) {
  StatusOr<Doubles> spread = SpreadOf(call, i, shape);
  if (spread.ok() || call.Type(i).NumElements() != size) return spread;
  const Doubles own = call.In(i).ToDoubles();
  Doubles rows;
  while (static_cast<int64_t>(rows.size()) < NumElements(shape)) {
    rows.insert(rows.end(), own.begin(), own.end());
  }
  return rows;
}

// The result has the type of the scale. Means, when they are results, and inverse deviations have
// that of stash_type.
template <RowNorm norm>
Status RunLayerNormalization(OperatorCall& call) {
  AG_TRY(call.CheckInputs(2, norm == RowNorm::kDeviation ? 3 : 2));
  AG_TRY(RefuseIntegers(call));
  AG_LET(const DType stash_type, DTypeFromOnnx(static_cast<int32_t>(call.Int("stash_type", 1))));
  if (!IsFloat(stash_type)) return RefuseType(stash_type);
  AG_LET(const int64_t axis, call.Axis(-1));
  const double epsilon = call.Float("epsilon", 1e-5);
  const Shape x = call.ShapeOf(0);
  const int64_t size = NumElements(std::span(x).subspan(static_cast<size_t>(axis)));
  AG_LET(const Doubles scale, SpreadOver(call, 1, x, size));
  Doubles bias;
  if (call.Has(2)) {
    AG_LET(bias, SpreadOver(call, 2, x, size));
  }
  Doubles values = call.In(0).ToDoubles();
  RowMoments moments = NormalizeRows(values, size, epsilon, norm);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = values[i] * scale[i] + (bias.empty() ? 0 : bias[i]);
  }
  const TensorType type{call.TypeOf(1), x};
  AG_TRY(call.MakeBytes(0, type));
  call.Give(0, Tensor::FromDoubles(type, values));
  Shape reduced = x;
  std::fill(reduced.begin() + axis, reduced.end(), 1);
  const TensorType stash{stash_type, reduced};
  if (norm == RowNorm::kDeviation) AG_TRY(GiveMoments(call, 1, stash, std::move(moments.means)));
  constexpr size_t kLast = norm == RowNorm::kDeviation ? 2 : 1;
  return GiveMoments(call, kLast, stash, std::move(moments.inverse_deviations));
}

// Moments of each channel, or with spatial = 0 of each element of a batch item.
struct Statistics {
  int64_t count = 1, inside = 1;  // Of statistics, and of neighbouring elements of one.

  size_t Of(size_t element) const {
    return element / static_cast<size_t>(inside) % static_cast<size_t>(count);
  }
};

StatusOr<Statistics> ReadStatistics(OperatorCall& call) {
  AG_TRY(call.CheckInputs(5, 5));
  AG_TRY(RefuseIntegers(call));
  const Shape& x = call.ShapeOf(0);
  if (x.empty()) return Err(StatusCode::kInvalidArgument, "expected rank 1 or more");
  const bool spatial = call.opset() >= 9 || call.Int("spatial", 1) != 0;
  Statistics of;
  Shape shape = {x.size() > 1 ? x[1] : 1};
  if (spatial) {
    of.inside = x.size() > 2 ? NumElements(std::span(x).subspan(2)) : 1;
  } else {
    shape.assign(x.begin() + 1, x.end());
  }
  of.count = NumElements(shape);
  for (const size_t i : {1, 2, 3, 4}) {
    if (call.ShapeOf(i) == shape || call.ShapeOf(i) == Shape{of.count}) continue;
    return Err(StatusCode::kInvalidArgument, "input {}: expected {}, got {}", i,
               ShapeToString(shape), call.Type(i).ToString());
  }
  return of;
}

// Returns the batch's own moments.
std::vector<Moments> MomentsBy(const Statistics& of, const Doubles& values) {
  std::vector<Moments> all(static_cast<size_t>(of.count));
  const double each = static_cast<double>(values.size()) / static_cast<double>(of.count);
  for (size_t e = 0; e < values.size(); ++e) all[of.Of(e)].mean += values[e] / each;
  for (size_t e = 0; e < values.size(); ++e) {
    Moments& m = all[of.Of(e)];
    m.variance += (values[e] - m.mean) * (values[e] - m.mean) / each;
  }
  return all;
}

// Normalizes by the batch's own moments in training, or by the given ones. Results 1 and 2 are the
// running mean and variance. Before opset 14 a node that has these trains, and results 3 and 4 are
// the batch's mean and the inverse of its deviation.
Status RunBatchNormalization(OperatorCall& call) {
  AG_LET(const Statistics of, ReadStatistics(call));
  const double momentum = call.Float("momentum", 0.9), epsilon = call.Float("epsilon", 1e-5);
  bool trains = call.opset() >= 14 && call.Int("training_mode", 0) != 0;
  for (size_t i = 1; i < call.outputs() && call.opset() < 14; ++i) trains = trains || call.Wants(i);
  if (!trains && call.Wants(1)) {
    return Err(StatusCode::kInvalidArgument, "output 1 is for training only");
  }
  const Doubles scale = call.In(1).ToDoubles(), bias = call.In(2).ToDoubles();
  Doubles mean = call.In(3).ToDoubles(), variance = call.In(4).ToDoubles();
  Doubles values = call.In(0).ToDoubles(), inverse(mean.size());
  std::vector<Moments> moments(mean.size());
  if (trains) moments = MomentsBy(of, values);
  for (size_t i = 0; i < mean.size(); ++i) {
    if (!trains) moments[i] = {mean[i], variance[i]};
    mean[i] = mean[i] * momentum + moments[i].mean * (1 - momentum);
    variance[i] = variance[i] * momentum + moments[i].variance * (1 - momentum);
    inverse[i] = 1 / std::sqrt(moments[i].variance + epsilon);
  }
  for (size_t e = 0; e < values.size(); ++e) {
    const size_t i = of.Of(e);
    values[e] = (values[e] - moments[i].mean) * inverse[i] * scale[i] + bias[i];
  }
  AG_TRY(GiveLike(call, 0, call.ShapeOf(0), values));
  if (call.Wants(1)) call.Give(1, Tensor::FromDoubles(call.Type(3), mean));
  if (call.Wants(2)) call.Give(2, Tensor::FromDoubles(call.Type(4), variance));
  for (size_t i = 0; i < mean.size(); ++i) mean[i] = moments[i].mean;
  if (call.Wants(3)) call.Give(3, Tensor::FromDoubles(call.Type(3), mean));
  if (call.Wants(4)) call.Give(4, Tensor::FromDoubles(call.Type(4), inverse));
  return OkStatus();
}

}  // namespace

Status GiveMoments(OperatorCall& call, size_t i, const TensorType& type, Doubles moments) {
  if (!call.Wants(i)) return OkStatus();
  AG_TRY(call.MakeBytes(i, type));
  moments.resize(static_cast<size_t>(type.NumElements()));
  call.Give(i, Tensor::FromDoubles(type, moments));
  return OkStatus();
}

RowMoments NormalizeRows(Doubles& values, int64_t size, double epsilon, RowNorm norm) {
  RowMoments moments;
  const auto rows = static_cast<int64_t>(values.size()) / std::max<int64_t>(size, 1);
  for (int64_t i = 0; i < rows; ++i) {
    const std::span<double> row(values.data() + i * size, static_cast<size_t>(size));
    Moments of_row;
    if (norm == RowNorm::kDeviation) {
      of_row = MomentsOf(row);
    } else {
      for (const double v : row) of_row.variance += v * v / static_cast<double>(size);
    }
    const double by = 1 / std::sqrt(of_row.variance + epsilon);
    for (double& v : row) v = (v - of_row.mean) * by;
    moments.means.push_back(of_row.mean);
    moments.inverse_deviations.push_back(by);
  }
  return moments;
}

std::span<const OperatorRow> NormOperators() {
  static constexpr OperatorRow kRows[] = {
      {"InstanceNormalization", RunInstanceNormalization},
      {"GroupNormalization", RunGroupNormalization},
      {"LRN", RunLrn},
      {"LpNormalization", RunLpNormalization},
      {"MeanVarianceNormalization", RunMeanVarianceNormalization},
      {"LayerNormalization", RunLayerNormalization<RowNorm::kDeviation>},
      {"RMSNormalization", RunLayerNormalization<RowNorm::kMeanSquare>},
      {"SimplifiedLayerNormalization", RunLayerNormalization<RowNorm::kMeanSquare>},
      {"BatchNormalization", RunBatchNormalization},
  };
  return kRows;
}

}  // namespace ag::onnx_operators

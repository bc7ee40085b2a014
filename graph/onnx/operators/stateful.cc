// Operators that hand a state from one call to the next: linear attention and causal convolutions.
#include <algorithm>
#include <cmath>

#include "graph/onnx/operators/attention.h"
#include "graph/onnx/operators/wide.h"

namespace ag::onnx_operators {
namespace {

using Doubles = std::vector<double>;

// Returns whether the result goes through x * sigmoid(x).
StatusOr<bool> IsSwish(OperatorCall& call) {
  const std::string name = call.String("activation", "none");
  if (name == "none" || name == "silu" || name == "swish") return name != "none";
  return Err(StatusCode::kInvalidArgument, "activation {} is not known", Quoted(name));
}

Status RunCausalConv(OperatorCall& call) {
  AG_TRY(call.CheckInputs(2, 4));
  AG_TRY(call.CheckRank(0, 3));
  AG_TRY(call.CheckRank(1, 3));
  AG_LET(const bool is_swish, IsSwish(call));
  const DType dtype = call.TypeOf(0);
  if (!IsFloat(dtype)) return RefuseType(dtype);
  const Shape& shape = call.ShapeOf(0);
  const int64_t lines = shape[0] * shape[1], channels = shape[1], length = shape[2];
  const int64_t taps = call.ShapeOf(1)[2], before = taps - 1;
  AG_TRY(call.CheckShape(1, {channels, 1, std::max<int64_t>(taps, 1)}));
  AG_TRY(call.CheckShape(2, {channels}));
  AG_TRY(call.CheckShape(3, {shape[0], channels, before}));
  AG_TRY(call.MakeBytes(0, {dtype, shape}));  // Checks the sizes.
  if (call.Wants(1)) AG_TRY(call.MakeBytes(1, {dtype, {shape[0], channels, before}}));
  const Doubles x = call.In(0).ToDoubles(), w = call.In(1).ToDoubles();
  const Doubles bias = call.Has(2) ? call.In(2).ToDoubles() : Doubles();
  const Doubles past = call.Has(3) ? call.In(3).ToDoubles() : Doubles();
  Doubles y, state, line(static_cast<size_t>(before + length));
  y.reserve(x.size());
  for (int64_t i = 0; i < lines; ++i) {
    const int64_t c = i % channels;
    if (!past.empty()) std::copy_n(past.begin() + i * before, before, line.begin());
    std::copy_n(x.begin() + i * length, length, line.begin() + before);
    for (int64_t t = 0; t < length; ++t) {
      double sum = bias.empty() ? 0 : bias[static_cast<size_t>(c)];
      for (int64_t j = 0; j < taps; ++j) {
        sum += w[static_cast<size_t>(c * taps + j)] * line[static_cast<size_t>(t + j)];
      }
      y.push_back(is_swish ? sum / (1 + std::exp(-sum)) : sum);
    }
    state.insert(state.end(), line.end() - before, line.end());
  }
  if (call.Wants(1)) {
    AG_TRY(GiveNarrowed(call, 1, {dtype, {shape[0], channels, before}}, state));
  }
  return GiveNarrowed(call, 0, {dtype, shape}, y);
}

// The operands of linear attention, each as rows of heads.
struct LinearAttention {
  HeadRows q, k, v;
  HeadRows decay;      // Of one element: for all of a key's. Without steps: none.
  HeadRows beta;       // Of one head: for all. Without steps: none.
  Doubles state;       // [batch, heads of k, key's size, value's size]
  bool delta = false;  // The rule takes away what the state says of a key already.
  double scale = 1;

  // Goes on by one step of one head of keys, whose state is `s`.
  void Step(int64_t b, int64_t h, int64_t t, double* s) const {
    const double* key = k.values.data() + k.At(b, h, t);
    const double* value = v.values.data() + v.At(b, h, t);
    for (int64_t i = 0; decay.steps > 0 && i < k.size; ++i) {
      const int64_t at = decay.At(b, h, t) + (decay.size == 1 ? 0 : i);
      const double factor = std::exp(decay.values[static_cast<size_t>(at)]);
      for (int64_t j = 0; j < v.size; ++j) s[i * v.size + j] *= factor;
    }
    const int64_t rate_at = delta ? beta.At(b, beta.heads == 1 ? 0 : h, t) : 0;
    const double rate = delta ? beta.values[static_cast<size_t>(rate_at)] : 1;
    for (int64_t j = 0; j < v.size; ++j) {
      double known = 0;
      for (int64_t i = 0; delta && i < k.size; ++i) known += s[i * v.size + j] * key[i];
      for (int64_t i = 0; i < k.size; ++i) s[i * v.size + j] += rate * key[i] * (value[j] - known);
    }
  }
};

Status CheckLinear(const LinearAttention& work) {
  const HeadRows &q = work.q, &k = work.k, &v = work.v;
  const bool fits = q.batch == k.batch && k.batch == v.batch && q.steps == k.steps &&
                    k.steps == v.steps && q.size == k.size && k.heads == v.heads && k.heads > 0 &&
                    q.heads % k.heads == 0;
  if (fits) return OkStatus();
  return Err(StatusCode::kInvalidArgument, "queries {}, keys {} and values {} do not fit",
             ShapeToString(q.shape()), ShapeToString(k.shape()), ShapeToString(v.shape()));
}

// Returns operand `i` for each step and head, with one number or `wide` numbers for each.
StatusOr<HeadRows> GateOf(const OperatorCall& call, size_t i, const LinearAttention& work,
                          int64_t heads, int64_t wide) {
  AG_LET(HeadRows gate, HeadRowsOf(call, i, heads));
  const bool fits = gate.batch == work.k.batch && gate.steps == work.k.steps &&
                    (gate.size == 1 || gate.size == wide);
  if (fits) return gate;
  return Err(StatusCode::kInvalidArgument, "input {}: {} does not go with keys {}", i,
             call.Type(i).ToString(), ShapeToString(work.k.shape()));
}

Status ReadGates(OperatorCall& call, LinearAttention& work) {
  const std::string rule = call.String("update_rule", "gated_delta");
  const bool gated = rule == "gated" || rule == "gated_delta";
  work.delta = rule == "delta" || rule == "gated_delta";
  if (!gated && !work.delta && rule != "linear") {
    return Err(StatusCode::kInvalidArgument, "update_rule {} is not known", Quoted(rule));
  }
  if ((gated && !call.Has(4)) || (work.delta && !call.Has(5))) {
    return Err(StatusCode::kInvalidArgument, "update_rule {} needs {}", Quoted(rule),
               gated && !call.Has(4) ? "decay" : "beta");
  }
  if (gated) {
    AG_TRY(call.CheckRank(4, 3));
    AG_LET(work.decay, GateOf(call, 4, work, work.k.heads, work.k.size));
  }
  if (work.delta) {
    AG_TRY(call.CheckRank(5, 3));
    const bool is_shared = call.ShapeOf(5)[2] == 1;
    AG_LET(work.beta, GateOf(call, 5, work, is_shared ? 1 : work.k.heads, 1));
  }
  return OkStatus();
}

Status RunLinearAttention(OperatorCall& call) {
  AG_TRY(call.CheckInputs(3, 6));
  (void)call.Int("chunk_size", 64);  // A hint.
  const DType dtype = call.TypeOf(0);
  LinearAttention work;
  const int64_t q_heads = call.Int("q_num_heads", 0), heads = call.Int("kv_num_heads", 0);
  for (size_t i = 0; i < 3; ++i) AG_TRY(call.CheckRank(i, 3));
  AG_LET(work.q, HeadRowsOf(call, 0, q_heads));
  AG_LET(work.k, HeadRowsOf(call, 1, heads));
  AG_LET(work.v, HeadRowsOf(call, 2, heads));
  AG_TRY(CheckLinear(work));
  AG_TRY(ReadGates(call, work));
  const HeadRows &q = work.q, &k = work.k, &v = work.v;
  const double scale = call.Float("scale", 0);
  work.scale =
      scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(std::max<int64_t>(q.size, 1)));
  const TensorType state{call.Has(3) ? call.TypeOf(3) : dtype, {k.batch, k.heads, k.size, v.size}};
  HeadRows y{q.batch, q.heads, q.steps, v.size, {}};
  AG_TRY(call.MakeBytes(0, {dtype, {q.batch, q.steps, q.heads * v.size}}));  // Checks the sizes.
  AG_TRY(CheckType(state));
  if (state.NumElements() > call.bytes_max() / static_cast<int64_t>(sizeof(double))) {
    return Err(StatusCode::kResourceExhausted, "a state of {} is too large", state.ToString());
  }
  AG_TRY(call.CheckShape(3, state.shape));
  work.state =
      call.Has(3) ? call.In(3).ToDoubles() : Doubles(static_cast<size_t>(NumElements(state.shape)));
  y.values.resize(static_cast<size_t>(NumElements(y.shape())));
  const int64_t shared = q.heads / k.heads;
  for (int64_t line = 0; line < k.batch * k.heads; ++line) {
    const int64_t b = line / k.heads, h = line % k.heads;
    double* s = work.state.data() + line * k.size * v.size;
    for (int64_t t = 0; t < k.steps; ++t) {
      work.Step(b, h, t, s);
      for (int64_t head = h * shared; head < (h + 1) * shared; ++head) {
        const double* query = q.values.data() + q.At(b, head, t);
        double* to = y.values.data() + y.At(b, head, t);
        for (int64_t i = 0; i < k.size; ++i) {
          for (int64_t j = 0; j < v.size; ++j) to[j] += work.scale * query[i] * s[i * v.size + j];
        }
      }
    }
  }
  if (call.Wants(1)) AG_TRY(GiveNarrowed(call, 1, state, work.state));
  return GiveRows(call, 0, dtype, y, RowForm::kFlat);
}

}  // namespace

std::span<const OperatorRow> StatefulOperators() {
  static constexpr OperatorRow kRows[] = {
      {"CausalConvWithState", RunCausalConv},
      {"LinearAttention", RunLinearAttention},
  };
  return kRows;
}

}  // namespace ag::onnx_operators

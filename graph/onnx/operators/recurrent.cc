// LSTM, GRU and RNN: one direction, one batch item and one step at a time.
#include <algorithm>
#include <cmath>
#include <functional>

#include "graph/onnx/operators/activation.h"
#include "graph/onnx/operators/inner.h"
#include "graph/onnx/operators/quantize.h"

namespace ag::onnx_operators {
namespace {

using Doubles = std::vector<double>;

// What the three operators have in common. Sizes: `steps`, `batch`, `input` elements a step,
// `hidden` elements of state, 1 or 2 directions.
struct Recurrence {
  int64_t steps = 0, batch = 0, input = 0, hidden = 0, directions = 1;
  int64_t gates = 1;      // Matrices in W and R.
  bool by_batch = false;  // layout = 1: the batch is the first axis.
  bool first_is_reverse = false;
  double clip = INFINITY;
  std::vector<Activation> functions;  // Of direction 0, then of direction 1.
  Ints lengths;                       // By batch item.
  Doubles x, w, r, bias;              // bias: of W, then of R, for each direction.
  Doubles h, c;                       // States by direction and batch item.

  double Clip(double v) const { return std::clamp(v, -clip, clip); }
  const double* Step(int64_t t, int64_t b) const {
    return x.data() + (by_batch ? b * steps + t : t * batch + b) * input;
  }
  // Returns the position of a state in h and c, and in Y_h and Y_c.
  int64_t StateAt(int64_t d, int64_t b) const { return (d * batch + b) * hidden; }
  int64_t StateOut(int64_t d, int64_t b) const {
    return (by_batch ? b * directions + d : d * batch + b) * hidden;
  }
  int64_t ResultAt(int64_t t, int64_t d, int64_t b) const {
    return (by_batch ? (b * steps + t) * directions + d : (t * directions + d) * batch + b) *
           hidden;
  }
};

// Adds to each row of `out` the product of the row of `matrix` with `vector`.
void AddProduct(const double* matrix, int64_t rows, const double* vector, int64_t columns,
                double* out) {
  for (int64_t i = 0; i < rows; ++i) {
    double sum = 0;
    for (int64_t k = 0; k < columns; ++k) sum += matrix[i * columns + k] * vector[k];
    out[i] += sum;
  }
}

Status ReadAttributes(OperatorCall& call, const std::vector<std::string>& defaults,
                      Recurrence& net) {
  const std::string direction = call.String("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional") {
    return Err(StatusCode::kInvalidArgument, "direction {}", Quoted(direction));
  }
  net.directions = direction == "bidirectional" ? 2 : 1;
  net.first_is_reverse = direction == "reverse";
  net.by_batch = call.Int("layout", 0) != 0;
  net.clip = call.Float("clip", INFINITY);
  call.Ignore("output_sequence");
  std::vector<std::string> names =
      call.StringList("activations").value_or(std::vector<std::string>{});
  while (names.size() < defaults.size() * static_cast<size_t>(net.directions)) {
    names.push_back(defaults[names.size() % defaults.size()]);
  }
  ActivationScales scales{call.FloatList("activation_alpha").value_or(std::vector<float>{}),
                          call.FloatList("activation_beta").value_or(std::vector<float>{})};
  for (const std::string& name : names) {
    AG_LET(Activation function, ActivationOf(name, scales));
    net.functions.push_back(std::move(function));
  }
  return OkStatus();
}

Status ReadSizes(OperatorCall& call, Recurrence& net) {
  for (const size_t i : {0, 1, 2}) AG_TRY(call.CheckRank(i, 3));
  const Shape& x = call.ShapeOf(0);
  net.steps = x[net.by_batch ? 1 : 0];
  net.batch = x[net.by_batch ? 0 : 1];
  net.input = x[2];
  net.hidden = call.ShapeOf(2)[2];
  const int64_t hidden = call.Int("hidden_size", net.hidden);
  const int64_t rows = net.gates * net.hidden;
  if (hidden != net.hidden) {
    return Err(StatusCode::kInvalidArgument, "hidden_size is {}, R is {}", hidden,
               ShapeToString(call.ShapeOf(2)));
  }
  AG_TRY(call.CheckShape(1, {net.directions, rows, net.input}));
  AG_TRY(call.CheckShape(2, {net.directions, rows, net.hidden}));
  AG_TRY(call.CheckShape(3, {net.directions, 2 * rows}));
  AG_TRY(call.CheckShape(4, {net.batch}));
  net.lengths.assign(static_cast<size_t>(net.batch), net.steps);
  if (!call.Has(4)) return OkStatus();
  AG_LET(net.lengths, call.IntsAt(4));
  for (const int64_t length : net.lengths) {
    if (length >= 0 && length <= net.steps) continue;
    return Err(StatusCode::kOutOfRange, "a sequence length is {}, the input has {} steps", length,
               net.steps);
  }
  return OkStatus();
}

// Returns the state of operand `i`, or zeros, by direction and batch item.
StatusOr<Doubles> StateOf(const OperatorCall& call, size_t i, const Recurrence& net) {
  Doubles state(static_cast<size_t>(net.directions * net.batch * net.hidden));
  if (!call.Has(i)) return state;
  const Shape expected = net.by_batch ? Shape{net.batch, net.directions, net.hidden}
                                      : Shape{net.directions, net.batch, net.hidden};
  AG_TRY(call.CheckShape(i, expected));
  const Doubles given = call.In(i).ToDoubles();
  for (int64_t d = 0; d < net.directions; ++d) {
    for (int64_t b = 0; b < net.batch; ++b) {
      std::copy_n(&given[net.StateOut(d, b)], net.hidden, &state[net.StateAt(d, b)]);
    }
  }
  return state;
}

StatusOr<Recurrence> ReadRecurrence(OperatorCall& call, int64_t gates, size_t inputs_max,
                                    const std::vector<std::string>& defaults) {
  AG_TRY(call.CheckInputs(3, inputs_max));
  if (!IsFloat(call.TypeOf(0))) return RefuseType(call.TypeOf(0));
  Recurrence net;
  net.gates = gates;
  AG_TRY(ReadAttributes(call, defaults, net));
  AG_TRY(ReadSizes(call, net));
  net.x = call.In(0).ToDoubles();
  net.w = call.In(1).ToDoubles();
  net.r = call.In(2).ToDoubles();
  net.bias.resize(static_cast<size_t>(net.directions * 2 * gates * net.hidden));
  if (call.Has(3)) net.bias = call.In(3).ToDoubles();
  AG_LET(net.h, StateOf(call, 5, net));
  AG_LET(net.c, StateOf(call, 6, net));
  return net;
}

// One step of one direction: reads and writes the state.
struct StepOf {
  const Recurrence& net;
  const Activation* functions;  // Of the direction.
  const double* r;              // Its matrices of R.
  const double* bias;           // Its biases of W and of R.
  double* gates;                // W * x of the step, without biases.
  double* h;
  double* c;
};
using Cell = std::function<void(const StepOf&)>;

// Writes Y, Y_h and Y_c.
Status WriteResults(OperatorCall& call, const Recurrence& net, const Doubles& y) {
  const TensorType type{call.TypeOf(0), {}};
  const auto give = [&](size_t i, Shape shape, const Doubles& values) -> Status {
    if (!call.Wants(i)) return OkStatus();
    AG_TRY(call.MakeBytes(i, {type.dtype, shape}));
    call.Give(i, Tensor::FromDoubles({type.dtype, std::move(shape)}, values));
    return OkStatus();
  };
  const Shape all = net.by_batch ? Shape{net.batch, net.steps, net.directions, net.hidden}
                                 : Shape{net.steps, net.directions, net.batch, net.hidden};
  const Shape last = net.by_batch ? Shape{net.batch, net.directions, net.hidden}
                                  : Shape{net.directions, net.batch, net.hidden};
  const auto placed = [&](const Doubles& state) {
    Doubles out(state.size());
    for (int64_t d = 0; d < net.directions; ++d) {
      for (int64_t b = 0; b < net.batch; ++b) {
        std::copy_n(&state[net.StateAt(d, b)], net.hidden, &out[net.StateOut(d, b)]);
      }
    }
    return out;
  };
  AG_TRY(give(0, all, y));
  AG_TRY(give(1, last, placed(net.h)));
  return give(2, last, placed(net.c));
}

Status RunCells(OperatorCall& call, Recurrence& net, const Cell& cell) {
  const int64_t rows = net.gates * net.hidden;
  const size_t per_direction = net.functions.size() / static_cast<size_t>(net.directions);
  Doubles y(static_cast<size_t>(net.steps * net.directions * net.batch * net.hidden));
  Doubles gates(static_cast<size_t>(rows));
  for (int64_t d = 0; d < net.directions; ++d) {
    const bool reverse = d == 1 || net.first_is_reverse;
    for (int64_t b = 0; b < net.batch && net.hidden > 0; ++b) {
      double* h = &net.h[net.StateAt(d, b)];
      const int64_t length = net.lengths[b];
      for (int64_t s = 0; s < length; ++s) {
        const int64_t t = reverse ? length - 1 - s : s;
        std::ranges::fill(gates, 0);
        AddProduct(net.w.data() + d * rows * net.input, rows, net.Step(t, b), net.input,
                   gates.data());
        cell({net, &net.functions[d * per_direction], net.r.data() + d * rows * net.hidden,
              &net.bias[d * 2 * rows], gates.data(), h, &net.c[net.StateAt(d, b)]});
        std::copy_n(h, net.hidden, &y[net.ResultAt(t, d, b)]);
      }
    }
  }
  return WriteResults(call, net, y);
}

// Adds the product with R and both biases to the first `count` gates.
void AddRecurrent(const StepOf& step, int64_t count) {
  const int64_t hidden = step.net.hidden, rows = count * hidden;
  AddProduct(step.r, rows, step.h, hidden, step.gates);
  for (int64_t i = 0; i < rows; ++i) {
    step.gates[i] += step.bias[i] + step.bias[step.net.gates * hidden + i];
  }
}

Status RunRnn(OperatorCall& call) {
  AG_LET(Recurrence net, ReadRecurrence(call, 1, 6, {"Tanh"}));
  return RunCells(call, net, [](const StepOf& step) {
    AddRecurrent(step, 1);
    for (int64_t i = 0; i < step.net.hidden; ++i) {
      step.h[i] = step.functions[0](step.net.Clip(step.gates[i]));
    }
  });
}

// Gates in the order of W: update z, reset r, hidden h.
Status RunGru(OperatorCall& call) {
  const bool linear_before_reset = call.Int("linear_before_reset", 0) != 0;
  AG_LET(Recurrence net, ReadRecurrence(call, 3, 6, {"Sigmoid", "Tanh"}));
  Doubles before(static_cast<size_t>(net.hidden)), candidate(before.size());
  return RunCells(call, net, [&](const StepOf& step) {
    const int64_t n = step.net.hidden;
    AddRecurrent(step, 2);
    double *z = step.gates, *r = step.gates + n, *x = step.gates + 2 * n;
    for (int64_t i = 0; i < 2 * n; ++i)
      step.gates[i] = step.functions[0](step.net.Clip(step.gates[i]));
    const double *bias_w = step.bias + 2 * n, *bias_r = step.bias + 5 * n;
    for (int64_t i = 0; i < n; ++i) {
      before[i] = linear_before_reset ? step.h[i] : r[i] * step.h[i];
      candidate[i] = bias_r[i];
    }
    AddProduct(step.r + 2 * n * n, n, before.data(), n, candidate.data());
    for (int64_t i = 0; i < n; ++i) {
      const double recurrent = linear_before_reset ? r[i] * candidate[i] : candidate[i];
      const double hidden = step.functions[1](step.net.Clip(x[i] + bias_w[i] + recurrent));
      step.h[i] = (1 - z[i]) * hidden + z[i] * step.h[i];
    }
  });
}

// Replaces values by what is left of them after quantization to u8.
void RoundTrip(Doubles& values) {
  const DynamicScale to = DynamicScaleOf(values);
  for (double& v : values) v = to.Back(v);
}

// Whether a step multiplies R with the state itself, or with what quantization to u8 leaves of it.
enum class State : uint8_t { kExact, kQuantized };

// Gates in the order of W: input i, output o, forget f, cell c; peepholes P in the order i, o, f.
template <State state>
Status RunLstm(OperatorCall& call) {
  const bool coupled = call.Int("input_forget", 0) != 0;
  AG_LET(Recurrence net, ReadRecurrence(call, 4, 8, {"Sigmoid", "Tanh", "Tanh"}));
  AG_TRY(call.CheckShape(7, {net.directions, 3 * net.hidden}));
  const Doubles peepholes = call.Has(7)
                                ? call.In(7).ToDoubles()
                                : Doubles(static_cast<size_t>(net.directions * 3 * net.hidden));
  Doubles read(static_cast<size_t>(net.hidden));
  return RunCells(call, net, [&](const StepOf& step) {
    const Recurrence& all = step.net;
    const int64_t n = all.hidden;
    const double* p = &peepholes[step.functions == &all.functions[0] ? 0 : 3 * n];
    StepOf reading = step;
    if (state == State::kQuantized) {
      std::copy_n(step.h, n, read.data());
      RoundTrip(read);
      reading.h = read.data();
    }
    AddRecurrent(reading, 4);
    const double* g = step.gates;
    for (int64_t i = 0; i < n; ++i) {
      const double old = step.c[i];
      const double in = step.functions[0](all.Clip(g[i] + p[i] * old));
      const double forget =
          coupled ? 1 - in : step.functions[0](all.Clip(g[2 * n + i] + p[2 * n + i] * old));
      step.c[i] = forget * old + in * step.functions[1](all.Clip(g[3 * n + i]));
      const double out = step.functions[0](all.Clip(g[n + i] + p[n + i] * step.c[i]));
      step.h[i] = out * step.functions[2](step.c[i]);
    }
  });
}

// Returns quantized weights [directions, columns, rows] as numbers [directions, rows, columns].
// Scales and zero points are by direction, or by direction and row.
StatusOr<Tensor> WeightsOf(const OperatorCall& call, size_t i, size_t scale, size_t zero) {
  AG_TRY(call.CheckRank(i, 3));
  const Shape& s = call.ShapeOf(i);
  for (const size_t at : {scale, zero}) {
    if (call.Type(at).NumElements() == s[0] || call.ShapeOf(at) == Shape{s[0], s[2]}) continue;
    return Err(StatusCode::kInvalidArgument, "input {}: {} does not fit {}", at,
               call.Type(at).ToString(), call.Type(i).ToString());
  }
  const Doubles given = call.In(i).ToDoubles();
  const Doubles scales = call.In(scale).ToDoubles(), zeros = call.In(zero).ToDoubles();
  Doubles values;
  for (int64_t to = 0; to < static_cast<int64_t>(given.size()); ++to) {
    const int64_t d = to / (s[1] * s[2]), row = to / s[1] % s[2], column = to % s[1];
    const auto at = [&](const Doubles& of) {
      return of[static_cast<int64_t>(of.size()) == s[0] ? d : d * s[2] + row];
    };
    values.push_back((given[(d * s[1] + column) * s[2] + row] - at(zeros)) * at(scales));
  }
  return Tensor::FromDoubles({DType::kFloat32, {s[0], s[2], s[1]}}, values);
}

// An LSTM of com.microsoft with quantized weights (scales and zero points are operands 8 to 11);
// the sequence and each state are quantized when it runs.
Status RunDynamicQuantizeLstm(OperatorCall& call) {
  AG_TRY(call.CheckInputs(3, 12));
  for (const size_t i : {8, 9, 10, 11}) {
    if (!call.Has(i)) return Err(StatusCode::kInvalidArgument, "input {} is missing", i);
  }
  AG_TRY(call.CheckType(0, DType::kFloat32));
  Doubles sequence = call.In(0).ToDoubles();
  RoundTrip(sequence);
  const Tensor x = Tensor::FromDoubles(call.Type(0), sequence);
  AG_LET(const Tensor w, WeightsOf(call, 1, 8, 9));
  AG_LET(const Tensor r, WeightsOf(call, 2, 10, 11));
  std::vector<const Tensor*> inputs = {&x, &w, &r};
  for (size_t i = 3; i < 8; ++i) inputs.push_back(call.Has(i) ? &call.In(i) : nullptr);
  OnnxNode node = InnerNode(call, "LSTM");
  node.outputs = call.node().outputs;
  OperatorCall inner(node, call.opset(), std::move(inputs), call.bytes_max(), call.threads());
  AG_TRY(RunLstm<State::kQuantized>(inner));
  AG_TRY(inner.CheckAttributes());
  call.results() = std::move(inner.results());
  return OkStatus();
}

}  // namespace

StatusOr<Activation> ActivationOf(std::string name, ActivationScales& scales) {
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
  const auto tanh = [](double v) { return std::tanh(v); };
  if (name == "relu") return Activation([](double v) { return std::max(v, 0.0); });
  if (name == "tanh") return Activation(tanh);
  if (name == "sigmoid") return Activation([](double v) { return 1 / (1 + std::exp(-v)); });
  if (name == "softsign") return Activation([](double v) { return v / (1 + std::fabs(v)); });
  if (name == "softplus") return Activation([](double v) { return std::log1p(std::exp(v)); });
  if (name == "leakyrelu") {
    const double a = scales.Alpha(0.01);
    return Activation([a](double v) { return v < 0 ? a * v : v; });
  }
  if (name == "thresholdedrelu") {
    const double a = scales.Alpha(1);
    return Activation([a](double v) { return v > a ? v : 0; });
  }
  if (name == "elu") {
    const double a = scales.Alpha(1);
    return Activation([a](double v) { return v < 0 ? a * std::expm1(v) : v; });
  }
  const bool hard = name == "hardsigmoid";
  const double a = scales.Alpha(hard ? 0.2 : 1), b = scales.Beta(hard               ? 0.5
                                                                 : name == "affine" ? 0
                                                                                    : 1);
  if (hard) return Activation([a, b](double v) { return std::clamp(a * v + b, 0.0, 1.0); });
  if (name == "affine") return Activation([a, b](double v) { return a * v + b; });
  if (name == "scaledtanh") return Activation([a, b](double v) { return a * std::tanh(b * v); });
  return Err(StatusCode::kInvalidArgument, "no activation function is named {}", Quoted(name));
}

std::span<const OperatorRow> RecurrentOperators() {
  static constexpr OperatorRow kRows[] = {
      {"LSTM", RunLstm<State::kExact>},
      {"GRU", RunGru},
      {"RNN", RunRnn},
      {"com.microsoft.DynamicQuantizeLSTM", RunDynamicQuantizeLstm},
  };
  return kRows;
}

}  // namespace ag::onnx_operators

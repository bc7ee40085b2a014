// LSTM, GRU and RNN on oneDNN. Its gates are in another order than ONNX's, and its results of two
// directions lie beside each other; so weights are constants, and two directions take one sequence.
#include <algorithm>

#include "device/cpu/kept.h"
#include "device/cpu/onednn.h"
#include "device/cpu/parallel.h"
#include "graph/onnx/node_attributes.h"

namespace ag::cpu {
namespace {

enum class Cell : uint8_t { kRnn, kGru, kLinearGru, kLstm };

struct RecurrentProblem {
  Cell cell = Cell::kRnn;
  dnnl::algorithm activation = dnnl::algorithm::eltwise_tanh;  // Of an RNN.
  dnnl::rnn_direction direction = dnnl::rnn_direction::unidirectional_left2right;
  int64_t steps = 0, batch = 0, input = 0, hidden = 0, directions = 1;
  int64_t gates = 1;
  int64_t biases = 1;      // For each direction; a linear GRU has one more than gates.
  std::vector<int> order;  // order[i]: which of ONNX's gates is oneDNN's gate i.

  Desc Layer() const { return PlainDesc({steps, batch, input}); }
  Desc State() const { return PlainDesc({1, directions, batch, hidden}); }
  Desc Result() const { return PlainDesc({steps, batch, directions * hidden}); }
  Desc Weights(int64_t columns) const { return AnyDesc({1, directions, columns, gates, hidden}); }
  Desc Bias() const { return PlainDesc({1, directions, biases, hidden}); }
};

Status RefuseForm(const KeptOperator& kept) {
  return Err(StatusCode::kUnimplemented, "{}: not this form", kept.node().op_type);
}

// True when the activations are those that oneDNN's cell has.
bool HasOwnActivations(NodeAttributes& attributes, const std::vector<std::string>& own) {
  const auto names = attributes.StringList("activations");
  if (!names.has_value()) return true;
  for (size_t i = 0; i < names->size(); ++i) {
    if ((*names)[i] != own[i % own.size()]) return false;
  }
  return true;
}

Status ReadCell(const KeptOperator& kept, NodeAttributes& attributes, RecurrentProblem& p) {
  const std::string& op = kept.node().op_type;
  if (op == "LSTM") {
    p.cell = Cell::kLstm;
    p.order = {0, 2, 3, 1};  // i, f, c, o of i, o, f, c.
    if (attributes.Int("input_forget", 0) != 0) return RefuseForm(kept);
    if (!HasOwnActivations(attributes, {"Sigmoid", "Tanh", "Tanh"})) return RefuseForm(kept);
  } else if (op == "GRU") {
    const bool linear = attributes.Int("linear_before_reset", 0) != 0;
    p.cell = linear ? Cell::kLinearGru : Cell::kGru;
    p.order = {0, 1, 2};
    if (!HasOwnActivations(attributes, {"Sigmoid", "Tanh"})) return RefuseForm(kept);
  } else {
    p.order = {0};
    if (HasOwnActivations(attributes, {"Relu"}) && attributes.HasAttribute("activations")) {
      p.activation = dnnl::algorithm::eltwise_relu;
    } else if (!HasOwnActivations(attributes, {"Tanh"})) {
      return RefuseForm(kept);
    }
  }
  p.gates = static_cast<int64_t>(p.order.size());
  p.biases = p.gates + (p.cell == Cell::kLinearGru ? 1 : 0);
  return OkStatus();
}

StatusOr<RecurrentProblem> RecurrentProblemOf(const KeptOperator& kept,
                                              const KeptOperands& operands) {
  RecurrentProblem p;
  NodeAttributes attributes(kept.node());
  AG_TRY(ReadCell(kept, attributes, p));
  const bool by_batch = attributes.Int("layout", 0) != 0;
  const std::string direction = attributes.String("direction", "forward");
  if (direction == "reverse") p.direction = dnnl::rnn_direction::unidirectional_right2left;
  if (direction == "bidirectional") {
    p.direction = dnnl::rnn_direction::bidirectional_concat;
    p.directions = 2;
  }
  if (!operands.Has(0) || !operands.Has(1) || !operands.Has(2)) return RefuseForm(kept);
  const Shape& x = operands.ShapeOf(0);
  if (x.size() != 3) return RefuseForm(kept);
  p.steps = x[by_batch ? 1 : 0];
  p.batch = x[by_batch ? 0 : 1];
  p.input = x[2];
  p.hidden = operands.ShapeOf(2).size() == 3 ? operands.ShapeOf(2)[2] : 0;
  const int64_t rows = p.gates * p.hidden;
  const auto has = [&](size_t i, const Shape& shape) {
    return !operands.Has(i) || operands.ShapeOf(i) == shape;
  };
  const Shape state =
      by_batch ? Shape{p.batch, p.directions, p.hidden} : Shape{p.directions, p.batch, p.hidden};
  const Shape all = by_batch ? Shape{p.batch, p.steps, p.directions, p.hidden}
                             : Shape{p.steps, p.directions, p.batch, p.hidden};
  const bool results_fit =
      operands.ResultIs(0, all) && operands.ResultIs(1, state) && operands.ResultIs(2, state);
  const bool sizes_fit = results_fit && has(1, {p.directions, rows, p.input}) &&
                         has(2, {p.directions, rows, p.hidden}) &&
                         has(3, {p.directions, 2 * rows}) && has(5, state) && has(6, state) &&
                         attributes.Int("hidden_size", p.hidden) == p.hidden;
  if (!sizes_fit) return RefuseForm(kept);  // The reference kernel says what does not fit.
  const bool fits = operands.IsPlainFloat() && operands.IsConstant(1) && operands.IsConstant(2) &&
                    (!operands.Has(3) || operands.IsConstant(3)) && !operands.Has(4) &&
                    !operands.Has(7) && !attributes.HasAttribute("clip") && NumElements(x) > 0 &&
                    p.hidden > 0;
  if (!fits || (p.batch > 1 && (by_batch || p.directions > 1))) return RefuseForm(kept);
  return p;
}

// Returns ONNX's [D, G * H, columns] as [D, columns, G, H] in oneDNN's order of gates.
std::vector<float> Regated(const RecurrentProblem& p, const Tensor& weights, int64_t columns) {
  const std::span<const float> from = weights.As<float>();
  std::vector<float> to(from.size());
  size_t at = 0;
  for (int64_t d = 0; d < p.directions; ++d) {
    for (int64_t c = 0; c < columns; ++c) {
      for (int64_t g = 0; g < p.gates; ++g) {
        for (int64_t h = 0; h < p.hidden; ++h) {
          const int64_t row = (d * p.gates + p.order[static_cast<size_t>(g)]) * p.hidden + h;
          to[at++] = from[static_cast<size_t>(row * columns + c)];
        }
      }
    }
  }
  return to;
}

// Returns the sums of both biases by gate; a linear GRU keeps the last one of R apart.
std::vector<float> BiasesOf(const RecurrentProblem& p, const Tensor* given) {
  std::vector<float> to(static_cast<size_t>(p.directions * p.biases * p.hidden));
  if (given == nullptr) return to;
  const std::span<const float> from = given->As<float>();
  size_t at = 0;
  for (int64_t d = 0; d < p.directions; ++d) {
    for (int64_t g = 0; g < p.biases; ++g) {
      const bool is_extra = g == p.gates;  // The bias of R inside the reset.
      const int64_t own = is_extra ? p.gates - 1 : p.order[static_cast<size_t>(g)];
      const bool is_split = p.cell == Cell::kLinearGru && g + 1 >= p.gates;
      for (int64_t h = 0; h < p.hidden; ++h) {
        const int64_t of_w = (d * 2 * p.gates + own) * p.hidden + h;
        const int64_t of_r = of_w + p.gates * p.hidden;
        const float w = from[static_cast<size_t>(of_w)], r = from[static_cast<size_t>(of_r)];
        to[at++] = !is_split ? w + r : is_extra ? r : w;
      }
    }
  }
  return to;
}

// What the cells' descriptions have in common.
struct RecurrentDescs {
  Desc layer, w, r, bias, y;
  Desc h_in, c_in;  // Empty: zeros.
  Desc h, c;
};

class Recurrent : public Kernel {
 public:
  Status Run(const RunContext& context, Inputs inputs, Outputs outputs) override {
    if (!serial_) return call_.Run(context, inputs, outputs);
    const OmpThreads one(1);
    return call_.Run(context, inputs, outputs);
  }
  size_t scratch_bytes() const override { return call_.scratch_bytes(); }

  Status Prepare(const GroupContext& context, const KeptOperator& kept, bool serial) {
    serial_ = serial;
    const OmpThreads threads(serial ? 1 : context.cores);
    const KeptOperands operands(context, kept);
    AG_LET(p_, RecurrentProblemOf(kept, operands));
    RecurrentDescs d{.layer = p_.Layer(),
                     .w = p_.Weights(p_.input),
                     .r = p_.Weights(p_.hidden),
                     .bias = p_.Bias(),
                     .y = p_.Result(),
                     .h = p_.State(),
                     .c = p_.State()};
    if (operands.Has(5)) d.h_in = p_.State();
    if (operands.Has(6)) d.c_in = p_.State();
    // A cell has both states or none.
    if (p_.cell == Cell::kLstm && operands.Has(5) != operands.Has(6)) return RefuseForm(kept);
    const auto direction = p_.direction;
    const auto kind = dnnl::prop_kind::forward_inference;
    if (p_.cell == Cell::kLstm) {
      return Make<dnnl::lstm_forward>(
          context, operands,
          {kind, direction, d.layer, d.h_in, d.c_in, d.w, d.r, d.bias, d.y, d.h, d.c});
    }
    if (p_.cell == Cell::kGru) {
      return Make<dnnl::gru_forward>(
          context, operands, {kind, direction, d.layer, d.h_in, d.w, d.r, d.bias, d.y, d.h});
    }
    if (p_.cell == Cell::kLinearGru) {
      return Make<dnnl::lbr_gru_forward>(
          context, operands, {kind, direction, d.layer, d.h_in, d.w, d.r, d.bias, d.y, d.h});
    }
    return Make<dnnl::vanilla_rnn_forward>(
        context, operands,
        {kind, p_.activation, direction, d.layer, d.h_in, d.w, d.r, d.bias, d.y, d.h});
  }

 private:
  template <class Primitive>
  Status Make(const GroupContext& context, const KeptOperands& operands,
              const typename Primitive::desc& desc) {
    const typename Primitive::primitive_desc made(desc, UserScratchpad(), Engine(),
                                                  /*allow_empty=*/true);
    if (!made) return Err(StatusCode::kUnimplemented, "oneDNN lacks the form");
    if (context.constants == nullptr) return OkStatus();
    AG_TRY(call_.Operand(context, operands.At(0), DNNL_ARG_SRC_LAYER, p_.Layer(), p_.Layer()));
    AG_TRY(HoldWeights(context, operands.At(1), DNNL_ARG_WEIGHTS_LAYER, p_.input,
                       made.weights_layer_desc()));
    AG_TRY(HoldWeights(context, operands.At(2), DNNL_ARG_WEIGHTS_ITER, p_.hidden,
                       made.weights_iter_desc()));
    Tensor bias;
    if (operands.Has(3)) {
      AG_LET(bias, context.constants->Get(operands.At(3)));
    }
    AG_TRY(call_.Hold(DNNL_ARG_BIAS, p_.Bias(), p_.Bias(),
                      BiasesOf(p_, operands.Has(3) ? &bias : nullptr)));
    const bool is_lstm = p_.cell == Cell::kLstm;
    const int states[] = {DNNL_ARG_SRC_ITER, DNNL_ARG_SRC_ITER_C};
    for (size_t i = 0; i < (is_lstm ? 2u : 1u); ++i) {
      if (!operands.Has(5 + i)) continue;
      AG_TRY(call_.Operand(context, operands.At(5 + i), states[i], p_.State(), p_.State()));
    }
    Result(operands, 0, DNNL_ARG_DST_LAYER, p_.Result());
    Result(operands, 1, DNNL_ARG_DST_ITER, p_.State());
    if (is_lstm) Result(operands, 2, DNNL_ARG_DST_ITER_C, p_.State());
    call_.Finish(Primitive(made), made.scratchpad_desc());
    return OkStatus();
  }

  Status HoldWeights(const GroupContext& context, Edge edge, int arg, int64_t columns,
                     const Desc& wanted) {
    AG_LET(const Tensor weights, context.constants->Get(edge));
    const Desc given = PlainDesc({1, p_.directions, columns, p_.gates, p_.hidden});
    return call_.Hold(arg, wanted, given, Regated(p_, weights, columns));
  }

  void Result(const KeptOperands& operands, size_t i, int arg, const Desc& desc) {
    const int port = operands.OutputPort(i);
    if (port < 0) {
      call_.Drop(arg, desc);
    } else {
      call_.Output(arg, desc, desc, port);
    }
  }

  bool serial_ = false;
  RecurrentProblem p_;
  Call call_;
};

}  // namespace

StatusOr<std::unique_ptr<Kernel>> MakeRecurrent(const GroupContext& context,
                                                const KeptOperator& kept, bool serial) {
  return Prepared<Recurrent>(kept.node().op_type, context, kept, serial);
}

}  // namespace ag::cpu

// LSTM, GRU and RNN: one product for the inputs of many steps, then step by step. The hidden units
// are cut into slices (recurrent_loops.h). Each thread has slices of its own, or a direction of its
// own; threads that share a direction wait for each other after each step. A DynamicQuantizeLSTM
// has weights that are numbers again, and reads what quantization leaves of its input and its
// states.
#include <algorithm>

#include "device/cpu/host.h"
#include "device/cpu/integer_loops.h"
#include "device/cpu/kept.h"
#include "device/cpu/parallel.h"
#include "device/cpu/recurrent_loops.h"
#include "graph/onnx/node_attributes.h"

namespace ag::cpu {
namespace {

enum class Cell : uint8_t { kTanhRnn, kReluRnn, kGru, kLinearGru, kLstm };

// Of ONNX's form: axes of X are steps and batch, or the other way round (by_batch).
struct RecurrentProblem {
  Cell cell = Cell::kTanhRnn;
  int64_t gates = 1;
  int64_t steps = 0, batch = 0, input = 0, hidden = 0, directions = 1;
  bool first_is_reverse = false;
  bool by_batch = false;
  bool quantized = false;

  int64_t inputs() const { return steps * batch * input; }
  // Positions of a row in X, in Y, and in a state.
  int64_t InputAt(int64_t t, int64_t b) const {
    return (by_batch ? b * steps + t : t * batch + b) * input;
  }
  int64_t ResultAt(int64_t t, int64_t d, int64_t b) const {
    return (by_batch ? (b * steps + t) * directions + d : (t * directions + d) * batch + b) *
           hidden;
  }
  int64_t StateAt(int64_t d, int64_t b) const {
    return (by_batch ? b * directions + d : d * batch + b) * hidden;
  }
};

// Returns true when the activations are these, in each direction. `given`: or none are named.
bool HasActivations(NodeAttributes& attributes, const std::vector<std::string>& own) {
  const auto names = attributes.StringList("activations");
  for (size_t i = 0; names.has_value() && i < names->size(); ++i) {
    if ((*names)[i] != own[i % own.size()]) return false;
  }
  return true;
}

Status ReadCell(const KeptOperator& kept, NodeAttributes& attributes, RecurrentProblem& p) {
  const std::string& op = kept.node().op_type;
  std::vector<std::string> activations = {"Tanh"};
  p.quantized = op == "DynamicQuantizeLSTM";
  if (op == "LSTM" || p.quantized) {
    p.cell = Cell::kLstm;
    p.gates = 4;
    activations = {"Sigmoid", "Tanh", "Tanh"};
    if (attributes.Int("input_forget", 0) != 0) return RefuseForm(kept);
  } else if (op == "GRU") {
    p.cell = attributes.Int("linear_before_reset", 0) != 0 ? Cell::kLinearGru : Cell::kGru;
    p.gates = 3;
    activations = {"Sigmoid", "Tanh"};
  } else if (attributes.HasAttribute("activations") && HasActivations(attributes, {"Relu"})) {
    p.cell = Cell::kReluRnn;
    activations = {"Relu"};
  }
  if (attributes.HasAttribute("clip") || !HasActivations(attributes, activations)) {
    return RefuseForm(kept);
  }
  return OkStatus();
}

// The scales and zero points of W and R.
constexpr size_t kWScale = 8, kWZero = 9, kRScale = 10, kRZero = 11;

// Whether a DynamicQuantizeLSTM's weights are constants of bytes, with a scale and a zero point for
// each direction or for each column.
bool HasByteWeights(const KeptOperands& operands, int64_t directions, int64_t columns) {
  const auto is_constant = [&](size_t i) { return operands.Has(i) && operands.IsConstant(i); };
  const auto is_byte = [&](size_t i) {
    return operands.Type(i).dtype == DType::kUInt8 || operands.Type(i).dtype == DType::kInt8;
  };
  for (const size_t i : {size_t{1}, size_t{2}, kWZero, kRZero}) {
    if (!is_constant(i) || !is_byte(i)) return false;
  }
  return std::ranges::all_of(std::initializer_list<size_t>{kWScale, kWZero, kRScale, kRZero},
                             [&](size_t i) {
                               if (!is_constant(i)) return false;
                               const int64_t count = operands.Type(i).NumElements();
                               return count == directions || count == directions * columns;
                             });
}

// Returns kUnimplemented where sizes do not fit; the reference kernel then says what.
StatusOr<RecurrentProblem> RecurrentProblemOf(const KeptOperator& kept,
                                              const KeptOperands& operands) {
  RecurrentProblem p;
  NodeAttributes attributes(kept.node());
  AG_TRY(ReadCell(kept, attributes, p));
  p.by_batch = attributes.Int("layout", 0) != 0;
  const std::string direction = attributes.String("direction", "forward");
  p.first_is_reverse = direction == "reverse";
  p.directions = direction == "bidirectional" ? 2 : 1;
  const bool known = p.first_is_reverse || p.directions == 2 || direction == "forward";
  const bool types_fit =
      p.quantized ? operands.IsPlainFloat({1, 2, 4, kWZero, kRZero}) : operands.IsPlainFloat({4});
  if (!known || !types_fit || operands.Has(7)) return RefuseForm(kept);
  for (const size_t i : {1, 2, 3}) {
    if (operands.Has(i) ? !operands.IsConstant(i) : i < 3) return RefuseForm(kept);
  }
  if (!operands.Has(0) || operands.ShapeOf(0).size() != 3 || operands.ShapeOf(2).size() != 3) {
    return RefuseForm(kept);
  }
  const Shape& x = operands.ShapeOf(0);
  p.steps = x[p.by_batch ? 1 : 0];
  p.batch = x[p.by_batch ? 0 : 1];
  p.input = x[2];
  p.hidden = operands.ShapeOf(2)[p.quantized ? 1 : 2];
  const int64_t rows = p.gates * p.hidden;
  const Shape state =
      p.by_batch ? Shape{p.batch, p.directions, p.hidden} : Shape{p.directions, p.batch, p.hidden};
  const Shape all = p.by_batch ? Shape{p.batch, p.steps, p.directions, p.hidden}
                               : Shape{p.steps, p.directions, p.batch, p.hidden};
  const auto has = [&](size_t i, const Shape& shape) {
    return !operands.Has(i) || operands.ShapeOf(i) == shape;
  };
  const bool results_fit =
      operands.ResultIs(0, all) && operands.ResultIs(1, state) && operands.ResultIs(2, state);
  const bool weights_fit =
      p.quantized ? has(1, {p.directions, p.input, rows}) && has(2, {p.directions, p.hidden, rows})
                  : has(1, {p.directions, rows, p.input}) && has(2, {p.directions, rows, p.hidden});
  if (p.quantized && !HasByteWeights(operands, p.directions, rows)) return RefuseForm(kept);
  const bool fits = results_fit && weights_fit && has(3, {p.directions, 2 * rows}) &&
                    has(4, {p.batch}) && has(5, state) && has(6, state) &&
                    attributes.Int("hidden_size", p.hidden) == p.hidden && NumElements(x) > 0 &&
                    p.hidden > 0;
  if (!fits) return RefuseForm(kept);
  return p;
}

// Rows that a product or a step of cells takes at once.
constexpr int64_t kRowsMax = 64;
// Rows of X whose products with W are made before the steps that read them: enough to read W
// rarely, few enough to stay in the cache.
constexpr int64_t kChunkRows = 128;
// Multiplications and additions of a step below which threads wait longer than they gain.
constexpr int64_t kStepOperations = 48 * 1024;

// Weights as panels, and where everything lies in scratch memory, in floats.
class RecurrentLayout {
 public:
  RecurrentLayout(const RecurrentProblem& p, int64_t lanes, int64_t parts)
      : lanes(lanes),
        slices((p.hidden + lanes - 1) / lanes),
        padded(slices * lanes),
        gates(p.gates * padded),
        chunk(std::clamp<int64_t>(kChunkRows / p.batch, 1, p.steps)) {
    const int64_t states = p.directions * p.batch * padded;
    before = states;
    cell = before + states;
    sums = cell + states;
    recurrent = sums + p.directions * chunk * p.batch * gates;
    read = recurrent + (p.cell == Cell::kLinearGru ? p.directions * p.batch * gates : 0);
    own = read + (p.quantized ? 2 * p.inputs() : 0);
    own_floats = p.quantized ? (std::min(kRowsMax, p.batch) + 1) * padded : 0;
    floats = own + parts * own_floats;
  }

  int64_t lanes, slices;
  int64_t padded;  // Hidden units with the padding of the last slice.
  int64_t gates;   // Numbers of a row's gates, slice by slice.
  int64_t chunk;   // Steps whose inputs are multiplied at once.
  // Begin of: the states after even steps (0), after odd ones, the cells (r * h of a GRU), the
  // gates of a chunk, the sums with R of a linear GRU, what quantization leaves of the input (and
  // its bytes); of what it leaves of the states that a part of the run reads, a row of bytes behind
  // them; end of all.
  int64_t before = 0, cell = 0, sums = 0, recurrent = 0, read = 0, own = 0, floats = 0;
  int64_t own_floats = 0;  // Of each part.
};

// Returns gates [first, first + count) of ONNX's weights [directions, all * hidden, columns] as
// panels [directions][slices][columns][count][lanes], zeros in the padding.
StatusOr<AlignedBuffer> PanelsOf(const RecurrentProblem& p, const RecurrentLayout& layout,
                                 const Tensor& weights, int64_t columns, int64_t first,
                                 int64_t count) {
  const std::span<const float> from = weights.As<float>();
  const int64_t lanes = layout.lanes;
  const int64_t floats = p.directions * layout.slices * columns * count * lanes;
  AG_LET(AlignedBuffer made, AlignedBuffer::Make(static_cast<size_t>(floats) * sizeof(float)));
  for (int64_t d = 0; d < p.directions; ++d) {
    for (int64_t g = 0; g < count; ++g) {
      for (int64_t h = 0; h < p.hidden; ++h) {
        const int64_t slice = d * layout.slices + h / lanes;
        float* to = made.As<float>() + (slice * columns * count + g) * lanes + h % lanes;
        const float* row = &from[((d * p.gates + first + g) * p.hidden + h) * columns];
        for (int64_t k = 0; k < columns; ++k) to[k * count * lanes] = row[k];
      }
    }
  }
  return made;
}

// What a node's weights are when they are packed.
struct RecurrentWeights {
  AlignedBuffer w, r;
  AlignedBuffer candidate;  // R of a GRU's third gate where that is multiplied after the reset.
  AlignedBuffer bias;       // What the sums begin with.
  AlignedBuffer recurrent_bias;  // What a linear GRU's sums with R begin with.
};

// Returns the biases of W (of R: kOf is 1; of both: 2) as panels of one column. Gates before
// `merged` have the sum of both in those of W and nothing in those of R.
StatusOr<AlignedBuffer> BiasOf(const RecurrentProblem& p, const RecurrentLayout& layout,
                               const Tensor* given, int64_t merged, bool of_r) {
  Tensor sums = Tensor::Zeros({DType::kFloat32, {p.directions, p.gates * p.hidden, 1}});
  const std::span<float> to = sums.Mutable<float>();
  for (int64_t i = 0; given != nullptr && i < static_cast<int64_t>(to.size()); ++i) {
    const int64_t rows = p.gates * p.hidden, d = i / rows, row = i % rows;
    const float* w = &given->As<float>()[2 * d * rows + row];
    const bool both = row / p.hidden < merged;
    to[i] = of_r ? (both ? 0 : w[rows]) : (both ? w[0] + w[rows] : w[0]);
  }
  return PanelsOf(p, layout, sums, 1, 0, p.gates);
}

struct RecurrentState {
  int port = -1;  // -1: `held`, or zeros where that is empty.
  Tensor held;
};

class Recurrent : public Kernel {
 public:
  Status Prepare(const GroupContext& context, const KeptOperator& kept);
  Status Run(const RunContext& context, Inputs inputs, Outputs outputs) override;
  size_t scratch_bytes() const override {
    return AlignUp(static_cast<size_t>(layout_.floats) * sizeof(float));
  }

 private:
  friend class RecurrentWalk;
  Status Pack(const GroupContext& context, const KeptOperands& operands);
  Status ReadLengths(Inputs inputs);

  RecurrentProblem p_;
  RecurrentLayout layout_{RecurrentProblem{.steps = 1, .batch = 1}, 1, 1};
  const RecurrentLoops* loops_ = nullptr;
  RecurrentWeights weights_;
  int cores_ = 1;
  int x_ = -1;
  RecurrentState h_, c_, given_lengths_;
  DType lengths_dtype_ = DType::kInt32;
  int results_[3] = {-1, -1, -1};  // Ports of Y, Y_h, Y_c.
  std::vector<int64_t> lengths_;   // By batch item, of this run.
  Tensor x_held_;
};

// A part of a run: one direction of some slices.
class RecurrentWalk {
 public:
  struct Task {
    const Recurrent& kernel;
    Inputs inputs;
    Outputs outputs;
    float* scratch;
    Team* team;  // Null: nobody shares the direction.
    int64_t direction, first, last;
    const float* x;
    float* own;  // What quantization leaves of states.
  };
  explicit RecurrentWalk(const Task& task)
      : task_(task), k_(task.kernel), p_(k_.p_), layout_(k_.layout_) {}

  void Run() {
    Begin();
    const int64_t longest = *std::ranges::max_element(k_.lengths_);
    for (int64_t s = 0; s < longest; ++s) {
      chunk_ = s / layout_.chunk * layout_.chunk;
      if (s == chunk_) MultiplyInputs(std::min(longest, s + layout_.chunk));
      Wait();
      Step(s);
    }
    End();
  }

 private:
  // Pointers to the rows that a loop takes at once.
  struct Rows {
    int64_t count = 0;
    const float* in[kRowsMax];
    float* gates[kRowsMax];
    float* recurrent[kRowsMax];
    float* cell[kRowsMax];
    float* out[kRowsMax];
    float* result[kRowsMax];
  };

  void Wait() {
    if (task_.team != nullptr) task_.team->Barrier();
  }
  // Returns the time step that batch item `b` has at step `s`.
  int64_t TimeOf(int64_t s, int64_t b) const {
    const bool reverse = task_.direction == 1 || p_.first_is_reverse;
    return reverse ? k_.lengths_[b] - 1 - s : s;
  }
  int64_t Row(int64_t b) const { return task_.direction * p_.batch + b; }
  // The state of a batch item before step `s`.
  float* State(int64_t s, int64_t b) const {
    return task_.scratch + (s % 2 == 0 ? 0 : layout_.before) + Row(b) * layout_.padded;
  }
  float* CellOf(int64_t b) const { return task_.scratch + layout_.cell + Row(b) * layout_.padded; }
  float* Gates(int64_t s, int64_t b) const {
    const int64_t row = (task_.direction * layout_.chunk + s - chunk_) * p_.batch + b;
    return task_.scratch + layout_.sums + row * layout_.gates;
  }
  float* Result(int64_t t, int64_t b) const {
    const int port = k_.results_[0];
    if (port < 0) return nullptr;
    return static_cast<float*>(task_.outputs[port]) + p_.ResultAt(t, task_.direction, b);
  }
  const float* Given(const RecurrentState& state, int64_t b) const {
    const void* from = state.port >= 0              ? task_.inputs[state.port]
                       : state.held.bytes().empty() ? nullptr
                                                    : state.held.bytes().data();
    if (from == nullptr) return nullptr;
    return static_cast<const float*>(from) + p_.StateAt(task_.direction, b);
  }
  const float* Panel(const AlignedBuffer& panels, int64_t slice, int64_t columns,
                     int64_t gates) const {
    const int64_t at = (task_.direction * layout_.slices + slice) * columns * gates;
    return panels.As<float>() + at * layout_.lanes;
  }
  // Units of a slice that are not padding.
  int64_t Units(int64_t slice) const {
    return std::min(layout_.lanes, p_.hidden - slice * layout_.lanes);
  }

  void Begin();
  void MultiplyInputs(int64_t end);
  void MultiplyInputs(const Rows& rows);
  void Step(int64_t s);
  void StepSlice(const Rows& rows, int64_t slice);
  void ResetSlice(const Rows& rows, int64_t slice);
  void UpdateSlice(const Rows& rows, int64_t slice);
  void GiveSlice(const Rows& rows, int64_t slice);
  void Gather(int64_t s, int64_t* b, Rows* rows) const;
  void End();

  const Task task_;
  const Recurrent& k_;
  const RecurrentProblem& p_;
  const RecurrentLayout& layout_;
  int64_t chunk_ = 0;  // The first step of the chunk.
};

// Copies the given states of the part's slices to where the steps find them.
void RecurrentWalk::Begin() {
  const int64_t at = task_.first * layout_.lanes;
  const int64_t padded = (task_.last - task_.first) * layout_.lanes;
  const int64_t units = std::min(padded, p_.hidden - at);
  for (int64_t b = 0; b < p_.batch; ++b) {
    const auto copy = [&](const float* from, float* to) {
      std::fill_n(to + at, padded, 0.0f);
      if (from != nullptr) std::copy_n(from + at, units, to + at);
    };
    copy(Given(k_.h_, b), State(0, b));
    if (p_.cell == Cell::kLstm) copy(Given(k_.c_, b), CellOf(b));
  }
}

void RecurrentWalk::MultiplyInputs(int64_t end) {
  Rows rows;
  for (int64_t s = chunk_; s < end; ++s) {
    for (int64_t b = 0; b < p_.batch; ++b) {
      if (s >= k_.lengths_[b]) continue;
      rows.in[rows.count] = task_.x + p_.InputAt(TimeOf(s, b), b);
      rows.gates[rows.count] = Gates(s, b);
      if (++rows.count == kRowsMax) MultiplyInputs(rows), rows.count = 0;
    }
  }
  MultiplyInputs(rows);
}

void RecurrentWalk::MultiplyInputs(const Rows& rows) {
  for (int64_t slice = task_.first; slice < task_.last; ++slice) {
    k_.loops_->product({.rows = rows.count,
                        .k = p_.input,
                        .gates = p_.gates,
                        .in = rows.in,
                        .panel = Panel(k_.weights_.w, slice, p_.input, p_.gates),
                        .start = Panel(k_.weights_.bias, slice, 1, p_.gates),
                        .out = rows.gates,
                        .at = slice * p_.gates * layout_.lanes});
  }
}

// Fills in the rows that have a step `s`, from batch item *b on.
void RecurrentWalk::Gather(int64_t s, int64_t* b, Rows* rows) const {
  rows->count = 0;
  for (; *b < p_.batch && rows->count < kRowsMax; ++*b) {
    if (s >= k_.lengths_[*b]) continue;
    const int64_t i = rows->count++;
    rows->in[i] = State(s, *b);
    rows->gates[i] = Gates(s, *b);
    rows->recurrent[i] = task_.scratch + layout_.recurrent + Row(*b) * layout_.gates;
    rows->cell[i] = CellOf(*b);
    rows->out[i] = State(s + 1, *b);
    rows->result[i] = Result(TimeOf(s, *b), *b);
  }
  if (!p_.quantized) return;
  auto* const bytes = reinterpret_cast<uint8_t*>(task_.own);
  for (int64_t i = 0; i < rows->count; ++i) {
    float* const read = task_.own + (i + 1) * layout_.padded;
    RoundTripBytes(rows->in[i], bytes, read, p_.hidden);
    rows->in[i] = read;
  }
}

void RecurrentWalk::Step(int64_t s) {
  Rows rows;
  for (int64_t b = 0; b < p_.batch;) {
    Gather(s, &b, &rows);
    for (int64_t slice = task_.first; slice < task_.last; ++slice) {
      p_.cell == Cell::kGru ? ResetSlice(rows, slice) : StepSlice(rows, slice);
    }
  }
  if (p_.cell != Cell::kGru) return;
  Wait();
  for (int64_t b = 0; b < p_.batch;) {
    Gather(s, &b, &rows);
    for (int64_t slice = task_.first; slice < task_.last; ++slice) UpdateSlice(rows, slice);
  }
}

void RecurrentWalk::StepSlice(const Rows& rows, int64_t slice) {
  const bool linear = p_.cell == Cell::kLinearGru;
  const int64_t gates_at = slice * p_.gates * layout_.lanes;
  k_.loops_->product({.rows = rows.count,
                      .k = p_.hidden,
                      .gates = p_.gates,
                      .in = rows.in,
                      .panel = Panel(k_.weights_.r, slice, p_.hidden, p_.gates),
                      .start = linear ? Panel(k_.weights_.recurrent_bias, slice, 1, 3) : nullptr,
                      .out = linear ? rows.recurrent : rows.gates,
                      .at = gates_at});
  k_.loops_->cells({.step = p_.cell == Cell::kLstm      ? CellStep::kLstm
                            : linear                    ? CellStep::kLinearGru
                            : p_.cell == Cell::kReluRnn ? CellStep::kRelu
                                                        : CellStep::kTanh,
                    .rows = rows.count,
                    .gates = rows.gates,
                    .recurrent = rows.recurrent,
                    .gates_at = gates_at,
                    .h = rows.in,
                    .c = rows.cell,
                    .out = rows.out,
                    .at = slice * layout_.lanes});
  GiveSlice(rows, slice);
}

// The first half of a GRU's step: update, reset, and the state after the reset.
void RecurrentWalk::ResetSlice(const Rows& rows, int64_t slice) {
  const int64_t gates_at = slice * 3 * layout_.lanes;
  k_.loops_->product({.rows = rows.count,
                      .k = p_.hidden,
                      .gates = 2,
                      .in = rows.in,
                      .panel = Panel(k_.weights_.r, slice, p_.hidden, 2),
                      .out = rows.gates,
                      .at = gates_at});
  k_.loops_->cells({.step = CellStep::kGruReset,
                    .rows = rows.count,
                    .gates = rows.gates,
                    .gates_at = gates_at,
                    .h = rows.in,
                    .c = rows.cell,
                    .out = rows.out,
                    .at = slice * layout_.lanes});
}

void RecurrentWalk::UpdateSlice(const Rows& rows, int64_t slice) {
  const int64_t gates_at = slice * 3 * layout_.lanes;
  k_.loops_->product({.rows = rows.count,
                      .k = p_.hidden,
                      .gates = 1,
                      .in = rows.cell,
                      .panel = Panel(k_.weights_.candidate, slice, p_.hidden, 1),
                      .out = rows.gates,
                      .at = gates_at + 2 * layout_.lanes});
  k_.loops_->cells({.step = CellStep::kGruUpdate,
                    .rows = rows.count,
                    .gates = rows.gates,
                    .gates_at = gates_at,
                    .h = rows.in,
                    .out = rows.out,
                    .at = slice * layout_.lanes});
  GiveSlice(rows, slice);
}

void RecurrentWalk::GiveSlice(const Rows& rows, int64_t slice) {
  const int64_t at = slice * layout_.lanes, units = Units(slice);
  for (int64_t i = 0; i < rows.count && rows.result[i] != nullptr; ++i) {
    std::copy_n(rows.out[i] + at, units, rows.result[i] + at);
  }
}

// Writes the last states, and zeros where a sequence has ended.
void RecurrentWalk::End() {
  const int64_t at = task_.first * layout_.lanes;
  const int64_t units = std::min(task_.last * layout_.lanes, p_.hidden) - at;
  for (int64_t b = 0; b < p_.batch; ++b) {
    const int64_t length = k_.lengths_[b];
    const float* const from[] = {State(length, b), CellOf(b)};
    for (size_t i = 0; i < 2; ++i) {
      const int port = k_.results_[i + 1];
      if (port < 0) continue;
      auto* to = static_cast<float*>(task_.outputs[port]) + p_.StateAt(task_.direction, b);
      std::copy_n(from[i] + at, units, to + at);
    }
    for (int64_t t = length; t < p_.steps && k_.results_[0] >= 0; ++t) {
      std::fill_n(Result(t, b) + at, units, 0.0f);
    }
  }
}

Status Recurrent::Prepare(const GroupContext& context, const KeptOperator& kept) {
  const KeptOperands operands(context, kept);
  AG_LET(p_, RecurrentProblemOf(kept, operands));
  loops_ = &RecurrentLoopsFor(InstructionSet());
  cores_ = context.cores;
  layout_ = RecurrentLayout(p_, loops_->lanes, std::max<int64_t>(cores_, p_.directions));
  for (size_t i = 0; i < 3; ++i) results_[i] = operands.OutputPort(i);
  lengths_.assign(static_cast<size_t>(p_.batch), p_.steps);
  const auto bind = [&](size_t i, RecurrentState* state) -> Status {
    if (!operands.Has(i)) return OkStatus();
    state->port = context.InputOf(operands.At(i));
    if (state->port >= 0 || context.constants == nullptr) return OkStatus();
    AG_LET(state->held, context.constants->Get(operands.At(i)));
    return OkStatus();
  };
  RecurrentState x;
  AG_TRY(bind(0, &x));
  x_ = x.port;
  x_held_ = std::move(x.held);
  AG_TRY(bind(4, &given_lengths_));
  AG_TRY(bind(5, &h_));
  AG_TRY(bind(6, &c_));
  if (operands.Has(4)) lengths_dtype_ = context.graph.type(operands.At(4)).dtype;
  if (lengths_dtype_ != DType::kInt32) return RefuseForm(kept);
  return context.constants == nullptr ? OkStatus() : Pack(context, operands);
}

// Returns quantized weights [directions, columns, rows] as numbers [directions, rows, columns].
StatusOr<Tensor> NumbersOf(const GroupContext& context, const KeptOperands& operands, size_t i,
                           size_t scale_at, size_t zero_at) {
  AG_LET(const Tensor given, context.constants->Get(operands.At(i)));
  AG_LET(const Tensor scale, context.constants->Get(operands.At(scale_at)));
  AG_LET(const Tensor zero, context.constants->Get(operands.At(zero_at)));
  const Shape& s = given.type().shape;
  Tensor made = Tensor::Zeros({DType::kFloat32, {s[0], s[2], s[1]}});
  const std::span<float> to = made.Mutable<float>();
  const auto of = [&](const Tensor& tensor, int64_t d, int64_t row) {
    return tensor.At(tensor.type().NumElements() == s[0] ? d : d * s[2] + row);
  };
  for (int64_t d = 0; d < s[0]; ++d) {
    for (int64_t row = 0; row < s[2]; ++row) {
      const double by = of(scale, d, row), shift = of(zero, d, row);
      for (int64_t k = 0; k < s[1]; ++k) {
        to[(d * s[2] + row) * s[1] + k] =
            static_cast<float>((given.At((d * s[1] + k) * s[2] + row) - shift) * by);
      }
    }
  }
  return made;
}

Status Recurrent::Pack(const GroupContext& context, const KeptOperands& operands) {
  const auto weights = [&](size_t i, size_t scale, size_t zero) {
    return p_.quantized ? NumbersOf(context, operands, i, scale, zero)
                        : context.constants->Get(operands.At(i));
  };
  AG_LET(const Tensor w, weights(1, kWScale, kWZero));
  AG_LET(const Tensor r, weights(2, kRScale, kRZero));
  Tensor bias;
  if (operands.Has(3)) {
    AG_LET(bias, context.constants->Get(operands.At(3)));
  }
  const int64_t multiplied_first = p_.cell == Cell::kGru ? 2 : p_.gates;
  AG_LET(weights_.w, PanelsOf(p_, layout_, w, p_.input, 0, p_.gates));
  AG_LET(weights_.r, PanelsOf(p_, layout_, r, p_.hidden, 0, multiplied_first));
  if (p_.cell == Cell::kGru) {
    AG_LET(weights_.candidate, PanelsOf(p_, layout_, r, p_.hidden, 2, 1));
  }
  const bool linear = p_.cell == Cell::kLinearGru;
  const Tensor* given = operands.Has(3) ? &bias : nullptr;
  const int64_t merged = linear ? 2 : p_.gates;
  AG_LET(weights_.bias, BiasOf(p_, layout_, given, merged, /*of_r=*/false));
  if (!linear) return OkStatus();
  AG_LET(weights_.recurrent_bias, BiasOf(p_, layout_, given, merged, /*of_r=*/true));
  return OkStatus();
}

Status Recurrent::ReadLengths(Inputs inputs) {
  const void* given = given_lengths_.port >= 0              ? inputs[given_lengths_.port]
                      : given_lengths_.held.bytes().empty() ? nullptr
                                                            : given_lengths_.held.bytes().data();
  if (given == nullptr) return OkStatus();
  for (int64_t b = 0; b < p_.batch; ++b) {
    lengths_[b] = static_cast<const int32_t*>(given)[b];
    if (lengths_[b] >= 0 && lengths_[b] <= p_.steps) continue;
    return Err(StatusCode::kOutOfRange, "a sequence length is {}, the input has {} steps",
               lengths_[b], p_.steps);
  }
  return OkStatus();
}

Status Recurrent::Run(const RunContext& context, Inputs inputs, Outputs outputs) {
  AG_TRY(ReadLengths(inputs));
  auto* scratch = reinterpret_cast<float*>(context.scratch);
  const auto* x = static_cast<const float*>(x_ >= 0 ? inputs[x_] : x_held_.bytes().data());
  if (p_.quantized) {
    float* const read = scratch + layout_.read;
    RoundTripBytes(x, reinterpret_cast<uint8_t*>(read + p_.inputs()), read, p_.inputs());
    x = read;
  }
  const auto walk = [&](int64_t direction, int64_t share, int64_t shares) {
    RecurrentWalk(
        {.kernel = *this,
         .inputs = inputs,
         .outputs = outputs,
         .scratch = scratch,
         .team = shares > 1 ? Team::Here().team : nullptr,
         .direction = direction,
         .first = layout_.slices * share / shares,
         .last = layout_.slices * (share + 1) / shares,
         .x = x,
         .own = scratch + layout_.own + (direction + share * p_.directions) * layout_.own_floats})
        .Run();
  };
  const int64_t operations = p_.batch * p_.gates * p_.hidden * p_.hidden;
  if (cores_ > 1 && !Team::Here().inside) {
    const TeamScope scope(cores_);
    const int64_t size = std::min<int64_t>(scope.team().size(), cores_);
    const int64_t wanted = std::clamp<int64_t>(2 * operations / kStepOperations, 1, layout_.slices);
    const int64_t shares =
        std::clamp<int64_t>(wanted, 1, std::max<int64_t>(1, size / p_.directions));
    if (size >= p_.directions && shares * p_.directions > 1) {
      scope.team().Run(static_cast<int>(shares * p_.directions),
                       [&](int part) { walk(part % p_.directions, part / p_.directions, shares); });
      return OkStatus();
    }
  }
  for (int64_t d = 0; d < p_.directions; ++d) walk(d, 0, 1);
  return OkStatus();
}

}  // namespace

StatusOr<std::unique_ptr<Kernel>> MakeRecurrent(const GroupContext& context,
                                                const KeptOperator& kept) {
  return PreparedKept<Recurrent>(context, kept);
}

}  // namespace ag::cpu

#include "device/cpu/chain.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "device/cpu/chain_pass.h"
#include "device/cpu/chain_space.h"
#include "device/cpu/half_loops.h"

namespace ag::cpu {
namespace {

bool IsSupported(const GroupContext& context, DType dtype) {
  if (IsHalf(dtype)) return context.IsComputed(dtype);
  return dtype != DType::kUInt64 && dtype < DType::kString;
}

// Returns the type that values of a graph's type have between two steps.
DType HeldDType(DType dtype) { return dtype == DType::kBFloat16 ? DType::kFloat32 : dtype; }

// Returns the shape of operand `index` for broadcasting: batch norm's vectors lie along axis 1.
Shape OperandShape(const Graph& graph, const Node& node, size_t index) {
  const Shape& shape = graph.type(node.inputs[index]).shape;
  if (node.op != OpKind::kBatchNorm || index == 0) return shape;
  Shape lifted(node.outputs[0].shape.size() - 1, 1);
  lifted[0] = shape[0];
  return lifted;
}

// Compiles the ancestors of some outputs, all of one shape and layout, into one pass. Invariant:
// values are numbered in the order of the nodes, so each instruction reads only values with smaller
// numbers.
template <class T>
class Compiler {
 public:
  Compiler(const GroupContext& context, size_t first, std::span<const ChainSource> sources,
           std::vector<Tensor>* held)
      : context_(context), first_(first), sources_(sources), held_(held) {}

  StatusOr<Pass<T>> Compile(const std::vector<int>& output_slots) {
    const Port& port = context_.group.outputs[output_slots[0]];
    layout_ = port.layout;
    pass_.space = SpaceOf(context_.graph.type(port.edge), layout_);
    if (pass_.space.dims.size() > kSpaceRankMax) {
      return Err(StatusCode::kUnimplemented, "chain: rank above {}", kSpaceRankMax);
    }
    for (const size_t i : Needed(output_slots)) AG_TRY(AddNode(context_.node(i), i));
    for (const int slot : output_slots) {
      const Edge edge = context_.group.outputs[slot].edge;
      int value = made_.at(edge);
      if constexpr (std::is_same_v<T, float>) {
        const auto& rounding = context_.rounding;
        if (!rounding.empty() && IsHalf(rounding[static_cast<size_t>(slot)])) {
          value = Emit(RoundToHalfOp(rounding[static_cast<size_t>(slot)]), value);
        }
      }
      pass_.outputs.push_back({slot, context_.graph.type(edge).dtype, value});
    }
    Collapse(&pass_.space, &pass_.inputs);
    for (PassInput& input : pass_.inputs) {
      SetForm(pass_.space, LiesAsHeld<T>(input.dtype), &input);
      const bool is_short =
          input.form == PassInput::Form::kRepeat && input.repeat.period < kLongPeriod;
      if (is_short)
        pass_.block = std::max(pass_.block / input.repeat.period, int64_t{1}) * input.repeat.period;
    }
    JoinSteps();
    AssignRegisters();
    return std::move(pass_);
  }

 private:
  // Returns the positions in group.nodes that the outputs depend on, ascending.
  std::vector<size_t> Needed(const std::vector<int>& output_slots) const {
    std::set<NodeId> wanted;
    for (const int slot : output_slots) wanted.insert(context_.group.outputs[slot].edge.node);
    std::vector<size_t> needed;
    for (size_t i = context_.group.nodes.size(); i-- > first_;) {
      if (!wanted.contains(context_.group.nodes[i])) continue;
      needed.push_back(i);
      for (const Edge& e : context_.node(i).inputs) wanted.insert(e.node);
    }
    std::reverse(needed.begin(), needed.end());
    return needed;
  }

  int NewValue() { return values_++; }

  int Emit(BlockOp<T> op, int a, int b = -1, int c = -1) {
    Instruction<T> step{.op = op, .out = NewValue()};
    for (const int value : {a, b, c}) {
      if (value >= 0) step.read[step.reads++] = value;
    }
    pass_.code.push_back(step);
    return step.out;
  }

  StatusOr<int> AddInput(PassInput input, const Shape& shape, Layout layout) {
    if (layout_ == Layout::kChannelsLast) {
      AG_LET(input.strides, ChannelsLastStrides(shape, layout));
    } else if (layout_ == Layout::kPlain) {
      if (layout != Layout::kPlain) {
        return Err(StatusCode::kUnimplemented, "chain: {} operand of a plain result",
                   LayoutName(layout));
      }
      input.strides = PlainStrides(shape, pass_.space.dims.size());
    } else {
      AG_LET(input.strides, BlockedStrides(shape, layout, BlockOf(layout_)));
    }
    input.value = NewValue();
    pass_.inputs.push_back(input);
    return input.value;
  }

  StatusOr<int> AddConstant(const Tensor& value, const Shape& shape) {
    Tensor tensor = value;
    if (BlockOf(layout_) > 1) tensor = PaddedConstant(tensor, shape, BlockOf(layout_));
    held_->push_back(tensor);
    const bool blocked = BlockOf(layout_) > 1;
    return AddInput({.constant = tensor.bytes().data(), .dtype = value.type().dtype}, shape,
                    blocked ? layout_ : Layout::kPlain);
  }

  // Returns the value of an operand: made by an earlier node, before the chain, by another group,
  // or a constant.
  StatusOr<int> Operand(const Node& node, size_t index) {
    const Edge edge = node.inputs[index];
    // Batch norm's vectors lie along another axis than the same tensor does elsewhere.
    const bool is_vector = index > 0 && node.op == OpKind::kBatchNorm;
    const auto found = made_.find(edge);
    if (!is_vector && found != made_.end()) return found->second;
    const Shape shape = OperandShape(context_.graph, node, index);
    const DType dtype = context_.graph.type(edge).dtype;
    if (!IsSupported(context_, dtype)) {
      return Err(StatusCode::kUnimplemented, "chain: element type {}", DTypeName(dtype));
    }
    for (const ChainSource& source : sources_) {
      if (source.port.edge != edge) continue;
      AG_LET(const int value,
             AddInput({.slot = source.slot, .dtype = dtype}, shape, source.port.layout));
      return made_[edge] = value;
    }
    if (const int slot = context_.InputOf(edge); slot >= 0) {
      AG_LET(const int value,
             AddInput({.slot = slot, .dtype = dtype}, shape, context_.group.inputs[slot].layout));
      if (!is_vector) made_[edge] = value;
      return value;
    }
    if (context_.constants == nullptr) return NewValue();
    AG_LET(const Tensor tensor, Constant(edge));
    return AddConstant(tensor, shape);
  }

  StatusOr<Tensor> Constant(Edge edge) {
    const bool is_float = context_.IsComputed(context_.graph.type(edge).dtype);
    return (is_float ? context_.FloatConstants() : context_.constants)->Get(edge);
  }

  Status AddNode(const Node& node, size_t i) {
    const Edge edge{context_.group.nodes[i], 0};
    if (!IsSupported(context_, node.outputs[0].dtype)) {
      return Err(StatusCode::kUnimplemented, "chain: element type {}",
                 DTypeName(node.outputs[0].dtype));
    }
    if (node.op == OpKind::kBatchNorm) {
      AG_LET(const int result, BatchNorm(node));
      made_[edge] = Rounded(node.outputs[0].dtype, result);
      return OkStatus();
    }
    if (!Has(node.op, kElementwise)) {
      return Err(StatusCode::kUnimplemented, "chain: {} is not element-wise", Info(node.op).name);
    }
    int operands[3] = {-1, -1, -1};
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      AG_LET(operands[k], Operand(node, k));
    }
    if constexpr (std::is_same_v<T, double>) {
      made_[edge] = EmitMixed(node, operands);
    } else {
      made_[edge] = Emit(BlockOpOf<T>(node), operands[0], operands[1], operands[2]);
    }
    return OkStatus();
  }

  // Computes the node on integers where its operands are, else on numbers.
  int EmitMixed(const Node& node, std::span<int, 3> operands) {
    const DType to = HeldDType(node.outputs[0].dtype);
    const auto is_integer = [&](size_t k) {
      return IsInteger(context_.graph.type(node.inputs[k]).dtype);
    };
    if (node.op == OpKind::kCast && (is_integer(0) || IsInteger(to))) {
      if (!is_integer(0)) return Emit(NumberToIntegerOp(to), operands[0]);
      return Emit(IsInteger(to) ? WrapOp(to) : IntegerToNumberOp(to), operands[0]);
    }
    const size_t first = node.op == OpKind::kWhere ? 1 : 0;
    if (const BlockOp<T> op = IntegerOpOf(node); op.run != nullptr && is_integer(first)) {
      const int value = Emit(op, operands[0], operands[1], operands[2]);
      return IsInteger(to) && to != DType::kInt64 ? Emit(WrapOp(to), value) : value;
    }
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      if (is_integer(k)) operands[k] = Emit(IntegerToNumberOp(DType::kFloat64), operands[k]);
    }
    const int value = Emit(BlockOpOf<T>(node), operands[0], operands[1], operands[2]);
    return IsInteger(to) ? Emit(NumberToIntegerOp(to), value) : Rounded(to, value);
  }

  // Returns what is left of a number when it is stored as `dtype` and read again. A pass in doubles
  // that holds an f32 between two nodes must give what the nodes give one by one: floor(x / y * z)
  // at a whole number hangs on the last bit of the product.
  int Rounded(DType dtype, int value) {
    if constexpr (std::is_same_v<T, double>) {
      if (HeldDType(dtype) == DType::kFloat32) return Emit(RoundOp(DType::kFloat32), value);
    }
    return value;
  }

  StatusOr<int> BatchNorm(const Node& node) {
    AG_LET(const int x, Operand(node, 0));
    bool constant = context_.constants != nullptr;
    for (size_t k = 1; k < 5; ++k) constant &= context_.InputOf(node.inputs[k]) < 0;
    if (constant) return ScaleShift(node, x);
    AG_LET(const int scale, Operand(node, 1));
    AG_LET(const int bias, Operand(node, 2));
    AG_LET(const int mean, Operand(node, 3));
    AG_LET(const int variance, Operand(node, 4));
    const auto binary = [](OpKind op) {
      Node plain{.op = op};
      plain.SetFacts({.attributes = nullptr, .outputs = {TensorType{}}});
      return BlockOpOf<T>(plain);
    };
    const int root = Emit(SqrtOp<T>(), Emit(AddNumberOp<T>(node.Float("epsilon")), variance));
    const int centred = Emit(binary(OpKind::kSub), x, mean);
    const int scaled = Emit(binary(OpKind::kMul), Emit(binary(OpKind::kDiv), centred, root), scale);
    return Emit(binary(OpKind::kAdd), scaled, bias);
  }

  // Computes batch norm with constant statistics as x * scale + shift per channel.
  StatusOr<int> ScaleShift(const Node& node, int x) {
    Tensor parameters[4];
    for (size_t k = 0; k < 4; ++k) {
      AG_LET(parameters[k], Constant(node.inputs[k + 1]));
    }
    const TensorType type = parameters[0].type();
    Tensor scale = Tensor::Zeros(type), shift = Tensor::Zeros(type);
    for (int64_t c = 0; c < type.NumElements(); ++c) {
      const double factor =
          parameters[0].At(c) / std::sqrt(parameters[3].At(c) + node.Float("epsilon"));
      scale.Put(c, factor);
      shift.Put(c, parameters[1].At(c) - parameters[2].At(c) * factor);
    }
    const Shape shape = OperandShape(context_.graph, node, 1);
    AG_LET(const int a, AddConstant(scale, shape));
    AG_LET(const int b, AddConstant(shift, shape));
    return Emit(ScaleShiftOp<T>(), x, a, b);
  }

  // Joins each step with the only reader of what it makes, where one loop computes both: registers
  // are read and written once less.
  void JoinSteps() {
    std::vector<int> reads(values_, 0), maker(values_, -1);  // Maker: its position in `code`.
    for (const Instruction<T>& step : pass_.code) {
      for (const int value : step.operands()) ++reads[value];
    }
    for (const PassOutput& output : pass_.outputs) ++reads[output.value];
    std::vector<Instruction<T>> code;
    const auto join = [&](Instruction<T>* step) {
      for (const int value : step->operands()) {
        if (maker[value] < 0 || reads[value] != 1) continue;
        Instruction<T>& first = code[static_cast<size_t>(maker[value])];
        if (!Join(first, value, step)) continue;
        first.op.run = nullptr;
        return true;
      }
      return false;
    };
    for (Instruction<T> step : pass_.code) {
      while (join(&step)) continue;
      maker[step.out] = static_cast<int>(code.size());
      code.push_back(step);
    }
    std::erase_if(code, [](const Instruction<T>& step) { return step.op.run == nullptr; });
    pass_.code = std::move(code);
  }

  // Makes `step` compute `first` as well, which makes its operand `value`.
  static bool Join(const Instruction<T>& first, int value, Instruction<T>* step) {
    const auto op = JoinedOp(first.op, step->op);
    if (!op) return false;
    Instruction<T> joined = first;
    joined.op = *op;
    joined.out = step->out;
    for (const int other : step->operands()) {
      if (other != value) joined.read[joined.reads++] = other;
    }
    *step = joined;
    return true;
  }

  // Leaves dense values of type T, and long runs, in memory; gives each other value a register.
  void AssignRegisters() {
    pass_.register_of.assign(values_, -1);
    for (const PassInput& input : pass_.inputs) pass_.register_of[input.value] = 0;
    for (const Instruction<T>& step : pass_.code) pass_.register_of[step.out] = 0;
    for (const PassInput& input : pass_.inputs) {
      const bool lies_so =
          input.form == PassInput::Form::kDense ||
          (input.form == PassInput::Form::kRepeat && input.repeat.period >= kLongPeriod);
      if (lies_so && LiesAsHeld<T>(input.dtype)) pass_.register_of[input.value] = -1;
    }
    for (const PassOutput& output : pass_.outputs) {
      if (LiesAsHeld<T>(output.dtype)) pass_.register_of[output.value] = -1;
    }
    for (int& r : pass_.register_of) {
      if (r == 0) r = pass_.registers++;
    }
  }

  const GroupContext& context_;
  const size_t first_;
  const std::span<const ChainSource> sources_;
  std::vector<Tensor>* held_;
  Layout layout_ = Layout::kPlain;
  int values_ = 0;
  std::map<Edge, int> made_;
  Pass<T> pass_;
};

// Returns true when floats can hold every value: f32, bf16 where kernels take it, and bool as 0 and
// 1. What is only cast to f32 is so when it is read.
bool FitsFloat(const GroupContext& context, size_t first) {
  const auto fits = [&](DType d) { return context.IsComputed(d) || d == DType::kBool; };
  for (size_t i = first; i < context.group.nodes.size(); ++i) {
    const Node& node = context.node(i);
    if (!fits(node.outputs[0].dtype)) return false;
    if (node.op == OpKind::kCast && context.IsComputed(node.outputs[0].dtype)) continue;
    for (const Edge& e : node.inputs) {
      if (!fits(context.graph.type(e).dtype)) return false;
    }
  }
  return true;
}

// Returns the output slots, grouped by shape and layout.
std::vector<std::vector<int>> PassesOf(const GroupContext& context) {
  std::vector<std::vector<int>> passes;
  const auto& outputs = context.group.outputs;
  for (int slot = 0; slot < static_cast<int>(outputs.size()); ++slot) {
    const auto same = [&](const std::vector<int>& pass) {
      const Port& port = outputs[pass[0]];
      return port.layout == outputs[slot].layout &&
             context.graph.type(port.edge).shape == context.graph.type(outputs[slot].edge).shape;
    };
    const auto found = std::find_if(passes.begin(), passes.end(), same);
    if (found == passes.end()) {
      passes.push_back({slot});
    } else {
      found->push_back(slot);
    }
  }
  return passes;
}

template <class T>
class Chain : public Kernel {
 public:
  Status Prepare(const GroupContext& context, size_t first, std::span<const ChainSource> sources) {
    cores_ = context.cores;
    rounds_ = std::is_same_v<T, float> && !context.rounding.empty();
    size_t registers = 0, pointers = 0;
    for (const std::vector<int>& slots : PassesOf(context)) {
      AG_LET(Pass<T> pass, Compiler<T>(context, first, sources, &held_).Compile(slots));
      registers = std::max<size_t>(registers, pass.registers);
      pointers = std::max(pointers, pass.register_of.size());
      passes_.push_back(std::move(pass));
    }
    AG_LET(registers_, AlignedBuffer::Make(registers * cores_ * kBlock * sizeof(T)));
    AG_LET(pointers_, AlignedBuffer::Make(2 * pointers * cores_ * sizeof(T*)));
    return OkStatus();
  }

  Status Run(const RunContext&, Inputs inputs, Outputs outputs) override {
    for (const Pass<T>& pass : passes_) {
      RunPass(pass, cores_, registers_.As<T>(), pointers_.As<T*>(), inputs, outputs);
    }
    return OkStatus();
  }
  bool rounds() const override { return rounds_; }

  // REQUIRES: one pass.
  void Part(int64_t begin, int64_t end, int worker, Inputs inputs, Outputs outputs) {
    RunPart(passes_[0], begin, end, worker, registers_.As<T>(), pointers_.As<T*>(), inputs,
            outputs);
  }

 private:
  int cores_ = 1;
  bool rounds_ = false;
  std::vector<Tensor> held_;
  std::vector<Pass<T>> passes_;
  AlignedBuffer registers_, pointers_;
};

class FloatParts : public ChainParts {
 public:
  Status Prepare(const GroupContext& context) { return chain_.Prepare(context, 0, {}); }
  void Run(int64_t begin, int64_t end, int worker, Inputs inputs, Outputs outputs) override {
    chain_.Part(begin, end, worker, inputs, outputs);
  }

 private:
  Chain<float> chain_;
};

template <class T>
StatusOr<std::unique_ptr<Kernel>> MakeOf(const GroupContext& context, size_t first,
                                         std::span<const ChainSource> sources) {
  auto chain = std::make_unique<Chain<T>>();
  AG_TRY(chain->Prepare(context, first, sources));
  return chain;
}

StatusOr<std::vector<std::string>> ChainNames(const GroupContext& context) {
  AG_TRY(CheckChain(context, 0));
  return std::vector<std::string>{"fused"};
}

StatusOr<std::unique_ptr<Kernel>> MakeChainKernel(const GroupContext& context, const std::string&,
                                                  size_t* done) {
  *done = context.group.nodes.size();
  return MakeChain(context, 0, {});
}

}  // namespace

StatusOr<std::unique_ptr<Kernel>> MakeChain(const GroupContext& context, size_t first,
                                            std::span<const ChainSource> sources) {
  return FitsFloat(context, first) ? MakeOf<float>(context, first, sources)
                                   : MakeOf<double>(context, first, sources);
}

StatusOr<std::unique_ptr<ChainParts>> MakeChainParts(const GroupContext& context) {
  const auto is_plain = [](const Port& port) { return port.layout == Layout::kPlain; };
  if (!FitsFloat(context, 0) || PassesOf(context).size() != 1 ||
      !std::ranges::all_of(context.group.outputs, is_plain)) {
    return Err(StatusCode::kUnimplemented, "chain: no parts of plain f32 of one shape");
  }
  auto parts = std::make_unique<FloatParts>();
  AG_TRY(parts->Prepare(context));
  return parts;
}

Status CheckChain(const GroupContext& context, size_t first) {
  GroupContext without = context;
  without.constants = nullptr;
  return MakeChain(without, first, {}).status();
}

const Family kChainFamily = {ChainNames, MakeChainKernel, true};

}  // namespace ag::cpu

// Attention: two products with softmax between them, computed tile by tile of queries without the
// scores in memory (Rabe and Staats 2021, "Self-attention does not need O(n^2) memory", section 2).
// Transposes of the operands and of the result are read and written as strides.
#include <algorithm>
#include <optional>

#include "base/text.h"
#include "device/cpu/attention_loops.h"
#include "device/cpu/half_loops.h"
#include "device/cpu/host.h"
#include "device/cpu/kernel.h"
#include "device/cpu/parallel.h"
#include "device/cpu/strided.h"

namespace ag::cpu {
namespace {

constexpr int64_t kBlocks[] = {128, 256};  // Keys at a time, best guess first.

Status Refuse(std::string_view why) {
  return Err(StatusCode::kUnimplemented, "attention: {}", why);
}

Ints DenseStrides(const Shape& shape) { return RowMajorStrides({shape.begin(), shape.end()}); }

// A tensor in memory: a port of the group or a constant, behind some transposes.
struct Operand {
  Edge edge;
  int port = -1;
  Tensor held;  // The constant, where port is -1.
  Shape shape;
  Ints strides;
  int64_t elements = 0;  // In memory.

  // Repeats the tensor along axes in front and axes of size 1, so that it has `wanted`.
  bool Broadcast(const Shape& wanted) {
    if (shape.size() > wanted.size()) return false;
    const size_t missing = wanted.size() - shape.size();
    shape.insert(shape.begin(), missing, int64_t{1});
    strides.insert(strides.begin(), missing, 0);
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (shape[i] == 1) strides[i] = 0;
      if (shape[i] != 1 && shape[i] != wanted[i]) return false;
      shape[i] = wanted[i];
    }
    return true;
  }

  template <class T>
  const T* Data(Inputs inputs) const {
    return port >= 0 ? static_cast<const T*>(inputs[port])
                     : reinterpret_cast<const T*>(held.bytes().data());
  }
  // Where the last two axes of one batch item begin. `item` counts the rest in row-major order.
  int64_t OffsetOf(int64_t item) const {
    int64_t offset = 0;
    for (size_t i = shape.size() - 2; i-- > 0;) {
      offset += item % shape[i] * strides[i];
      item /= shape[i];
    }
    return offset;
  }
  template <class T>
  StridedMatrix<const T> Matrix(const T* data, int64_t item) const {
    const size_t rank = shape.size();
    return {data + OffsetOf(item), strides[rank - 2], strides[rank - 1]};
  }
};

struct Step {
  ScoreStep::Kind kind = ScoreStep::Kind::kAdd;
  Operand operand;
};

// softmax(steps(q . k * scale)) . v, with k as [..., depth, keys].
struct Form {
  DType dtype = DType::kFloat32;
  Operand q, k, v, out;  // `out` with the result's axes before its transposes.
  std::vector<Step> steps;
  float scale = 1;
  int64_t queries = 0, keys = 0, depth = 0, width = 0, items = 1;
};

// Reads the form of a group from its nodes.
class Reader {
 public:
  explicit Reader(const GroupContext& context) : context_(context), graph_(context.graph) {}

  StatusOr<Form> Read() {
    AG_TRY(CheckTypes());
    const NodeId last = ReadTransposesOfResult();
    AG_LET(const NodeId probabilities, ReadProduct(last, &form_.v));
    const Node& softmax = graph_.node(probabilities);
    const auto rank = static_cast<int64_t>(softmax.outputs[0].shape.size());
    if (softmax.op != OpKind::kSoftmax || !context_.IsInside(probabilities) ||
        softmax.Int("axis") != rank - 1) {
      return Refuse("no softmax over the keys");
    }
    NodeId scores = softmax.inputs[0].node;
    for (; context_.IsInside(scores) && graph_.node(scores).op != OpKind::kMatMul;
         scores = Inner(scores)) {
      AG_TRY(ReadStep(scores));
    }
    std::ranges::reverse(form_.steps);
    if (!context_.IsInside(scores)) return Refuse("no product in front of the softmax");
    AG_TRY(ReadScores(scores));
    return std::move(form_);
  }

 private:
  // All values are f32, or all are bf16 where kernels take it.
  Status CheckTypes() {
    form_.dtype = graph_.type(context_.group.outputs[0].edge).dtype;
    if (!context_.IsComputed(form_.dtype)) return Refuse("not f32");
    for (const NodeId id : context_.group.nodes) {
      if (graph_.node(id).outputs[0].dtype != form_.dtype) return Refuse("not f32");
    }
    for (const Port& port : context_.group.inputs) {
      if (graph_.type(port.edge).dtype != form_.dtype) return Refuse("not f32");
    }
    if (!ArePlain(context_.group) || context_.group.outputs.size() != 1) {
      return Refuse("not one result in plain layout");
    }
    return OkStatus();
  }

  // Returns the product whose result the group writes. Sets `out`.
  NodeId ReadTransposesOfResult() {
    NodeId id = context_.group.outputs[0].edge.node;
    Operand& out = form_.out;
    out.strides = DenseStrides(graph_.node(id).outputs[0].shape);
    for (; graph_.node(id).op == OpKind::kTranspose; id = graph_.node(id).inputs[0].node) {
      const Ints perm = graph_.node(id).IntList("perm");
      const Ints after = out.strides;
      for (size_t i = 0; i < perm.size(); ++i) out.strides[perm[i]] = after[i];
    }
    out.shape = graph_.node(id).outputs[0].shape;
    return id;
  }

  // Reads the second product, returns the node of its left operand.
  StatusOr<NodeId> ReadProduct(NodeId id, Operand* right) {
    const Node& node = graph_.node(id);
    const size_t rank = node.outputs[0].shape.size();
    if (!context_.IsInside(id) || node.op != OpKind::kMatMul || rank < 2 ||
        graph_.type(node.inputs[0]).shape.size() != rank) {
      return Refuse("no product behind the softmax");
    }
    AG_LET(*right, ReadOperand(node.inputs[1]));
    if (right->shape.size() < 2) return Refuse("values of rank 1");
    Shape wanted = node.outputs[0].shape;
    const Shape& left = graph_.type(node.inputs[0]).shape;
    if (!std::equal(left.begin(), left.end() - 2, wanted.begin())) return Refuse("repeated scores");
    form_.queries = wanted[rank - 2];
    form_.width = wanted[rank - 1];
    form_.keys = left[rank - 1];
    if (form_.keys == 0) return Refuse("no keys");
    for (size_t i = 0; i + 2 < rank; ++i) form_.items *= wanted[i];
    wanted[rank - 2] = form_.keys;
    if (!right->Broadcast(wanted)) return Refuse("values of another shape");
    return node.inputs[0].node;
  }

  Status ReadScores(NodeId id) {
    const Node& node = graph_.node(id);
    Shape wanted = node.outputs[0].shape;
    const size_t rank = wanted.size();
    if (rank != form_.out.shape.size()) return Refuse("scores of another rank");
    AG_LET(form_.q, ReadOperand(node.inputs[0]));
    AG_LET(form_.k, ReadOperand(node.inputs[1]));
    if (form_.q.shape.size() < 2 || form_.k.shape.size() < 2) return Refuse("operands of rank 1");
    form_.depth = form_.q.shape.back();
    wanted[rank - 1] = form_.depth;
    if (!form_.q.Broadcast(wanted)) return Refuse("queries of another shape");
    wanted[rank - 2] = form_.depth;
    wanted[rank - 1] = form_.keys;
    if (!form_.k.Broadcast(wanted)) return Refuse("keys of another shape");
    return OkStatus();
  }

  // Returns the node of the operand that the group makes, of an operator with two.
  NodeId Inner(NodeId id) const {
    const auto& inputs = graph_.node(id).inputs;
    return context_.IsInside(inputs[0].node) ? inputs[0].node : inputs.back().node;
  }

  Status ReadStep(NodeId id) {
    using Kind = ScoreStep::Kind;
    const Node& node = graph_.node(id);
    static constexpr std::pair<OpKind, Kind> kKinds[] = {{OpKind::kAdd, Kind::kAdd},
                                                         {OpKind::kSub, Kind::kSub},
                                                         {OpKind::kMul, Kind::kMul},
                                                         {OpKind::kDiv, Kind::kDiv}};
    const auto* found = std::ranges::find(kKinds, node.op, &std::pair<OpKind, Kind>::first);
    if (found == std::end(kKinds)) return Refuse(Info(node.op).name);
    const bool is_left = context_.IsInside(node.inputs[0].node);
    const bool commutes = node.op == OpKind::kAdd || node.op == OpKind::kMul;
    if (is_left == context_.IsInside(node.inputs[1].node) || (!is_left && !commutes)) {
      return Refuse("an operand that the scores divide or are taken from");
    }
    Step step{found->second, {}};
    AG_LET(step.operand, ReadOperand(node.inputs[is_left ? 1 : 0]));
    if (!step.operand.Broadcast(node.outputs[0].shape)) return Refuse("scores that grow");
    form_.steps.push_back(std::move(step));
    return OkStatus();
  }

  // Follows the transposes of the group in front of an operand.
  StatusOr<Operand> ReadOperand(Edge edge) {
    std::vector<Ints> perms;
    for (; context_.IsInside(edge.node); edge = graph_.node(edge.node).inputs[0]) {
      const Node& node = graph_.node(edge.node);
      if (node.op != OpKind::kTranspose) return Refuse("an operand made inside the group");
      perms.push_back(node.IntList("perm"));
    }
    Operand operand;
    operand.edge = edge;
    operand.port = context_.InputOf(edge);
    operand.shape = graph_.type(edge).shape;
    operand.elements = graph_.type(edge).NumElements();
    operand.strides = DenseStrides(operand.shape);
    for (auto perm = perms.rbegin(); perm != perms.rend(); ++perm) {
      const Shape shape = operand.shape;
      const Ints strides = operand.strides;
      for (size_t i = 0; i < perm->size(); ++i) {
        operand.shape[i] = shape[(*perm)[i]];
        operand.strides[i] = strides[(*perm)[i]];
      }
    }
    if (operand.port < 0 && context_.constants != nullptr) {
      AG_LET(operand.held, context_.FloatConstants()->Get(edge));
      if (operand.held.type().dtype != DType::kFloat32) return Refuse("a constant that is not f32");
    }
    return operand;
  }

  const GroupContext& context_;
  const Graph& graph_;
  Form form_;
};

// Folds a first step by a scalar constant into the scale of the queries.
void FoldScale(Form* form) {
  using Kind = ScoreStep::Kind;
  while (!form->steps.empty()) {
    const Step& step = form->steps[0];
    const bool scales = step.kind == Kind::kMul || step.kind == Kind::kDiv;
    if (!scales || step.operand.port >= 0 || step.operand.held.type().NumElements() != 1) return;
    const float value = *reinterpret_cast<const float*>(step.operand.held.bytes().data());
    if (step.kind == Kind::kMul) form->scale *= value;
    if (step.kind == Kind::kDiv) form->scale /= value;
    form->steps.erase(form->steps.begin());
  }
}

// With elements of type T: float, or uint16_t that holds bf16.
template <class T>
class Attention : public Kernel {
 public:
  Attention(Form form, const AttentionLoops<T>& loops, int64_t block, int cores)
      : form_(std::move(form)),
        loops_(loops),
        block_(std::min(block, form_.keys)),
        cores_(cores),
        steps_(static_cast<size_t>(cores) * form_.steps.size()) {
    for (const Step& step : form_.steps) {
      const bool is_widened = sizeof(T) < sizeof(float) && step.operand.port >= 0;
      operand_floats_.push_back(is_widened ? step.operand.elements : 0);
      widened_bytes_ += AlignUp(operand_floats_.back() * sizeof(float));
    }
  }

  size_t scratch_bytes() const override { return widened_bytes_ + cores_ * ScratchOfWorker(); }

  // Each query tile has about as many vectors as the others.
  Status Run(const RunContext& context, Inputs inputs, Outputs outputs) override {
    const int64_t vectors = (form_.queries + loops_.lanes - 1) / loops_.lanes;
    const int64_t tiles = (vectors + loops_.vectors - 1) / loops_.vectors;
    WidenOperands(context.scratch, inputs);
    ParallelFor(cores_, form_.items * tiles, 1, [&](int64_t begin, int64_t end, int worker) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t t = i % tiles;
        const int64_t first = vectors * t / tiles * loops_.lanes;
        const int64_t last = std::min(vectors * (t + 1) / tiles * loops_.lanes, form_.queries);
        RunTile(i / tiles, first, last, worker, context.scratch, inputs,
                static_cast<T*>(outputs[0]));
      }
    });
    return OkStatus();
  }

 private:
  size_t ScratchOfWorker() const {
    return AlignUp(loops_.ScratchFloats(form_.depth, form_.width, block_) * sizeof(float));
  }

  // Writes the operands of steps that lie as bf16 to the begin of the scratch memory.
  void WidenOperands(std::byte* scratch, Inputs inputs) const {
    if constexpr (sizeof(T) < sizeof(float)) {
      for (size_t i = 0; i < operand_floats_.size(); ++i) {
        if (operand_floats_[i] == 0) continue;
        WidenHalf(DType::kBFloat16, form_.steps[i].operand.template Data<T>(inputs),
                  reinterpret_cast<float*>(scratch), operand_floats_[i]);
        scratch += AlignUp(operand_floats_[i] * sizeof(float));
      }
    }
  }

  // Computes queries [first, last) of one batch item.
  void RunTile(int64_t item, int64_t first, int64_t last, int worker, const std::byte* scratch,
               Inputs inputs, T* result) {
    const auto matrix = [&](const Operand& operand) {
      return operand.Matrix(operand.template Data<T>(inputs), item);
    };
    const std::byte* own = scratch + widened_bytes_ + worker * ScratchOfWorker();
    AttentionTile<T> tile{.queries = last - first,
                          .keys = form_.keys,
                          .depth = form_.depth,
                          .width = form_.width,
                          .block = block_,
                          .scale = form_.scale,
                          .q = matrix(form_.q),
                          .v = matrix(form_.v),
                          .scratch = reinterpret_cast<float*>(const_cast<std::byte*>(own))};
    const StridedMatrix<const T> k = matrix(form_.k),
                                 out = form_.out.template Matrix<T>(result, item);
    tile.k = {k.data, k.column, k.row};
    tile.q.data += first * tile.q.row;
    tile.out = {result + (out.data - result) + first * out.row, out.row, out.column};
    const std::span<ScoreStep> steps(steps_.data() + worker * form_.steps.size(),
                                     form_.steps.size());
    for (size_t i = 0; i < steps.size(); ++i) {
      const Operand& operand = form_.steps[i].operand;
      const float* floats = operand_floats_[i] == 0 ? operand.template Data<float>(inputs)
                                                    : reinterpret_cast<const float*>(scratch);
      steps[i] = {form_.steps[i].kind, operand.Matrix(floats, item)};
      steps[i].operand.data += first * steps[i].operand.row;
      scratch += AlignUp(operand_floats_[i] * sizeof(float));
    }
    tile.steps = steps;
    loops_.run(tile);
  }

  Form form_;
  const AttentionLoops<T>& loops_;
  int64_t block_;
  int cores_;
  std::vector<int64_t> operand_floats_;  // Of each step's operand that lies as bf16; else 0.
  size_t widened_bytes_ = 0;
  std::vector<ScoreStep> steps_;  // Of each worker's tile.
};

// What the loops on bf16 need of the operands of the products.
Status CheckBf16(const Form& form) {
  if (form.q.port < 0 || form.k.port < 0 || form.v.port < 0) return Refuse("bf16 constants");
  const size_t rank = form.q.shape.size();
  if (form.depth % 2 != 0 || form.q.strides[rank - 1] != 1 || form.k.strides[rank - 2] != 1) {
    return Refuse("no pairs of bf16 along the depth");
  }
  for (size_t i = 0; i + 1 < rank; ++i) {
    if (form.q.strides[i] % 2 != 0) return Refuse("queries at odd places");
  }
  return OkStatus();
}

constexpr std::string_view kBf16Prefix = "bf16_", kNarrowForm = "narrow";

// Returns FORM_KEYS, or bf16_FORM_KEYS: the form of the loops and the keys of a block. The larger
// block is left out where the smaller one holds all keys, and a form whose loops are those of one
// before it.
StatusOr<std::vector<std::string>> AttentionNames(const GroupContext& context) {
  AG_LET(const Form form, Reader(context).Read());
  const bool is_bf16 = form.dtype == DType::kBFloat16;
  if (is_bf16) AG_TRY(CheckBf16(form));
  std::vector<std::string> names;
  std::vector<const void*> seen;
  for (const std::string_view loops : kAttentionForms) {
    if (is_bf16 && loops == kNarrowForm) continue;
    const void* its = is_bf16 ? static_cast<const void*>(&Bf16AttentionLoopsFor(loops))
                              : &AttentionLoopsFor(InstructionSet(), loops);
    if (std::ranges::count(seen, its) > 0) continue;
    seen.push_back(its);
    for (const int64_t block : kBlocks) {
      if (block > kBlocks[0] && block / 2 >= form.keys) continue;
      names.push_back(fmt::format("{}{}_{}", is_bf16 ? kBf16Prefix : "", loops, block));
    }
  }
  return names;
}

StatusOr<std::unique_ptr<Kernel>> MakeAttention(const GroupContext& context,
                                                const std::string& name, size_t* done) {
  AG_LET(Form form, Reader(context).Read());
  *done = context.group.nodes.size();
  if (context.constants != nullptr) FoldScale(&form);
  std::string_view text = name;
  const bool is_bf16 = text.starts_with(kBf16Prefix);
  if (is_bf16) text.remove_prefix(kBf16Prefix.size());
  const size_t at = text.find('_');
  AG_LET(const int64_t block, ParseInt(text.substr(at + 1)));
  const int cores = std::max(context.cores, 1);
  if (is_bf16) {
    return std::make_unique<Attention<uint16_t>>(
        std::move(form), Bf16AttentionLoopsFor(text.substr(0, at)), block, cores);
  }
  return std::make_unique<Attention<float>>(
      std::move(form), AttentionLoopsFor(InstructionSet(), text.substr(0, at)), block, cores);
}

}  // namespace

const Family kAttentionFamily = {AttentionNames, MakeAttention};

}  // namespace ag::cpu

// Attention: two products with softmax between them, computed tile by tile of queries without the
// scores in memory (Rabe and Staats 2021, "Self-attention does not need O(n^2) memory", section 2).
// Transposes of the operands and of the result are read and written as strides.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/text.h"
#include "device/cpu/attention_loops.h"
#include "device/cpu/half_loops.h"
#include "device/cpu/host.h"
#include "device/cpu/kernel.h"
#include "device/cpu/parallel.h"
#include "device/cpu/visible_keys.h"

namespace ag::cpu {
namespace {

constexpr int64_t kBlocks[] = {128, 256};  // Keys at a time, best guess first.

// A worker copies the keys and values of an item for this many tiles or more, up to so many bytes.
constexpr int64_t kTilesToPack = 3;
constexpr int64_t kPackedBytesMax = int64_t{4} << 20;

Status Refuse(std::string_view why) {
  return Err(StatusCode::kUnimplemented, "attention: {}", why);
}

// An operand of the form in memory: a port of the group or a constant.
struct Operand {
  DType dtype = DType::kFloat32;
  int port = -1;
  Tensor held;           // The constant, where port is -1.
  int64_t elements = 0;  // In memory.
  int64_t offset = 0;    // Of the first item's matrix.
  std::vector<StridedPart> items;
  int64_t row = 0, column = 0;

  void Place(const StridedView& view) {
    const size_t rank = view.axes.size();
    offset = view.offset;
    for (size_t i = 0; i + 2 < rank; ++i) {
      items.insert(items.end(), view.axes[i].begin(), view.axes[i].end());
    }
    row = *StrideOf(view.axes[rank - 2]);
    column = *StrideOf(view.axes[rank - 1]);
  }

  template <class T>
  const T* Data(Inputs inputs) const {
    return port >= 0 ? static_cast<const T*>(inputs[port])
                     : reinterpret_cast<const T*>(held.bytes().data());
  }
  // Returns the matrix of an item. `item` counts in row-major order.
  template <class T>
  StridedMatrix<const T> Matrix(const T* data, int64_t item) const {
    int64_t at = offset;
    for (size_t i = items.size(); i-- > 0; item /= items[i].size) {
      at += item % items[i].size * items[i].stride;
    }
    return {data + at, row, column};
  }
};

struct Step {
  ScoreStep::Kind kind = ScoreStep::Kind::kAdd;
  Operand operand;
  float fill = 0;  // Of kReplace.
  bool keeps = true;
  // By query, where it is a constant that all items share; empty: it may change all scores.
  std::vector<KeyRange> changed;
};

// The group's form with its operands in memory.
struct Form {
  DType dtype = DType::kFloat32;
  Operand q, k, v, out;
  std::vector<Step> steps;
  float scale = 1;
  int64_t items = 1, queries = 0, keys = 0, depth = 0, width = 0;
};

// The number that a step puts in the place of scores, and the mark of those that stay.
struct Replacement {
  float kept = std::bit_cast<float>(kKeptScore), fill = 0;
  explicit Replacement(float number) : fill(number) {
    if (std::bit_cast<uint32_t>(fill) == kKeptScore) fill = std::numeric_limits<float>::quiet_NaN();
  }
};

// Writes a mask of booleans as the operand of a kReplace.
void WriteReplacements(const Step& step, const uint8_t* mask, float* to) {
  const Replacement numbers(step.fill);
  for (int64_t i = 0; i < step.operand.elements; ++i) {
    to[i] = (mask[i] != 0) == step.keeps ? numbers.kept : numbers.fill;
  }
}

// Copies a matrix's rows behind each other. Returns what is behind them.
template <class T>
T* PackRows(const StridedMatrix<const T>& from, int64_t rows, int64_t columns, T* to) {
  for (int64_t r = 0; r < rows; ++r, to += columns) {
    const T* row = from.data + r * from.row;
    if (from.column == 1) {
      std::copy_n(row, columns, to);
    } else {
      for (int64_t c = 0; c < columns; ++c) to[c] = row[c * from.column];
    }
  }
  return to;
}

// Finds the operands of a group's form. Without constants, those are left out.
class Binder {
 public:
  explicit Binder(const GroupContext& context) : context_(context), graph_(context.graph) {}

  StatusOr<Form> Bind() {
    if (!ArePlain(context_.group) || context_.group.outputs.size() != 1) {
      return Refuse("not one result in plain layout");
    }
    AG_LET(const AttentionForm of, ReadAttention(graph_, context_.group.nodes));
    Form form{.dtype = graph_.type(context_.group.outputs[0].edge).dtype,
              .items = of.items,
              .queries = of.queries,
              .keys = of.keys,
              .depth = of.depth,
              .width = of.width};
    if (!context_.IsComputed(form.dtype)) return Refuse("not f32");
    form.out.Place(of.out);
    AG_LET(form.q, Find(of.q, form.dtype));
    AG_LET(form.k, Find(of.k, form.dtype));
    AG_LET(form.v, Find(of.v, form.dtype));
    for (const AttentionFactor& factor : of.factors) {
      if (graph_.type(factor.constant).dtype != form.dtype)
        return Refuse("a scale of another type");
      if (context_.constants == nullptr) continue;
      AG_LET(const float value, Number(factor.constant));
      form.scale = factor.divides ? form.scale / value : form.scale * value;
    }
    for (const AttentionStep& step : of.steps) {
      AG_LET(Step bound, BindStep(step, form.dtype));
      form.steps.push_back(std::move(bound));
    }
    return form;
  }

 private:
  StatusOr<Operand> Find(const StridedOperand& of, DType dtype) const {
    Operand operand{.dtype = graph_.type(of.edge).dtype, .port = context_.InputOf(of.edge)};
    if (operand.dtype != dtype) return Refuse("an operand of another type");
    operand.elements = graph_.type(of.edge).NumElements();
    operand.Place(of.view);
    if (operand.port >= 0 || context_.constants == nullptr) return operand;
    AG_LET(operand.held, context_.FloatConstants()->Get(of.edge));
    const DType held = operand.held.type().dtype;
    if (held != DType::kFloat32 && held != DType::kBool) {
      return Refuse("a constant that is not f32");
    }
    return operand;
  }

  StatusOr<float> Number(Edge constant) const {
    AG_LET(const Tensor value, context_.FloatConstants()->Get(constant));
    return static_cast<float>(value.At(0));
  }

  // Makes the mask of a kReplace floats where it is constant.
  StatusOr<Step> BindStep(const AttentionStep& of, DType dtype) const {
    const bool replaces = of.kind == ScoreStep::Kind::kReplace;
    Step step{.kind = of.kind, .keeps = of.keeps};
    AG_LET(step.operand, Find(of.operand, replaces ? DType::kBool : dtype));
    if (!replaces || context_.constants == nullptr) return step;
    AG_LET(step.fill, Number(of.fill));
    if (step.operand.port >= 0) return step;
    Tensor floats = Tensor::Zeros({DType::kFloat32, step.operand.held.type().shape});
    WriteReplacements(step, step.operand.held.As<uint8_t>().data(), floats.Mutable<float>().data());
    step.operand.held = std::move(floats);
    step.operand.dtype = DType::kFloat32;
    return step;
  }

  const GroupContext& context_;
  const Graph& graph_;
};

bool IsConstant(const Step& step) { return !step.operand.held.bytes().empty(); }

// Whether all items have one matrix.
bool IsShared(const Step& step) {
  const auto repeats = [](const StridedPart& part) { return part.stride == 0; };
  return std::ranges::all_of(step.operand.items, repeats);
}

ScoreStep ScoreStepOf(const Step& step, int64_t item) {
  const auto* data = reinterpret_cast<const float*>(step.operand.held.bytes().data());
  return {step.kind, step.operand.Matrix(data, item)};
}

// Finds where constant steps change scores.
void FindChanges(Form* form) {
  for (Step& step : form->steps) {
    if (!IsConstant(step) || !IsShared(step)) continue;
    step.changed = ChangedKeys(ScoreStepOf(step, 0), form->queries, form->keys);
  }
}

// Returns the keys that queries see by the constants among the steps.
VisibleKeys VisibleKeysOf(const Form& form) {
  if (std::ranges::none_of(form.steps, IsConstant)) return {};
  const auto differs = [](const Step& step) { return IsConstant(step) && !IsShared(step); };
  const int64_t items = std::ranges::any_of(form.steps, differs) ? form.items : 1;
  return VisibleKeys::Of(form.queries, form.keys, items, [&](int64_t item) {
    std::vector<ConstantStep> steps;
    for (const Step& step : form.steps) {
      steps.emplace_back();
      if (IsConstant(step)) steps.back() = ScoreStepOf(step, item);
    }
    return steps;
  });
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
        steps_(static_cast<size_t>(cores) * form_.steps.size()),
        isa_(InstructionSet()),
        visible_(VisibleKeysOf(form_)),
        sees_all_(visible_.any() ? form_.items : 0) {
    const int64_t bytes = form_.keys * (form_.depth + form_.width) * int64_t{sizeof(T)};
    const bool is_dense = form_.k.column == form_.depth && form_.k.row == 1 &&
                          form_.v.row == form_.width && form_.v.column == 1;
    if (!is_dense && bytes <= kPackedBytesMax && TilesOfItem() >= kTilesToPack) {
      packed_bytes_ = AlignUp(bytes);
    }
    for (const Step& step : form_.steps) {
      const bool is_float = step.operand.port < 0 || step.operand.dtype == DType::kFloat32;
      operand_floats_.push_back(is_float ? 0 : step.operand.elements);
      widened_bytes_ += AlignUp(operand_floats_.back() * sizeof(float));
    }
  }

  size_t scratch_bytes() const override { return widened_bytes_ + cores_ * ScratchOfWorker(); }

  // Each query tile has about as many vectors as the others.
  Status Run(const RunContext& context, Inputs inputs, Outputs outputs) override {
    const int64_t tiles = TilesOfItem();
    WidenOperands(context.scratch, inputs);
    if (visible_.any()) FindWhoSeesAll(inputs);
    ParallelFor(cores_, form_.items * tiles, 1, [&](int64_t begin, int64_t end, int worker) {
      for (int64_t i = begin; i < end;) {
        const int64_t item = i / tiles, behind = std::min(end, (item + 1) * tiles);
        const Item of = ItemOf(item, behind - i, worker, context.scratch, inputs);
        for (; i < behind; ++i) {
          RunTile(of, i % tiles, worker, context.scratch, inputs, static_cast<T*>(outputs[0]));
        }
      }
    });
    return OkStatus();
  }

 private:
  // One item with its keys and values as rows.
  struct Item {
    int64_t number = 0;
    StridedMatrix<const T> k, v;
  };

  int64_t VectorsOfItem() const { return (form_.queries + loops_.lanes - 1) / loops_.lanes; }
  int64_t TilesOfItem() const { return (VectorsOfItem() + loops_.vectors - 1) / loops_.vectors; }

  size_t ScratchOfTile() const {
    return AlignUp(loops_.ScratchFloats(form_.depth, form_.width, block_) * sizeof(float));
  }
  size_t ScratchOfWorker() const { return ScratchOfTile() + packed_bytes_; }

  // Returns the worker's own scratch memory.
  std::byte* OwnScratch(int worker, const std::byte* scratch) const {
    return const_cast<std::byte*>(scratch) + widened_bytes_ + worker * ScratchOfWorker();
  }

  // Returns an item of which a worker computes so many tiles. Rows that lie far apart share sets of
  // the cache, and each tile reads all of them, so they are copied behind each other.
  Item ItemOf(int64_t number, int64_t tiles, int worker, const std::byte* scratch,
              Inputs inputs) const {
    const StridedMatrix<const T> k = form_.k.Matrix(form_.k.template Data<T>(inputs), number);
    Item item{number, {k.data, k.column, k.row}, {}};
    item.v = form_.v.Matrix(form_.v.template Data<T>(inputs), number);
    if (packed_bytes_ == 0 || tiles < kTilesToPack) return item;
    T* keys = reinterpret_cast<T*>(OwnScratch(worker, scratch) + ScratchOfTile());
    T* values = PackRows(item.k, form_.keys, form_.depth, keys);
    PackRows(item.v, form_.keys, form_.width, values);
    return {number, {keys, form_.depth, 1}, {values, form_.width, 1}};
  }

  // Writes the operands of steps that lie as bf16 or booleans to the begin of the scratch memory.
  void WidenOperands(std::byte* scratch, Inputs inputs) const {
    for (size_t i = 0; i < operand_floats_.size(); ++i) {
      if (operand_floats_[i] == 0) continue;
      const Step& step = form_.steps[i];
      auto* to = reinterpret_cast<float*>(scratch);
      if (step.operand.dtype == DType::kBool) {
        WriteReplacements(step, step.operand.template Data<uint8_t>(inputs), to);
      } else {
        WidenHalf(DType::kBFloat16, step.operand.template Data<uint16_t>(inputs), to,
                  operand_floats_[i]);
      }
      scratch += AlignUp(operand_floats_[i] * sizeof(float));
    }
  }

  // Sets sees_all_: an item's queries see all keys where a hidden key's probability might not be
  // zero, or its value is infinite or NaN, so that the product is NaN.
  void FindWhoSeesAll(Inputs inputs) {
    ParallelFor(cores_, form_.items, 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t item = begin; item < end; ++item) {
        const auto largest = [&](const Operand& operand, int64_t rows, int64_t columns) {
          return std::bit_cast<float>(
              LargestMagnitude(isa_, operand.Matrix(operand.Data<T>(inputs), item), rows, columns));
        };
        const float product = largest(form_.q, form_.queries, form_.depth) *
                              largest(form_.k, form_.depth, form_.keys) *
                              static_cast<float>(form_.depth) * std::abs(form_.scale);
        const float value = largest(form_.v, form_.keys, form_.width);
        sees_all_[item] = !visible_.Holds(product) || !std::isfinite(value);
      }
    });
  }

  // Computes one tile of queries. With a causal mask the last tiles have most to do: each worker
  // has some of them.
  void RunTile(const Item& of, int64_t place, int worker, const std::byte* scratch, Inputs inputs,
               T* result) {
    const int64_t tiles = TilesOfItem(), vectors = VectorsOfItem(), item = of.number;
    const int64_t t = place % 2 == 0 ? place / 2 : tiles - 1 - place / 2;
    const int64_t first = vectors * t / tiles * loops_.lanes;
    const int64_t last = std::min(vectors * (t + 1) / tiles * loops_.lanes, form_.queries);
    KeyRange seen{0, form_.keys};
    if (visible_.any() && sees_all_[item] == 0) seen = visible_.Of(first, last);
    AttentionTile<T> tile{.queries = last - first,
                          .keys = seen.last - seen.first,
                          .depth = form_.depth,
                          .width = form_.width,
                          .block = block_,
                          .scale = form_.scale,
                          .q = form_.q.Matrix(form_.q.template Data<T>(inputs), item),
                          .k = of.k,
                          .v = of.v,
                          .scratch = reinterpret_cast<float*>(OwnScratch(worker, scratch))};
    tile.q.data += first * tile.q.row;
    tile.k.data += seen.first * tile.k.row;
    tile.v.data += seen.first * tile.v.row;
    const StridedMatrix<const T> out = form_.out.template Matrix<T>(result, item);
    tile.out = {result + (out.data - result) + first * out.row, out.row, out.column};
    const std::span<ScoreStep> steps(steps_.data() + worker * form_.steps.size(),
                                     form_.steps.size());
    for (size_t i = 0; i < steps.size(); ++i) {
      const Step& step = form_.steps[i];
      const Operand& operand = step.operand;
      const float* floats = operand_floats_[i] == 0 ? operand.template Data<float>(inputs)
                                                    : reinterpret_cast<const float*>(scratch);
      steps[i] = {step.kind, operand.Matrix(floats, item)};
      steps[i].operand.data += first * steps[i].operand.row + seen.first * steps[i].operand.column;
      if (!step.changed.empty()) {
        const KeyRange changed = UnionOf({step.changed.data() + first, step.changed.data() + last});
        steps[i].first = changed.first - seen.first;
        steps[i].last = changed.last - seen.first;
      }
      scratch += AlignUp(operand_floats_[i] * sizeof(float));
    }
    tile.steps = steps;
    loops_.run(tile);
  }

  Form form_;
  const AttentionLoops<T>& loops_;
  int64_t block_;
  int cores_;
  std::vector<int64_t> operand_floats_;  // Of each step's operand that does not lie as f32; else 0.
  size_t widened_bytes_ = 0;
  size_t packed_bytes_ = 0;       // Of each worker's copy of keys and values; 0: it makes none.
  std::vector<ScoreStep> steps_;  // Of each worker's tile.
  std::string isa_;
  VisibleKeys visible_;
  std::vector<uint8_t> sees_all_;  // By item; empty: all do.
};

// What the loops on bf16 need of the operands of the products.
Status CheckBf16(const Form& form) {
  if (form.q.port < 0 || form.k.port < 0 || form.v.port < 0) return Refuse("bf16 constants");
  if (form.depth % 2 != 0 || form.q.column != 1 || form.k.row != 1) {
    return Refuse("no pairs of bf16 along the depth");
  }
  const auto is_odd = [](const StridedPart& part) { return part.stride % 2 != 0; };
  if (form.q.row % 2 != 0 || form.q.offset % 2 != 0 || std::ranges::any_of(form.q.items, is_odd)) {
    return Refuse("queries at odd places");
  }
  return OkStatus();
}

constexpr std::string_view kBf16Prefix = "bf16_", kNarrowForm = "narrow";

// Returns FORM_KEYS, or bf16_FORM_KEYS: the form of the loops and the keys of a block. The larger
// block is left out where the smaller one holds all keys, and a form whose loops are those of one
// before it.
StatusOr<std::vector<std::string>> AttentionNames(const GroupContext& context) {
  AG_LET(const Form form, Binder(context).Bind());
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
  AG_LET(Form form, Binder(context).Bind());
  *done = context.group.nodes.size();
  FindChanges(&form);
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

const Family kAttentionFamily = {AttentionNames, MakeAttention, true};

}  // namespace ag::cpu

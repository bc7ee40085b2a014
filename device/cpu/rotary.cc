// Rotary embedding: x * cos + concat(-x2, x1) * sin in one pass over the rows of the result. What
// moves its operands is read as strides (plan/spec/rotary_form.h).
#include <algorithm>

#include "device/cpu/host.h"
#include "device/cpu/kernel.h"
#include "device/cpu/parallel.h"
#include "device/cpu/rotary_loops.h"
#include "plan/spec/rotary_form.h"

namespace ag::cpu {
namespace {

Status RefuseRotary(std::string_view why) {
  return Err(StatusCode::kUnimplemented, "rotary: {}", why);
}

// A tensor whose rows lie by strides, a step for each axis but the last.
struct RowsOperand {
  int port = -1;
  Tensor held;  // The constant, where port is -1.
  int64_t offset = 0;
  Ints steps;

  const float* Data(Inputs inputs) const {
    const void* data = port >= 0 ? inputs[static_cast<size_t>(port)] : held.bytes().data();
    return static_cast<const float*>(data) + offset;
  }
};

// A part of each row.
struct RowsPart {
  RowsOperand operand;
  int64_t begin = 0, count = 0;
  float sign = 1;
};

// Walks through the rows of several tensors at once.
class RowWalk {
 public:
  // `sizes` are those of all axes but the last.
  RowWalk(const Shape& sizes, int64_t row) : sizes_(sizes), place_(sizes.size()) {
    for (size_t i = sizes.size(); i-- > 0; row /= sizes[i]) place_[i] = row % sizes[i];
  }

  int64_t OffsetOf(const Ints& steps) const {
    int64_t offset = 0;
    for (size_t i = 0; i < place_.size(); ++i) offset += place_[i] * steps[i];
    return offset;
  }

  void Next() {
    for (size_t i = place_.size(); i-- > 0;) {
      if (++place_[i] < sizes_[i]) return;
      place_[i] = 0;
    }
  }

 private:
  const Shape& sizes_;
  Shape place_;
};

class Rotary : public Kernel {
 public:
  Status Prepare(const GroupContext& context) {
    AG_LET(const RotaryForm form, ReadRotary(context.graph, context.group.nodes));
    rows_ = form.shape;
    width_ = rows_.back();
    rows_.pop_back();
    AG_TRY(Find(context, form.base, &base_));
    AG_TRY(Find(context, form.turn, &turn_));
    has_factor_ = form.factor.has_value();
    if (has_factor_) AG_TRY(Find(context, *form.factor, &factor_));
    int64_t begin = 0;
    for (const RotaryPart& of : form.parts) {
      RowsPart part{.begin = begin, .sign = of.is_negative ? -1.0f : 1.0f};
      AG_TRY(Find(context, of.operand, &part.operand));
      part.count = of.operand.view.shape().back();
      begin += part.count;
      parts_.push_back(std::move(part));
    }
    cores_ = context.cores;
    return OkStatus();
  }

  Status Run(const RunContext&, Inputs inputs, Outputs outputs) override {
    auto* out = static_cast<float*>(outputs[0]);
    const int64_t grain = std::max<int64_t>(1, kLightGrain / std::max<int64_t>(width_, 1));
    ParallelFor(cores_, NumElements(rows_), grain, [&](int64_t begin, int64_t end, int) {
      RowWalk walk(rows_, begin);
      for (int64_t row = begin; row < end; ++row, walk.Next()) {
        const auto row_of = [&](const RowsOperand& operand) {
          return operand.Data(inputs) + walk.OffsetOf(operand.steps);
        };
        const float* base = row_of(base_);
        const float* turn = row_of(turn_);
        const float* factor = has_factor_ ? row_of(factor_) : nullptr;
        for (const RowsPart& part : parts_) {
          loops_->run({.base = base + part.begin,
                       .factor = has_factor_ ? factor + part.begin : nullptr,
                       .part = row_of(part.operand),
                       .turn = turn + part.begin,
                       .out = out + row * width_ + part.begin,
                       .count = part.count,
                       .sign = part.sign});
        }
      }
    });
    return OkStatus();
  }

 private:
  static Status Find(const GroupContext& context, const StridedOperand& of, RowsOperand* operand) {
    if (context.graph.type(of.edge).dtype != DType::kFloat32) return RefuseRotary("not f32");
    operand->port = context.InputOf(of.edge);
    operand->offset = of.view.offset;
    for (size_t i = 0; i + 1 < of.view.axes.size(); ++i) {
      operand->steps.push_back(*StrideOf(of.view.axes[i]));
    }
    if (operand->port >= 0 || context.constants == nullptr) return OkStatus();
    AG_LET(operand->held, context.constants->Get(of.edge));
    return OkStatus();
  }

  Shape rows_;  // Of the result, without the last axis.
  int64_t width_ = 0;
  RowsOperand base_, factor_, turn_;
  bool has_factor_ = false;
  std::vector<RowsPart> parts_;
  const RotaryLoops* loops_ = &RotaryLoopsFor(InstructionSet());
  int cores_ = 1;
};

StatusOr<std::vector<std::string>> RotaryNames(const GroupContext& context) {
  if (!ArePlain(context.group) || context.group.outputs.size() != 1) {
    return RefuseRotary("not one result in plain layout");
  }
  Rotary kernel;
  GroupContext without = context;
  without.constants = nullptr;
  AG_TRY(kernel.Prepare(without));
  return std::vector<std::string>{"rows"};
}

StatusOr<std::unique_ptr<Kernel>> MakeRotary(const GroupContext& context, const std::string&,
                                             size_t* done) {
  *done = context.group.nodes.size();
  auto kernel = std::make_unique<Rotary>();
  AG_TRY(kernel->Prepare(context));
  return kernel;
}

}  // namespace

const Family kRotaryFamily = {RotaryNames, MakeRotary, true};

}  // namespace ag::cpu

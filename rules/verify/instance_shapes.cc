#include "rules/verify/instance_shapes.h"

#include <algorithm>
#include <numeric>

#include "graph/resize.h"

namespace ag {
namespace {

void Default(OperatorDraft* draft, std::string_view name, AttributeValue value) {
  if (draft->attributes.Find(name) == nullptr) draft->attributes.Set(name, std::move(value));
}

bool Lacks(const OperatorDraft& draft, std::string_view name) {
  return draft.attributes.Find(name) == nullptr;
}

std::optional<int64_t> KnownInt(const OperatorDraft& draft, std::string_view name) {
  const AttributeValue* value = draft.attributes.Find(name);
  const int64_t* integer = value == nullptr ? nullptr : std::get_if<int64_t>(value);
  return integer == nullptr ? std::nullopt : std::optional(*integer);
}

const Ints* KnownList(const OperatorDraft& draft, std::string_view name) {
  const AttributeValue* value = draft.attributes.Find(name);
  return value == nullptr ? nullptr : std::get_if<Ints>(value);
}

}  // namespace

int64_t ShapeSampler::Dim() { return Chance(15) ? 1 : random_.Between(1, size_); }

Shape ShapeSampler::AnyShape(int rank_min, int rank_max) {
  Shape shape(static_cast<size_t>(random_.Between(rank_min, rank_max)));
  for (int64_t& dim : shape) dim = Dim();
  return shape;
}

Shape ShapeSampler::Weaker(const Shape& shape) {
  if (Chance(45) || shape.empty()) return shape;
  if (Chance(15)) return Shape(random_.Below(shape.size() + 1), 1);  // A single element.
  Shape weak = shape;
  if (Chance(50)) {  // Only one axis stays.
    const auto keep = static_cast<size_t>(random_.Below(shape.size()));
    for (size_t i = 0; i < weak.size(); ++i) {
      if (i != keep) weak[i] = 1;
    }
    const size_t drop = random_.Below(keep + 1);
    weak.erase(weak.begin(), weak.begin() + static_cast<std::ptrdiff_t>(drop));
    return weak;
  }
  const size_t drop = random_.Below(shape.size() + 1);
  weak.erase(weak.begin(), weak.begin() + static_cast<std::ptrdiff_t>(drop));
  for (int64_t& dim : weak) {
    if (Chance(15)) dim = 1;
  }
  return weak;
}

Shape ShapeSampler::ShapeOf(const OperatorDraft& draft, size_t index) {
  if (index < draft.operands.size() && draft.operands[index]) return *draft.operands[index];
  return AnyShape();
}

Ints ShapeSampler::Factors(int64_t elements) {
  Ints factors;
  for (int64_t f = 2; elements > 1 && factors.size() < 5;) {
    if (elements % f != 0) {
      ++f;
      continue;
    }
    elements /= f;
    if (!factors.empty() && Chance(40)) {
      factors[random_.Below(factors.size())] *= f;
    } else {
      factors.insert(
          factors.begin() + static_cast<std::ptrdiff_t>(random_.Below(factors.size() + 1)), f);
    }
  }
  factors.push_back(elements);
  if (Chance(25)) factors.insert(factors.begin(), 1);
  return factors;
}

// ---- Proposals for an operand.

Shape ShapeSampler::MatMulOperand(const OperatorDraft& draft, size_t index) {
  Shape& last = index == 0 ? matmul_rows_ : matmul_columns_;
  const auto& other = draft.operands[1 - index];
  const bool fits = !last.empty() && (!other || other->size() < 2 ||
                                      (index == 0 ? last.back() == (*other)[other->size() - 2]
                                                  : last[last.size() - 2] == other->back()));
  if (!fits || !Chance(35)) last = NewMatMulOperand(draft, index);
  return last;
}

Shape ShapeSampler::NewMatMulOperand(const OperatorDraft& draft, size_t index) {
  const auto& x = draft.operands[0];
  const auto& w = draft.operands[1];
  const Shape want = draft.want && draft.want->size() >= 2 ? *draft.want : Shape{};
  if (index == 0) {
    Shape shape = want;
    if (shape.empty()) shape = Chance(60) ? AnyShape(2, 2) : AnyShape(2, 4);
    shape.back() = w && w->size() >= 2 ? (*w)[w->size() - 2] : Dim();
    return shape;
  }
  Shape shape = Chance(25) && x ? *x : Shape{1, 1};  // Batched weights, or plain ones.
  if (shape.size() < 2) shape = {1, 1};
  for (size_t i = 0; i + 2 < shape.size(); ++i) {
    if (Chance(20)) shape[i] = 1;
  }
  shape[shape.size() - 2] = x && !x->empty() ? x->back() : Dim();
  shape.back() = want.empty() ? Dim() : want.back();
  if (Chance(10)) shape.insert(shape.begin(), Dim());
  return shape;
}

// Now and then makes one spatial axis longer by one: windows with strides give equal sizes for
// several input sizes.
Shape ShapeSampler::NearlyAlike(Shape shape) {
  if (Chance(12)) ++shape[2 + random_.Below(shape.size() - 2)];
  return shape;
}

Shape ShapeSampler::ConvOperand(const OperatorDraft& draft, size_t index) {
  const int64_t group = KnownInt(draft, "group").value_or(1);
  const Ints* strides = KnownList(draft, "strides");
  const size_t axes = strides == nullptr ? 2 : strides->size();
  const auto& x = draft.operands[0];
  const auto& w = draft.operands[1];
  if (index == 0) {
    if (conv_input_.size() != axes + 2 || Chance(10)) {
      conv_input_.assign(axes + 2, 1);
      for (int64_t& dim : conv_input_) dim = Dim() + (Chance(50) ? 1 : 0);
    }
    if (Chance(15)) conv_input_[0] = Dim();
    if (Chance(40)) conv_input_[1] = Dim() * group;
    if (conv_input_[1] % group != 0) conv_input_[1] *= group;
    if (w && w->size() == axes + 2) conv_input_[1] = (*w)[1] * group;
    return NearlyAlike(conv_input_);
  }
  if (index == 2) return {w && !w->empty() ? (*w)[0] : Dim()};
  if (conv_kernel_.size() != axes + 2 || Chance(25)) {
    conv_kernel_.assign(axes + 2, 1);
    const bool pointwise = Chance(15);
    for (int64_t& dim : conv_kernel_) dim = pointwise ? 1 : random_.Between(1, 3);
  }
  if (Chance(40)) conv_kernel_[0] = Dim();
  if (draft.want && draft.want->size() == axes + 2 && Chance(70))
    conv_kernel_[0] = (*draft.want)[1];
  if (conv_kernel_[0] % group != 0) conv_kernel_[0] *= group;
  conv_kernel_[1] = x && x->size() > 1 ? std::max<int64_t>((*x)[1] / group, 1) : 1;
  return conv_kernel_;
}

Shape ShapeSampler::ConcatOperand(const OperatorDraft& draft, size_t index) {
  const auto axis = static_cast<size_t>(KnownInt(draft, "axis").value_or(0));
  for (const auto& operand : draft.operands) {
    if (!operand || operand->size() <= axis) continue;
    Shape shape = *operand;
    if (Chance(60)) shape[axis] = Dim();
    return shape;
  }
  Shape shape = draft.want && draft.want->size() > axis ? *draft.want : AnyShape();
  while (shape.size() <= axis) shape.push_back(Dim());
  const auto n = static_cast<int64_t>(draft.operands.size());
  if (draft.want && index == 0) shape[axis] = std::max<int64_t>(shape[axis] / n, 1);
  return shape;
}

DType ShapeSampler::OperandType(OpKind op, size_t index, DType want) {
  if (Has(op, kLogic) || (op == OpKind::kWhere && index == 0)) return DType::kBool;
  if (op == OpKind::kGather && index == 1) return DType::kInt64;
  const bool converts = Has(op, kPredicate) || op == OpKind::kCast;
  return converts && want == DType::kBool ? DType::kFloat64 : want;
}

Shape ShapeSampler::PoolOperand(const OperatorDraft& draft, size_t) {
  if (draft.want) return *draft.want;
  if (pool_input_.empty() || Chance(50)) pool_input_ = AnyShape(4, 4);
  return NearlyAlike(pool_input_);
}

Shape ShapeSampler::BatchNormOperand(const OperatorDraft& draft, size_t index) {
  if (index == 0) return draft.want ? *draft.want : AnyShape(2, 4);
  const auto& x = draft.operands[0];
  return {x && x->size() > 1 ? (*x)[1] : 1};
}

// Returns a shape that has the draft's axis.
Shape ShapeSampler::WithAxis(const OperatorDraft& draft, Shape shape) {
  const auto axis = static_cast<size_t>(KnownInt(draft, "axis").value_or(0));
  while (shape.size() <= axis) shape.push_back(Dim());
  return shape;
}

Shape ShapeSampler::LayerNormOperand(const OperatorDraft& draft, size_t index) {
  if (index == 0) return WithAxis(draft, draft.want ? *draft.want : AnyShape());
  const auto axis = static_cast<size_t>(KnownInt(draft, "axis").value_or(0));
  const Shape x = draft.operands[0].value_or(Shape{1});
  return Shape(x.begin() + static_cast<std::ptrdiff_t>(std::min(axis, x.size())), x.end());
}

Shape ShapeSampler::GatherOperand(const OperatorDraft& draft, size_t index) {
  return index == 1 ? AnyShape(0, 2) : WithAxis(draft, AnyShape());
}

Shape ShapeSampler::SplitOperand(const OperatorDraft& draft, size_t) {
  Shape shape = WithAxis(draft, AnyShape());
  const auto axis = static_cast<size_t>(KnownInt(draft, "axis").value_or(0));
  shape[axis] = draft.outputs + random_.Between(0, size_);
  return shape;
}

Shape ShapeSampler::ResizeOperand(const OperatorDraft& draft, size_t) {
  const size_t rank = draft.want ? draft.want->size() : random_.Between(1, 4);
  return AnyShape(static_cast<int>(rank), static_cast<int>(rank));
}

// At times what a reshape cuts in two is its first axis.
Shape ShapeSampler::ReshapeOperand(const OperatorDraft& draft, size_t index) {
  Shape shape = PlainOperand(draft, index);
  if (draft.want && shape.size() > 1 && Chance(25)) {
    shape[1] *= shape[0];
    shape.erase(shape.begin());
  }
  return shape;
}

Shape ShapeSampler::TransposeOperand(const OperatorDraft& draft, size_t) {
  const Ints* perm = KnownList(draft, "perm");
  if (perm == nullptr) return draft.want ? *draft.want : AnyShape(1, 4);
  Shape shape(perm->size());
  for (int64_t& dim : shape) dim = Dim();
  if (!draft.want || draft.want->size() != perm->size()) return shape;
  for (size_t i = 0; i < perm->size(); ++i) shape[(*perm)[i]] = (*draft.want)[i];
  return shape;
}

// Returns the shape that the reader wants, or one that broadcasts with the other operands.
Shape ShapeSampler::PlainOperand(const OperatorDraft& draft, size_t index) {
  if (!Has(draft.op, kBinary) && draft.op != OpKind::kWhere) {
    return draft.want ? *draft.want : AnyShape(0);
  }
  for (size_t i = 0; i < draft.operands.size(); ++i) {
    if (i != index && draft.operands[i]) return Weaker(*draft.operands[i]);
  }
  return draft.want ? Weaker(*draft.want) : AnyShape(0);
}

Shape ShapeSampler::Operand(const OperatorDraft& draft, size_t index) {
  using Sample = Shape (ShapeSampler::*)(const OperatorDraft&, size_t);
  static constexpr std::pair<OpKind, Sample> kSamples[] = {
      {OpKind::kMatMul, &ShapeSampler::MatMulOperand},
      {OpKind::kConv, &ShapeSampler::ConvOperand},
      {OpKind::kConcat, &ShapeSampler::ConcatOperand},
      {OpKind::kMaxPool, &ShapeSampler::PoolOperand},
      {OpKind::kAveragePool, &ShapeSampler::PoolOperand},
      {OpKind::kBatchNorm, &ShapeSampler::BatchNormOperand},
      {OpKind::kLayerNorm, &ShapeSampler::LayerNormOperand},
      {OpKind::kRmsNorm, &ShapeSampler::LayerNormOperand},
      {OpKind::kGather, &ShapeSampler::GatherOperand},
      {OpKind::kSplit, &ShapeSampler::SplitOperand},
      {OpKind::kResize, &ShapeSampler::ResizeOperand},
      {OpKind::kReshape, &ShapeSampler::ReshapeOperand},
      {OpKind::kTranspose, &ShapeSampler::TransposeOperand},
  };
  for (const auto& [op, sample] : kSamples) {
    if (op == draft.op) return (this->*sample)(draft, index);
  }
  return PlainOperand(draft, index);
}

// ---- Attributes.

void ShapeSampler::WindowAttributes(OperatorDraft* draft) {
  const auto& x = draft->operands[0];
  const bool pool = Has(draft->op, kPooling);
  const Ints* known = KnownList(*draft, "strides");
  const size_t axes = known != nullptr      ? known->size()
                      : x && x->size() >= 3 ? x->size() - 2
                      : Chance(20)          ? 1
                                            : 2;
  Ints ones(axes, 1);
  const auto list = [&](size_t n, int64_t low, int64_t high, int chance) {
    Ints values(n, low);
    for (int64_t& value : values) {
      if (Chance(chance)) value = random_.Between(low, high);
    }
    return values;
  };
  // Windows that are larger than the input.
  if (pool && Lacks(*draft, "kernel_shape") && Chance(8)) {
    draft->attributes.Set("kernel_shape", Ints(axes, 2));
    Default(draft, "dilations", Ints(axes, 3));
    Default(draft, "pads", Ints(2 * axes, 3));
  }
  if (pool && Lacks(*draft, "kernel_shape")) {
    draft->attributes.Set("kernel_shape", list(axes, 1, 3, Chance(15) ? 0 : 80));
  }
  Default(draft, "strides", list(axes, 1, 2, 30));
  Default(draft, "dilations", list(axes, 1, 2, 25));
  Default(draft, "pads", Chance(30) ? Ints(2 * axes, 0) : list(2 * axes, 0, 2, 50));
  if (!pool) Default(draft, "group", Chance(50) ? int64_t{1} : random_.Between(1, 3));
  if (pool) Default(draft, "ceil_mode", int64_t{Chance(25)});
  if (draft->op == OpKind::kAveragePool) Default(draft, "count_include_pad", int64_t{Chance(50)});
}

// Numbers are simple fractions and flags; clip, gelu and cast need more.
void ShapeSampler::ElementwiseAttributes(OperatorDraft* draft) {
  if (draft->op == OpKind::kClip) {
    if (Chance(10)) Default(draft, "max", -0.25);
    Default(draft, "min", Chance(50) ? 0.0 : Chance(50) ? -0.5 : 0.25);
    return Default(draft, "max", Chance(50) ? 0.75 : 6.0);
  }
  if (draft->op == OpKind::kGelu) {
    return Default(draft, "approximate", std::string(Chance(50) ? "tanh" : "none"));
  }
  if (draft->op == OpKind::kCast) {
    static constexpr DType kTypes[] = {DType::kFloat32, DType::kInt64, DType::kBool};
    const bool any = draft->want_dtype == DType::kFloat64 && Chance(75);
    const DType to = any ? kTypes[random_.Below(std::size(kTypes))] : draft->want_dtype;
    return Default(draft, "to", static_cast<int64_t>(to));
  }
  for (const AttributeSchema& schema : Info(draft->op).attributes) {
    if (schema.kind == 'f') Default(draft, schema.name, Chance(50) ? 0.25 : 0.5);
    if (schema.kind == 'i') Default(draft, schema.name, int64_t{Chance(50)});
  }
}

void ShapeSampler::EarlyAttributes(OperatorDraft* draft) {
  const auto known = std::find_if(draft->operands.begin(), draft->operands.end(),
                                  [](const auto& operand) { return operand.has_value(); });
  const Shape* shape = known != draft->operands.end() ? &**known
                       : draft->want                  ? &*draft->want
                                                      : nullptr;
  const auto rank = shape != nullptr ? static_cast<int64_t>(shape->size()) : random_.Between(1, 4);
  const int64_t axis =
      rank == 0 ? 0 : static_cast<int64_t>(random_.Below(static_cast<uint64_t>(rank)));
  if (draft->op == OpKind::kConv || Has(draft->op, kPooling)) WindowAttributes(draft);
  if (draft->op == OpKind::kConcat || draft->op == OpKind::kSplit ||
      draft->op == OpKind::kLayerNorm || draft->op == OpKind::kRmsNorm ||
      draft->op == OpKind::kGather)
    Default(draft, "axis", axis);
  if (draft->op == OpKind::kTranspose && Lacks(*draft, "perm")) {
    Ints perm(static_cast<size_t>(rank));
    std::iota(perm.begin(), perm.end(), 0);
    for (size_t i = perm.size(); i > 1; --i) std::swap(perm[i - 1], perm[random_.Below(i)]);
    draft->attributes.Set("perm", perm);
  }
  if (Has(draft->op, kElementwise)) ElementwiseAttributes(draft);
}

void ShapeSampler::SliceRanges(OperatorDraft* draft, const Shape& x) {
  const bool free = Lacks(*draft, "axes") && Lacks(*draft, "starts") && Lacks(*draft, "ends") &&
                    Lacks(*draft, "steps");
  const auto rank = static_cast<int64_t>(x.size());
  const Ints* known = KnownList(*draft, "axes");
  Ints axes = known != nullptr ? *known : Ints{};
  if (known == nullptr) {
    axes.push_back(static_cast<int64_t>(random_.Below(static_cast<uint64_t>(rank))));
    const int64_t second = static_cast<int64_t>(random_.Below(static_cast<uint64_t>(rank)));
    if (Chance(25) && second != axes[0]) axes.push_back(second);
  }
  Ints starts, ends, steps;
  for (const int64_t axis : axes) {
    if (axis < 0 || axis >= rank) return;  // Ill-typed; thrown away later.
    const int64_t size = x[static_cast<size_t>(axis)];
    const int64_t start = random_.Between(0, size - 1);
    const bool back = free && Chance(15);
    starts.push_back(start);
    steps.push_back(back ? -1 : free && Chance(15) ? 2 : 1);
    const int64_t before = start == 0 ? -size - 1 : start - 1;
    ends.push_back(back ? (Chance(50) ? -size - 1 : before) : random_.Between(start + 1, size));
  }
  Default(draft, "axes", axes);
  Default(draft, "starts", starts);
  Default(draft, "ends", ends);
  Default(draft, "steps", steps);
}

void ShapeSampler::PadSizes(OperatorDraft* draft, const Shape& x) {
  static constexpr const char* kModes[] = {"constant", "reflect", "edge"};
  if (Lacks(*draft, "pads")) {
    Ints pads(2 * x.size(), 0);
    for (int64_t& pad : pads) pad = Chance(50) ? random_.Between(0, 2) : 0;
    draft->attributes.Set("pads", pads);
  }
  Default(draft, "mode", std::string(kModes[Chance(40) ? random_.Below(3) : 0]));
  Default(draft, "value", Chance(25) ? 0.5 : 0.0);
}

void ShapeSampler::SplitSizes(OperatorDraft* draft) {
  const Shape x = ShapeOf(*draft, 0);
  const auto axis = static_cast<size_t>(KnownInt(*draft, "axis").value_or(0));
  if (axis >= x.size() || x[axis] < draft->outputs) return;  // Ill-typed; thrown away later.
  Ints sizes(static_cast<size_t>(draft->outputs), 1);
  const bool even = Chance(30) && x[axis] % draft->outputs == 0;
  for (int64_t left = x[axis] - draft->outputs; left > 0; --left) {
    const size_t at = even ? static_cast<size_t>(left) % sizes.size() : random_.Below(sizes.size());
    ++sizes[at];
  }
  draft->attributes.Set("sizes", sizes);
}

void ShapeSampler::ResizeAttributes(OperatorDraft* draft, const Shape& x) {
  const bool wanted = draft->want && draft->want->size() == x.size();
  const bool scaled = !wanted && Lacks(*draft, "sizes") && Chance(30);
  Ints sizes, scales;
  for (size_t i = 0; i < x.size(); ++i) {
    ResizeScale scale{random_.Between(1, 4), random_.Between(1, 3)};
    if (ScaledSize(x[i], QuotientOf(scale)) == 0) scale = {1, 1};
    const int64_t other = wanted ? (*draft->want)[i] : Chance(40) ? x[i] : Dim();
    sizes.push_back(scaled ? ScaledSize(x[i], QuotientOf(scale)) : other);
    scales.insert(scales.end(), {scale.over, scale.under});
  }
  Default(draft, "sizes", sizes);
  if (scaled) Default(draft, "scales", scales);
  const auto word = [&](std::string_view name, std::span<const std::string_view> words) {
    Default(draft, name, std::string(words[random_.Below(words.size())]));
  };
  if (!IsFloat(draft->want_dtype)) Default(draft, "mode", std::string(kResizeModes[0]));
  word("mode", kResizeModes);
  word("coordinate_transformation_mode", kResizePlaces);
  word("nearest_mode", kResizeRoundings);
  Default(draft, "cubic_coeff_a", Chance(50) ? -0.75 : -0.5);
  Default(draft, "exclude_outside", int64_t{Chance(30)});
}

void ShapeSampler::LateAttributes(OperatorDraft* draft) {
  const Shape x = draft->operands.empty() ? Shape{} : ShapeOf(*draft, 0);
  const auto rank = static_cast<int64_t>(x.size());
  const int64_t axis =
      rank == 0 ? 0 : static_cast<int64_t>(random_.Below(static_cast<uint64_t>(rank)));
  if (draft->op == OpKind::kSplit && Lacks(*draft, "sizes")) SplitSizes(draft);
  if (draft->op == OpKind::kReshape && Lacks(*draft, "shape")) {
    const bool wanted = draft->want && NumElements(*draft->want) == NumElements(x);
    draft->attributes.Set(
        "shape", wanted ? Ints(draft->want->begin(), draft->want->end()) : Factors(NumElements(x)));
  }
  if (Has(draft->op, kNormalization) && draft->op != OpKind::kSoftmax) {
    Default(draft, "epsilon", Chance(50) ? 0.125 : 1e-5);
  }
  if (draft->op == OpKind::kSoftmax) Default(draft, "axis", axis);
  if (Has(draft->op, kReduction) && Lacks(*draft, "axes")) {
    Ints axes;
    const bool trailing = Chance(60);
    for (int64_t i = 0; i < rank; ++i) {
      if (trailing ? i >= axis : Chance(50)) axes.push_back(i);
    }
    draft->attributes.Set("axes", axes);
  }
  if (Has(draft->op, kReduction)) Default(draft, "keepdims", static_cast<int64_t>(Chance(70)));
  if (draft->op == OpKind::kSlice && rank > 0) SliceRanges(draft, x);
  if (draft->op == OpKind::kPad) PadSizes(draft, x);
  if (draft->op == OpKind::kResize) ResizeAttributes(draft, x);
  if (draft->op == OpKind::kExpand && Lacks(*draft, "shape")) {
    Ints shape(x.begin(), x.end());
    for (int64_t& dim : shape) {
      if (dim == 1) dim = Dim();
    }
    if (Chance(40)) shape.insert(shape.begin(), Dim());
    draft->attributes.Set("shape", shape);
  }
}

}  // namespace ag

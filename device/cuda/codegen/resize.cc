// Resize: a thread has a few neighbouring results. For each axis that changes, a function returns
// the elements and weights of a result; it computes places as graph/resize.h does, in f32 and by
// the same operations.
#include "graph/resize.h"

#include "device/cuda/codegen/families.h"
#include "device/cuda/codegen/lanes.h"

namespace ag::cuda {
namespace {

struct ResizeProblem {
  TensorArgument from, to;
  Resize resize;
  Space space;               // Of the output, as in memory.
  std::vector<size_t> axes;  // The output's axes in this order.
  Sizes from_strides;        // Along these axes.
  DType dtype = DType::kFloat32;
  bool moves() const { return resize.mode == Resize::Mode::kNearest; }
  bool Changes(size_t at) const { return !axes.empty() && !resize.axes[axes[at]].is_identity; }
  // Returns true when each neighbour of a thread has its own place.
  bool IsAlong() const { return Changes(space.sizes.size() - 1); }
  std::string index;  // "int", or "long long" where a tensor is too large for it.
};

StatusOr<ResizeProblem> ResizeProblemOf(GroupText* group) {
  const Node& node = group->context().node(0);
  ResizeProblem p{.dtype = node.outputs[0].dtype};
  group->BeginKernel("resize");
  AG_LET(p.from, group->Source(node.inputs[0],
                               {.stored = StoredDType(p.dtype, group->context().precision)}));
  AG_LET(p.to, group->Target(0));
  const auto index_of = [](const TensorArgument& tensor) {
    return IndexType(
        {.sizes = Sizes(tensor.shape.begin(), tensor.shape.end()), .strides = {tensor.strides}});
  };
  p.index = index_of(p.from) == "int" ? index_of(p.to) : "long long";
  p.resize = ResizeOf(*node.attributes, p.from.shape);
  p.space = {.sizes = Sizes(p.to.shape.begin(), p.to.shape.end()),
             .strides = {p.to.strides, p.from.strides}};
  p.axes = p.space.Sort();
  p.from_strides = std::move(p.space.strides.back());
  p.space.strides.pop_back();
  return p;
}

// Returns the results of one thread: the elements of one access of the operand, unless each has its
// own place.
int64_t WidestVector(const ResizeProblem& p) {
  Space space = p.space;
  if (!p.IsAlong()) space.strides.push_back(p.from_strides);
  return VectorOf(space, 16 / SizeOf(p.to.stored));
}

StatusOr<std::vector<std::string>> ResizeVariants(const GroupContext& context) {
  GroupText group(context);
  AG_LET(const ResizeProblem p, ResizeProblemOf(&group));
  const int64_t vector = WidestVector(p);
  std::vector<std::string> names{fmt::format("v{}/128", vector)};
  if (vector > 2) names.push_back(fmt::format("v{}/128", vector / 2));
  if (vector > 1) names.push_back("v1/128");
  names.push_back(fmt::format("v{}/256", vector));
  return names;
}

std::string F32(double value) { return Literal(value, DType::kFloat32); }

// Returns PlaceOf of the number `at` as text.
std::string PlaceText(Resize::Places places, const ResizeAxis& axis) {
  const std::string scale = F32(axis.scale);
  switch (places) {
    case Resize::Places::kPytorchHalfPixel:
      if (axis.out == 1) return F32(0);
      [[fallthrough]];
    case Resize::Places::kHalfPixel:
      return fmt::format("((float)at + 0.5f) / {} - 0.5f", scale);
    case Resize::Places::kAlignCorners:
      if (axis.out == 1) return F32(0);
      return fmt::format("(float)at * {} / {}", F32(axis.in - 1), F32(axis.out - 1));
    case Resize::Places::kAsymmetric:
      return fmt::format("(float)at / {}", scale);
    case Resize::Places::kHalfPixelSymmetric:
      return fmt::format("(float)((double){} + ((double)at + 0.5) / (double){} - 0.5)",
                         F32(SymmetricOffset(axis)), scale);
    case Resize::Places::kTfHalfPixelForNn:
      return fmt::format("((float)at + 0.5f) / {}", scale);
  }
  return "";
}

std::string Inside(const std::string& at, int64_t in) {
  return fmt::format("{0} < 0 ? 0 : {0} > {1} ? {1} : {0}", at, in - 1);
}

// <index> nearest<axis>(<index> at)
void NearestFunction(Text* text, const ResizeProblem& p, size_t axis) {
  const ResizeAxis& a = p.resize.axes[axis];
  const std::string tie = F32(kResizeTie);
  const std::string above[] = {fmt::format(" + (x - below - 0.5f > {} ? 1 : 0)", tie),
                               fmt::format(" + (x - below - 0.5f >= -{} ? 1 : 0)", tie), "",
                               " + (x > below ? 1 : 0)"};
  text->Open("AG_DEVICE {0} nearest{1}({0} at)", p.index, axis);
  text->Line("const float x = {};", PlaceText(p.resize.places, a));
  text->Line("const float below = ag_floor(x);");
  text->Line("const {0} i = ({0})below{1};", p.index,
             above[static_cast<size_t>(p.resize.rounding)]);
  text->Line("return {};", Inside("i", a.in));
  text->Close();
}

void LinearBody(Text* text, const ResizeProblem& p, const ResizeAxis& a) {
  const std::string last = F32(a.in - 1);
  text->Line("x = x < 0.0f ? 0.0f : x > {0} ? {0} : x;", last);
  text->Line("e[0] = ({})x;", p.index);
  text->Line("e[1] = e[0] < {0} ? e[0] + 1 : {0};", a.in - 1);
  text->Line("w[1] = x - (float)e[0];");
  text->Line("w[0] = 1 - w[1];");
}

void CubicBody(Text* text, const ResizeProblem& p, const ResizeAxis& a) {
  const std::string_view type = ComputedType(p.dtype);
  const double c = p.resize.cubic_coeff_a;
  const auto number = [&](double value) { return Literal(value, p.dtype); };
  text->Line("const float below = ag_floor(x);");
  text->Line("const {0} s = x - below, r = 1 - s, f = 1 + s, g = 2 - s;", type);
  for (const auto& [i, at] : {std::pair{0, "f"}, {3, "g"}}) {
    text->Line("w[{}] = (({} * {} - {}) * {} + {}) * {} - {};", i, number(c), at, number(5 * c), at,
               number(8 * c), at, number(4 * c));
  }
  for (const auto& [i, at] : {std::pair{1, "s"}, {2, "r"}}) {
    text->Line("w[{0}] = ({1} * {3} - {2}) * {3} * {3} + 1;", i, number(c + 2), number(c + 3), at);
  }
  if (p.resize.exclude_outside) text->Line("{} sum = 0;", type);
  text->Line("AG_UNROLL");
  text->Open("for (int t = 0; t < 4; ++t)");
  text->Line("const {0} i = ({0})below - 1 + t;", p.index);
  if (p.resize.exclude_outside) {
    text->Line("if (i < 0 || i > {}) w[t] = 0;", a.in - 1);
    text->Line("sum += w[t];");
  }
  text->Line("e[t] = {};", Inside("i", a.in));
  text->Close();
  if (!p.resize.exclude_outside) return;
  text->Line("AG_UNROLL");
  text->Line("for (int t = 0; t < 4; ++t) w[t] /= sum;");
}

// void taps<axis>(<index> at, <index> (&e)[count], float (&w)[count])
void TapsFunction(Text* text, const ResizeProblem& p, size_t axis) {
  const ResizeAxis& a = p.resize.axes[axis];
  text->Open("AG_DEVICE void taps{0}({1} at, {1} (&e)[{3}], {2} (&w)[{3}])", axis, p.index,
             ComputedType(p.dtype), p.resize.taps());
  const bool is_linear = p.resize.mode == Resize::Mode::kLinear;
  text->Line("{}float x = {};", is_linear ? "" : "const ", PlaceText(p.resize.places, a));
  is_linear ? LinearBody(text, p, a) : CubicBody(text, p, a);
  text->Close();
}

void Functions(GroupText* group, const ResizeProblem& p) {
  for (size_t axis = 0; axis < p.resize.axes.size(); ++axis) {
    const ResizeAxis& a = p.resize.axes[axis];
    if (a.is_identity) continue;
    Text text;
    text.Line("// Axis {}, {} to {}.", axis, a.in, a.out);
    p.moves() ? NearestFunction(&text, p, axis) : TapsFunction(&text, p, axis);
    group->Function(text);
  }
}

// The kernel's lines; `at` are the coordinates of the thread's results.
class Body {
 public:
  Body(Text* text, const ResizeProblem& p, const Lanes& lanes, std::vector<std::string> at)
      : text_(*text), p_(p), lanes_(lanes), at_(std::move(at)) {}

  void Write() {
    text_.Line("ag_pack<{}, {}> y;", p_.to.type(), lanes_.vector);
    const size_t last = at_.size() - 1;
    for (size_t i = 0; i < at_.size(); ++i) {
      if (p_.Changes(i) && i != last) Axis(i, at_[i]);
    }
    if (p_.IsAlong()) {
      text_.Line("AG_UNROLL");
      text_.Open("for (int k = 0; k < {}; ++k)", lanes_.vector);
      const std::string here =
          lanes_.vector == 1 ? at_[last] : fmt::format("{} * {} + k", at_[last], lanes_.vector);
      Axis(last, here);
    }
    p_.moves() ? Move() : Sum();
    if (p_.IsAlong()) text_.Close();
    StoreLanes(&text_, lanes_, 0, Plus(p_.to.name, Offset(at_, lanes_.space.strides[0])), "y");
  }

 private:
  void Axis(size_t i, const std::string& at) {
    const size_t axis = p_.axes[i];
    if (p_.moves()) {
      text_.Line("const {} e{} = nearest{}({});", p_.index, axis, axis, at);
      return;
    }
    const int64_t taps = p_.resize.taps();
    text_.Line("{} e{}[{}];", p_.index, axis, taps);
    text_.Line("{} w{}[{}];", ComputedType(p_.dtype), axis, taps);
    text_.Line("taps{0}({1}, e{0}, w{0});", axis, at);
  }

  // Returns the pointer to the element that the result reads; of the taps t<axis> where there are
  // several.
  std::string Place() const {
    std::vector<std::string> at = at_;
    for (size_t i = 0; i < at.size(); ++i) {
      if (!p_.Changes(i)) continue;
      const size_t axis = p_.axes[i];
      at[i] = p_.moves() ? fmt::format("e{}", axis) : fmt::format("e{0}[t{0}]", axis);
    }
    Sizes strides = p_.from_strides;
    if (!p_.IsAlong()) strides.back() *= lanes_.vector;
    return Plus(p_.from.name, Offset(at, strides));
  }

  // Returns the thread's elements that are also neighbours in the operand.
  std::string Load(const std::string& place) const {
    const int64_t stride = p_.from_strides.back();
    if (stride == 1) return fmt::format("ag_load<{}>({})", lanes_.vector, place);
    return fmt::format("ag_pick<{}>({}, {})", lanes_.vector, place, stride);
  }

  void Move() {
    if (p_.IsAlong()) {
      text_.Line("y.at[k] = {}[{}];", p_.from.name, Place().substr(p_.from.name.size() + 3));
    } else {
      text_.Line("y = {};", Load(Place()));
    }
  }

  void Sum() {
    const std::string_view type = ComputedType(p_.dtype);
    const std::string each = fmt::format("for (int k = 0; k < {}; ++k)", lanes_.vector);
    if (p_.IsAlong()) {
      text_.Line("{} sum = 0;", type);
    } else {
      text_.Line("{} sum[{}] = {{}};", type, lanes_.vector);
    }
    std::vector<std::string> weights;
    for (size_t i = 0; i < at_.size(); ++i) {
      if (!p_.Changes(i)) continue;
      const size_t axis = p_.axes[i];
      text_.Line("AG_UNROLL");
      text_.Open("for (int t{0} = 0; t{0} < {1}; ++t{0})", axis, p_.resize.taps());
      weights.push_back(fmt::format("w{0}[t{0}]", axis));
    }
    const std::string weight = weights.empty() ? "1" : Join(weights, " * ");
    if (p_.IsAlong()) {
      text_.Line("sum += {} * ag_get(*({}));", weight, Place());
    } else {
      text_.Line("const ag_pack<{}, {}> x = {};", p_.from.type(), lanes_.vector, Load(Place()));
      text_.Line("const {} w = {};", type, weight);
      text_.Line("AG_UNROLL");
      text_.Line("{} sum[k] += w * ag_get(x.at[k]);", each);
    }
    for (size_t i = 0; i < weights.size(); ++i) text_.Close();
    if (p_.IsAlong()) return text_.Line("ag_put(y.at[k], sum);");
    text_.Line("AG_UNROLL");
    text_.Line("{} ag_put(y.at[k], sum[k]);", each);
  }

  Text& text_;
  const ResizeProblem& p_;
  const Lanes& lanes_;
  std::vector<std::string> at_;
};

StatusOr<GeneratedGroup> GenerateResize(const GroupContext& context, const std::string& variant) {
  GroupText group(context);
  AG_LET(const ResizeProblem p, ResizeProblemOf(&group));
  Functions(&group, p);
  Lanes lanes = LanesOf(p.space, variant);
  lanes.type = p.index;  // Operands may be larger than results.
  Text text;
  std::vector<std::string> at = BeginLanes(&text, lanes, "ag_block_x()");
  Body(&text, p, lanes, std::move(at)).Write();
  AG_TRY(group.EndKernel({.grid = {lanes.blocks(), 1, 1}, .threads = lanes.threads}, text));
  return group.Take();
}

}  // namespace

const Family kResizeFamily = {ResizeVariants, GenerateResize};

}  // namespace ag::cuda

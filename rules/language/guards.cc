#include "rules/language/guards.h"

#include <algorithm>
#include <cmath>

#include "graph/tensor.h"
#include "rules/language/arguments.h"
#include "rules/language/expression.h"

namespace ag {
namespace {

// ---- Facts about a tensor.

Result Dim(const TensorFacts&, const Shape& shape, int64_t axis) {
  const auto at = AxisIn(shape, axis);
  return at.has_value() ? Result(shape[*at]) : std::nullopt;
}

Result Rank(const TensorFacts&, const Shape& shape) { return static_cast<int64_t>(shape.size()); }

Result ShapeList(const TensorFacts&, const Shape& shape) { return ToInts(shape); }

Result Elements(const TensorFacts&, const Shape& shape) { return NumElements(shape); }

// Returns the shape without axis n: the sizes that must agree in a concat along n.
Result ShapeBut(const TensorFacts&, const Shape& shape, int64_t axis) {
  const auto at = AxisIn(shape, axis);
  if (!at.has_value()) return std::nullopt;
  Ints rest = ToInts(shape);
  rest.erase(rest.begin() + *at);
  return rest;
}

Result IsConst(const TensorFacts& facts, Edge x) { return Truth(facts.is_constant(x)); }

Result SingleUse(const TensorFacts& facts, Edge x) { return Truth(facts.single_use(x)); }

Result SameShape(const TensorFacts& facts, Arguments a) {
  for (size_t i = 0; i < a.size(); ++i) {
    const auto shape = ShapeOf(facts, a, i);
    if (!shape.has_value() || shape != ShapeOf(facts, a, 0)) return Truth(false);
  }
  return Truth(true);
}

Result IsFloatTensor(const TensorFacts& facts, Edge x) {
  return Truth(IsFloat(facts.type(x).dtype));
}

// Whether k, broadcast against y, has y's shape and varies only along y's axis n.
Result AlongAxis(const TensorFacts&, const Shape& k, const Shape& y, int64_t axis) {
  const auto at = AxisIn(y, axis);
  if (!at.has_value() || k.size() > y.size()) return Truth(false);
  const size_t shift = y.size() - k.size();
  for (size_t i = 0; i < k.size(); ++i) {
    const bool is_axis = static_cast<int64_t>(i + shift) == *at;
    if (k[i] != 1 && !(is_axis && k[i] == y[*at])) return Truth(false);
  }
  return Truth(true);
}

// Whether no operand of an element-wise operator is stretched along axis n of the result y.
Result FullAlong(const TensorFacts& facts, Arguments a) {
  const auto y = ShapeOf(facts, a, 0);
  const auto* axis = Get<int64_t>(a, 1);
  if (!y.has_value() || axis == nullptr || *axis < 0) return std::nullopt;
  for (size_t i = 2; i < a.size(); ++i) {
    const auto x = ShapeOf(facts, a, i);
    if (!x.has_value() || x->size() != y->size()) return Truth(false);
    if (static_cast<size_t>(*axis) >= y->size() || (*x)[*axis] != (*y)[*axis]) return Truth(false);
  }
  return Truth(true);
}

// Guards a rule that splits weights, so that it does not undo what another rule joined and does not
// split its own pieces.
Result IsWhole(const TensorFacts& facts, Edge x) {
  return Truth(!Has(facts.node(x.node).op, kMovement));
}

// ---- Facts about a labelled operator.

Result Is(const TensorFacts& facts, Arguments a) {
  const auto* label = Get<LabelValue>(a, 0);
  if (label == nullptr) return std::nullopt;
  const std::string& name = Info(facts.node(label->node).op).text_name;
  for (size_t i = 1; i < a.size(); ++i) {
    const auto* word = Get<std::string>(a, i);
    if (word == nullptr || !OpKindFromText(*word).ok()) return std::nullopt;
    if (*word == name) return Truth(true);
  }
  return Truth(false);
}

// The trait excludes functions without a value somewhere (logarithms, roots): the largest of
// several operands may have a value where another operand has none.
Result Monotone(const TensorFacts& facts, LabelValue label) {
  const Node& node = facts.node(label.node);
  if (!Has(node.op, kMonotone)) return Truth(false);
  for (const AttributeSchema& schema : Info(node.op).attributes) {
    const bool is_slope = schema.name == "alpha" || schema.name == "gamma";
    if (is_slope && !(node.Float(schema.name) >= 0)) return Truth(false);
  }
  return Truth(true);
}

// ---- Arithmetic on attributes.

Result Fold(Arguments a, int64_t start, int64_t (*step)(int64_t, int64_t)) {
  int64_t out = start;
  for (const Value& value : a) {
    if (const auto* integer = std::get_if<int64_t>(&value)) {
      out = step(out, *integer);
    } else if (const auto* list = std::get_if<Ints>(&value)) {
      for (const int64_t element : *list) out = step(out, element);
    } else {
      return std::nullopt;
    }
  }
  return out;
}

Result Sum(const TensorFacts&, Arguments a) {
  return Fold(a, 0, [](int64_t x, int64_t y) { return x + y; });
}
Result MaxOf(const TensorFacts&, Arguments a) {
  return Fold(a, INT64_MIN, [](int64_t x, int64_t y) { return std::max(x, y); });
}
Result MinOf(const TensorFacts&, Arguments a) {
  return Fold(a, INT64_MAX, [](int64_t x, int64_t y) { return std::min(x, y); });
}
Result Count(const TensorFacts&, Arguments a) { return static_cast<int64_t>(a.size()); }

Result Length(const TensorFacts&, const Ints& list) { return static_cast<int64_t>(list.size()); }

Result Same(const TensorFacts&, Arguments a) {
  return Truth(std::all_of(a.begin(), a.end(), [&](const Value& v) { return SameValue(v, a[0]); }));
}

Result Near(const TensorFacts&, double x, double y, double tolerance) {
  return Truth(CloseTo(x, y, tolerance));
}

bool HasCount(const Ints& list, int64_t n) {
  return n >= 0 && static_cast<size_t>(n) <= list.size();
}

Result Take(const TensorFacts&, const Ints& list, int64_t n) {
  return HasCount(list, n) ? Result(Ints(list.begin(), list.begin() + n)) : std::nullopt;
}

Result Drop(const TensorFacts&, const Ints& list, int64_t n) {
  return HasCount(list, n) ? Result(Ints(list.begin() + n, list.end())) : std::nullopt;
}

Result Join(const TensorFacts&, Arguments a) {
  Ints out;
  for (const Value& value : a) {
    const auto* list = std::get_if<Ints>(&value);
    if (list == nullptr) return std::nullopt;
    out.insert(out.end(), list->begin(), list->end());
  }
  return out;
}

Result Repeat(const TensorFacts&, int64_t value, int64_t n) {
  if (n < 0 || n > 64) return std::nullopt;
  return Ints(static_cast<size_t>(n), value);
}

Result Range(const TensorFacts&, int64_t low, int64_t high) {
  if (high < low || high - low > 64) return std::nullopt;
  Ints out;
  for (int64_t i = low; i < high; ++i) out.push_back(i);
  return out;
}

// Returns the permutation that equals a transpose by p and then by q.
Result Compose(const TensorFacts&, const Ints& p, const Ints& q) {
  if (p.size() != q.size()) return std::nullopt;
  Ints out;
  for (const int64_t axis : q) out.push_back(p[axis]);
  return out;
}

// Returns the operand axis of axis n (or of several axes) of a transposed tensor, or the reverse.
Result At(const TensorFacts&, Arguments a) {
  const Ints* list = Get<Ints>(a, 0);
  const auto is_in = [&](int64_t n) { return n >= 0 && n < static_cast<int64_t>(list->size()); };
  if (list == nullptr) return std::nullopt;
  if (const auto* n = Get<int64_t>(a, 1)) return is_in(*n) ? Result((*list)[*n]) : std::nullopt;
  const Ints* places = Get<Ints>(a, 1);
  if (places == nullptr || !std::all_of(places->begin(), places->end(), is_in)) return std::nullopt;
  Ints out;
  for (const int64_t n : *places) out.push_back((*list)[n]);
  return out;
}

Result Find(const TensorFacts&, const Ints& list, int64_t value) {
  const auto found = std::find(list.begin(), list.end(), value);
  if (found == list.end()) return std::nullopt;
  return static_cast<int64_t>(found - list.begin());
}

// ---- Enlarging a convolution's kernel (axiom A13). Tap t of a kernel reads the input at t *
// dilation - pad_begin; the taps of the small kernel must be a block of the large one's.

struct Enlarging {
  Ints before, after;  // Zero taps to add, by spatial axis.
};

std::optional<Enlarging> EnlargingOf(const TensorFacts& facts, Arguments a) {
  const auto small = ShapeOf(facts, a, 0);
  const auto large = ShapeOf(facts, a, 2);
  const Ints* p = Get<Ints>(a, 1);
  const Ints* q = Get<Ints>(a, 3);
  const Ints* dilations = Get<Ints>(a, 4);
  if (!small || !large || p == nullptr || q == nullptr || dilations == nullptr) return std::nullopt;
  const size_t axes = dilations->size();
  if (small->size() != axes + 2 || large->size() != axes + 2) return std::nullopt;
  if (p->size() != 2 * axes || q->size() != 2 * axes) return std::nullopt;
  Enlarging out;
  for (size_t i = 0; i < axes; ++i) {
    const int64_t shift = (*q)[i] - (*p)[i];
    const int64_t d = (*dilations)[i];
    if (d <= 0 || shift < 0 || shift % d != 0) return std::nullopt;
    const int64_t before = shift / d;
    const int64_t after = (*large)[i + 2] - (*small)[i + 2] - before;
    if (after < 0 || (*q)[i + axes] - (*p)[i + axes] != after * d) return std::nullopt;
    out.before.push_back(before);
    out.after.push_back(after);
  }
  return out;
}

Result Enlarges(const TensorFacts& facts, Arguments a) {
  const auto e = EnlargingOf(facts, a);
  if (!e.has_value()) return Truth(false);
  const auto positive = [](int64_t n) { return n > 0; };
  return Truth(std::any_of(e->before.begin(), e->before.end(), positive) ||
               std::any_of(e->after.begin(), e->after.end(), positive));
}

// Returns the pads of the weights that give the small kernel the size of the large one.
Result EnlargePads(const TensorFacts& facts, Arguments a) {
  const auto e = EnlargingOf(facts, a);
  if (!e.has_value()) return std::nullopt;
  Ints pads = {0, 0};
  pads.insert(pads.end(), e->before.begin(), e->before.end());
  pads.insert(pads.end(), {0, 0});
  pads.insert(pads.end(), e->after.begin(), e->after.end());
  return pads;
}

constexpr RuleFunction kGuardFunctions[] = {
    {"along_axis", "along_axis(k, y, n)",
     "k broadcast against y keeps y's shape and differs along axis n at most", 3, 3, Asks::kTypes,
     Typed<AlongAxis>},
    {"at", "at(list, n)", "element n of the list; the elements n when n is a list", 2, 2,
     Asks::kTypes, At},
    {"compose", "compose(p, q)", "the permutation of transposing by p, then by q", 2, 2,
     Asks::kTypes, Typed<Compose>},
    {"const", "const(x)", "x depends on constants alone", 1, 1, Asks::kGraph, Typed<IsConst>},
    {"count", "count(e...)", "how many arguments there are", 0, -1, Asks::kTypes, Count},
    {"length", "length(list)", "the length of the list", 1, 1, Asks::kTypes, Typed<Length>},
    {"dim", "dim(x, n)", "the size of axis n; negative n counts from the last", 2, 2, Asks::kTypes,
     Typed<Dim>},
    {"drop", "drop(list, n)", "the list without its first n elements", 2, 2, Asks::kTypes,
     Typed<Drop>},
    {"elements", "elements(x)", "the number of elements", 1, 1, Asks::kTypes, Typed<Elements>},
    {"enlarge_pads", "enlarge_pads(w, p, v, q, d)",
     "the pads of kernel w (conv pads p) that give it v's size (conv pads q) at dilation d", 5, 5,
     Asks::kTypes, EnlargePads},
    {"enlarges", "enlarges(w, p, v, q, d)",
     "kernel v with conv pads q covers kernel w with conv pads p and is larger", 5, 5, Asks::kTypes,
     Enlarges},
    {"find", "find(list, v)", "where v stands in the list", 2, 2, Asks::kTypes, Typed<Find>},
    {"floating", "floating(x)", "x has a floating-point element type", 1, 1, Asks::kTypes,
     Typed<IsFloatTensor>},
    {"full_along", "full_along(y, n, x...)",
     "no x is broadcast to y along axis n, all have y's rank", 3, -1, Asks::kTypes, FullAlong},
    {"is", "is(f, name, ...)", "the operator labelled f is one of those named", 2, -1, Asks::kTypes,
     Is},
    {"join", "join(list, ...)", "the lists one after another", 1, -1, Asks::kTypes, Join},
    {"max", "max(n, ...)", "the largest integer", 1, -1, Asks::kTypes, MaxOf},
    {"min", "min(n, ...)", "the smallest integer", 1, -1, Asks::kTypes, MinOf},
    {"monotone", "monotone(f)", "the unary operator labelled f never falls where its operand rises",
     1, 1, Asks::kTypes, Typed<Monotone>},
    {"near", "near(a, b, t)", "the floats differ by at most t, relative", 3, 3, Asks::kTypes,
     Typed<Near>},
    {"range", "range(a, b)", "the list a, a+1, ..., b-1", 2, 2, Asks::kTypes, Typed<Range>},
    {"rank", "rank(x)", "the number of axes", 1, 1, Asks::kTypes, Typed<Rank>},
    {"repeat", "repeat(v, n)", "the list of n times v", 2, 2, Asks::kTypes, Typed<Repeat>},
    {"same", "same(a, ...)", "all values are equal", 1, -1, Asks::kTypes, Same},
    {"same_shape", "same_shape(x, ...)", "all shapes are equal", 1, -1, Asks::kTypes, SameShape},
    {"shape", "shape(x)", "the sizes of all axes", 1, 1, Asks::kTypes, Typed<ShapeList>},
    {"shape_but", "shape_but(x, n)", "the sizes of all axes but n", 2, 2, Asks::kTypes,
     Typed<ShapeBut>},
    {"single_use", "single_use(x)", "x has one reader and is no output of the graph", 1, 1,
     Asks::kGraph, Typed<SingleUse>},
    {"sum", "sum(n, ...)", "the sum of integers and of lists", 0, -1, Asks::kTypes, Sum},
    {"take", "take(list, n)", "the first n elements of the list", 2, 2, Asks::kTypes, Typed<Take>},
    {"whole", "whole(x)", "no operator that joins, cuts or moves gives x", 1, 1, Asks::kGraph,
     Typed<IsWhole>},
};

}  // namespace

std::vector<RuleFunction> AllFunctions() {
  std::vector<RuleFunction> all(std::begin(kGuardFunctions), std::end(kGuardFunctions));
  all.insert(all.end(), AxisFunctions().begin(), AxisFunctions().end());
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return all;
}

const RuleFunction* FindFunction(std::string_view name) {
  for (const auto functions : {std::span<const RuleFunction>(kGuardFunctions), AxisFunctions()}) {
    for (const RuleFunction& function : functions) {
      if (function.name == name) return &function;
    }
  }
  return nullptr;
}

std::optional<double> ConstantNumber(const Graph& graph, Edge edge) {
  const Node& node = graph.node(edge.node);
  if (node.op != OpKind::kConstant || node.constant == nullptr) return std::nullopt;
  const TensorType& type = node.outputs[0];
  const std::string& bytes = node.constant->inline_bytes;
  if (!IsFloat(type.dtype) || type.NumElements() != 1) return std::nullopt;
  if (static_cast<int64_t>(bytes.size()) != type.Bytes()) return std::nullopt;
  return Tensor::View(type, bytes, node.facts).At(0);
}

}  // namespace ag

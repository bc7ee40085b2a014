#include "lab/generate/fit.h"

#include <algorithm>

#include "base/text.h"

namespace ag::generate {
namespace {

// The most ways for one size; more are mostly repetitions.
constexpr size_t kSizeWaysMax = 4;

bool AllEqual(const Numbers& values) {
  return std::all_of(values.begin(), values.end(), [&](int64_t v) { return v == values[0]; });
}

Numbers NumbersOf(const Signature& signature) {
  Numbers values;
  for (const AttributeValue& value : signature) values.push_back(std::get<int64_t>(value));
  return values;
}

// Returns the axis of an axis attribute, or of a list with one axis.
std::optional<int64_t> AxisOf(const AttributeValue& value) {
  if (const auto* axis = std::get_if<int64_t>(&value)) return *axis;
  const auto* axes = std::get_if<Ints>(&value);
  return axes != nullptr && axes->size() == 1 ? std::optional((*axes)[0]) : std::nullopt;
}

void AddOnce(std::string text, std::vector<std::string>* ways) {
  if (std::find(ways->begin(), ways->end(), text) == ways->end()) ways->push_back(std::move(text));
}

}  // namespace

bool Mentions(const std::string& text, const std::string& name) {
  const auto is_word = [&](size_t at) {
    return at < text.size() && (std::isalnum(static_cast<unsigned char>(text[at])) != 0);
  };
  for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
    const size_t end = at + name.size();
    // shape(x) is a call, not a variable.
    const bool called = end < text.size() && text[end] == '(';
    if (!is_word(end) && !called && (at == 0 || !is_word(at - 1))) return true;
  }
  return false;
}

bool IsAxis(std::string_view attribute) { return attribute == "axis" || attribute == "axes"; }

bool Constant(const Signature& signature) {
  return signature == Signature(signature.size(), signature[0]);
}

std::string Literal(const AttributeValue& value) {
  if (const auto* i = std::get_if<int64_t>(&value)) return fmt::format("{}", *i);
  if (const auto* list = std::get_if<Ints>(&value)) return "[" + Join(*list, ", ") + "]";
  if (const auto* d = std::get_if<double>(&value)) return FormatDouble(*d);
  return fmt::format("\"{}\"", std::get<std::string>(value));
}

// ---- Script.

int Script::Pick(int ways) {
  if (at_ == picks_.size()) {
    picks_.push_back(0);
    ways_.push_back(ways);
  }
  ways_[at_] = ways;
  picks_[at_] = std::min(picks_[at_], ways - 1);
  return picks_[at_++];
}

bool Script::Next() {
  picks_.resize(at_);
  ways_.resize(at_);
  at_ = 0;
  while (!picks_.empty()) {
    if (++picks_.back() < ways_.back()) return true;
    picks_.pop_back();
    ways_.pop_back();
  }
  return false;
}

// ---- Variables.

std::optional<int64_t> AttributeVariable::Axis() const {
  return IsAxis(attribute) ? AxisOf(signature[0]) : std::nullopt;
}

std::string AttributeVariable::AsInt() const {
  return list() ? fmt::format("at({}, 0)", name) : name;
}

MaybeText Fitter::Choose(const std::vector<std::string>& ways) {
  if (ways.empty()) return std::nullopt;
  const std::string& chosen = ways[static_cast<size_t>(Pick(static_cast<int>(ways.size())))];
  for (const AttributeVariable& variable : variables_) {
    if (Mentions(chosen, variable.name)) Refer(variable.name);
  }
  return chosen;
}

// Returns one of `known`, or a new variable.
MaybeText Fitter::Variable(const std::string& attribute, const Signature& signature,
                           std::vector<std::string> known) {
  const size_t fresh = known.size();
  const auto count =
      std::count_if(variables_.begin(), variables_.end(),
                    [&](const AttributeVariable& v) { return v.attribute == attribute; });
  const std::string name = count == 0 ? attribute : fmt::format("{}{}", attribute, count + 1);
  // When an equal variable exists, a new one is tried only for permutations.
  if (fresh > 0 && attribute != "perm") return Choose(known);
  known.push_back(name);
  const auto way = static_cast<size_t>(Pick(static_cast<int>(known.size())));
  if (way < fresh) return Choose({known[way]});
  variables_.push_back({name, attribute, signature});
  return IsUsed(name) ? name : "";
}

MaybeText Fitter::SourceValue(const std::string& attribute, const Signature& signature,
                              int64_t rank) {
  if (IsAxis(attribute)) return SourceAxis(attribute, signature, rank);
  const bool variable = attribute == "perm" ? options_.wording->axes == Wording::Axes::kVariable
                                            : options_.wording->lists;
  if (!variable) return Fit(attribute, signature, rank);
  std::vector<std::string> known;
  for (const AttributeVariable& v : variables_) {
    if (v.attribute == attribute && v.signature == signature) known.push_back(v.name);
  }
  return Variable(attribute, signature, std::move(known));
}

MaybeText Fitter::SourceAxis(const std::string& attribute, const Signature& signature,
                             int64_t rank) {
  if (options_.wording->axes != Wording::Axes::kVariable) {
    return FitAxis(attribute, signature, rank);
  }
  const std::optional<int64_t> axis = AxisOf(signature[0]);
  std::vector<std::string> known;
  for (const AttributeVariable& v : variables_) {
    if (axis && v.Axis() == axis && Constant(signature)) {
      const bool list = attribute == "axes";
      known.push_back(list == v.list() ? v.name : list ? "[" + v.name + "]" : v.AsInt());
    }
  }
  if (!axis) return Variable(attribute, signature, {});
  std::vector<std::string> ways;
  PermWays(*axis, &ways);
  if (options_.shifts) ShiftWays(*axis, &ways);
  for (const std::string& way : ways) {
    AddOnce(attribute == "axes" ? "[" + way + "]" : way, &known);
  }
  // An axis that differs from all others may be free; an equal one seldom is.
  if (std::any_of(variables_.begin(), variables_.end(),
                  [&](const AttributeVariable& v) { return v.Axis() == axis; })) {
    return Choose(known);
  }
  const auto way = static_cast<size_t>(Pick(static_cast<int>(known.size()) + 1));
  return way < known.size() ? Choose({known[way]}) : Variable(attribute, signature, {});
}

// ---- Values.

MaybeText Fitter::Fit(const std::string& attribute, const Signature& signature, int64_t rank) {
  if (IsAxis(attribute)) return FitAxis(attribute, signature, rank);
  for (const AttributeVariable& v : variables_) {
    if (v.attribute == attribute && v.signature == signature && attribute != "perm") {
      return Choose({v.name});
    }
  }
  if (attribute == "perm") return FitPerm(signature);
  if (std::holds_alternative<Ints>(signature[0])) return FitList(attribute, signature);
  if (attribute == "keepdims" || !std::holds_alternative<int64_t>(signature[0])) {
    return Constant(signature) ? MaybeText(Literal(signature[0])) : std::nullopt;
  }
  return FitSize(NumbersOf(signature));
}

MaybeText Fitter::FitAxis(const std::string& attribute, const Signature& signature, int64_t rank) {
  const std::optional<int64_t> axis = AxisOf(signature[0]);
  if (!axis || !Constant(signature)) return std::nullopt;
  const bool list = attribute == "axes";
  std::vector<std::string> ways;
  for (const AttributeVariable& v : variables_) {
    if (list && v.list() && v.Axis() == axis) ways.push_back(v.name);
  }
  for (const std::string& way : AxisWays(*axis, rank)) {
    AddOnce(list ? "[" + way + "]" : way, &ways);
  }
  return Choose(ways);
}

std::vector<std::string> Fitter::AxisWays(int64_t axis, int64_t rank) const {
  std::vector<std::string> ways;
  for (const AttributeVariable& v : variables_) {
    if (v.Axis() == axis) AddOnce(v.AsInt(), &ways);
  }
  PermWays(axis, &ways);
  if (options_.shifts && options_.wording->axes == Wording::Axes::kVariable) ShiftWays(axis, &ways);
  if (options_.wording->axes == Wording::Axes::kFromEnd) {
    for (const Named& name : names_) {
      if (static_cast<int64_t>(name.shapes[0].size()) != rank || name.spread) continue;
      ways.push_back(fmt::format("rank({}) - {}", name.text, rank - axis));
      break;
    }
  }
  const bool literal =
      options_.wording->axes == Wording::Axes::kLiteral ||
      (options_.wording->axes == Wording::Axes::kVariable && options_.literal_axes && rank == 4);
  if (ways.empty() && literal) ways.push_back(fmt::format("{}", axis));
  return ways;
}

// Adds at(perm, ...) and find(perm, ...): the axis before or after a transpose.
void Fitter::PermWays(int64_t axis, std::vector<std::string>* ways) const {
  for (const AttributeVariable& p : variables_) {
    if (p.attribute != "perm") continue;
    const Ints& perm = std::get<Ints>(p.signature[0]);
    for (const AttributeVariable& v : variables_) {
      const std::optional<int64_t> from = v.Axis();
      if (!from || *from >= static_cast<int64_t>(perm.size())) continue;
      if (perm[static_cast<size_t>(*from)] == axis) {
        AddOnce(fmt::format("at({}, {})", p.name, v.AsInt()), ways);
      }
      const auto found = std::find(perm.begin(), perm.end(), *from);
      if (found - perm.begin() == axis) {
        AddOnce(fmt::format("find({}, {})", p.name, v.AsInt()), ways);
      }
    }
  }
}

// Adds the axis after another axis is removed, or before it was.
void Fitter::ShiftWays(int64_t axis, std::vector<std::string>* ways) const {
  for (const AttributeVariable& v : variables_) {
    for (const AttributeVariable& gone : variables_) {
      const std::optional<int64_t> of = v.Axis(), w = gone.Axis();
      if (&v == &gone || !of || !w) continue;
      if (*of - (*w < *of) == axis) {
        AddOnce(fmt::format("{} - ({} < {})", v.AsInt(), gone.AsInt(), v.AsInt()), ways);
      }
      if (*of + (*w <= *of) == axis) {
        AddOnce(fmt::format("{} + ({} <= {})", v.AsInt(), gone.AsInt(), v.AsInt()), ways);
      }
    }
  }
}

MaybeText Fitter::FitList(const std::string& attribute, const Signature& signature) {
  for (const Named& name : names_) {
    if (attribute != "shape" || name.spread) continue;
    bool same = true;
    for (size_t s = 0; s < name.shapes.size(); ++s) {
      const Shape& shape = name.shapes[s];
      same = same && std::get<Ints>(signature[s]) == Ints(shape.begin(), shape.end());
    }
    if (same) return fmt::format("shape({})", name.text);
  }
  if (const MaybeText spread = FitSpread(signature)) return spread;
  std::vector<std::string> elements;
  for (size_t i = 0; i < std::get<Ints>(signature[0]).size(); ++i) {
    Numbers values;
    for (const AttributeValue& value : signature) values.push_back(std::get<Ints>(value).at(i));
    const MaybeText element = FitSize(values);
    if (!element) return std::nullopt;
    elements.push_back(*element);
  }
  return "[" + Join(elements, ", ") + "]";
}

// Fits [dim(x[i], axis)...], for a leaf and its successor.
MaybeText Fitter::FitSpread(const Signature& signature) {
  if (spread_ == nullptr || std::get<Ints>(signature[0]).size() != 2) return std::nullopt;
  std::vector<std::string> ways;
  for (const Named& name : names_) {
    if (!name.spread) continue;
    const auto rank = static_cast<int64_t>(name.shapes[0].size());
    for (int64_t axis = 0; axis < rank; ++axis) {
      bool same = true;
      for (size_t s = 0; s < name.shapes.size(); ++s) {
        same = same && std::get<Ints>(signature[s])[0] == name.shapes[s][static_cast<size_t>(axis)];
      }
      if (!same) continue;
      AddOnce(fmt::format("[dim({}, {})...]", name.text, SizeAxis(axis, rank)), &ways);
    }
  }
  return Choose(ways);
}

MaybeText Fitter::FitPerm(const Signature& signature) {
  if (!Constant(signature)) return std::nullopt;
  const Ints& wanted = std::get<Ints>(signature[0]);
  std::vector<std::string> ways;
  for (const AttributeVariable& p : variables_) {
    if (p.attribute == "perm" && std::get<Ints>(p.signature[0]) == wanted) ways.push_back(p.name);
  }
  for (const AttributeVariable& p : variables_) {
    for (const AttributeVariable& q : variables_) {
      if (p.attribute != "perm" || q.attribute != "perm") continue;
      const Ints& first = std::get<Ints>(p.signature[0]);
      const Ints& second = std::get<Ints>(q.signature[0]);
      if (first.size() != second.size() || first.size() != wanted.size()) continue;
      Ints composed;
      for (const int64_t axis : second) composed.push_back(first[static_cast<size_t>(axis)]);
      if (composed == wanted) AddOnce(fmt::format("compose({}, {})", p.name, q.name), &ways);
    }
  }
  if (ways.empty()) ways.push_back(Literal(signature[0]));
  return Choose(ways);
}

// ---- Sizes.

std::string Fitter::SizeAxis(int64_t axis, int64_t rank) {
  if (options_.wording->axes == Wording::Axes::kFromEnd) return fmt::format("{}", axis - rank);
  for (const AttributeVariable& v : variables_) {
    if (v.Axis() == axis) return v.AsInt();
  }
  return fmt::format("{}", axis);
}

// Returns the sizes. Those along an axis that a variable names come first: a literal axis needs a
// rank.
std::vector<Fitter::Size> Fitter::Sizes() {
  std::vector<Size> sizes;
  for (const Named& name : names_) {
    if (name.spread) continue;
    const auto rank = static_cast<int64_t>(name.shapes[0].size());
    for (int64_t axis = 0; axis < rank; ++axis) {
      Size size{.axis = axis, .name = &name};
      for (const Shape& shape : name.shapes) {
        size.values.push_back(shape[static_cast<size_t>(axis)]);
      }
      const std::string at = SizeAxis(axis, rank);
      size.by_variable = std::isalpha(static_cast<unsigned char>(at[0])) != 0;
      size.text = fmt::format("dim({}, {})", name.text, at);
      sizes.push_back(std::move(size));
    }
  }
  std::stable_sort(sizes.begin(), sizes.end(),
                   [](const Size& a, const Size& b) { return a.by_variable > b.by_variable; });
  return sizes;
}

MaybeText Fitter::FitSize(const Numbers& values) {
  if (AllEqual(values)) return fmt::format("{}", values[0]);
  std::vector<std::string> ways;
  for (const Size& size : Sizes()) {
    if (size.values == values && ways.size() < kSizeWaysMax) AddOnce(size.text, &ways);
  }
  if (ways.empty()) SumWays(values, &ways);
  return Choose(ways);
}

void Fitter::SumWays(const Numbers& values, std::vector<std::string>* ways) {
  const std::vector<Size> sizes = Sizes();
  for (size_t i = 0; i < sizes.size(); ++i) {
    for (size_t j = i; j < sizes.size(); ++j) {
      const Size &a = sizes[i], &b = sizes[j];
      // A join adds sizes of one axis, a reshape multiplies neighbors; other matches are
      // coincidence.
      const bool joined = a.axis == b.axis;
      if (!joined && (a.name != b.name || std::abs(a.axis - b.axis) != 1)) continue;
      bool fits = true;
      for (size_t s = 0; s < values.size(); ++s) {
        const int64_t x = a.values[s], y = b.values[s];
        fits = fits && values[s] == (joined ? x + y : x * y);
      }
      if (!fits || ways->size() >= kSizeWaysMax) continue;
      const Size &first = a.axis <= b.axis ? a : b, &second = a.axis <= b.axis ? b : a;
      AddOnce(fmt::format("{} {} {}", first.text, joined ? '+' : '*', second.text), ways);
    }
  }
}

}  // namespace ag::generate

#include "rules/generate/phrase.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"

namespace ag::generate {
namespace {

constexpr Wording kWordings[] = {
    {Wording::Axes::kVariable, true, true},  {Wording::Axes::kVariable, false, true},
    {Wording::Axes::kVariable, true, false}, {Wording::Axes::kVariable, false, false},
    {Wording::Axes::kFromEnd, true, false},  {Wording::Axes::kFromEnd, false, false},
    {Wording::Axes::kLiteral, false, false},
};

constexpr const char* kLeafNames[] = {"x", "y", "z", "w", "v", "u", "t", "s", "r"};
constexpr const char* kLabels[] = {"c", "d", "e"};

using Signature = std::vector<AttributeValue>;  // By assignment.
using Numbers = std::vector<int64_t>;           // By assignment.
using MaybeText = std::optional<std::string>;

bool Constant(const Numbers& values) {
  return std::all_of(values.begin(), values.end(), [&](int64_t v) { return v == values[0]; });
}

bool HasLabel(const Call& call) { return call.op == OpKind::kConv || Has(call.op, kPooling); }

bool IsAxis(std::string_view attribute) { return attribute == "axis" || attribute == "axes"; }

Signature SignatureOf(const Call& call, const std::string& attribute) {
  Signature signature;
  for (const Node& node : call.nodes) signature.push_back(*node.attributes->Find(attribute));
  return signature;
}

MaybeText Literal(const AttributeValue& value) {
  if (const auto* i = std::get_if<int64_t>(&value)) return fmt::format("{}", *i);
  if (const auto* list = std::get_if<Ints>(&value)) return "[" + Join(*list, ", ") + "]";
  if (const auto* d = std::get_if<double>(&value)) return FormatDouble(*d);
  return fmt::format("\"{}\"", std::get<std::string>(value));
}

class Speaker {
 public:
  Speaker(const TermTable& table, const Wording& wording, const std::vector<Constraint>& kept,
          const std::set<std::string>* used)
      : table_(table), wording_(wording), kept_(kept), used_(used) {}

  std::optional<Phrase> Run(const std::vector<TermId>& source, const std::vector<TermId>& target) {
    if (wording_.unary_class && !OneUnary(source, target)) return std::nullopt;
    Phrase phrase;
    const MaybeText left = Side(source);
    in_source_ = false;
    names_.clear();
    const MaybeText right = left ? Side(target) : std::nullopt;
    if (!right) return std::nullopt;
    phrase.equation = *left + " => " + *right;
    phrase.constraints = Constraints();
    phrase.zeros = zeros_;
    return phrase;
  }

  std::set<std::string> referenced;  // Attribute variables that somebody reads.

 private:
  struct Variable {
    std::string name;
    std::string attribute;
    Signature signature;
  };
  struct Labelled {
    std::string label;
    int call;
  };

  // The one unary operator that occurs, as often on both sides.
  bool OneUnary(const std::vector<TermId>& source, const std::vector<TermId>& target) {
    std::set<OpKind> kinds;
    const auto count = [&](const std::vector<TermId>& roots) {
      std::set<int32_t> nodes;
      for (const TermId root : roots) CountUnary(root, &nodes, &kinds);
      return !nodes.empty();
    };
    return count(source) && count(target) && kinds.size() == 1;
  }
  void CountUnary(TermId id, std::set<int32_t>* nodes, std::set<OpKind>* kinds) {
    const Term& term = table_.term(id);
    if (term.call < 0) return;
    if (Has(table_.call(term).op, kUnary)) {
      nodes->insert(term.nodes.back());
      kinds->insert(table_.call(term).op);
    }
    for (const TermId operand : term.operands) CountUnary(operand, nodes, kinds);
  }

  void CountUses(TermId id, std::map<TermId, int>* uses) {
    if (table_.term(id).call < 0 || ++(*uses)[id] > 1) return;
    for (const TermId operand : table_.term(id).operands) CountUses(operand, uses);
  }

  MaybeText Side(const std::vector<TermId>& roots) {
    uses_.clear();
    for (const TermId root : roots) CountUses(root, &uses_);
    std::vector<std::string> texts;
    for (const TermId root : roots) {
      const MaybeText text = Say(root);
      if (!text) return std::nullopt;
      texts.push_back(*text);
    }
    return Join(texts, ", ");
  }

  MaybeText Say(TermId id) {
    const Term& term = table_.term(id);
    if (term.call < 0) return SayLeaf(term);
    if (const auto named = names_.find(id); named != names_.end()) return named->second;
    const Call& call = table_.call(term);
    if (call.extra == nullptr && call.op == OpKind::kRelu && call.nodes.empty()) return {};
    std::vector<std::string> operands;
    for (const TermId operand : term.operands) {
      const MaybeText text = Say(operand);
      if (!text) return std::nullopt;
      operands.push_back(*text);
    }
    MaybeText attributes = call.extra != nullptr ? "" : SayAttributes(term);
    if (!attributes) return std::nullopt;
    std::string text = OperatorName(call, term) + "(" + Join(operands, ", ");
    text += (attributes->empty() ? "" : "; " + *attributes) + ")";
    if (call.types.size() > 1) return text + fmt::format("[{}]", term.output);
    if (uses_[id] < 2) return text;
    names_[id] = fmt::format("{}{}", in_source_ ? "n" : "m", names_.size() + 1);
    return names_[id] + ":" + text;
  }

  MaybeText SayLeaf(const Term& term) {
    const Leaf& leaf = table_.universe.leaves[static_cast<size_t>(term.leaf)];
    const auto known = std::find(leaves_.begin(), leaves_.end(), term.leaf);
    if (known != leaves_.end()) return kLeafNames[known - leaves_.begin()];
    if (leaf.zero) return in_source_ ? std::nullopt : SayZeros(leaf);
    if (!in_source_ || leaves_.size() == std::size(kLeafNames)) return std::nullopt;
    leaves_.push_back(term.leaf);
    return kLeafNames[leaves_.size() - 1];
  }

  // Zeros are the difference of a leaf of that shape and itself.
  MaybeText SayZeros(const Leaf& leaf) {
    for (size_t i = 0; i < leaves_.size(); ++i) {
      if (LeafShapes(i) != leaf.shapes) continue;
      zeros_ = true;
      return fmt::format("sub({0}, {0})", kLeafNames[i]);
    }
    return std::nullopt;
  }

  std::string OperatorName(const Call& call, const Term& term) {
    if (call.extra != nullptr) return call.extra->name;
    if (wording_.unary_class && Has(call.op, kUnary)) return "unary.f";
    const std::string label = HasLabel(call) ? LabelOf(term.call) : "";
    return Info(call.op).text_name + (label.empty() ? "" : "." + label);
  }

  // In the source one for each set of attributes; in the target one of the same operator.
  std::string LabelOf(int call) {
    for (const Labelled& labelled : labels_) {
      if (SameAttributes(labelled.call, call)) return labelled.label;
    }
    if (in_source_ && labels_.size() < std::size(kLabels)) {
      labels_.push_back({kLabels[labels_.size()], call});
      return labels_.back().label;
    }
    for (const Labelled& labelled : labels_) {
      if (CallAt(labelled.call).op == CallAt(call).op) return labelled.label;
    }
    return "";
  }
  const Call& CallAt(int call) const { return table_.calls[static_cast<size_t>(call)]; }
  bool SameAttributes(int a, int b) const {
    if (CallAt(a).op != CallAt(b).op) return false;
    for (size_t s = 0; s < CallAt(a).nodes.size(); ++s) {
      if (!(*CallAt(a).nodes[s].attributes == *CallAt(b).nodes[s].attributes)) return false;
    }
    return true;
  }

  MaybeText SayAttributes(const Term& term) {
    const Call& call = table_.call(term);
    if (wording_.unary_class && Has(call.op, kUnary)) return "";
    if (HasLabel(call)) {
      const std::string label = LabelOf(term.call);
      return in_source_ ? KeptAttributes(label) : ChangedAttributes(term, label);
    }
    std::vector<std::string> said;
    const int64_t rank = static_cast<int64_t>(table_.shapes(term.operands[0])[0].size());
    for (const AttributeSchema& schema : Info(call.op).attributes) {
      const Signature signature = SignatureOf(call, schema.name);
      const MaybeText value = in_source_ ? SourceValue(schema.name, signature, rank)
                                         : Fit(schema.name, signature, rank);
      if (!value) return std::nullopt;
      if (!value->empty()) said.push_back(schema.name + "=" + *value);
    }
    return Join(said, ", ");
  }

  MaybeText KeptAttributes(const std::string& label) const {
    std::vector<std::string> said;
    for (const Constraint& constraint : kept_) {
      if (constraint.label == label && !label.empty()) said.push_back(constraint.text);
    }
    return Join(said, ", ");
  }

  MaybeText ChangedAttributes(const Term& term, const std::string& label) {
    const Call& call = table_.call(term);
    const Call* like = nullptr;
    for (const Labelled& labelled : labels_) {
      if (labelled.label == label) like = &CallAt(labelled.call);
    }
    std::vector<std::string> said;
    for (const AttributeSchema& schema : Info(call.op).attributes) {
      const Signature signature = SignatureOf(call, schema.name);
      if (like != nullptr && SignatureOf(*like, schema.name) == signature) continue;
      const MaybeText value = Fit(schema.name, signature, 4);
      if (!value) return std::nullopt;
      said.push_back(schema.name + "=" + *value);
    }
    return Join(said, ", ");
  }

  // "" when the attribute may be anything.
  MaybeText SourceValue(const std::string& attribute, const Signature& signature, int64_t rank) {
    const bool variable =
        IsAxis(attribute) ? wording_.axes == Wording::Axes::kVariable : wording_.lists;
    if (!variable) return Fit(attribute, signature, rank);
    for (const Variable& known : variables_) {
      if (known.attribute != attribute || known.signature != signature) continue;
      referenced.insert(known.name);
      return known.name;
    }
    const auto count = std::count_if(variables_.begin(), variables_.end(),
                                     [&](const Variable& v) { return v.attribute == attribute; });
    const std::string name = count == 0 ? attribute : fmt::format("{}{}", attribute, count + 1);
    variables_.push_back({name, attribute, signature});
    return used_ != nullptr && !used_->contains(name) ? "" : name;
  }

  // ---- Values by expressions over what the source binds.

  MaybeText Fit(const std::string& attribute, const Signature& signature, int64_t rank) {
    for (const Variable& variable : variables_) {
      if (variable.attribute == attribute && variable.signature == signature) {
        return Refer(variable);
      }
    }
    if (std::holds_alternative<Ints>(signature[0])) return FitList(attribute, signature, rank);
    if (!std::holds_alternative<int64_t>(signature[0])) {
      return signature == Signature(signature.size(), signature[0]) ? Literal(signature[0])
                                                                    : std::nullopt;
    }
    Numbers values;
    for (const AttributeValue& value : signature) values.push_back(std::get<int64_t>(value));
    return FitInt(attribute, values, rank);
  }

  std::string Refer(const Variable& variable) {
    referenced.insert(variable.name);
    return variable.name;
  }

  MaybeText FitList(const std::string& attribute, const Signature& signature, int64_t rank) {
    if (attribute == "perm") return FitPerm(signature);
    for (size_t i = 0; attribute == "shape" && i < leaves_.size(); ++i) {
      const Shapes& shapes = LeafShapes(i);
      bool same = true;
      for (size_t s = 0; s < shapes.size(); ++s) {
        same = same && std::get<Ints>(signature[s]) == Ints(shapes[s].begin(), shapes[s].end());
      }
      if (same) return fmt::format("shape({})", kLeafNames[i]);
    }
    std::vector<std::string> elements;
    const size_t length = std::get<Ints>(signature[0]).size();
    for (size_t i = 0; i < length; ++i) {
      Numbers values;
      for (const AttributeValue& value : signature) values.push_back(std::get<Ints>(value).at(i));
      const MaybeText element = FitInt(attribute, values, rank);
      if (!element) return std::nullopt;
      elements.push_back(*element);
    }
    return "[" + Join(elements, ", ") + "]";
  }

  MaybeText FitPerm(const Signature& signature) {
    const Ints& wanted = std::get<Ints>(signature[0]);
    for (const Variable& p : variables_) {
      for (const Variable& q : variables_) {
        if (p.attribute != "perm" || q.attribute != "perm" || !wording_.lists) continue;
        const Ints& first = std::get<Ints>(p.signature[0]);
        const Ints& second = std::get<Ints>(q.signature[0]);
        if (first.size() != second.size() || first.size() != wanted.size()) continue;
        Ints composed;
        for (const int64_t axis : second) composed.push_back(first[static_cast<size_t>(axis)]);
        if (composed == wanted) return fmt::format("compose({}, {})", Refer(p), Refer(q));
      }
    }
    return Literal(signature[0]);
  }

  MaybeText FitInt(const std::string& attribute, const Numbers& values, int64_t rank) {
    if (!IsAxis(attribute)) return attribute == "keepdims" ? Plain(values) : FitSize(values);
    if (const MaybeText known = FitVariable(values[0])) return known;
    if (wording_.axes != Wording::Axes::kFromEnd) return Plain(values);
    for (size_t i = 0; i < leaves_.size(); ++i) {
      if (static_cast<int64_t>(LeafShapes(i)[0].size()) != rank) continue;
      return fmt::format("rank({}) - {}", kLeafNames[i], rank - values[0]);
    }
    return std::nullopt;
  }

  MaybeText Plain(const Numbers& values) const {
    return Constant(values) ? MaybeText(fmt::format("{}", values[0])) : std::nullopt;
  }

  // An axis from the variables of the source: one of them, or where a transpose puts it.
  MaybeText FitVariable(int64_t axis) {
    for (const Variable& v : variables_) {
      if (v.attribute == "axis" && std::get<int64_t>(v.signature[0]) == axis) return Refer(v);
    }
    for (const Variable& v : variables_) {
      if (v.attribute != "axes" || std::get<Ints>(v.signature[0]) != Ints{axis}) continue;
      return fmt::format("at({}, 0)", Refer(v));
    }
    for (const Variable& p : variables_) {
      if (p.attribute != "perm") continue;
      const Ints& perm = std::get<Ints>(p.signature[0]);
      for (const Variable& v : variables_) {
        const bool list = v.attribute == "axes";
        if (!list && v.attribute != "axis") continue;
        const int64_t from =
            list ? std::get<Ints>(v.signature[0])[0] : std::get<int64_t>(v.signature[0]);
        const std::string name = list ? fmt::format("at({}, 0)", v.name) : v.name;
        const bool at =
            from < static_cast<int64_t>(perm.size()) && perm[static_cast<size_t>(from)] == axis;
        const auto found = std::find(perm.begin(), perm.end(), from);
        if (!at && found - perm.begin() != axis) continue;
        Refer(v);
        return fmt::format("{}({}, {})", at ? "at" : "find", Refer(p), name);
      }
    }
    return std::nullopt;
  }

  const Shapes& LeafShapes(size_t i) const {
    return table_.universe.leaves[static_cast<size_t>(leaves_[i])].shapes;
  }

  struct Size {
    std::string text;
    Numbers values;
  };
  std::vector<Size> Sizes() {
    std::vector<Size> sizes;
    for (size_t i = 0; i < leaves_.size(); ++i) {
      const Shapes& shapes = LeafShapes(i);
      const auto rank = static_cast<int64_t>(shapes[0].size());
      for (int64_t axis = 0; axis < rank; ++axis) {
        Size size;
        for (const Shape& shape : shapes) size.values.push_back(shape[static_cast<size_t>(axis)]);
        size.text = fmt::format("dim({}, {})", kLeafNames[i], SizeAxis(axis, rank));
        sizes.push_back(std::move(size));
      }
    }
    return sizes;
  }
  std::string SizeAxis(int64_t axis, int64_t rank) {
    if (wording_.axes == Wording::Axes::kFromEnd) return fmt::format("{}", axis - rank);
    for (const Variable& v : variables_) {
      if (v.attribute == "axis" && std::get<int64_t>(v.signature[0]) == axis) return Refer(v);
    }
    return fmt::format("{}", axis);
  }

  MaybeText FitSize(const Numbers& values) {
    if (Constant(values)) return Plain(values);
    const std::vector<Size> sizes = Sizes();
    for (const Size& size : sizes) {
      if (size.values == values) return size.text;
    }
    for (const Size& a : sizes) {
      for (const Size& b : sizes) {
        for (const char op : {'+', '*', '-'}) {
          bool fits = true;
          for (size_t s = 0; s < values.size(); ++s) {
            const int64_t x = a.values[s], y = b.values[s];
            fits = fits && values[s] == (op == '+' ? x + y : op == '*' ? x * y : x - y);
          }
          if (fits) return fmt::format("{} {} {}", a.text, op, b.text);
        }
      }
    }
    return std::nullopt;
  }

  // ---- Constraints, strict first.

  std::vector<Constraint> Constraints() {
    std::vector<Constraint> all;
    for (size_t i = 0; i < leaves_.size(); ++i) {
      for (size_t j = i + 1; j < leaves_.size(); ++j) SizeConstraints(i, j, &all);
    }
    for (size_t i = 0; i < leaves_.size(); ++i) {
      all.push_back({fmt::format("rank({}) == {}", kLeafNames[i], LeafShapes(i)[0].size())});
    }
    for (const Labelled& labelled : labels_) {
      const Call& call = CallAt(labelled.call);
      for (const AttributeSchema& schema : Info(call.op).attributes) {
        const Signature signature = SignatureOf(call, schema.name);
        if (signature != Signature(signature.size(), signature[0])) continue;
        all.push_back({schema.name + "=" + *Literal(signature[0]), labelled.label});
      }
    }
    VariableConstraints(&all);
    for (size_t i = 0; i < leaves_.size(); ++i) {
      for (size_t j = i + 1; j < leaves_.size(); ++j) {
        if (LeafShapes(i) != LeafShapes(j)) continue;
        all.push_back({fmt::format("same_shape({}, {})", kLeafNames[i], kLeafNames[j])});
      }
    }
    return all;
  }

  void VariableConstraints(std::vector<Constraint>* all) {
    for (const Variable& v : variables_) {
      if (used_ != nullptr && !used_->contains(v.name)) continue;
      if (v.attribute == "axes") all->push_back({fmt::format("length({}) == 1", v.name)});
      for (const Variable& w : variables_) {
        if (&w < &v || w.attribute != v.attribute) continue;
        if (used_ != nullptr && !used_->contains(w.name)) continue;
        if (v.attribute == "perm") InverseConstraint(v, w, all);
        if (&w != &v && IsAxis(v.attribute)) {
          all->push_back({fmt::format("{} != {}", v.name, w.name)});
        }
      }
    }
  }

  void InverseConstraint(const Variable& p, const Variable& q, std::vector<Constraint>* all) {
    const Ints& first = std::get<Ints>(p.signature[0]);
    const Ints& second = std::get<Ints>(q.signature[0]);
    if (first.size() != second.size()) return;
    for (size_t i = 0; i < first.size(); ++i) {
      if (first[static_cast<size_t>(second[i])] != static_cast<int64_t>(i)) return;
    }
    Refer(p);
    Refer(q);
    all->push_back(
        {fmt::format("compose({}, {}) == range(0, length({}))", p.name, q.name, p.name)});
  }

  // What two leaves have in common when their shapes are not the same.
  void SizeConstraints(size_t i, size_t j, std::vector<Constraint>* all) {
    const Shapes &a = LeafShapes(i), &b = LeafShapes(j);
    if (a == b || a[0].size() != b[0].size() || a[0].size() < 2) return;
    std::vector<int64_t> differ;
    const auto rank = static_cast<int64_t>(a[0].size());
    for (int64_t axis = 0; axis < rank; ++axis) {
      bool same = true;
      for (size_t s = 0; s < a.size(); ++s) {
        same = same && a[s][static_cast<size_t>(axis)] == b[s][static_cast<size_t>(axis)];
      }
      if (!same) differ.push_back(axis);
    }
    if (differ.size() != 1) return;
    const std::string axis = SizeAxis(differ[0], rank);
    all->push_back({fmt::format("shape_but({0}, {2}) == shape_but({1}, {2})", kLeafNames[i],
                                kLeafNames[j], axis)});
  }

  const TermTable& table_;
  const Wording& wording_;
  const std::vector<Constraint>& kept_;
  const std::set<std::string>* used_;  // Null: not known yet.
  bool in_source_ = true;
  bool zeros_ = false;
  std::vector<int> leaves_;  // In the order of their names.
  std::vector<Variable> variables_;
  std::vector<Labelled> labels_;
  std::map<TermId, int> uses_;
  std::map<TermId, std::string> names_;
};

}  // namespace

std::span<const Wording> Wordings() { return kWordings; }

std::optional<Phrase> Say(const TermTable& table, const std::vector<TermId>& source,
                          const std::vector<TermId>& target, const Wording& wording,
                          const std::vector<Constraint>& kept) {
  Speaker first(table, wording, kept, nullptr);
  if (!first.Run(source, target)) return std::nullopt;
  Speaker second(table, wording, kept, &first.referenced);
  return second.Run(source, target);
}

std::string GuardsOf(const std::vector<Constraint>& kept) {
  std::vector<std::string> guards;
  for (const Constraint& constraint : kept) {
    if (constraint.label.empty()) guards.push_back(constraint.text);
  }
  return guards.empty() ? "" : " if " + Join(guards, ", ");
}

}  // namespace ag::generate

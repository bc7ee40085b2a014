#include "lab/generate/phrase.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "base/text.h"
#include "lab/generate/constraints.h"
#include "lab/generate/fit.h"

namespace ag::generate {
namespace {

// The most scripts tried and phrases returned: an axis has up to three ways, and few equations have
// more than two axes that matter.
constexpr int kScriptsMax = 48;
constexpr size_t kPhrasesMax = 12;

constexpr const char* kLeafNames[] = {"x", "y", "z", "w", "v", "u", "t", "s", "r"};
constexpr const char* kLabels[] = {"c", "d", "e"};

std::vector<Wording> MakeWordings() {
  std::vector<Wording> wordings;
  using Axes = Wording::Axes;
  for (const int general : {3, 2, 1, 0}) {
    const bool whole = (general & 2) != 0, spread = (general & 1) != 0;
    for (const Axes axes : {Axes::kVariable, Axes::kFromEnd, Axes::kLiteral}) {
      for (const bool lists : {true, false}) {
        if (axes == Axes::kLiteral && (lists || spread)) continue;
        for (const int classes : {3, 1, 2, 0}) {
          wordings.push_back({whole, spread, axes, lists, (classes & 1) != 0, (classes & 2) != 0});
        }
      }
    }
  }
  return wordings;
}

bool HasLabel(const Call& call) { return call.op == OpKind::kConv || Has(call.op, kPooling); }

Signature SignatureOf(const Call& call, const std::string& attribute) {
  Signature signature;
  for (const Node& node : call.nodes) signature.push_back(*node.attributes->Find(attribute));
  return signature;
}

// The operators below the roots of both sides.
struct Census {
  std::set<OpKind> unaries, binaries;
  bool unary_everywhere = true, binary_everywhere = true;  // On both sides.
  bool windows = false, shifts = false;
};

Census CensusOf(const TermTable& table, const std::vector<TermId>& source,
                const std::vector<TermId>& target) {
  Census census;
  for (const auto* roots : {&source, &target}) {
    bool unary = false, binary = false;
    std::vector<TermId> open(*roots);
    while (!open.empty()) {
      const Term& term = table.term(open.back());
      open.pop_back();
      if (term.call < 0) continue;
      open.insert(open.end(), term.operands.begin(), term.operands.end());
      const Call& call = table.call(term);
      if (call.extra != nullptr) continue;
      if (Has(call.op, kUnary)) census.unaries.insert(call.op);
      if (Has(call.op, kBinary)) census.binaries.insert(call.op);
      unary = unary || Has(call.op, kUnary);
      binary = binary || Has(call.op, kBinary);
      census.windows = census.windows || HasLabel(call);
      census.shifts = census.shifts ||
                      (Has(call.op, kReduction) && call.nodes[0].attributes->Int("keepdims") == 0);
    }
    census.unary_everywhere = census.unary_everywhere && unary;
    census.binary_everywhere = census.binary_everywhere && binary;
  }
  return census;
}

bool Applies(const Wording& wording, const Census& census) {
  if (wording.unary_class && (census.unaries.size() != 1 || !census.unary_everywhere)) return false;
  return !wording.binary_class || (census.binaries.size() == 1 && census.binary_everywhere);
}

class Speaker {
 public:
  Speaker(const TermTable& table, const Wording& wording, const FitOptions& options,
          const Spread* spread, const std::set<TermId>* whole, Script* script,
          const std::set<std::string>* used)
      : table_(table),
        wording_(wording),
        spread_(spread),
        whole_(whole),
        fit_(options, spread, script, used) {}

  std::optional<Phrase> Run(const std::vector<TermId>& source, const std::vector<TermId>& target) {
    Phrase phrase;
    const MaybeText left = Side(source);
    in_source_ = false;
    names_.clear();
    const MaybeText right = left ? Side(target) : std::nullopt;
    if (!right) return std::nullopt;
    phrase.source = (spread_ != nullptr && spread_->each ? "each i: " : "") + *left;
    phrase.target = *right;
    phrase.constraints = ConstraintsOf(table_, wording_, labels_, joined_, &fit_);
    phrase.zeros = zeros_;
    return phrase;
  }

  const std::set<std::string>& referenced() const { return fit_.referenced(); }

 private:
  void CountUses(TermId id, std::map<TermId, int>* uses) {
    if (whole_ != nullptr && whole_->contains(id)) return;
    if (table_.term(id).call < 0 || ++(*uses)[id] > 1) return;
    for (const TermId operand : table_.term(id).operands) CountUses(operand, uses);
  }

  MaybeText Side(const std::vector<TermId>& roots) {
    uses_.clear();
    const size_t count = spread_ != nullptr ? 1 : roots.size();  // Other roots are cases of [i].
    for (size_t i = 0; i < count; ++i) CountUses(roots[i], &uses_);
    std::vector<std::string> texts;
    for (size_t i = 0; i < count; ++i) {
      const MaybeText text = Say(roots[i]);
      if (!text) return std::nullopt;
      texts.push_back(*text);
    }
    return Join(texts, ", ");
  }

  MaybeText Say(TermId id) {
    const Term& term = table_.term(id);
    if (whole_ != nullptr && whole_->contains(id)) return SayWhole(id);
    if (term.call < 0) return SayLeaf(term);
    if (const auto named = names_.find(id); named != names_.end()) return named->second;
    const Call& call = table_.call(term);
    const MaybeText operands = SayOperands(id, term);
    if (!operands) return std::nullopt;
    const MaybeText attributes = call.extra != nullptr ? "" : SayAttributes(term);
    if (!attributes) return std::nullopt;
    std::string text = OperatorName(call, term) + "(" + *operands;
    text += (attributes->empty() ? "" : "; " + *attributes) + ")";
    if (call.types.size() > 1) return text + SayOutput(term);
    if (uses_[id] < 2 || spread_ != nullptr) return text;
    names_[id] = fmt::format("{}{}", in_source_ ? "n" : "m", names_.size() + 1);
    return names_[id] + ":" + text;
  }

  std::string SayOutput(const Term& term) const {
    if (spread_ == nullptr) return fmt::format("[{}]", term.output);
    return "[i]";
  }

  MaybeText SayOperands(TermId id, const Term& term) {
    if (spread_ != nullptr && spread_->joins.contains(id)) {
      if (inside_) return std::nullopt;  // A join inside a join would need another index letter.
      inside_ = true;
      const MaybeText operand = Say(term.operands[0]);
      inside_ = false;
      return operand ? MaybeText(*operand + "...") : std::nullopt;
    }
    std::vector<std::string> operands;
    for (const TermId operand : term.operands) {
      const MaybeText text = Say(operand);
      if (!text) return std::nullopt;
      operands.push_back(*text);
    }
    const Call& call = table_.call(term);
    if (call.extra == nullptr && call.op == OpKind::kConcat && !in_source_) {
      joined_.push_back({operands[0], operands[1], call.nodes[0].attributes->Int("axis")});
    }
    if (call.extra == nullptr && call.op == OpKind::kConv && term.operands.size() == 2) {
      const MaybeText bias = in_source_ ? NewBias(term) : FitBias(term);
      if (!bias) return std::nullopt;
      operands.push_back(*bias);
    }
    return Join(operands, ", ");
  }

  MaybeText SayLeaf(const Term& term) {
    int leaf = term.leaf;
    const bool carries = spread_ != nullptr && spread_->Carries(leaf);
    if (carries) {
      const bool first = spread_->next.contains(leaf);
      if (first != (inside_ || spread_->member == 0)) return std::nullopt;
      leaf = spread_->FirstOf(leaf);
    }
    for (const Named& name : fit_.names()) {
      if (name.leaf == leaf) return name.text;
    }
    if (!in_source_) return std::nullopt;
    const auto& leaves = table_.universe.leaves;
    const int last = carries ? spread_->next.at(leaf) : leaf;
    return NewName({.leaf = leaf,
                    .shapes = leaves[static_cast<size_t>(leaf)].shapes,
                    .last_shapes = leaves[static_cast<size_t>(last)].shapes,
                    .spread = carries});
  }

  // Returns the name of a term that is read as a whole, as if it were a leaf.
  MaybeText SayWhole(TermId id) {
    const int leaf = static_cast<int>(table_.universe.leaves.size()) + id;
    for (const Named& name : fit_.names()) {
      if (name.leaf == leaf) return name.text;
    }
    if (!in_source_) return std::nullopt;
    return NewName({.leaf = leaf, .shapes = table_.shapes(id), .last_shapes = table_.shapes(id)});
  }

  MaybeText NewName(Named name) {
    std::vector<Named>& names = fit_.names();
    if (names.size() == std::size(kLeafNames)) return std::nullopt;
    name.letter = kLeafNames[names.size()];
    name.text = name.letter + (name.spread ? "[i]" : "");
    names.push_back(name);
    return name.text;
  }

  // ---- The bias of a convolution: the enumeration has zeros, the rule any bias.

  // Whether a leaf below carries [i].
  bool CarriesBelow(const Term& term) const {
    if (spread_ == nullptr) return false;
    if (term.call < 0) return spread_->Carries(term.leaf);
    return std::any_of(term.operands.begin(), term.operands.end(),
                       [&](TermId id) { return CarriesBelow(table_.term(id)); });
  }

  // The same, without the operands of joins.
  bool CarriesBelowOutside(const Term& term) const {
    if (term.call < 0) return spread_->Carries(term.leaf);
    return std::any_of(term.operands.begin(), term.operands.end(), [&](TermId id) {
      return !spread_->joins.contains(id) && CarriesBelowOutside(table_.term(id));
    });
  }

  MaybeText NewBias(const Term& term) {
    Named bias{.node = term.nodes.back()};
    for (const Node& node : table_.call(term).nodes) {
      bias.shapes.push_back({node.outputs[0].shape[1]});
    }
    bias.last_shapes = bias.shapes;
    std::vector<std::string> known;
    for (const Named& name : fit_.names()) {
      if (name.leaf < 0 && name.shapes == bias.shapes) known.push_back(name.text);
    }
    // When the convolutions of a family differ, each may have a bias of its own, or all have one.
    const int fresh = CarriesBelow(term) ? 2 : 1;
    const int way = fit_.Pick(fresh + static_cast<int>(known.size()));
    if (way >= fresh) return known[static_cast<size_t>(way - fresh)];
    bias.spread = fresh == 2 && way == 0;
    return NewName(std::move(bias));
  }

  MaybeText FitBias(const Term& term) {
    const Call& call = table_.call(term);
    std::vector<const Named*> biases;
    for (const Named& name : fit_.names()) {
      if (name.leaf < 0) biases.push_back(&name);
    }
    const auto fits = [&](const std::vector<const Named*>& parts, bool joined) {
      for (size_t s = 0; s < call.nodes.size(); ++s) {
        int64_t size = 0;
        for (const Named* part : parts) {
          size = joined ? size + part->shapes[s][0] : part->shapes[s][0];
        }
        if (size != call.nodes[s].outputs[0].shape[1]) return false;
      }
      return true;
    };
    std::vector<std::string> ways;
    for (const Named* bias : biases) {
      if (bias->spread && !CarriesBelowOutside(term)) {
        ways.push_back(fmt::format("concat({}...; axis=0)", bias->text));
      } else if (fits({bias}, false)) {
        ways.push_back(bias->text);
      }
    }
    for (const Named* a : biases) {
      for (const Named* b : biases) {
        if (a >= b || a->spread || b->spread) continue;
        if (fits({a, b}, true))
          ways.push_back(fmt::format("concat({}, {}; axis=0)", a->text, b->text));
        if (fits({a}, false) && fits({b}, false)) {
          ways.push_back(fmt::format("add({}, {})", a->text, b->text));
        }
      }
    }
    for (const Named* bias : biases) {
      if (bias->spread || !fits({bias}, false)) continue;
      ways.push_back(fmt::format("sub({0}, {0})", bias->text));
      break;
    }
    const MaybeText chosen = fit_.Choose(ways);
    zeros_ = zeros_ || (chosen && chosen->starts_with("sub("));
    return chosen;
  }

  // ---- Operators.

  std::string OperatorName(const Call& call, const Term& term) {
    if (call.extra != nullptr) return call.extra->name;
    if (wording_.unary_class && Has(call.op, kUnary)) return "unary.f";
    if (wording_.binary_class && Has(call.op, kBinary)) return "binary.f";
    const std::string label = HasLabel(call) ? LabelOf(term.call) : "";
    return Info(call.op).text_name + (label.empty() ? "" : "." + label);
  }

  // Returns the operator's label: in the source one for each set of attributes, in the target the
  // one of an equal operator.
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
    if (wording_.binary_class && Has(call.op, kBinary)) return "";
    if (HasLabel(call)) {
      const std::string label = LabelOf(term.call);
      // The place for constraints on the operator's attributes.
      return in_source_ ? MaybeText("<" + label + ">") : ChangedAttributes(term, label);
    }
    std::vector<std::string> said;
    const auto rank = static_cast<int64_t>(table_.shapes(term.operands[0])[0].size());
    for (const AttributeSchema& schema : Info(call.op).attributes) {
      const Signature signature = SignatureOf(call, schema.name);
      const MaybeText value = in_source_ ? fit_.SourceValue(schema.name, signature, rank)
                                         : fit_.Fit(schema.name, signature, rank);
      if (!value) return std::nullopt;
      if (!value->empty()) said.push_back(schema.name + "=" + *value);
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
      const MaybeText value = fit_.Fit(schema.name, signature, 4);
      if (!value) return std::nullopt;
      said.push_back(schema.name + "=" + *value);
    }
    return Join(said, ", ");
  }

  const TermTable& table_;
  const Wording& wording_;
  const Spread* spread_;           // Null: no spread.
  const std::set<TermId>* whole_;  // Null: none.
  Fitter fit_;
  bool in_source_ = true;
  bool inside_ = false;  // A join.
  bool zeros_ = false;
  std::vector<Labelled> labels_;
  std::vector<JoinedNames> joined_;  // Joins of the target; terms without a name are not listed.
  std::map<TermId, int> uses_;
  std::map<TermId, std::string> names_;
};

// Collects the operators below the roots, without the roots.
void Below(const TermTable& table, TermId id, bool root, std::set<TermId>* below) {
  if (table.term(id).call < 0) return;
  if (!root && !below->insert(id).second) return;
  for (const TermId operand : table.term(id).operands) Below(table, operand, false, below);
}

// Returns the largest terms that both sides read.
std::set<TermId> WholeTerms(const TermTable& table, const std::vector<TermId>& source,
                            const std::vector<TermId>& target) {
  std::set<TermId> left, right, both, inner;
  for (const TermId root : source) Below(table, root, true, &left);
  for (const TermId root : target) Below(table, root, true, &right);
  std::set_intersection(left.begin(), left.end(), right.begin(), right.end(),
                        std::inserter(both, both.end()));
  for (const TermId id : both) Below(table, id, true, &inner);
  for (const TermId id : inner) both.erase(id);
  return both;
}

// Returns "conv.c(x, w, b; <c>)" with the attributes of label c in place of <c>.
std::string Fill(std::string text, const std::vector<Constraint>& kept) {
  for (const char* label : kLabels) {
    const std::string place = fmt::format("; <{}>", label);
    std::vector<std::string> said;
    for (const Constraint& constraint : kept) {
      if (constraint.label == label) said.push_back(constraint.text);
    }
    const std::string attributes = said.empty() ? "" : "; " + Join(said, ", ");
    for (size_t at = text.find(place); at != std::string::npos; at = text.find(place, at)) {
      text.replace(at, place.size(), attributes);
      at += attributes.size();
    }
  }
  return text;
}

}  // namespace

std::span<const Wording> Wordings() {
  static const std::vector<Wording>* const wordings = new std::vector<Wording>(MakeWordings());
  return *wordings;
}

std::string Phrase::With(const std::vector<Constraint>& kept) const {
  std::vector<std::string> guards;
  for (const Constraint& constraint : kept) {
    if (constraint.label.empty()) guards.push_back(constraint.text);
  }
  return Fill(source, kept) + " => " + target + (guards.empty() ? "" : " if " + Join(guards, ", "));
}

std::vector<Phrase> Say(const TermTable& table, const std::vector<TermId>& source,
                        const std::vector<TermId>& target, const Wording& wording) {
  const Census census = CensusOf(table, source, target);
  if (!Applies(wording, census)) return {};
  const std::set<TermId> whole =
      wording.whole ? WholeTerms(table, source, target) : std::set<TermId>();
  if (wording.whole && whole.empty()) return {};
  std::optional<Spread> spread;
  if (wording.spread) {
    spread = FindSpread(table, source, target);
    if (!spread) return {};
  }
  const FitOptions options{
      .wording = &wording, .literal_axes = census.windows, .shifts = census.shifts};
  std::vector<Phrase> phrases;
  std::set<std::string> seen;
  Script script;
  for (int i = 0; i < kScriptsMax && phrases.size() < kPhrasesMax; ++i) {
    const Spread* with = spread ? &*spread : nullptr;
    Script first = script;
    Speaker speaker(table, wording, options, with, &whole, &first, nullptr);
    if (speaker.Run(source, target)) {
      Script second = script;
      auto phrase = Speaker(table, wording, options, with, &whole, &second, &speaker.referenced())
                        .Run(source, target);
      if (phrase && seen.insert(phrase->equation()).second) phrases.push_back(*std::move(phrase));
    }
    script = std::move(first);
    if (!script.Next()) break;
  }
  return phrases;
}

std::string SayPlainly(const TermTable& table, TermId source, TermId target) {
  const Wording wording{.axes = Wording::Axes::kLiteral, .lists = false};
  Script script;
  const auto phrase =
      Speaker(table, wording, {.wording = &wording}, nullptr, nullptr, &script, nullptr)
          .Run({source}, {target});
  return phrase ? phrase->With({}) : "";
}

}  // namespace ag::generate

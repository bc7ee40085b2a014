#include "rules/language/resolver.h"

#include <algorithm>
#include <map>
#include <set>

#include "rules/language/guards.h"

namespace ag {
namespace {

using Open = std::set<std::string>;  // The index letters that have one value at this place.

// A word for any operator with a trait.
struct OperatorClass {
  std::string_view word;
  uint32_t trait;
};
constexpr OperatorClass kClasses[] = {{"unary", kUnary},
                                      {"zero_unary", kZeroToZero},
                                      {"binary", kBinary},
                                      {"pool", kPooling},
                                      {"reduction", kReduction}};

bool HasManyOutputs(const Term& term) { return term.op_class == 0 && term.op == OpKind::kSplit; }

std::string OperatorName(const Term& term) {
  for (const OperatorClass& c : kClasses) {
    if (term.op_class == c.trait) return std::string(c.word);
  }
  return Info(term.op).text_name;
}

// Collects the index letters in `e` outside its own spreads.
void Letters(const Expression& e, Open* letters) {
  if (e.indexed) letters->insert(e.index_name);
  for (const Expression& argument : e.arguments) {
    if (!argument.spread) Letters(argument, letters);
  }
}

void Letters(const Term& term, Open* letters) {
  if (term.indexed) letters->insert(term.index_name);
  if (term.output_choice == OutputChoice::kEach) {
    letters->insert(term.output_index);
    return;  // Inside op(...)[i], i has no single value.
  }
  if (term.kind == Term::Kind::kScalar) Letters(term.scalar, letters);
  for (const Term& operand : term.operands) {
    if (!operand.spread) Letters(operand, letters);
  }
  for (const AttributeTerm& attribute : term.attributes) Letters(attribute.value, letters);
}

bool MentionsSpread(const Expression& e) {
  return e.spread || std::any_of(e.arguments.begin(), e.arguments.end(), MentionsSpread);
}

// Whether all operators of the term's class have the attribute.
bool HasAttribute(const Term& term, std::string_view name) {
  const auto lists = [&](const OpInfo& info) {
    return std::any_of(info.attributes.begin(), info.attributes.end(),
                       [&](const AttributeSchema& schema) { return schema.name == name; });
  };
  if (term.op_class == 0) return lists(Info(term.op));
  return std::all_of(AllOps().begin(), AllOps().end(), [&](const OpInfo& info) {
    return (info.traits & term.op_class) == 0 || lists(info);
  });
}

bool IsLiteral(const Expression& e) {
  return e.kind != Expression::Kind::kVariable &&
         std::all_of(e.arguments.begin(), e.arguments.end(), IsLiteral);
}

class Resolver {
 public:
  Resolver(const SourceText& source, UnresolvedRule rule)
      : source_(source), rule_(std::move(rule)), pattern_(rule_.pattern) {}

  StatusOr<std::shared_ptr<const RulePattern>> Run() {
    AG_TRY(CheckRoots());
    Open open;
    if (!rule_.each.empty()) {
      pattern_.each = IndexOf(rule_.each);
      open.insert(rule_.each);
    }
    for (size_t r = 0; r < pattern_.sources.size(); ++r) {
      shares_ = false;
      AG_TRY(ResolveTerm(&pattern_.sources[r], open));
      if (r > 0 && !shares_) {
        return source_.Error(pattern_.sources[r].offset,
                             "shares no variable with the roots before it");
      }
    }
    in_roots_ = false;
    for (size_t g = 0; g < pattern_.guards.size(); ++g) AG_TRY(ResolveGuard(g));
    in_source_ = false;
    for (Term& target : pattern_.targets) AG_TRY(ResolveTerm(&target, open));
    return std::make_shared<const RulePattern>(std::move(pattern_));
  }

 private:
  Status CheckRoots() {
    for (const Term& source : pattern_.sources) {
      if (source.kind != Term::Kind::kOperator) {
        return source_.Error(source.offset, "a source must be an operator");
      }
    }
    if (!rule_.each.empty() && pattern_.sources.size() != 1) {
      return source_.Error(pattern_.sources[1].offset, "'each' takes one source");
    }
    if (pattern_.sources.size() != pattern_.targets.size()) {
      return source_.Error(pattern_.targets[0].offset,
                           fmt::format("{} sources but {} targets", pattern_.sources.size(),
                                       pattern_.targets.size()));
    }
    return OkStatus();
  }

  int IndexOf(const std::string& letter) {
    auto& letters = pattern_.indices;
    const auto found = std::find(letters.begin(), letters.end(), letter);
    if (found == letters.end()) letters.push_back(letter);
    return static_cast<int>(std::find(letters.begin(), letters.end(), letter) - letters.begin());
  }

  // Finds the one letter over which a spread runs.
  Status OpenSpread(const Open& letters, const Open& outer, size_t offset, Open* open, int* index) {
    Open fresh;
    std::set_difference(letters.begin(), letters.end(), outer.begin(), outer.end(),
                        std::inserter(fresh, fresh.end()));
    if (fresh.size() != 1) return source_.Error(offset, "'...' needs one index letter to run over");
    if (!in_source_ && std::find(pattern_.indices.begin(), pattern_.indices.end(),
                                 *fresh.begin()) == pattern_.indices.end()) {
      return source_.Error(offset, fmt::format("unbound index '{}'", *fresh.begin()));
    }
    if (in_roots_ && *fresh.begin() == rule_.each &&
        pattern_.sources[0].output_choice != OutputChoice::kEach) {
      return source_.Error(offset, "'...' over the roots' own index");
    }
    *open = outer;
    open->insert(*fresh.begin());
    *index = IndexOf(*fresh.begin());
    return OkStatus();
  }

  Status CheckOpen(const std::string& letter, const Open& open, size_t offset) {
    if (open.contains(letter)) return OkStatus();
    return source_.Error(offset, fmt::format("index '{}' has no value here", letter));
  }

  Status ResolveTerm(Term* term, const Open& outer) {
    Open open = outer;
    if (term->spread) {
      Open letters;
      Letters(*term, &letters);
      // A letter that an enclosing "each" fixes runs again only inside op(...)[i].
      AG_TRY(OpenSpread(letters, outer, term->offset, &open, &term->index));
    }
    if (term->indexed) AG_TRY(CheckOpen(term->index_name, open, term->offset));
    switch (term->kind) {
      case Term::Kind::kVariable:
        return ResolveTensor(term, /*defines=*/in_source_);
      case Term::Kind::kScalar:
        if (in_source_ && term->scalar.kind == Expression::Kind::kVariable) {
          return BindAttribute(&term->scalar, open);
        }
        return ResolveExpression(&term->scalar, open);
      case Term::Kind::kOperator:
        return ResolveOperatorTerm(term, open);
    }
    return OkStatus();
  }

  Status ResolveTensor(Term* term, bool defines) {
    const auto found = slots_.find(term->name);
    if (found == slots_.end() && !defines) {
      return source_.Error(term->offset, fmt::format("unbound variable '{}'", term->name));
    }
    shares_ |= found != slots_.end();
    return SlotOf(term->name, SlotInfo::Kind::kTensor, term->indexed ? term->index_name : "",
                  term->offset, &term->slot);
  }

  // Finds or makes the slot. A name must always be used in the same way.
  Status SlotOf(const std::string& name, SlotInfo::Kind kind, const std::string& letter,
                size_t offset, int* slot) {
    const int index = letter.empty() ? -1 : IndexOf(letter);
    const auto [found, fresh] = slots_.emplace(name, static_cast<int>(pattern_.slots.size()));
    if (fresh) pattern_.slots.push_back({name, kind, index, in_source_});
    const SlotInfo& info = pattern_.slots[found->second];
    if (info.kind != kind) {
      return source_.Error(offset, fmt::format("'{}' stands for something of another kind", name));
    }
    if (info.index != index) {
      return source_.Error(offset, fmt::format("'{}' is used with and without an index", name));
    }
    *slot = found->second;
    return OkStatus();
  }

  Status ResolveOperatorTerm(Term* term, const Open& outer) {
    AG_TRY(CheckArity(*term));
    Open open = outer;
    AG_TRY(ResolveOutput(term, &open));
    if (!term->label.empty()) {
      if (!in_source_ && !slots_.contains(term->label)) {
        return source_.Error(term->offset, fmt::format("unbound label '{}'", term->label));
      }
      AG_TRY(SlotOf(term->label, SlotInfo::Kind::kLabel, "", term->offset, &term->label_slot));
    }
    for (Term& operand : term->operands) AG_TRY(ResolveTerm(&operand, open));
    for (AttributeTerm& attribute : term->attributes)
      AG_TRY(ResolveAttribute(*term, &attribute, open));
    if (!in_source_) AG_TRY(CheckComplete(*term));
    if (term->name.empty()) return OkStatus();
    if (!in_source_ && slots_.contains(term->name)) {
      return source_.Error(term->offset, fmt::format("'{}' is bound already", term->name));
    }
    return ResolveTensor(term, /*defines=*/true);
  }

  Status ResolveOutput(Term* term, Open* open) {
    const std::string name = OperatorName(*term);
    if (HasManyOutputs(*term) == (term->output_choice == OutputChoice::kOnly)) {
      return source_.Error(term->offset,
                           HasManyOutputs(*term)
                               ? fmt::format("{} has several outputs: say which, [0] or [i]", name)
                               : fmt::format("{} has one output", name));
    }
    if (term->output_choice != OutputChoice::kEach) return OkStatus();
    AG_TRY(CheckOpen(term->output_index, *open, term->offset));
    open->erase(term->output_index);
    term->index = IndexOf(term->output_index);
    if (!in_source_) return OkStatus();
    term->node_slot = static_cast<int>(pattern_.slots.size());
    pattern_.slots.push_back({"", SlotInfo::Kind::kNode, -1, true});
    return OkStatus();
  }

  Status CheckArity(const Term& term) {
    const bool spread = std::any_of(term.operands.begin(), term.operands.end(),
                                    [](const Term& t) { return t.spread; });
    const int n = static_cast<int>(term.operands.size());
    int low = term.op_class == kBinary ? 2 : 1;
    int high = low;
    if (term.op_class == 0) {
      low = Info(term.op).arity_min;
      high = Info(term.op).arity_max;
    }
    if ((spread && high < 0) || (!spread && n >= low && (high < 0 || n <= high))) return OkStatus();
    return source_.Error(term.offset, fmt::format("{} takes {} operands, not {}{}",
                                                  OperatorName(term), low, n, spread ? "..." : ""));
  }

  Status ResolveAttribute(const Term& term, AttributeTerm* attribute, const Open& open) {
    if (!HasAttribute(term, attribute->name)) {
      return source_.Error(attribute->offset, fmt::format("{} has no attribute '{}'",
                                                          OperatorName(term), attribute->name));
    }
    attribute->literal = IsLiteral(attribute->value);
    if (in_source_ && attribute->value.kind == Expression::Kind::kVariable) {
      return BindAttribute(&attribute->value, open);
    }
    return ResolveExpression(&attribute->value, open);
  }

  // Checks that a target without a label names all attributes without a default.
  Status CheckComplete(const Term& term) {
    if (!term.label.empty()) return OkStatus();
    if (term.op_class != 0) return source_.Error(term.offset, "which operator? A label is missing");
    for (const AttributeSchema& schema : Info(term.op).attributes) {
      const bool given = std::any_of(term.attributes.begin(), term.attributes.end(),
                                     [&](const auto& a) { return a.name == schema.name; });
      if (!given && !schema.default_value.has_value()) {
        return source_.Error(
            term.offset, fmt::format("{} needs attribute '{}'", OperatorName(term), schema.name));
      }
    }
    return OkStatus();
  }

  Status BindAttribute(Expression* e, const Open& open) {
    if (e->indexed) AG_TRY(CheckOpen(e->index_name, open, e->offset));
    return SlotOf(e->name, SlotInfo::Kind::kAttribute, e->indexed ? e->index_name : "", e->offset,
                  &e->slot);
  }

  Status ResolveExpression(Expression* e, const Open& outer) {
    Open open = outer;
    if (e->spread) {
      Open letters;
      Letters(*e, &letters);
      AG_TRY(OpenSpread(letters, outer, e->offset, &open, &e->index));
    }
    if (e->kind == Expression::Kind::kVariable) {
      const auto found = slots_.find(e->name);
      if (found == slots_.end()) {
        return source_.Error(e->offset, fmt::format("unbound variable '{}'", e->name));
      }
      const SlotInfo& info = pattern_.slots[found->second];
      if (e->indexed) AG_TRY(CheckOpen(e->index_name, open, e->offset));
      return SlotOf(e->name, info.kind, e->indexed ? e->index_name : "", e->offset, &e->slot);
    }
    for (Expression& argument : e->arguments) AG_TRY(ResolveExpression(&argument, open));
    return OkStatus();
  }

  Status ResolveGuard(size_t g) {
    Guard& guard = pattern_.guards[g];
    Open letters;
    Letters(guard.value, &letters);
    if (letters.size() > 1) return source_.Error(guard.value.offset, "a guard runs over one index");
    guard.per_element = !letters.empty();
    guard.spreads = MentionsSpread(guard.value);
    if (guard.per_element) guard.index = IndexOf(*letters.begin());
    AG_TRY(ResolveExpression(&guard.value, letters));
    if (rule_.guard_binds[g].empty()) return OkStatus();
    return SlotOf(rule_.guard_binds[g], SlotInfo::Kind::kAttribute, "", guard.value.offset,
                  &guard.binds_slot);
  }

  const SourceText& source_;
  UnresolvedRule rule_;
  RulePattern& pattern_;
  std::map<std::string, int> slots_;
  bool in_source_ = true;  // Names may be bound: in sources and guards.
  bool in_roots_ = true;   // In sources only.
  bool shares_ = false;
};

}  // namespace

Status ResolveOperator(const SourceText& source, const std::string& word, size_t offset,
                       Term* term) {
  for (const OperatorClass& c : kClasses) {
    if (word != c.word) continue;
    term->op_class = c.trait;
    return OkStatus();
  }
  const StatusOr<OpKind> kind = OpKindFromText(word);
  if (!kind.ok() || Has(*kind, kLeaf) || Has(*kind, kBarrier)) {
    return source.Error(offset, fmt::format("unknown operator '{}'", word));
  }
  term->op = *kind;
  return OkStatus();
}

StatusOr<std::shared_ptr<const RulePattern>> Resolve(const SourceText& source,
                                                     UnresolvedRule rule) {
  return Resolver(source, std::move(rule)).Run();
}

}  // namespace ag

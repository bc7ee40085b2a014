#include "lab/generate/spread.h"

#include <array>

namespace ag::generate {
namespace {

bool IsJoin(const TermTable& table, const Term& term) {
  return term.call >= 0 && table.call(term).extra == nullptr &&
         table.call(term).op == OpKind::kConcat;
}

bool IsCut(const TermTable& table, const Term& term) {
  return term.call >= 0 && table.call(term).types.size() == 2;
}

class Finder {
 public:
  explicit Finder(const TermTable& table) : table_(table) {}

  std::optional<Spread> Run(const std::vector<TermId>& source, const std::vector<TermId>& target) {
    const bool two = source.size() == 2;
    if (source.size() > 2 || source.size() != target.size()) return std::nullopt;
    if (two && (!Pair(source[0], source[1]) || !Pair(target[0], target[1]))) return std::nullopt;
    for (const auto* roots : {&source, &target}) {
      for (const TermId root : *roots) FindJoins(root);
    }
    for (const auto& [first, last] : spread_.next) spread_.last.insert(last);
    if (two) spread_.each = true;
    outside_ = {false, false};
    Outside(source[0]);
    Outside(target[0]);
    if (outside_[0] && outside_[1]) return std::nullopt;
    spread_.member = outside_[1] ? 1 : 0;
    spread_.each = spread_.each || outside_[0] || outside_[1];
    if (spread_.joins.empty() && !spread_.each) return std::nullopt;
    return spread_;
  }

 private:
  // Whether `last` is `first` with i = 1 in place of i = 0; keeps the pairs of leaves if so.
  bool Pair(TermId first, TermId last) {
    const Spread before = spread_;
    const std::set<int> fixed = fixed_;
    if (PairBelow(first, last) && Consistent()) return true;
    spread_ = before;
    fixed_ = fixed;
    return false;
  }

  bool PairBelow(TermId first, TermId last) {
    const Term& a = table_.term(first);
    const Term& b = table_.term(last);
    if (a.call < 0 || b.call < 0) {
      if (a.call >= 0 || b.call >= 0) return false;
      if (a.leaf == b.leaf) {
        fixed_.insert(a.leaf);
        return true;
      }
      const auto [known, fresh] = spread_.next.emplace(a.leaf, b.leaf);
      return fresh || known->second == b.leaf;
    }
    if (IsCut(table_, a) && a.nodes.back() == b.nodes.back()) {
      return a.output == 0 && b.output == 1;
    }
    if (!SameCall(a, b) || a.output != b.output || IsCut(table_, a)) return false;
    for (size_t i = 0; i < a.operands.size(); ++i) {
      if (!PairBelow(a.operands[i], b.operands[i])) return false;
    }
    return true;
  }

  // Whether both are one operator with the same attributes; operands may differ in size.
  bool SameCall(const Term& a, const Term& b) const {
    const Call& x = table_.call(a);
    const Call& y = table_.call(b);
    if (x.op != y.op || x.extra != y.extra || a.operands.size() != b.operands.size()) return false;
    for (size_t s = 0; s < x.nodes.size(); ++s) {
      if (!(*x.nodes[s].attributes == *y.nodes[s].attributes)) return false;
    }
    return true;
  }

  bool Consistent() const {
    std::set<int> last;
    for (const auto& [from, to] : spread_.next) {
      if (fixed_.contains(from) || fixed_.contains(to) || !last.insert(to).second) return false;
      if (spread_.next.contains(to)) return false;
    }
    return true;
  }

  void FindJoins(TermId id) {
    const Term& term = table_.term(id);
    if (term.call < 0 || spread_.joins.contains(id)) return;
    if (IsJoin(table_, term) && term.operands[0] != term.operands[1] &&
        Pair(term.operands[0], term.operands[1])) {
      spread_.joins.insert(id);
    }
    for (const TermId operand : term.operands) FindJoins(operand);
  }

  void Outside(TermId id) {
    const Term& term = table_.term(id);
    if (term.call < 0) {
      if (spread_.next.contains(term.leaf)) outside_[0] = true;
      if (spread_.last.contains(term.leaf)) outside_[1] = true;
      return;
    }
    if (IsCut(table_, term)) outside_[term.output == 0 ? 0 : 1] = true;
    if (spread_.joins.contains(id)) return;
    for (const TermId operand : term.operands) Outside(operand);
  }

  const TermTable& table_;
  Spread spread_;
  std::set<int> fixed_;
  std::array<bool, 2> outside_{};
};

}  // namespace

int Spread::FirstOf(int leaf) const {
  for (const auto& [first, second] : next) {
    if (second == leaf) return first;
  }
  return leaf;
}

std::optional<Spread> FindSpread(const TermTable& table, const std::vector<TermId>& source,
                                 const std::vector<TermId>& target) {
  return Finder(table).Run(source, target);
}

}  // namespace ag::generate

// Families of roots: "each i:" rules. Every root is matched alone; roots that agree on all that the
// rule shares between them (everything without an [i]) make one family.
#include <algorithm>
#include <map>

#include "rules/matcher.h"

namespace ag {
namespace {

struct Element {
  Rewrite::Bindings bindings;
  int position = -1;  // Which output of op(...)[i] it hangs on; -1 when the rule has no such term.
  Edge root() const { return bindings.roots[0][0]; }
};

using Elements = std::vector<Element>;

class FamilySearch {
 public:
  FamilySearch(const Graph& graph, const RulePattern& pattern) : graph_(graph), pattern_(pattern) {}

  // Adds one root's match to the family it agrees with; a root joins a family once.
  void Add(const Rewrite::Bindings& bindings, int position) {
    const Element element{bindings, position};
    for (Elements& family : families_) {
      if (!Agree(family[0].bindings, bindings)) continue;
      const bool known = std::any_of(family.begin(), family.end(), [&](const Element& e) {
        return e.root() == element.root() || (position >= 0 && e.position == position);
      });
      if (!known) family.push_back(element);
      return;
    }
    families_.push_back({element});
  }

  std::vector<Rewrite::Bindings> Take(int subsets_max) {
    std::vector<Rewrite::Bindings> matches;
    for (Elements& family : families_) {
      if (family[0].position >= 0) {
        AddWhole(&family, &matches);
      } else {
        AddSubsets(family, subsets_max, &matches);
      }
    }
    return matches;
  }

 private:
  bool Agree(const Rewrite::Bindings& a, const Rewrite::Bindings& b) const {
    for (size_t s = 0; s < pattern_.slots.size(); ++s) {
      const SlotInfo& slot = pattern_.slots[s];
      if (!slot.in_source || slot.index == pattern_.each) continue;
      if (slot.kind == SlotInfo::Kind::kLabel) {
        const Node& x = graph_.node(std::get<LabelValue>(a.At(static_cast<int>(s), 0)).node);
        const Node& y = graph_.node(std::get<LabelValue>(b.At(static_cast<int>(s), 0)).node);
        if (x.op != y.op || *x.attributes != *y.attributes) return false;
      } else if (a.slots[s] != b.slots[s]) {
        return false;
      }
    }
    return true;
  }

  // op(...)[i]: all outputs or none, in their order.
  void AddWhole(Elements* family, std::vector<Rewrite::Bindings>* matches) const {
    std::sort(family->begin(), family->end(),
              [](const Element& a, const Element& b) { return a.position < b.position; });
    const int outputs = (*family)[0].bindings.counts[pattern_.each];
    if (static_cast<int>(family->size()) != outputs) return;
    std::vector<const Element*> chosen;
    for (const Element& element : *family) chosen.push_back(&element);
    AddMatch(chosen, matches);
  }

  void AddSubsets(const Elements& family, int subsets_max,
                  std::vector<Rewrite::Bindings>* matches) const {
    const int n = static_cast<int>(family.size());
    int budget = subsets_max + 1;
    for (int size = n; size >= 2 && budget > 0; --size) {
      std::vector<bool> in(n, false);
      std::fill(in.begin(), in.begin() + size, true);
      do {
        std::vector<const Element*> chosen;
        for (int i = 0; i < n; ++i) {
          if (in[i]) chosen.push_back(&family[i]);
        }
        AddMatch(chosen, matches);
      } while (--budget > 0 && std::prev_permutation(in.begin(), in.end()));
    }
  }

  void AddMatch(const std::vector<const Element*>& chosen,
                std::vector<Rewrite::Bindings>* matches) const {
    Rewrite::Bindings merged = chosen[0]->bindings;
    merged.counts[pattern_.each] = static_cast<int>(chosen.size());
    merged.roots[0].clear();
    merged.nodes.clear();
    for (auto& [s, values] : FamilySlots(&merged)) values->clear();
    for (const Element* element : chosen) {
      merged.roots[0].push_back(element->root());
      merged.nodes.insert(merged.nodes.end(), element->bindings.nodes.begin(),
                          element->bindings.nodes.end());
      for (auto& [s, values] : FamilySlots(&merged)) values->push_back(element->bindings.At(s, 0));
    }
    if (std::all_of(pattern_.guards.begin(), pattern_.guards.end(),
                    [&](const Guard& guard) { return Guarded(guard, &merged); })) {
      matches->push_back(std::move(merged));
    }
  }

  // Guards over all i; the others held for every element.
  bool Guarded(const Guard& guard, Rewrite::Bindings* merged) const {
    if (!guard.spreads) return true;
    const Scope scope{graph_, *merged, -1};
    if (guard.binds_slot < 0) return Holds(guard.value, scope);
    const auto value = Evaluate(guard.value, scope);
    if (value.has_value()) merged->slots[guard.binds_slot].assign(1, *value);
    return value.has_value();
  }

  std::vector<std::pair<int, absl::InlinedVector<Value, 1>*>> FamilySlots(
      Rewrite::Bindings* bindings) const {
    std::vector<std::pair<int, absl::InlinedVector<Value, 1>*>> slots;
    for (size_t s = 0; s < pattern_.slots.size(); ++s) {
      if (!pattern_.slots[s].in_source || pattern_.slots[s].index != pattern_.each) continue;
      slots.emplace_back(static_cast<int>(s), &bindings->slots[s]);
    }
    return slots;
  }

  const Graph& graph_;
  const RulePattern& pattern_;
  std::vector<Elements> families_;
};

bool AddToFamily(void* context, const Rewrite::Bindings& bindings, int position) {
  static_cast<FamilySearch*>(context)->Add(bindings, position);
  return true;
}

bool AddToList(void* context, const Rewrite::Bindings& bindings, int) {
  static_cast<std::vector<Rewrite::Bindings>*>(context)->push_back(bindings);
  return true;
}

}  // namespace

std::vector<Rewrite::Bindings> FindMatches(const Graph& graph, const NodeIndex& index,
                                           const RulePattern& pattern, int subsets_max) {
  std::vector<Rewrite::Bindings> matches;
  if (!IsByElement(pattern)) {
    Matcher(graph, index, pattern, AddToList, &matches).Run();
    return matches;
  }
  FamilySearch families(graph, pattern);
  Matcher(graph, index, pattern, AddToFamily, &families).Run();
  return families.Take(subsets_max);
}

}  // namespace ag

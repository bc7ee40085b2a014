// Families of roots, for "each i:" rules. Every root is matched alone. Roots that agree on
// everything without an [i] form one family.
#include <algorithm>
#include <bit>

#include "absl/container/flat_hash_map.h"
#include "rules/match/matcher.h"

namespace ag {
namespace {

// A text in which different sequences of values differ: lengths precede strings and lists.
class KeyText {
 public:
  void Add(int64_t v) { text_.append(reinterpret_cast<const char*>(&v), sizeof(v)); }
  void Add(double v) { Add(std::bit_cast<int64_t>(v == 0 ? 0.0 : v)); }  // -0 equals 0.
  void Add(std::string_view v) {
    Add(static_cast<int64_t>(v.size()));
    text_.append(v);
  }
  void Add(const std::string& v) { Add(std::string_view(v)); }
  void Add(const Ints& v) {
    Add(static_cast<int64_t>(v.size()));
    for (const int64_t i : v) Add(i);
  }
  void Add(Edge e) { Add(static_cast<int64_t>(e.node) << 32 | e.output); }
  void Add(std::monostate) {}
  void Add(LabelValue) {}
  void Add(const Node& node) {
    Add(static_cast<int64_t>(node.op));
    for (const auto& [name, value] : node.attributes->items()) {
      Add(static_cast<int64_t>(value.index()));
      std::visit([this](const auto& v) { Add(v); }, value);
    }
  }

  std::string Take() { return std::move(text_); }

 private:
  std::string text_;
};

// Merges elements that agree.
class FamilyMaker {
 public:
  FamilyMaker(const Graph& graph, const RulePattern& pattern) : graph_(graph), pattern_(pattern) {
    for (size_t s = 0; s < pattern_.slots.size(); ++s) {
      const SlotInfo& slot = pattern_.slots[s];
      if (slot.in_source && slot.index == pattern_.each) slots_.push_back(static_cast<int>(s));
    }
  }

  std::vector<Bindings> Make(std::span<const Element> elements, int subsets_max) {
    // A root joins a family once, and so does an output of op(...)[i].
    std::vector<Element> family;
    for (const Element& element : elements) {
      const bool known = std::any_of(family.begin(), family.end(), [&](const Element& e) {
        return RootOf(e) == RootOf(element) ||
               (element.position >= 0 && e.position == element.position);
      });
      if (!known) family.push_back(element);
    }
    if (family[0].position >= 0) {
      AddWhole(std::move(family));
    } else {
      AddSubsets(family, subsets_max);
    }
    return std::move(matches_);
  }

 private:
  static Edge RootOf(const Element& element) { return element.bindings->roots[0][0]; }

  // Adds op(...)[i]: all outputs in their order, or none.
  void AddWhole(std::vector<Element> family) {
    std::sort(family.begin(), family.end(),
              [](const Element& a, const Element& b) { return a.position < b.position; });
    const int outputs = family[0].bindings->counts[pattern_.each];
    if (static_cast<int>(family.size()) == outputs) AddMatch(family);
  }

  void AddSubsets(const std::vector<Element>& family, int subsets_max) {
    const int n = static_cast<int>(family.size());
    int budget = subsets_max + 1;
    for (int size = n; size >= 2 && budget > 0; --size) {
      std::vector<bool> in(n, false);
      std::fill(in.begin(), in.begin() + size, true);
      do {
        std::vector<Element> chosen;
        for (int i = 0; i < n; ++i) {
          if (in[i]) chosen.push_back(family[i]);
        }
        AddMatch(chosen);
      } while (--budget > 0 && std::prev_permutation(in.begin(), in.end()));
    }
  }

  void AddMatch(const std::vector<Element>& chosen) {
    Bindings merged = *chosen[0].bindings;
    merged.counts[pattern_.each] = static_cast<int>(chosen.size());
    merged.roots[0].clear();
    merged.nodes.clear();
    for (const int s : slots_) merged.slots[s].clear();
    for (const Element& element : chosen) {
      merged.roots[0].push_back(RootOf(element));
      merged.nodes.insert(merged.nodes.end(), element.bindings->nodes.begin(),
                          element.bindings->nodes.end());
      for (const int s : slots_) merged.slots[s].push_back(element.bindings->At(s, 0));
    }
    if (std::all_of(pattern_.guards.begin(), pattern_.guards.end(),
                    [&](const Guard& guard) { return Guarded(guard, &merged); })) {
      matches_.push_back(std::move(merged));
    }
  }

  // Checks guards over all i; the others held for each element.
  bool Guarded(const Guard& guard, Bindings* merged) const {
    if (!guard.spreads) return true;
    const Scope scope{graph_, *merged, -1};
    if (guard.binds_slot < 0) return Holds(guard.value, scope);
    const auto value = Evaluate(guard.value, scope);
    if (value.has_value()) merged->slots[guard.binds_slot].assign(1, *value);
    return value.has_value();
  }

  const Graph& graph_;
  const RulePattern& pattern_;
  std::vector<int> slots_;  // The slots with the rule's [i].
  std::vector<Bindings> matches_;
};

// Collects every root's match, by family, in the order of the families' first roots.
class Families {
 public:
  Families(const Graph& graph, const RulePattern& pattern) : graph_(graph), pattern_(pattern) {}

  void Add(const Bindings& bindings, int position) {
    const auto [at, added] =
        places_.try_emplace(FamilyKey(graph_, pattern_, bindings, {}), keep_.size());
    if (added) keep_.emplace_back();
    keep_[at->second].emplace_back(bindings, position);
  }

  std::vector<Bindings> Take(int subsets_max) {
    std::vector<Bindings> matches;
    for (const auto& family : keep_) {
      std::vector<Element> elements;
      for (const auto& [bindings, position] : family) elements.push_back({&bindings, position});
      auto made = MakeFamily(graph_, pattern_, elements, subsets_max);
      std::move(made.begin(), made.end(), std::back_inserter(matches));
    }
    return matches;
  }

 private:
  const Graph& graph_;
  const RulePattern& pattern_;
  absl::flat_hash_map<std::string, size_t> places_;
  std::vector<std::vector<std::pair<Bindings, int>>> keep_;
};

bool AddToFamily(void* context, const Bindings& bindings, int position) {
  static_cast<Families*>(context)->Add(bindings, position);
  return true;
}

bool AddToList(void* context, const Bindings& bindings, int) {
  static_cast<std::vector<Bindings>*>(context)->push_back(bindings);
  return true;
}

}  // namespace

std::string FamilyKey(const Graph& graph, const RulePattern& pattern, const Bindings& bindings,
                      std::span<const NodeId> names) {
  const auto name_of = [&](NodeId id) { return names.empty() ? id : names[id]; };
  KeyText text;
  for (size_t s = 0; s < pattern.slots.size(); ++s) {
    const SlotInfo& slot = pattern.slots[s];
    if (!slot.in_source || slot.index == pattern.each) continue;
    text.Add(static_cast<int64_t>(bindings.slots[s].size()));
    for (const Value& value : bindings.slots[s]) {
      text.Add(static_cast<int64_t>(value.index()));
      if (const auto* edge = std::get_if<Edge>(&value)) {
        text.Add(Edge{name_of(edge->node), edge->output});
      } else if (const auto* label = std::get_if<LabelValue>(&value)) {
        // The same node, not an equal one.
        const bool is_node = slot.kind == SlotInfo::Kind::kNode;
        is_node ? text.Add(Edge{name_of(label->node), 0}) : text.Add(graph.node(label->node));
      } else {
        std::visit([&](const auto& v) { text.Add(v); }, value);
      }
    }
  }
  return text.Take();
}

std::vector<Bindings> MakeFamily(const Graph& graph, const RulePattern& pattern,
                                 std::span<const Element> elements, int subsets_max) {
  return FamilyMaker(graph, pattern).Make(elements, subsets_max);
}

std::vector<Bindings> FindMatches(const Graph& graph, const NodeIndex& index,
                                  const RulePattern& pattern, int subsets_max) {
  std::vector<Bindings> matches;
  if (!IsByElement(pattern)) {
    Matcher(graph, index, pattern, AddToList, &matches).Run();
    return matches;
  }
  Families families(graph, pattern);
  Matcher(graph, index, pattern, AddToFamily, &families).Run();
  return families.Take(subsets_max);
}

}  // namespace ag

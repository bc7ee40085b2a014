#include "rules/match/match_set.h"

#include <algorithm>
#include <atomic>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "rules/match/graph_change.h"
#include "rules/match/matcher.h"

namespace ag {
namespace {

// Replaces every node n in the bindings by to[n].
void Rename(std::span<const NodeId> to, Bindings* bindings) {
  for (auto& slot : bindings->slots) {
    for (Value& value : slot) {
      if (auto* edge = std::get_if<Edge>(&value)) edge->node = to[edge->node];
      if (auto* label = std::get_if<LabelValue>(&value)) label->node = to[label->node];
    }
  }
  for (auto& roots : bindings->roots) {
    for (Edge& root : roots) root.node = to[root.node];
  }
  for (NodeId& node : bindings->nodes) node = to[node];
}

Bindings Renamed(std::span<const NodeId> to, const Bindings& bindings) {
  Bindings copy = bindings;
  Rename(to, &copy);
  return copy;
}

int64_t NextSerial() {
  static std::atomic<int64_t> last = 0;
  return ++last;
}

}  // namespace

// Fills a MatchSet: from nothing, or from its parent's by the invariants of
// rules/match/match_set.h. Collect lists in again_[r] every root at which the answer of rule r may
// differ, and in gone_[r] whether the rule may have lost a root; Replace matches only there. A rule
// with neither shares its parent's matches. The time is a sweep over the nodes (names and change),
// plus the matching at the listed roots, plus the list of sites.
class MatchUpdate {
 public:
  using Match = MatchSet::Match;
  using Spot = MatchSet::Spot;
  using Family = MatchSet::Family;
  using RuleMatches = MatchSet::RuleMatches;

  explicit MatchUpdate(MatchSet* set)
      : set_(*set), graph_(set->graph_), index_(graph_), rules_(set->rules_->rules()) {
    again_.resize(rules_.size());
    set_.by_rule_.resize(rules_.size());
  }

  // Matches everywhere.
  void Fill() {
    for (NodeId id = 0; id < graph_.size(); ++id) {
      if (!MayBeRoot(graph_, id)) continue;
      for (const int rule : set_.rules_->ByRoot(graph_.node(id).op)) again_[rule].push_back(id);
    }
    for (size_t r = 0; r < rules_.size(); ++r) {
      auto matches = std::make_shared<RuleMatches>();
      matches->spots = MatchAgain(static_cast<int>(r));
      set_.by_rule_[r] = std::move(matches);
    }
    Finish(nullptr);
  }

  // Matches around the change from `parent`.
  void FillFrom(const MatchSet& parent, std::span<const NodeId> place, Serials serials) {
    serials_ = serials;
    const GraphChange change = FindChange(parent.graph_, graph_, place, set_.rules_->reach_max());
    Collect(parent, place, change);
    for (size_t r = 0; r < rules_.size(); ++r) {
      set_.by_rule_[r] = parent.by_rule_[r];
      if (gone_[r] != 0 || !again_[r].empty()) Replace(static_cast<int>(r));
    }
    Finish(&parent);
  }

 private:
  // Lists the roots to match again, and the rules that lose some roots.
  void Collect(const MatchSet& parent, std::span<const NodeId> place, const GraphChange& change) {
    gone_.assign(rules_.size(), 0);
    for (NodeId then = 0; then < parent.graph_.size(); ++then) {
      if (place[then] >= 0 && !WasRoot(parent, then, place[then])) continue;
      for (const int r : set_.rules_->ByRoot(parent.graph_.node(then).op)) gone_[r] = 1;
    }
    for (const auto& [id, distance] : change.above) {
      for (const int r : set_.rules_->ByRoot(graph_.node(id).op)) {
        if (distance <= rules_[r].reach && MayBeRoot(graph_, id)) again_[r].push_back(id);
      }
    }
    for (size_t r = 0; r < rules_.size(); ++r) {
      if (rules_[r].partners != Partners::kNone) {
        CollectPartners(parent, change, static_cast<int>(r));
      }
      std::sort(again_[r].begin(), again_[r].end());
      again_[r].erase(std::unique(again_[r].begin(), again_[r].end()), again_[r].end());
    }
  }

  // Whether the node was a root and is none any more, or the reverse: it changed between constant
  // and not constant.
  bool WasRoot(const MatchSet& parent, NodeId then, NodeId now) const {
    return parent.graph_.is_constant(then) != graph_.is_constant(now);
  }

  // Lists first roots whose second root is near the change: those above an operand of such a second
  // root, and those of old matches whose second root is gone or changed.
  void CollectPartners(const MatchSet& parent, const GraphChange& change, int r) {
    const IndexedRule& rule = rules_[r];
    if (rule.partners == Partners::kAnyone) {
      for (NodeId id = 0; id < graph_.size(); ++id) {
        if (MayBeRoot(graph_, id) && HasRoot(r, id)) again_[r].push_back(id);
      }
      gone_[r] = 1;
      return;
    }
    std::vector<NodeId> seconds;
    for (const auto& [id, distance] : change.above) {
      if (distance > rule.reach || !rule.partner_ops[static_cast<size_t>(graph_.node(id).op)]) {
        continue;
      }
      seconds.push_back(id);
      for (const Edge& e : graph_.node(id).inputs) Climb(e, rule.partner_climb, r);
    }
    std::sort(seconds.begin(), seconds.end());
    for (const Spot& spot : parent.by_rule_[r]->spots) {
      const bool stale =
          std::any_of(spot.matches->begin(), spot.matches->end(), [&](const Match& match) {
            const NodeId second = set_.node_of_[match.bindings.roots[1][0].node];
            return second < 0 || std::binary_search(seconds.begin(), seconds.end(), second);
          });
      if (!stale) continue;
      gone_[r] = 1;
      const NodeId root = set_.node_of_[spot.root];
      if (root >= 0 && MayBeRoot(graph_, root)) again_[r].push_back(root);
    }
  }

  bool HasRoot(int r, NodeId id) const {
    const auto by_root = set_.rules_->ByRoot(graph_.node(id).op);
    return std::binary_search(by_root.begin(), by_root.end(), r);
  }

  void Climb(Edge e, int levels, int r) {
    for (const Use& use : graph_.uses(e)) {
      if (MayBeRoot(graph_, use.node) && HasRoot(r, use.node)) again_[r].push_back(use.node);
      if (levels == 1) continue;
      for (int32_t o = 0; o < static_cast<int32_t>(graph_.node(use.node).outputs.size()); ++o) {
        Climb({use.node, o}, levels - 1, r);
      }
    }
  }

  // Matches at the listed roots of rule r; returns their spots, ascending by name.
  std::vector<Spot> MatchAgain(int r) {
    std::vector<Spot> spots;
    std::optional<Matcher> matcher;
    matching_ = r;
    for (const NodeId id : again_[r]) {
      if (!rules_[r].MayMatch(graph_, id)) continue;
      if (!matcher) matcher.emplace(graph_, index_, *rules_[r].pattern, AddMatch, this);
      matcher->RunAt(id);
      if (found_.empty()) continue;
      spots.push_back(
          {set_.name_of_[id], std::make_shared<const std::vector<Match>>(std::move(found_))});
      found_.clear();
    }
    std::sort(spots.begin(), spots.end(),
              [](const Spot& a, const Spot& b) { return a.root < b.root; });
    return spots;
  }

  static bool AddMatch(void* context, const Bindings& bindings, int position) {
    auto& self = *static_cast<MatchUpdate*>(context);
    const RulePattern& pattern = *self.rules_[self.matching_].pattern;
    Match match{.position = position};
    if (IsByElement(pattern)) {
      match.key = FamilyKey(self.graph_, pattern, bindings, self.set_.name_of_);
      match.key_hash = std::hash<std::string>()(match.key);
    }
    match.bindings = Renamed(self.set_.name_of_, bindings);
    match.bindings.serial = NextSerial();
    self.found_.push_back(std::move(match));
    return true;
  }

  // Removes the spots of rule r that are gone or are matched again, and adds the new ones.
  void Replace(int r) {
    const RuleMatches& old = *set_.by_rule_[r];
    std::vector<Spot> fresh = MatchAgain(r);
    std::vector<NodeId> names;
    for (const NodeId id : again_[r]) names.push_back(set_.name_of_[id]);
    std::sort(names.begin(), names.end());
    const auto stays = [&](const Spot& spot) {
      const NodeId id = set_.node_of_[spot.root];
      return id >= 0 && !graph_.is_constant(id) &&
             !std::binary_search(names.begin(), names.end(), spot.root);
    };
    if (fresh.empty() && std::all_of(old.spots.begin(), old.spots.end(), stays)) return;
    auto matches = std::make_shared<RuleMatches>();
    matches->spots.reserve(old.spots.size() + fresh.size());
    auto next = fresh.begin();
    for (const Spot& spot : old.spots) {
      for (; next != fresh.end() && next->root < spot.root; ++next) {
        matches->spots.push_back(std::move(*next));
      }
      if (stays(spot)) matches->spots.push_back(spot);
    }
    std::move(next, fresh.end(), std::back_inserter(matches->spots));
    set_.by_rule_[r] = std::move(matches);
  }

  // ---- From spots to sites.

  void Finish(const MatchSet* parent) {
    for (size_t r = 0; r < rules_.size(); ++r) {
      if (IsByElement(*rules_[r].pattern)) {
        JoinFamilies(static_cast<int>(r), parent == nullptr ? nullptr : parent->by_rule_[r].get());
      }
      if (serials_ == Serials::kNew) Renumber(static_cast<int>(r));
      ListSites(static_cast<int>(r));
    }
  }

  // Gives every match of rule r a new number, in copies.
  void Renumber(int r) {
    const RuleMatches& old = *set_.by_rule_[r];
    const bool is_by_element = IsByElement(*rules_[r].pattern);
    if (is_by_element ? old.families.empty() : old.spots.empty()) return;
    auto matches = std::make_shared<RuleMatches>(old);
    for (Family& family : matches->families) {
      auto copies = std::make_shared<std::vector<Bindings>>(*family.matches);
      for (Bindings& match : *copies) match.serial = NextSerial();
      family.matches = std::move(copies);
    }
    if (!is_by_element) {  // Elements of families have no number of their own.
      for (Spot& spot : matches->spots) {
        auto copies = std::make_shared<std::vector<Match>>(*spot.matches);
        for (Match& match : *copies) match.bindings.serial = NextSerial();
        spot.matches = std::move(copies);
      }
    }
    set_.by_rule_[r] = std::move(matches);
  }

  // The order of elements: by root, then as the matcher found them.
  std::pair<NodeId, int> OrderOf(const std::pair<Spot, int>& element) const {
    return {set_.node_of_[element.first.root], element.second};
  }

  bool InOrder(const Family& family) const {
    return std::is_sorted(family.elements.begin(), family.elements.end(),
                          [&](const auto& a, const auto& b) { return OrderOf(a) < OrderOf(b); });
  }

  // Joins elements of one key to families. A family with the same elements in the same order as in
  // the parent has the same matches: its guards read only what is near its roots.
  void JoinFamilies(int r, const RuleMatches* old) {
    const RuleMatches& now = *set_.by_rule_[r];
    if (&now == old && std::all_of(now.families.begin(), now.families.end(),
                                   [&](const Family& family) { return InOrder(family); })) {
      return;
    }
    struct Hash {
      size_t operator()(const Match* m) const { return m->key_hash; }
    };
    struct Equal {
      bool operator()(const Match* a, const Match* b) const { return a->key == b->key; }
    };
    absl::flat_hash_map<const Match*, int, Hash, Equal> by_key;
    by_key.reserve(now.spots.size());
    std::vector<int> counts;
    std::vector<int> key_of;
    for (const Spot& spot : now.spots) {
      for (const Match& match : *spot.matches) {
        const auto [at, added] = by_key.try_emplace(&match, static_cast<int>(counts.size()));
        if (added) counts.push_back(match.position >= 0 ? 1 : 0);
        ++counts[at->second];
        key_of.push_back(at->second);
      }
    }
    auto joined = std::make_shared<RuleMatches>();
    joined->spots = now.spots;
    std::vector<int> family_of(counts.size(), -1);
    size_t next = 0;
    for (const Spot& spot : now.spots) {
      for (int m = 0; m < static_cast<int>(spot.matches->size()); ++m) {
        const int key = key_of[next++];
        if (counts[key] < 2) continue;  // Alone, and without op(...)[i].
        if (family_of[key] < 0) {
          family_of[key] = static_cast<int>(joined->families.size());
          joined->families.emplace_back();
        }
        joined->families[family_of[key]].elements.emplace_back(spot, m);
      }
    }
    for (Family& family : joined->families) MakeMatches(r, old, &family);
    set_.by_rule_[r] = std::move(joined);
  }

  static const Match& MatchOf(const std::pair<Spot, int>& element) {
    return (*element.first.matches)[element.second];
  }

  void MakeMatches(int r, const RuleMatches* old, Family* family) {
    std::sort(family->elements.begin(), family->elements.end(),
              [&](const auto& a, const auto& b) { return OrderOf(a) < OrderOf(b); });
    if (old != nullptr) {
      for (const Family& before : old->families) {
        if (SameElements(before, *family)) {
          family->matches = before.matches;
          return;
        }
      }
    }
    std::vector<Bindings> bindings;
    bindings.reserve(family->elements.size());
    std::vector<Element> elements;
    for (const auto& element : family->elements) {
      bindings.push_back(Renamed(set_.node_of_, MatchOf(element).bindings));
      elements.push_back({&bindings.back(), MatchOf(element).position});
    }
    auto made = MakeFamily(graph_, *rules_[r].pattern, elements, set_.subsets_max_);
    for (Bindings& match : made) {
      Rename(set_.name_of_, &match);
      match.serial = NextSerial();
    }
    family->matches = std::make_shared<const std::vector<Bindings>>(std::move(made));
  }

  static bool SameElements(const Family& a, const Family& b) {
    return std::equal(a.elements.begin(), a.elements.end(), b.elements.begin(), b.elements.end(),
                      [](const auto& x, const auto& y) {
                        return x.first.matches == y.first.matches && x.second == y.second;
                      });
  }

  void AddSite(int r, const Bindings& named) {
    Site site{.rule = rules_[r].rule, .serial = named.serial, .named = &named};
    for (const auto& roots : named.roots) {
      for (const Edge& root : roots) {
        site.roots.push_back({set_.node_of_[root.node], root.output});
      }
    }
    std::sort(site.roots.begin(), site.roots.end());
    set_.sites_.push_back(std::move(site));
  }

  void ListSites(int r) {
    const RuleMatches& now = *set_.by_rule_[r];
    const size_t begin = set_.sites_.size();
    if (IsByElement(*rules_[r].pattern)) {
      ListFamilies(r, now);
    } else {
      order_.clear();
      for (size_t i = 0; i < now.spots.size(); ++i) {
        order_.emplace_back(set_.node_of_[now.spots[i].root], static_cast<int>(i));
      }
      std::sort(order_.begin(), order_.end());
      for (const auto& [id, i] : order_) {
        for (const Match& match : *now.spots[i].matches) AddSite(r, match.bindings);
      }
    }
    const auto from = set_.sites_.begin() + static_cast<ptrdiff_t>(begin);
    const auto by_roots = [](const Site& a, const Site& b) { return a.roots < b.roots; };
    if (!std::is_sorted(from, set_.sites_.end(), by_roots)) {
      std::stable_sort(from, set_.sites_.end(), by_roots);
    }
    for (size_t i = begin + 1; i < set_.sites_.size(); ++i) {
      Site& site = set_.sites_[i];
      if (site.roots == set_.sites_[i - 1].roots) site.variant = set_.sites_[i - 1].variant + 1;
    }
  }

  void ListFamilies(int r, const RuleMatches& now) {
    std::vector<std::pair<std::pair<NodeId, int>, int>> order;
    for (size_t i = 0; i < now.families.size(); ++i) {
      order.emplace_back(OrderOf(now.families[i].elements[0]), static_cast<int>(i));
    }
    std::sort(order.begin(), order.end());
    for (const auto& [first, i] : order) {
      for (const Bindings& match : *now.families[i].matches) AddSite(r, match);
    }
  }

  MatchSet& set_;
  const Graph& graph_;
  const NodeIndex index_;
  const std::span<const IndexedRule> rules_;
  std::vector<std::vector<NodeId>> again_;  // By rule: first roots to match again, ascending.
  std::vector<uint8_t> gone_;               // By rule: may have lost a root.
  Serials serials_ = Serials::kKept;
  int matching_ = -1;  // The rule to which found_ belongs.
  std::vector<Match> found_;
  std::vector<std::pair<NodeId, int>> order_;
};

MatchSet::MatchSet(const RuleIndex& rules, const Graph& graph, int subsets_max)
    : graph_(graph), rules_(&rules), subsets_max_(subsets_max) {
  name_of_.resize(static_cast<size_t>(graph.size()));
  for (NodeId id = 0; id < graph.size(); ++id) name_of_[id] = id;
  node_of_ = name_of_;
  MatchUpdate(this).Fill();
}

MatchSet MatchSet::Next(const Graph& child, std::span<const NodeId> place, Serials serials) const {
  MatchSet next(child);
  next.rules_ = rules_;
  next.subsets_max_ = subsets_max_;
  next.name_of_.assign(static_cast<size_t>(child.size()), -1);
  next.node_of_.assign(node_of_.size(), -1);
  for (NodeId then = 0; then < graph_.size(); ++then) {
    if (place[then] < 0) continue;
    next.name_of_[place[then]] = name_of_[then];
    next.node_of_[name_of_[then]] = place[then];
  }
  for (NodeId id = 0; id < child.size(); ++id) {
    if (next.name_of_[id] >= 0) continue;
    next.name_of_[id] = static_cast<NodeId>(next.node_of_.size());
    next.node_of_.push_back(id);
  }
  MatchUpdate(&next).FillFrom(*this, place, serials);
  return next;
}

Rewrite MatchSet::At(const Site& site) const {
  Rewrite rewrite{.rule = site.rule, .variant = site.variant};
  rewrite.roots.assign(site.roots.begin(), site.roots.end());
  rewrite.bindings = std::make_shared<const Bindings>(Renamed(node_of_, *site.named));
  return rewrite;
}

}  // namespace ag

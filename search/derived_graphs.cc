#include "search/derived_graphs.h"

#include <utility>

#include "rules/match/rule_clean_up.h"

namespace ag {

DerivedGraphs::Id DerivedGraphs::AddRoot(Graph graph) {
  recipes_.emplace_back();
  const Id id = static_cast<Id>(recipes_.size()) - 1;
  const StatusOr<Graph> clean = CleanUp(graph, clean_up_rules_);
  auto held = std::make_unique<Held>();
  held->is_clean = clean.ok() && (clean->SharesAll(graph) || clean->digest() == graph.digest());
  held->graph = std::move(graph);
  held_.emplace(id, std::move(held));
  return id;
}

DerivedGraphs::Id DerivedGraphs::Add(Id parent, Rewrite rewrite, ChildGraph child) {
  recipes_.push_back({.parent = parent, .rewrite = std::move(rewrite)});
  const Id id = static_cast<Id>(recipes_.size()) - 1;
  Hold(id, std::move(child));
  return id;
}

Graph DerivedGraphs::Get(Id id) { return MustFind(id).graph; }

// Returns the graph of `id`; makes it again along its path when it is not held.
DerivedGraphs::Held& DerivedGraphs::MustFind(Id id) {
  std::vector<Id> path;  // From `id` up to the nearest held graph.
  Held* held = Find(id);
  for (; held == nullptr; held = Find(id)) {
    path.push_back(id);
    id = recipes_[id].parent;
  }
  for (; !path.empty(); path.pop_back()) {
    // It succeeded before, and every step is deterministic.
    ChildGraphs children(held->graph, clean_up_rules_, {.parent_is_clean = held->is_clean});
    AG_CHECK(children.Try(recipes_[path.back()].rewrite).ok());
    StatusOr<ChildGraph> child = children.Make();
    AG_CHECK(child.ok());
    ++made_again_;
    Hold(path.back(), *std::move(child));
    held = Find(path.back());
  }
  return *held;
}

std::shared_ptr<const MatchSet> DerivedGraphs::Matches(Id id) {
  Held& held = MustFind(id);
  if (held.matches != nullptr) return held.matches;
  // Making the graph again may have dropped the parent; then all rules are matched.
  const Held* parent = recipes_[id].parent < 0 ? nullptr : Find(recipes_[id].parent);
  if (parent != nullptr && parent->matches != nullptr) {
    // A graph that may differ everywhere begins anew: nothing is known of its rewrites.
    const Serials serials = held.is_local ? Serials::kKept : Serials::kNew;
    held.matches =
        std::make_shared<const MatchSet>(parent->matches->Next(held.graph, held.place, serials));
  } else {
    held.matches = std::make_shared<const MatchSet>(search_rules_, held.graph);
  }
  return held.matches;
}

ChildGraphs DerivedGraphs::Children(Id id, int size_max) {
  const Held& held = MustFind(id);
  return ChildGraphs(held.graph, clean_up_rules_,
                     {.parent_is_clean = held.is_clean, .nodes_max = size_max});
}

DerivedGraphs::Held* DerivedGraphs::Find(Id id) {
  const auto it = held_.find(id);
  if (it == held_.end()) return nullptr;
  if (recipes_[id].parent >= 0) order_.splice(order_.begin(), order_, it->second->position);
  return it->second.get();
}

void DerivedGraphs::Hold(Id id, ChildGraph child) {
  nodes_held_ += child.graph.size();
  order_.push_front(id);
  auto held = std::make_unique<Held>();
  held->graph = std::move(child.graph);
  held->place = std::move(child.place);
  held->is_local = child.is_local;
  held->position = order_.begin();
  held_.emplace(id, std::move(held));
  while (nodes_held_ > nodes_max_ && order_.size() > 1) {
    const auto last = held_.find(order_.back());
    nodes_held_ -= last->second->graph.size();
    held_.erase(last);
    order_.pop_back();
  }
}

}  // namespace ag

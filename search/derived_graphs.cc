#include "search/derived_graphs.h"

#include <utility>

namespace ag {

DerivedGraphs::Id DerivedGraphs::AddRoot(Graph graph) {
  recipes_.push_back({.root = std::move(graph)});
  return static_cast<Id>(recipes_.size()) - 1;
}

DerivedGraphs::Id DerivedGraphs::Add(Id parent, Rewrite rewrite, Graph graph) {
  recipes_.push_back({.parent = parent, .rewrite = std::move(rewrite)});
  const Id id = static_cast<Id>(recipes_.size()) - 1;
  Hold(id, std::move(graph));
  return id;
}

Graph DerivedGraphs::Get(Id id) {
  std::vector<Id> path;  // From `id` up to what is at hand.
  const Graph* found = Find(id);
  for (; found == nullptr; found = Find(id)) {
    path.push_back(id);
    id = recipes_[id].parent;
  }
  Graph graph = *found;
  for (; !path.empty(); path.pop_back()) {
    // It worked before, and both are deterministic.
    const StatusOr<Graph> raw = Apply(graph, recipes_[path.back()].rewrite);
    AG_CHECK(raw.ok());
    StatusOr<Graph> clean = CleanUp(*raw, rules_);
    AG_CHECK(clean.ok());
    graph = *std::move(clean);
    ++made_again_;
    Hold(path.back(), graph);
  }
  return graph;
}

const Graph* DerivedGraphs::Find(Id id) {
  if (recipes_[id].parent < 0) return &recipes_[id].root;
  const auto it = held_.find(id);
  if (it == held_.end()) return nullptr;
  order_.splice(order_.begin(), order_, it->second.place);
  return &it->second.graph;
}

void DerivedGraphs::Hold(Id id, Graph graph) {
  nodes_held_ += graph.size();
  order_.push_front(id);
  held_.emplace(id, Held{std::move(graph), order_.begin()});
  while (nodes_held_ > nodes_max_ && order_.size() > 1) {
    const auto last = held_.find(order_.back());
    nodes_held_ -= last->second.graph.size();
    held_.erase(last);
    order_.pop_back();
  }
}

}  // namespace ag

#include "plan/instances/sub_graphs.h"

#include <algorithm>
#include <set>

namespace ag {
namespace {

class Merger {
 public:
  Merger(const LayeredGraph& layered, int64_t buffer_bytes)
      : layered_(layered), buffer_bytes_(buffer_bytes) {
    for (int i = 0; i < static_cast<int>(layered.layers.size()); ++i) {
      subs_.push_back({{i}, BestSplit(layered, {i}, buffer_bytes)});
      of_layer_.push_back(i);
    }
    Link();
  }

  std::vector<SubGraph> Run() {
    bool merged = true;
    while (merged) {
      merged = false;
      for (const auto pass : {&Merger::Straight, &Merger::Diamond, &Merger::Branch}) {
        for (const int id : InOrder()) {
          while (!subs_[id].layers.empty() && (this->*pass)(id)) merged = true;
        }
      }
    }
    std::vector<SubGraph> result;
    for (const int id : InOrder()) result.push_back(subs_[id]);
    return result;
  }

 private:
  using Ids = std::set<int>;

  // Recomputes who reads whom.
  void Link() {
    readers_.assign(subs_.size(), {});
    producers_.assign(subs_.size(), {});
    for (int layer = 0; layer < static_cast<int>(layered_.layers.size()); ++layer) {
      const int reader = of_layer_[layer];
      for (const Edge input : layered_.layers[layer].inputs) {
        const int from = layered_.layer_of[input.node];
        if (from < 0 || of_layer_[from] == reader) continue;
        readers_[of_layer_[from]].insert(reader);
        producers_[reader].insert(of_layer_[from]);
      }
    }
  }

  // Returns the sub-graphs in topological order; of those that are ready, the one with the earliest
  // first layer.
  std::vector<int> InOrder() const {
    std::vector<int> waits(subs_.size()), order;
    std::set<std::pair<int, int>> ready;
    const auto put = [&](int id) { ready.emplace(subs_[id].layers[0], id); };
    for (int id = 0; id < static_cast<int>(subs_.size()); ++id) {
      if (subs_[id].layers.empty()) continue;
      waits[id] = static_cast<int>(producers_[id].size());
      if (waits[id] == 0) put(id);
    }
    while (!ready.empty()) {
      const int id = ready.begin()->second;
      ready.erase(ready.begin());
      order.push_back(id);
      for (const int reader : readers_[id]) {
        if (--waits[reader] == 0) put(reader);
      }
    }
    return order;
  }

  // True when a path leaves the set and comes back.
  bool MakesCycle(const Ids& set) const {
    std::vector<int> todo;
    Ids seen;
    const auto visit = [&](int id) {
      if (seen.insert(id).second) todo.push_back(id);
    };
    for (const int id : set) {
      for (const int reader : readers_[id]) {
        if (!set.contains(reader)) visit(reader);
      }
    }
    while (!todo.empty()) {
      const int id = todo.back();
      todo.pop_back();
      for (const int reader : readers_[id]) {
        if (set.contains(reader)) return true;
        visit(reader);
      }
    }
    return false;
  }

  // Merges the set into its first member when the merged factor is at most `factor_max`.
  bool Merge(int first, const Ids& set, int64_t factor_max) {
    if (MakesCycle(set)) return false;
    SubGraph merged;
    size_t operators = 0;
    for (const int id : set) {
      merged.layers.insert(merged.layers.end(), subs_[id].layers.begin(), subs_[id].layers.end());
    }
    std::ranges::sort(merged.layers);
    for (const int layer : merged.layers) operators += layered_.layers[layer].nodes.size();
    merged.split = BestSplit(layered_, merged.layers, buffer_bytes_);
    const SplitInfo& split = merged.split;
    if (!split.fits || split.factor > factor_max) return false;
    if (split.factor > 1 && static_cast<size_t>(split.operators_cut) != operators) return false;
    for (const int id : set) subs_[id] = {};
    for (const int layer : merged.layers) of_layer_[layer] = first;
    subs_[first] = std::move(merged);
    Link();
    return true;
  }

  int64_t Factor(int id) const { return subs_[id].split.factor; }

  bool MergeIfNoSmaller(int first, int second) {
    if (Factor(second) < Factor(first)) return false;
    return Merge(first, {first, second}, Factor(second));
  }

  bool Straight(int first) {
    if (readers_[first].size() != 1) return false;
    const int second = *readers_[first].begin();
    return producers_[second].size() == 1 && MergeIfNoSmaller(first, second);
  }

  bool Diamond(int first) {
    const Ids& readers = readers_[first];
    if (readers.size() < 2) return false;
    const int a = *readers.begin(), b = *readers.rbegin();
    for (const int join : {b, a, readers_[a].empty() ? -1 : *readers_[a].begin()}) {
      if (join < 0) continue;
      Ids set = readers;
      set.erase(join);
      const bool branches = std::ranges::all_of(
          set, [&](int id) { return producers_[id] == Ids{first} && readers_[id] == Ids{join}; });
      if (set.empty() || !branches) continue;
      int64_t largest = Factor(join);
      for (const int id : set) largest = std::max(largest, Factor(id));
      set.insert(first);
      set.insert(join);
      if (Merge(first, set, largest)) return true;
    }
    return false;
  }

  bool Branch(int first) {
    const Ids readers = readers_[first];
    for (const int second : readers) {
      const bool straight = readers.size() == 1 && producers_[second].size() == 1;
      if (!straight && MergeIfNoSmaller(first, second)) return true;
    }
    return false;
  }

  const LayeredGraph& layered_;
  const int64_t buffer_bytes_;
  std::vector<SubGraph> subs_;  // Merged ones are empty.
  std::vector<int> of_layer_;   // The sub-graph of each layer.
  std::vector<Ids> readers_, producers_;
};

}  // namespace

std::vector<SubGraph> FormSubGraphs(const LayeredGraph& layered, int64_t buffer_bytes) {
  return Merger(layered, buffer_bytes).Run();
}

}  // namespace ag

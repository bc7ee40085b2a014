#include "plan/instances/instances.h"

#include <algorithm>
#include <deque>
#include <set>

#include "base/text.h"
#include "graph/batch/axis_parts.h"

namespace ag {
namespace {

// The sub-graph of each layer.
std::vector<int> SubGraphOfLayers(const LayeredGraph& layered, const std::vector<SubGraph>& subs) {
  std::vector<int> of(layered.layers.size(), -1);
  for (int i = 0; i < static_cast<int>(subs.size()); ++i) {
    for (const int layer : subs[i].layers) of[layer] = i;
  }
  return of;
}

// Returns the instances in the order in which `next` takes them from those that are ready.
template <class Next>
std::vector<int> OrderBy(const InstanceGraph& graph, Next next) {
  std::vector<size_t> waits;
  std::deque<int> ready;
  std::vector<int> order;
  for (int i = 0; i < static_cast<int>(graph.instances.size()); ++i) {
    waits.push_back(graph.producers[i].size());
    if (waits[i] == 0) ready.push_back(i);
  }
  while (!ready.empty()) {
    const int instance = next(ready);
    order.push_back(instance);
    for (const int reader : graph.readers[instance]) {
      if (--waits[reader] == 0) ready.push_back(reader);
    }
  }
  return order;
}

}  // namespace

int AxisRead(const LayeredGraph& layered, const SubGraph& reader, Edge tensor) {
  if (reader.split.factor == 1) return -1;
  int axis = -1;
  for (const Use& use : layered.graph.uses(tensor)) {
    const auto cut = reader.split.axes.find(use.node);
    if (cut == reader.split.axes.end()) continue;  // Of another sub-graph.
    const AxisPart part = PartOfOperand(layered.graph, use.node, cut->second, use.index);
    if (part.kind != AxisPart::Kind::kCut || (axis >= 0 && part.axis != axis)) return -1;
    axis = part.axis;
  }
  return axis;
}

std::pair<int64_t, int64_t> PiecesRead(const LayeredGraph& layered, const SubGraph& producer,
                                       const SubGraph& reader, Edge tensor, int64_t number) {
  const int64_t pieces = producer.split.factor, parts = reader.split.factor;
  const auto cut = producer.split.axes.find(tensor.node);
  const int written = pieces == 1 || cut == producer.split.axes.end() ? -1 : cut->second;
  if (pieces == 1) return {0, 0};
  if (written < 0 || AxisRead(layered, reader, tensor) != written) return {0, pieces - 1};
  return {number * pieces / parts, ((number + 1) * pieces + parts - 1) / parts - 1};
}

InstanceGraph MakeInstances(const LayeredGraph& layered, const std::vector<SubGraph>& subs) {
  InstanceGraph graph;
  std::vector<int> begin;
  for (int sub = 0; sub < static_cast<int>(subs.size()); ++sub) {
    begin.push_back(static_cast<int>(graph.instances.size()));
    for (int64_t i = 0; i < subs[sub].split.factor; ++i) graph.instances.push_back({sub, i});
  }
  const std::vector<int> of = SubGraphOfLayers(layered, subs);
  std::set<std::pair<int, int>> edges, pairs;
  for (int reader = 0; reader < static_cast<int>(subs.size()); ++reader) {
    for (const int layer : subs[reader].layers) {
      for (const Edge input : layered.layers[layer].inputs) {
        const int from = layered.layer_of[input.node];
        const int producer = from < 0 ? -1 : of[from];
        if (producer < 0 || producer == reader) continue;
        pairs.emplace(producer, reader);
        for (int64_t i = 0; i < subs[reader].split.factor; ++i) {
          const auto [first, last] = PiecesRead(layered, subs[producer], subs[reader], input, i);
          for (int64_t piece = first; piece <= last; ++piece) {
            edges.emplace(begin[producer] + piece, begin[reader] + i);
          }
        }
      }
    }
  }
  for (const auto& [producer, reader] : pairs) {
    graph.coarse_edges += subs[producer].split.factor * subs[reader].split.factor;
  }
  graph.fine_edges = static_cast<int64_t>(edges.size());
  graph.readers.resize(graph.instances.size());
  graph.producers.resize(graph.instances.size());
  for (const auto& [producer, reader] : edges) {
    graph.readers[producer].push_back(reader);
    graph.producers[reader].push_back(producer);
  }
  return graph;
}

std::vector<int> BreadthFirstOrder(const InstanceGraph& graph) {
  return OrderBy(graph, [](std::deque<int>& ready) {
    const int instance = ready.front();
    ready.pop_front();
    return instance;
  });
}

std::vector<int> DepthFirstOrder(const InstanceGraph& graph) {
  return OrderBy(graph, [](std::deque<int>& ready) {
    const int instance = ready.back();
    ready.pop_back();
    return instance;
  });
}

std::string FormatOrder(const InstanceGraph& graph, const std::vector<int>& order) {
  std::vector<std::string> names;
  for (const int i : order) {
    const Instance& instance = graph.instances[i];
    const int letter = instance.sub_graph % 26, round = instance.sub_graph / 26;
    names.push_back(fmt::format("{}{}{}", static_cast<char>('a' + letter), std::string(round, '\''),
                                instance.number + 1));
  }
  return Join(names, " ");
}

}  // namespace ag

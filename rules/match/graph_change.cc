#include "rules/match/graph_change.h"

namespace ag {
namespace {

class PlaceComparison {
 public:
  PlaceComparison(const Graph& before, const Graph& after, std::span<const NodeId> place)
      : before_(before), after_(after), place_(place) {}

  // Whether a match sees node `now` of the new graph as it saw node `then` of the old one.
  bool Same(NodeId then, NodeId now) const {
    const std::span<const Edge> from = before_.operands(then), to = after_.operands(now);
    if (from.size() != to.size()) return false;
    for (size_t i = 0; i < from.size(); ++i) {
      if (place_[from[i].node] != to[i].node || from[i].output != to[i].output) return false;
    }
    if (before_.is_constant(then) != after_.is_constant(now)) return false;
    if (!before_.shares_facts(then, after_, now) && !HaveEqualFacts(then, now)) return false;
    const auto outputs = before_.output_count(then);
    for (int32_t o = 0; o < outputs; ++o) {
      if (before_.has_one_use({then, o}) != after_.has_one_use({now, o})) return false;
    }
    return true;
  }

 private:
  bool HaveEqualFacts(NodeId then, NodeId now) const {
    const Node& a = before_.node(then);
    const Node& b = after_.node(now);
    if (a.op != b.op || a.constant != b.constant || !(*a.attributes == *b.attributes)) return false;
    // The types of other nodes follow from their operands.
    return !a.inputs.empty() || a.outputs == b.outputs;
  }

  const Graph& before_;
  const Graph& after_;
  const std::span<const NodeId> place_;
};

}  // namespace

GraphChange FindChange(const Graph& before, const Graph& after, std::span<const NodeId> place,
                       int reach) {
  const PlaceComparison comparison(before, after, place);
  std::vector<uint8_t> seen(static_cast<size_t>(after.size()), 0);  // Or the same as before.
  for (NodeId then = 0; then < before.size(); ++then) {
    const NodeId now = place[then];
    if (now >= 0 && comparison.Same(then, now)) seen[now] = 1;
  }
  GraphChange change;
  for (NodeId id = 0; id < after.size(); ++id) {
    if (seen[id] != 0) {
      seen[id] = 0;
      continue;
    }
    seen[id] = 1;
    change.changed.push_back(id);
    change.above.emplace_back(id, 0);
  }
  for (size_t i = 0; i < change.above.size(); ++i) {
    const auto [id, distance] = change.above[i];
    if (distance == reach) continue;
    for (int32_t o = 0; o < static_cast<int32_t>(after.node(id).outputs.size()); ++o) {
      for (const Use& use : after.uses({id, o})) {
        if (seen[use.node] != 0) continue;
        seen[use.node] = 1;
        change.above.emplace_back(use.node, distance + 1);
      }
    }
  }
  return change;
}

}  // namespace ag

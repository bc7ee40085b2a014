#include "plan/fusion/take_in.h"

#include <algorithm>

#include "plan/fusion/group_key.h"
#include "plan/spec/attention_form.h"
#include "plan/spec/pattern_match.h"
#include "plan/spec/rotary_form.h"

namespace ag {
namespace {

class TakeIn {
 public:
  TakeIn(const CoverRequest& request, BriefGroups* groups)
      : in_(request), graph_(request.graph), brief_(*groups), groups_(groups->groups) {}

  std::vector<bool> Run() {
    for (BriefGroup& group : groups_) {
      const bool takes = in_.basis.patterns[static_cast<size_t>(group.pattern)].takes_movements;
      if (takes && group.end - group.begin > 1) Extend(&group);
    }
    const auto is_gone = [&](const BriefGroup& group) {
      return IsAlone(group) && !joined_.empty() && joined_[brief_.nodes[group.begin]];
    };
    std::erase_if(groups_, is_gone);
    return std::move(joined_);
  }

 private:
  static bool IsAlone(const BriefGroup& group) { return group.end - group.begin == 1; }

  void Extend(BriefGroup* group) {
    const GroupPattern& pattern = in_.spec.patterns[static_cast<size_t>(group->pattern)];
    const std::span<const NodeId> own = brief_.NodesOf(*group);
    std::vector<NodeId> nodes(own.begin(), own.end());
    std::vector<NodeId> added = Join(pattern, &nodes);
    KeepViewsOutside(&added, &nodes);
    if (added.empty()) return;
    Cost before = Cost::Of(group->time);
    for (const NodeId id : added) {
      if (!in_.forest.taken[id]) before += Cost::Of(groups_[Alone()[id]].time);
    }
    BriefGroup larger = *group;
    SetNodes(nodes, &larger);
    if (before < Cost::Of(larger.time)) return brief_.nodes.resize(larger.begin);
    *group = larger;
    joined_.resize(graph_.size());
    for (const NodeId id : added) joined_[id] = true;
  }

  // Adds what may join, as far as it goes. Returns it, ascending.
  std::vector<NodeId> Join(const GroupPattern& pattern, std::vector<NodeId>* nodes) {
    std::vector<NodeId> added, open;
    const auto look_before = [&](NodeId id) {
      for (const Edge operand : graph_.node(id).inputs) open.push_back(operand.node);
    };
    for (const NodeId id : *nodes) look_before(id);
    while (!open.empty()) {
      const NodeId id = open.back();
      open.pop_back();
      if (!MayJoin(pattern, *nodes, id)) continue;
      const auto at = nodes->insert(std::ranges::lower_bound(*nodes, id), id);
      if (!HasForm(graph_, *nodes)) {
        nodes->erase(at);
        continue;
      }
      added.push_back(id);
      look_before(id);
    }
    std::ranges::sort(added);
    return added;
  }

  bool MayJoin(const GroupPattern& pattern, const std::vector<NodeId>& nodes, NodeId id) {
    const Node& node = graph_.node(id);
    if (graph_.is_constant(id) || node.op == OpKind::kInput) return false;
    if (!HasStepFor(pattern, graph_, id) || std::ranges::binary_search(nodes, id)) return false;
    if (!in_.forest.taken[id] && Alone()[id] < 0) return false;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (graph_.is_constant(node.inputs[i].node)) continue;
      if (in_.layouts.Read(graph_, id, i) != Layout::kPlain) return false;
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const Edge made{id, static_cast<int32_t>(i)};
      const auto is_inside = [&](const Use& use) {
        return std::ranges::binary_search(nodes, use.node);
      };
      if (graph_.is_output(made) || in_.layouts.Written(graph_, made) != Layout::kPlain ||
          !std::ranges::all_of(graph_.uses(made), is_inside)) {
        return false;
      }
    }
    return true;
  }

  // Removes the views that no other operator of `added` is in front of.
  void KeepViewsOutside(std::vector<NodeId>* added, std::vector<NodeId>* nodes) const {
    std::vector<NodeId> kept;
    for (const NodeId id : *added) {
      const auto is_kept = [&](Edge operand) {
        return std::ranges::binary_search(kept, operand.node);
      };
      if (!in_.forest.taken[id] || std::ranges::any_of(graph_.node(id).inputs, is_kept)) {
        kept.push_back(id);
      } else {
        nodes->erase(std::ranges::lower_bound(*nodes, id));
      }
    }
    *added = std::move(kept);
  }

  // Sets the operators of the group, with its key and time.
  void SetNodes(const std::vector<NodeId>& nodes, BriefGroup* group) {
    group->begin = static_cast<int>(brief_.nodes.size());
    brief_.nodes.insert(brief_.nodes.end(), nodes.begin(), nodes.end());
    group->end = static_cast<int>(brief_.nodes.size());
    const GroupKeys keys(graph_, in_.layouts, in_.basis.keys);
    const LocalKey& frame = in_.basis.patterns[static_cast<size_t>(group->pattern)].frame;
    NodeMarks inside(graph_.size());
    inside.Set(nodes);
    group->key = GroupKeys::KeyOf(keys.OfPiece(nodes, inside).key, frame);
    group->time = in_.times.BriefTimeOf(group->key, [&] {
      const BriefSetting setting{graph_, in_.spec, in_.policy, in_.options.cores};
      return ExtractGroup(graph_, WholeGroup(setting, brief_, *group), in_.policy);
    });
  }

  // Returns the group that is the operator alone, by NodeId; -1: there is none.
  const std::vector<int>& Alone() {
    if (!alone_.empty()) return alone_;
    alone_.assign(graph_.size(), -1);
    for (size_t g = 0; g < groups_.size(); ++g) {
      if (IsAlone(groups_[g])) alone_[brief_.nodes[groups_[g].begin]] = static_cast<int>(g);
    }
    return alone_;
  }

  const CoverRequest& in_;
  const Graph& graph_;
  BriefGroups& brief_;
  std::vector<BriefGroup>& groups_;
  std::vector<int> alone_;
  std::vector<bool> joined_;
};

}  // namespace

bool HasForm(const Graph& graph, std::span<const NodeId> nodes) {
  const auto is_softmax = [&](NodeId id) { return graph.node(id).op == OpKind::kSoftmax; };
  if (nodes.size() == 1) return true;
  return std::ranges::any_of(nodes, is_softmax) ? ReadAttention(graph, nodes).ok()
                                                : ReadRotary(graph, nodes).ok();
}

std::vector<bool> TakeInMovements(const CoverRequest& request, BriefGroups* groups) {
  return TakeIn(request, groups).Run();
}

}  // namespace ag

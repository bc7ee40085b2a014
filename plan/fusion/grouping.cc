#include "plan/fusion/grouping.h"

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <tuple>

#include "plan/fusion/cover.h"
#include "plan/fusion/group_key.h"
#include "plan/fusion/layout_runs.h"
#include "plan/fusion/take_in.h"
#include "plan/spec/pattern_match.h"
#include "plan/views.h"

namespace ag {
namespace {

Status CheckSupported(const Graph& graph, std::span<const NodeId> operators, const DeviceSpec& spec,
                      const HomePatterns& home) {
  for (const NodeId id : operators) {
    const Node& node = graph.node(id);
    if (home[static_cast<size_t>(node.op)] == nullptr) {
      return Err(StatusCode::kUnimplemented, "{}: no pattern of device {} takes it",
                 Info(node.op).name, spec.name);
    }
    for (const TensorType& type : node.outputs) {
      if (std::ranges::count(spec.dtypes, type.dtype) > 0) continue;
      return Err(StatusCode::kUnimplemented, "{}: device {} has no dtype {}", Info(node.op).name,
                 spec.name, DTypeName(type.dtype));
    }
  }
  return OkStatus();
}

// One run of FormGroups: layouts, then reorders and views, then the cover, then movements that join
// its groups, then copies. Each step only uses results of the steps before it, so a group's time
// never depends on the grouping of others.
class Grouping {
 public:
  Grouping(const BriefSetting& setting, const CoverBasis& basis, GroupTimes& times,
           const GroupingOptions& options)
      : graph_(setting.graph), setting_(setting), basis_(basis), times_(times), options_(options) {}

  StatusOr<BriefGroups> Run(const HomePatterns& home, const std::vector<Layout>& preferred) {
    result_.layouts = ChooseLayouts(graph_, home, preferred);
    FindReorders();
    FindViews();
    FindReaders();
    const CoverRequest request{graph_,  setting_.spec, setting_.policy, result_.layouts,
                               forest_, basis_,        times_,          options_};
    AG_TRY(CoverByGroups(request, &result_));
    if (options_.grouped) {
      const std::vector<bool> joined = TakeInMovements(request, &result_);
      if (!joined.empty()) std::erase_if(views_, [&](NodeId view) { return joined[view]; });
    }
    FindCopies();
    Order();
    return std::move(result_);
  }

 private:
  // The order of groups: by the last operator, each reorder right after the producer of its tensor.
  using Rank = std::tuple<NodeId, bool, Port, int>;

  // Lists every layout in which an edge is read but not written.
  void FindReorders() {
    const NodeLayouts& layouts = result_.layouts;
    std::vector<Port> wanted;
    for (const NodeId id : basis_.operators) {
      const auto& inputs = graph_.node(id).inputs;
      for (size_t i = 0; i < inputs.size(); ++i) {
        if (graph_.is_constant(inputs[i].node) || layouts.ReadsAsWritten(graph_, id, i)) continue;
        wanted.push_back({inputs[i], layouts.Read(graph_, id, i)});
      }
    }
    for (const GraphOutput& output : graph_.outputs()) {
      if (graph_.is_constant(output.edge.node)) continue;
      if (layouts.Written(graph_, output.edge) != Layout::kPlain) {
        wanted.push_back({output.edge, Layout::kPlain});
      }
    }
    std::ranges::sort(wanted);
    wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
    for (const Port& port : wanted) {
      reorders_.push_back({.kind = BriefGroup::Kind::kReorder,
                           .from = {port.edge, layouts.Written(graph_, port.edge)},
                           .to = port});
    }
  }

  void FindViews() {
    forest_.taken.assign(static_cast<size_t>(graph_.size()), 0);
    std::vector<Group> candidates;
    for (const NodeId id : basis_.operators) {
      if (!Has(graph_.node(id).op, kMovement)) continue;
      candidates.push_back(MakeGroup(graph_, result_.layouts, {id}));
    }
    const size_t movements = candidates.size();
    std::vector<BriefGroup*> reorders;  // No other one can be a view.
    for (BriefGroup& reorder : reorders_) {
      const TensorType& type = graph_.type(reorder.to.edge);
      if (!HasSameBytes(type, reorder.from.layout, reorder.to.layout)) continue;
      candidates.push_back(WholeGroup(setting_, result_, reorder));
      reorders.push_back(&reorder);
    }
    if (candidates.empty()) return;
    ViewForest forest(graph_, setting_.spec.alignment_bytes, setting_.policy.precision);
    for (const int i : ViewOrder(graph_, candidates)) {
      if (!forest.TryAdd(candidates[i])) continue;
      if (static_cast<size_t>(i) >= movements) {
        reorders[static_cast<size_t>(i) - movements]->kind = BriefGroup::Kind::kView;
        continue;
      }
      forest_.taken[candidates[i].nodes[0]] = 1;
      views_.push_back(candidates[i].nodes[0]);
    }
  }

  // Sets the forest's readers. On a device without the mark ">" these are only readers.
  void FindReaders() {
    forest_.reader.assign(static_cast<size_t>(graph_.size()), -1);
    forest_.shared.assign(static_cast<size_t>(graph_.size()), 0);
    const auto is_marked = [](const GroupPattern& p) { return SharedSteps(p) != 0; };
    const bool takes_shared =
        options_.pieces && std::ranges::any_of(setting_.spec.patterns, is_marked);
    for (const NodeId id : basis_.operators) {
      if (forest_.taken[id] != 0 || graph_.node(id).outputs.size() != 1) continue;
      const Edge edge{id, 0};
      const auto uses = graph_.uses(edge);
      const bool is_shared = uses.size() != 1 || graph_.is_output(edge);
      if (uses.empty() || (is_shared && !takes_shared)) continue;
      const Use first = *std::ranges::min_element(uses);
      if (forest_.taken[first.node] != 0) continue;
      if (!result_.layouts.ReadsAsWritten(graph_, first.node, static_cast<size_t>(first.index))) {
        continue;
      }
      forest_.reader[id] = first.node;
      forest_.shared[id] = is_shared ? 1 : 0;
    }
  }

  void SetTime(BriefGroup* reorder) {
    if (!reorder_frame_) {
      reorder_frame_ = KeyOfFrame(
          {kReorderPattern, setting_.policy.precision, options_.cores, setting_.policy.cold_cache});
    }
    const TensorType& type = graph_.type(reorder->to.edge);
    reorder->key = KeyOfReorder(type, reorder->from.layout, reorder->to.layout, *reorder_frame_);
    reorder->time = times_.BriefTimeOf(reorder->key, [&] {
      return ExtractGroup(graph_, WholeGroup(setting_, result_, *reorder), setting_.policy);
    });
  }

  // Lists the graph outputs that cannot be the home of their tensor: all but the first of an edge,
  // and all of an input or a constant.
  void FindCopies() {
    std::map<Edge, int> places;
    for (const GraphOutput& output : graph_.outputs()) {
      const NodeId id = output.edge.node;
      places[output.edge] += graph_.node(id).op == OpKind::kInput || graph_.is_constant(id) ? 2 : 1;
    }
    for (const auto& [edge, count] : places) {
      if (count == 1) continue;
      const Port port{edge, Layout::kPlain};
      copies_.push_back({.kind = BriefGroup::Kind::kCopy, .from = port, .to = port});
      SetTime(&copies_.back());
    }
  }

  // Puts all groups into their order, copies last.
  void Order() {
    std::vector<BriefGroup>& groups = result_.groups;
    std::vector<NodeId> last_of(static_cast<size_t>(graph_.size()), -1);
    for (const BriefGroup& group : groups) {
      const std::span<const NodeId> nodes = result_.NodesOf(group);
      for (const NodeId id : nodes) last_of[id] = nodes.back();
    }
    for (const NodeId id : views_) {
      const auto begin = static_cast<int>(result_.nodes.size());
      result_.nodes.push_back(id);
      groups.push_back({.kind = BriefGroup::Kind::kView, .begin = begin, .end = begin + 1});
    }
    for (BriefGroup& reorder : reorders_) {
      if (reorder.kind == BriefGroup::Kind::kReorder) SetTime(&reorder);
      groups.push_back(reorder);
    }
    std::vector<Rank> ranks;
    ranks.reserve(groups.size());
    for (const BriefGroup& group : groups) {
      const bool is_reorder = group.begin == group.end;
      NodeId last = is_reorder ? group.to.edge.node : result_.nodes[group.end - 1];
      if (is_reorder && last_of[last] >= 0) last = last_of[last];
      ranks.emplace_back(last, is_reorder, group.to, static_cast<int>(ranks.size()));
    }
    std::ranges::sort(ranks);
    std::vector<BriefGroup> ordered;
    ordered.reserve(groups.size() + copies_.size());
    for (const Rank& rank : ranks) ordered.push_back(groups[std::get<3>(rank)]);
    ordered.insert(ordered.end(), copies_.begin(), copies_.end());
    groups = std::move(ordered);
  }

  const Graph& graph_;
  const BriefSetting& setting_;
  const CoverBasis& basis_;
  GroupTimes& times_;
  const GroupingOptions& options_;
  std::optional<LocalKey> reorder_frame_;
  CoverForest forest_;
  BriefGroups result_;
  std::vector<NodeId> views_;
  std::vector<BriefGroup> reorders_, copies_;
};

Cost SumOf(const BriefGroups& groups) {
  Cost sum;
  for (const BriefGroup& group : groups.groups) sum += Cost::Of(group.time);
  return sum;
}

// Returns LayoutCover::node_cost.
std::vector<Cost> NodeCosts(const Graph& graph, const BriefGroups& groups) {
  std::vector<Cost> costs(static_cast<size_t>(graph.size()));
  for (const BriefGroup& group : groups.groups) {
    NodeId at = group.to.edge.node;
    if (group.begin != group.end) {
      at = groups.nodes[group.begin];
    } else if (!graph.uses(group.to.edge).empty()) {
      at = graph.uses(group.to.edge)[0].node;
    }
    costs[at] += Cost::Of(group.time);
  }
  return costs;
}

// LayoutChoices, with the patterns of the spec by operator.
std::vector<Layout> ChoicesAt(const Graph& graph, const HomePatterns& home) {
  std::vector<Layout> choices;
  for (NodeId id = 0; id < graph.size(); ++id) {
    const OpKind op = graph.node(id).op;
    const GroupPattern* pattern = home[static_cast<size_t>(op)];
    if (pattern == nullptr || !Has(op, kContraction) || graph.is_constant(id)) continue;
    for (const Layout layout : pattern->layouts) {
      if (layout == Layout::kPlain || std::ranges::count(choices, layout) > 0) continue;
      const bool suits = layout != Layout::kChannelsLast8 || IsPadded(graph, graph.node(id));
      if (suits) choices.push_back(layout);
    }
  }
  if (choices.empty()) choices.push_back(Layout::kPlain);
  return choices;
}

}  // namespace

std::vector<Layout> LayoutChoices(const Graph& graph, const DeviceSpec& spec) {
  return ChoicesAt(graph, FindHomePatterns(spec));
}

StatusOr<BriefGroups> FormBriefGroups(const Graph& graph, const DeviceSpec& spec,
                                      const Policy& policy, GroupTimes& times,
                                      const GroupingOptions& options) {
  const HomePatterns home = FindHomePatterns(spec);
  const BriefSetting setting{graph, spec, policy, options.cores};
  const CoverBasis basis(setting, options);
  AG_TRY(CheckSupported(graph, basis.operators, spec, home));
  std::vector<Layout> choices =
      options.layout ? std::vector<Layout>{*options.layout} : ChoicesAt(graph, home);
  const bool has_padded = std::ranges::count(choices, Layout::kChannelsLast8) > 0;
  if (has_padded && !options.layout && !options.mixed_layouts) {
    std::erase(choices, Layout::kChannelsLast);
  }
  std::vector<LayoutCover> covers;
  std::optional<BriefGroups> best;
  const auto keep = [&](BriefGroups groups) {
    if (!best || SumOf(groups) < SumOf(*best)) best = std::move(groups);
  };
  const bool is_mixed = options.mixed_layouts && choices.size() > 1;
  for (const Layout layout : choices) {
    Grouping grouping(setting, basis, times, options);
    AG_LET(BriefGroups groups, grouping.Run(home, std::vector<Layout>(graph.size(), layout)));
    if (is_mixed) covers.push_back({layout, groups.layouts, NodeCosts(graph, groups)});
    keep(std::move(groups));
  }
  if (is_mixed) {
    Grouping grouping(setting, basis, times, options);
    AG_LET(BriefGroups groups, grouping.Run(home, ChooseRuns(graph, spec, covers)));
    keep(std::move(groups));
  }
  return *std::move(best);
}

TimedGroups WholeGroups(const BriefSetting& setting, const BriefGroups& groups, GroupTimes& times) {
  TimedGroups whole;
  whole.groups.reserve(groups.groups.size());
  whole.times.reserve(groups.groups.size());
  for (const BriefGroup& brief : groups.groups) {
    Group group = WholeGroup(setting, groups, brief);
    GroupTime time = WholeTime(setting, brief, group, times);
    if (time.measured()) group.kernel = time.kernel;
    whole.groups.push_back(std::move(group));
    whole.times.push_back(std::move(time));
  }
  return whole;
}

StatusOr<TimedGroups> FormTimedGroups(const Graph& graph, const DeviceSpec& spec,
                                      const Policy& policy, GroupTimes& times,
                                      const GroupingOptions& options) {
  AG_LET(const BriefGroups groups, FormBriefGroups(graph, spec, policy, times, options));
  return WholeGroups({graph, spec, policy, options.cores}, groups, times);
}

StatusOr<std::vector<Group>> FormGroups(const Graph& graph, const DeviceSpec& spec,
                                        const Policy& policy, GroupTimes& times,
                                        const GroupingOptions& options) {
  AG_LET(TimedGroups timed, FormTimedGroups(graph, spec, policy, times, options));
  return std::move(timed.groups);
}

}  // namespace ag

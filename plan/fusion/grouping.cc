#include "plan/fusion/grouping.h"

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <tuple>

#include "graph/operators_of.h"
#include "plan/fusion/cover.h"
#include "plan/fusion/group_key.h"
#include "plan/fusion/layout_runs.h"
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

// One run of FormGroups: layouts, then reorders and views, then the cover, then copies. Each step
// only uses results of the steps before it, so a group's time never depends on the grouping of
// others.
class Grouping {
 public:
  Grouping(const Graph& graph, const DeviceSpec& spec, const Policy& policy, GroupTimes& times,
           const GroupingOptions& options)
      : graph_(graph),
        spec_(spec),
        policy_(policy),
        times_(times),
        options_(options),
        operators_(OperatorsOf(graph)),
        reorder_frame_(
            KeyOfFrame({kReorderPattern, policy.precision, options.cores, policy.cold_cache})) {}

  StatusOr<TimedGroups> Run(const HomePatterns& home, const std::vector<Layout>& preferred) {
    AG_TRY(CheckSupported(graph_, operators_, spec_, home));
    layouts_ = ChooseLayouts(graph_, home, preferred);
    FindReorders();
    FindViews();
    FindReaders();
    const CoverRequest request{graph_, spec_, policy_, layouts_, forest_, times_, options_};
    AG_LET(std::vector<CoverGroup> groups, CoverByGroups(request));
    items_.reserve(groups.size() + views_.size() + reorders_.size());
    for (CoverGroup& group : groups) AddGroup(&group);
    return Emit();
  }

  const NodeLayouts& layouts() const { return layouts_; }

 private:
  struct Item {
    Group group;
    GroupTime time;
  };
  // The order of items: by the last operator, each reorder right after the producer of its tensor.
  using Rank = std::tuple<NodeId, bool, Port, int>;

  // Lists every layout in which an edge is read but not written.
  void FindReorders() {
    std::vector<Port> wanted;
    for (const NodeId id : operators_) {
      const Node& node = graph_.node(id);
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        const Edge edge = node.inputs[i];
        if (graph_.is_constant(edge.node)) continue;
        const Layout layout = layouts_.Read(graph_, id, i);
        if (layout != layouts_.Written(graph_, edge)) wanted.push_back({edge, layout});
      }
    }
    for (const GraphOutput& output : graph_.outputs()) {
      if (graph_.is_constant(output.edge.node)) continue;
      if (layouts_.Written(graph_, output.edge) != Layout::kPlain) {
        wanted.push_back({output.edge, Layout::kPlain});
      }
    }
    std::ranges::sort(wanted);
    wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
    for (const Port& port : wanted) {
      Group group;
      group.pattern = kReorderPattern;
      group.inputs = {{port.edge, layouts_.Written(graph_, port.edge)}};
      group.outputs = {port};
      group.cores = options_.cores;
      reorders_.push_back({std::move(group), {}});
    }
  }

  void FindViews() {
    forest_.taken.assign(graph_.size(), false);
    std::vector<Group> candidates;
    for (const NodeId id : operators_) {
      if (!Has(graph_.node(id).op, kMovement)) continue;
      candidates.push_back(MakeGroup(graph_, layouts_, {id}));
    }
    const size_t movements = candidates.size();
    for (const Item& item : reorders_) candidates.push_back(item.group);
    ViewForest forest(graph_, spec_.alignment_bytes, policy_.precision);
    for (const int i : ViewOrder(graph_, candidates)) {
      if (!forest.TryAdd(candidates[i])) continue;
      if (static_cast<size_t>(i) >= movements) {
        reorders_[i - movements].group.pattern = kViewPattern;
        continue;
      }
      candidates[i].pattern = kViewPattern;
      candidates[i].cores = options_.cores;
      forest_.taken[candidates[i].nodes[0]] = true;
      views_.push_back({std::move(candidates[i]), {}});
    }
  }

  // Sets the forest's readers. On a device without the mark ">" these are only readers.
  void FindReaders() {
    forest_.reader.assign(graph_.size(), -1);
    forest_.shared.assign(graph_.size(), false);
    const auto is_marked = [](const GroupPattern& p) { return SharedSteps(p) != 0; };
    const bool takes_shared = options_.pieces && std::ranges::any_of(spec_.patterns, is_marked);
    for (const NodeId id : operators_) {
      if (forest_.taken[id] || graph_.node(id).outputs.size() != 1) continue;
      const Edge edge{id, 0};
      const auto uses = graph_.uses(edge);
      const bool is_shared = uses.size() != 1 || graph_.is_output(edge);
      if (uses.empty() || (is_shared && !takes_shared)) continue;
      const Use first = *std::ranges::min_element(uses);
      if (forest_.taken[first.node]) continue;
      if (layouts_.Read(graph_, first.node, first.index) != layouts_.Written(graph_, edge)) {
        continue;
      }
      forest_.reader[id] = first.node;
      forest_.shared[id] = is_shared;
    }
  }

  void AddGroup(CoverGroup* group) {
    Item item;
    item.group = MakeGroup(graph_, layouts_, std::move(group->nodes));
    item.group.pattern = group->pattern->name;
    item.group.cores = options_.cores;
    item.time = std::move(group->time);
    items_.push_back(std::move(item));
  }

  GroupTime TimeOfReorder(const Group& group, const Port& from, const Port& to) {
    const TensorType& type = graph_.type(to.edge);
    const LocalKey key = KeyOfReorder(type, from.layout, to.layout, reorder_frame_);
    return times_.TimeOf(key, [&] { return ExtractGroup(graph_, group, policy_); });
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
      Item item;
      const Port port{edge, Layout::kPlain};
      item.group.pattern = kReorderPattern;
      if (!graph_.is_constant(edge.node)) item.group.inputs = {port};
      item.group.outputs = {port};
      item.group.cores = options_.cores;
      item.time = TimeOfReorder(item.group, port, port);
      copies_.push_back(std::move(item));
    }
  }

  // Returns the last operator of each group that has further outputs, by the operators of these.
  std::map<NodeId, NodeId> LastOfFurtherOutputs() const {
    std::map<NodeId, NodeId> last;
    for (const Item& item : items_) {
      for (const Port& port : item.group.outputs) {
        if (item.group.nodes.empty() || port.edge.node == item.group.nodes.back()) continue;
        last.emplace(port.edge.node, item.group.nodes.back());
      }
    }
    return last;
  }

  // Returns all items in their order, copies last.
  TimedGroups Emit() {
    FindCopies();
    std::ranges::move(views_, std::back_inserter(items_));
    for (Item& item : reorders_) {
      if (item.group.pattern == kReorderPattern) {
        item.time = TimeOfReorder(item.group, item.group.inputs[0], item.group.outputs[0]);
      }
      items_.push_back(std::move(item));
    }
    std::vector<Rank> ranks;
    ranks.reserve(items_.size());
    const std::map<NodeId, NodeId> further = LastOfFurtherOutputs();
    for (const Item& item : items_) {
      const Port& out = item.group.outputs[0];
      const auto inside = further.find(out.edge.node);
      const NodeId last = inside == further.end() ? out.edge.node : inside->second;
      ranks.emplace_back(last, item.group.nodes.empty(), out, static_cast<int>(ranks.size()));
    }
    std::ranges::sort(ranks);
    TimedGroups result;
    result.groups.reserve(items_.size() + copies_.size());
    result.times.reserve(items_.size() + copies_.size());
    const auto emit = [&](Item& item) {
      if (item.time.measured()) item.group.kernel = item.time.kernel;
      result.groups.push_back(std::move(item.group));
      result.times.push_back(std::move(item.time));
    };
    for (const Rank& rank : ranks) emit(items_[std::get<3>(rank)]);
    for (Item& item : copies_) emit(item);
    return result;
  }

  const Graph& graph_;
  const DeviceSpec& spec_;
  const Policy& policy_;
  GroupTimes& times_;
  const GroupingOptions& options_;
  const std::vector<NodeId> operators_;  // Ascending.
  const LocalKey reorder_frame_;
  NodeLayouts layouts_;
  CoverForest forest_;
  std::vector<Item> items_, views_, reorders_, copies_;
};

Cost SumOf(const TimedGroups& timed) {
  Cost sum;
  for (const GroupTime& time : timed.times) sum += Cost::Of(time);
  return sum;
}

// Returns LayoutCover::node_cost.
std::vector<Cost> NodeCosts(const Graph& graph, const TimedGroups& timed) {
  std::vector<Cost> costs(graph.size());
  for (size_t i = 0; i < timed.groups.size(); ++i) {
    const Group& group = timed.groups[i];
    NodeId at = group.nodes.empty() ? group.outputs[0].edge.node : group.nodes.front();
    if (group.nodes.empty() && !graph.uses(group.outputs[0].edge).empty()) {
      at = graph.uses(group.outputs[0].edge)[0].node;
    }
    costs[at] += Cost::Of(timed.times[i]);
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

StatusOr<TimedGroups> FormTimedGroups(const Graph& graph, const DeviceSpec& spec,
                                      const Policy& policy, GroupTimes& times,
                                      const GroupingOptions& options) {
  const HomePatterns home = FindHomePatterns(spec);
  std::vector<Layout> choices =
      options.layout ? std::vector<Layout>{*options.layout} : ChoicesAt(graph, home);
  const bool has_padded = std::ranges::count(choices, Layout::kChannelsLast8) > 0;
  if (has_padded && !options.layout && !options.mixed_layouts) {
    std::erase(choices, Layout::kChannelsLast);
  }
  std::vector<LayoutCover> covers;
  std::optional<TimedGroups> best;
  const auto keep = [&](TimedGroups timed) {
    if (!best || SumOf(timed) < SumOf(*best)) best = std::move(timed);
  };
  const bool is_mixed = options.mixed_layouts && choices.size() > 1;
  for (const Layout layout : choices) {
    Grouping grouping(graph, spec, policy, times, options);
    AG_LET(TimedGroups timed, grouping.Run(home, std::vector<Layout>(graph.size(), layout)));
    if (is_mixed) covers.push_back({layout, grouping.layouts(), NodeCosts(graph, timed)});
    keep(std::move(timed));
  }
  if (is_mixed) {
    Grouping grouping(graph, spec, policy, times, options);
    AG_LET(TimedGroups timed, grouping.Run(home, ChooseRuns(graph, spec, covers)));
    keep(std::move(timed));
  }
  return *std::move(best);
}

StatusOr<std::vector<Group>> FormGroups(const Graph& graph, const DeviceSpec& spec,
                                        const Policy& policy, GroupTimes& times,
                                        const GroupingOptions& options) {
  AG_LET(TimedGroups timed, FormTimedGroups(graph, spec, policy, times, options));
  return std::move(timed.groups);
}

}  // namespace ag

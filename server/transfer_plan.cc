#include "server/transfer_plan.h"

#include <algorithm>
#include <map>
#include <set>

#include "plan/group_problem.h"
#include "plan/schedule.h"

namespace ag {
namespace {

std::vector<NodeId> ComputedNodes(const Graph& graph) {
  std::vector<NodeId> ids;
  for (NodeId id = 0; id < graph.size(); ++id) {
    if (!graph.is_constant(id)) ids.push_back(id);
  }
  return ids;
}

using NodeMap = std::map<NodeId, NodeId>;

bool SameInputs(const Graph& from, const Node& a, const Graph& to, const Node& b,
                const NodeMap& nodes) {
  if (a.inputs.size() != b.inputs.size()) return false;
  for (size_t i = 0; i < a.inputs.size(); ++i) {
    const Edge x = a.inputs[i], y = b.inputs[i];
    if (from.type(x) != to.type(y)) return false;
    if (from.is_constant(x.node) != to.is_constant(y.node)) return false;
    if (from.is_constant(x.node)) continue;
    const auto mapped = nodes.find(x.node);
    if (mapped == nodes.end() || mapped->second != y.node || x.output != y.output) return false;
  }
  return true;
}

StatusOr<NodeMap> MatchNodes(const Graph& from, const Graph& to) {
  const std::vector<NodeId> a = ComputedNodes(from), b = ComputedNodes(to);
  NodeMap nodes;
  for (size_t i = 0; i < a.size() && i < b.size(); ++i) {
    const Node &x = from.node(a[i]), &y = to.node(b[i]);
    const bool input = x.op == OpKind::kInput && y.op == OpKind::kInput;
    if (x.op != y.op || x.outputs != y.outputs || (!input && *x.attributes != *y.attributes) ||
        !SameInputs(from, x, to, y, nodes)) {
      return Err(StatusCode::kFailedPrecondition, "operator {} differs: {}, {}", i, Info(x.op).name,
                 Info(y.op).name);
    }
    nodes[a[i]] = b[i];
  }
  if (a.size() != b.size()) {
    return Err(StatusCode::kFailedPrecondition, "{} operators became {}", a.size(), b.size());
  }
  return nodes;
}

}  // namespace

StatusOr<Plan> TransferPlan(const Graph& from, const Plan& plan, const Graph& to,
                            const DeviceSpec& spec) {
  AG_LET(const NodeMap nodes, MatchNodes(from, to));
  Plan moved = plan;
  moved.graph = to.digest();
  bool whole = true;
  const auto move = [&](NodeId& id) {
    const auto found = nodes.find(id);
    whole = whole && found != nodes.end();
    if (found != nodes.end()) id = found->second;
  };
  for (Group& group : moved.groups) {
    for (NodeId& id : group.nodes) move(id);
    for (Port& port : group.inputs) move(port.edge.node);
    for (Port& port : group.outputs) move(port.edge.node);
  }
  for (Place& place : moved.places) move(place.port.edge.node);
  if (!whole) return Err(StatusCode::kFailedPrecondition, "the plan names a folded constant");
  std::sort(moved.places.begin(), moved.places.end(),
            [](const Place& a, const Place& b) { return a.port < b.port; });
  AG_TRY(ValidatePlan(to, moved, spec));
  return moved;
}

namespace {

// Measured times, and where there is none a pessimistic estimate: kernels seldom reach a quarter of
// the roofline's speed on small groups, and a cover that was measured shall be preferred to one
// that was not.
class KnownTimes : public GroupTimes {
 public:
  explicit KnownTimes(const DeviceSpec& spec) : spec_(spec) {}

  GroupTime Time(const GroupProblem& problem) override {
    const auto found = known_.find(EncodeGroupProblem(problem));
    if (found != known_.end()) return found->second;
    return {4 * RooflineNs(problem, spec_), false, ""};
  }

  // Measures the groups of the cover that are unknown; returns how many there were.
  int Learn(const Graph& graph, const std::vector<Group>& groups, const Policy& policy,
            Measurer& measurer) {
    std::vector<GroupProblem> problems;
    std::set<std::string> asked;
    for (const Group& group : groups) {
      if (group.pattern == kViewPattern) continue;
      GroupProblem problem = ExtractGroup(graph, group, policy);
      const std::string bytes = EncodeGroupProblem(problem);
      if (known_.contains(bytes) || !asked.insert(bytes).second) continue;
      problems.push_back(std::move(problem));
    }
    const auto measured = measurer.MeasureGroups(problems);
    for (size_t i = 0; i < measured.size(); ++i) {
      GroupTime& time = known_[EncodeGroupProblem(problems[i])];
      time = {1e15, false, ""};
      if (!measured[i].ok()) continue;
      time = {measured[i]->latency.median_ns, true, measured[i]->kernel, measured[i]->busy_cores};
    }
    return static_cast<int>(problems.size());
  }

 private:
  const DeviceSpec& spec_;
  std::map<std::string, GroupTime> known_;
};

constexpr int kRoundsMax = 8;

}  // namespace

StatusOr<Plan> Replan(const ReplanRequest& request, Measurer& measurer) {
  KnownTimes times(request.spec);
  const int streams = std::max<int>(1, static_cast<int>(request.like.streams.size()));
  const bool may_be_wide = request.spec.stream_cores > 0;
  const int narrow = streams > 1 ? StreamCores(request.spec, streams) : 0;
  const GroupingOptions grouping{.cores = may_be_wide ? 0 : narrow};
  std::vector<Group> groups;
  for (int round = 0; round < kRoundsMax; ++round) {
    AG_LET(groups, FormGroups(request.graph, request.spec, request.policy, times, grouping));
    if (times.Learn(request.graph, groups, request.policy, measurer) == 0) break;
  }
  if (may_be_wide && streams > 1) {
    for (Group& group : groups) group.cores = narrow;
    times.Learn(request.graph, groups, request.policy, measurer);
  }
  AG_LET(Plan plan, MakePlan(request.graph, request.spec, request.policy, times, {}, streams));
  plan.environment = request.like.environment;
  return plan;
}

StatusOr<Plan> EagerPlan(const Graph& graph, const DeviceSpec& spec, const Policy& policy) {
  KnownTimes times(spec);
  return MakePlan(graph, spec, policy, times, {.grouped = false}, 1);
}

}  // namespace ag

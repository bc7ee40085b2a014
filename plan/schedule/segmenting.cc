#include "plan/schedule/segmenting.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "graph/batch/samples.h"
#include "graph/operators_of.h"
#include "plan/format/plan_validate.h"
#include "plan/schedule/placement.h"
#include "plan/segments.h"

namespace ag {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// Dynamic programming over the cuts of a graph. A cut p stands before operator p.
class Segmenter {
 public:
  Segmenter(const Graph& graph, std::span<const PartPlan> plans, const Samples& samples)
      : graph_(graph), samples_(samples), operators_(OperatorsOf(graph)), index_of_(graph.size()) {
    for (size_t i = 0; i < operators_.size(); ++i) index_of_[operators_[i]] = static_cast<int>(i);
    for (const PartPlan& plan : plans) plans_.push_back(&plan);
    std::ranges::stable_sort(plans_, std::greater<>(), &PartPlan::instances);
    FindCuts();
    for (const PartPlan* plan : plans_) AddPlan(*plan);
  }

  std::vector<Segmentation> Run() {
    std::vector<Segmentation> found;
    Begin();
    double bar = BestEnd(0).second;
    for (size_t count = 1; count < std::min(kSegmentsMax, plans_.size()); ++count) {
      Extend(count);
      const auto [plan, ns] = BestEnd(count);
      if (ns > (1 - kSegmentGain) * bar) continue;
      bar = ns;
      found.push_back({SegmentsOf(count, plan), ns});
    }
    std::ranges::reverse(found);
    return found;
  }

 private:
  struct Cell {
    double ns = kNever;
    size_t cut = 0, plan = 0;  // Where the segment begins, and the plan of the one before.
  };
  using Table = std::vector<std::vector<Cell>>;  // By the cut at the end, and plan.

  // Cuts where few tensors pass, whose samples are their first axis.
  void FindCuts() {
    const size_t count = operators_.size();
    std::vector<int> passing(count + 2, 0);
    for (const NodeId id : operators_) {
      for (int32_t output = 0; output < static_cast<int32_t>(graph_.node(id).outputs.size());
           ++output) {
        int last = index_of_[id];
        for (const Use& use : graph_.uses({id, output})) last = std::max(last, index_of_[use.node]);
        const int weight = samples_.axis_of[id] == 0 ? 1 : kCutTensorsMax + 1;
        passing[index_of_[id] + 1] += weight;
        passing[last + 1] -= weight;
      }
    }
    cuts_ = {0};
    int now = 0;
    std::vector<size_t> all;
    for (size_t p = 1; p < count; ++p) {
      now += passing[p];
      if (now <= kCutTensorsMax) all.push_back(p);
    }
    const size_t kept = std::min(all.size(), kSegmentCutsMax);
    for (size_t i = 0; i < kept; ++i) cuts_.push_back(all[i * all.size() / kept]);
    cuts_.push_back(count);
  }

  // Sums the times of the plan's groups up to each cut, and finds the cuts that no group spans.
  void AddPlan(const PartPlan& plan) {
    const size_t count = operators_.size();
    std::vector<double> ns(count + 1, 0);
    std::vector<int> spanned(count + 2, 0);
    for (size_t g = 0; g < plan.plan.groups.size(); ++g) {
      const Group& group = plan.plan.groups[g];
      const NodeId first = group.nodes.empty() ? group.outputs[0].edge.node : group.nodes.front();
      const NodeId last = group.nodes.empty() ? first : group.nodes.back();
      ns[index_of_[first]] += plan.instances * plan.ns[g];
      ++spanned[index_of_[first] + 1];
      --spanned[index_of_[last] + 1];
    }
    std::vector<double> sums;
    std::vector<bool> is_free;
    double sum = 0;
    int spans = 0;
    size_t p = 0;
    for (const size_t cut : cuts_) {
      for (; p < cut; ++p) {
        sum += ns[p];
        spans += spanned[p];
      }
      sums.push_back(sum);
      is_free.push_back(spans + spanned[cut] == 0);
    }
    sums_.push_back(std::move(sums));
    is_free_.push_back(std::move(is_free));
  }

  double Cost(size_t plan, size_t from, size_t to) const {
    if (!is_free_[plan][from] || !is_free_[plan][to]) return kNever;
    return sums_[plan][to] - sums_[plan][from];
  }

  void Begin() {
    tables_.assign(1, Table(cuts_.size(), std::vector<Cell>(plans_.size())));
    for (size_t to = 1; to < cuts_.size(); ++to) {
      for (size_t s = 0; s < plans_.size(); ++s) tables_[0][to][s].ns = Cost(s, 0, to);
    }
  }

  // Fills in the best `count` + 1 segments up to each cut.
  void Extend(size_t count) {
    tables_.emplace_back(cuts_.size(), std::vector<Cell>(plans_.size()));
    for (size_t s = 1; s < plans_.size(); ++s) {
      for (size_t before = 0; before < s; ++before) {
        const int32_t larger = plans_[before]->instances, own = plans_[s]->instances;
        if (larger <= own || larger % own != 0) continue;
        for (size_t to = 1; to < cuts_.size(); ++to) {
          for (size_t from = 1; from < to; ++from) {
            const double ns = tables_[count - 1][from][before].ns + Cost(s, from, to);
            if (ns < tables_[count][to][s].ns) tables_[count][to][s] = {ns, from, before};
          }
        }
      }
    }
  }

  // Returns the plan of the last segment and the time of the best `count` + 1 segments.
  std::pair<size_t, double> BestEnd(size_t count) const {
    const std::vector<Cell>& ends = tables_[count].back();
    const auto best = std::ranges::min_element(ends, {}, &Cell::ns);
    return {static_cast<size_t>(best - ends.begin()), best->ns};
  }

  std::vector<Segment> SegmentsOf(size_t count, size_t plan) const {
    std::vector<Segment> segments(count + 1);
    size_t to = cuts_.size() - 1;
    for (size_t i = count + 1; i-- > 0;) {
      const Cell& cell = tables_[i][to][plan];
      segments[i].nodes.assign(operators_.begin() + static_cast<int64_t>(cuts_[cell.cut]),
                               operators_.begin() + static_cast<int64_t>(cuts_[to]));
      segments[i].instances = plans_[plan]->instances;
      to = cell.cut;
      plan = cell.plan;
    }
    return segments;
  }

  const Graph& graph_;
  const Samples& samples_;
  const std::vector<NodeId> operators_;
  std::vector<int> index_of_;           // By NodeId; 0 for what is no operator.
  std::vector<const PartPlan*> plans_;  // The smallest parts first.
  std::vector<size_t> cuts_;
  std::vector<std::vector<double>> sums_;   // By plan and cut.
  std::vector<std::vector<bool>> is_free_;  // By plan and cut.
  std::vector<Table> tables_;               // By the number of segments less one.
};

// Removes a group and its launch from a plan on one stream.
void RemoveGroup(size_t g, Plan* plan) {
  plan->groups.erase(plan->groups.begin() + static_cast<int64_t>(g));
  std::vector<Launch>& launches = plan->streams[0].launches;
  std::erase_if(launches,
                [&](const Launch& launch) { return launch.group == static_cast<int>(g); });
  for (Launch& launch : launches) launch.group -= launch.group > static_cast<int>(g) ? 1 : 0;
}

bool Touches(const std::vector<Port>& ports, const Port& port) {
  return std::ranges::find(ports, port) != ports.end();
}

// Returns the only group that reads or writes the port; nothing: there are several, or it is no
// reorder of another layout, or the plan has several streams.
std::optional<size_t> OnlyReorder(const Plan& plan, const Port& port) {
  std::optional<size_t> only;
  for (size_t g = 0; g < plan.groups.size(); ++g) {
    const Group& group = plan.groups[g];
    if (!Touches(group.inputs, port) && !Touches(group.outputs, port)) continue;
    if (only || group.pattern != kReorderPattern || IsCopy(group)) return std::nullopt;
    only = g;
  }
  return plan.streams.size() == 1 ? only : std::nullopt;
}

// Makes the tensor pass in its writer's layout. False: a plan does not allow it; *plan is spoilt.
bool KeepLayout(const std::vector<GraphPiece>& pieces, const Between& tensor,
                const DeviceSpec& spec, Plan* plan) {
  const auto port_in = [&](size_t s, bool is_input) -> std::optional<Port> {
    const GraphPiece& piece = pieces[s];
    const std::vector<Edge>& edges = is_input ? piece.inputs : piece.outputs;
    const auto it = std::ranges::find(edges, tensor.edge);
    if (it == edges.end()) return std::nullopt;
    const auto i = static_cast<size_t>(it - edges.begin());
    return Port{is_input ? Edge{piece.graph.inputs()[i], 0} : piece.graph.outputs()[i].edge};
  };
  const auto place = [&](size_t s) {
    Plan& own = plan->segments[s].plan;
    return PlaceTensors(pieces[s].graph, spec, &own).ok() &&
           ValidatePlan(pieces[s].graph, own, spec).ok();
  };
  Plan& writer = plan->segments[tensor.writer].plan;
  const Port output = *port_in(tensor.writer, /*is_input=*/false);
  const std::optional<size_t> out = OnlyReorder(writer, output);
  if (!out) return false;
  const Layout layout = writer.groups[*out].inputs[0].layout;
  const TensorType stored =
      StoredType(pieces[tensor.writer].graph.type(output.edge), plan->policy.precision);
  if (LayoutBytes(stored, layout) != stored.Bytes()) return false;
  RemoveGroup(*out, &writer);
  if (!place(tensor.writer)) return false;
  for (size_t s = tensor.writer + 1; s <= tensor.last_reader; ++s) {
    const std::optional<Port> input = port_in(s, /*is_input=*/true);
    if (!input) continue;
    Plan& reader = plan->segments[s].plan;
    const std::optional<size_t> in = OnlyReorder(reader, *input);
    if (!in || reader.groups[*in].outputs[0].layout != layout) return false;
    RemoveGroup(*in, &reader);
    if (!place(s)) return false;
  }
  return true;
}

}  // namespace

void ScaleTo(double whole_ns, PartPlan* plan) {
  double sum = 0;
  for (const double ns : plan->ns) sum += plan->instances * ns;
  if (sum <= 0) return;
  for (double& ns : plan->ns) ns *= whole_ns / sum;
}

std::vector<Segmentation> ChooseSegments(const Graph& graph, std::span<const PartPlan> plans) {
  const StatusOr<Samples> samples = FindSamples(graph);
  if (!samples.ok() || samples->batch < 2 || plans.size() < 2) return {};
  const auto operators = OperatorsOf(graph);
  const bool all_computed = std::ranges::all_of(graph.outputs(), [&](const GraphOutput& output) {
    return std::ranges::binary_search(operators, output.edge.node);
  });
  if (!all_computed || operators.size() < 2) return {};
  return Segmenter(graph, plans, *samples).Run();
}

StatusOr<Plan> MakeSegmentsPlan(const Graph& graph, const DeviceSpec& spec,
                                std::vector<Segment> segments, const MakePiecePlan& make) {
  Plan plan;
  plan.segments = std::move(segments);
  AG_LET(const std::vector<GraphPiece> pieces, PiecesOf(graph, plan));
  for (size_t s = 0; s < pieces.size(); ++s) {
    Segment& segment = plan.segments[s];
    AG_LET(segment.plan, make(pieces[s].graph, segment.instances));
  }
  plan = PlanOfSegments(std::move(plan.segments), graph);
  for (const Between& tensor : TensorsBetween(graph, pieces)) {
    Plan kept = plan;
    if (KeepLayout(pieces, tensor, spec, &kept)) plan = std::move(kept);
  }
  AG_TRY(ValidatePlan(graph, plan, spec));
  return plan;
}

}  // namespace ag

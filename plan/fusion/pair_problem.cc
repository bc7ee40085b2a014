#include "plan/fusion/pair_problem.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/bytes.h"

namespace ag {
namespace {

constexpr uint32_t kPairMagic = 0x50504741;  // "AGPP".
constexpr uint32_t kVersion = 1;

// Returns another name, because two groups of a network seldom read the same weights.
Digest NameBeside(const Digest& name) { return Sha256("beside " + name.Hex()); }

class PairBuilder {
 public:
  Status Add(const Graph& from, bool is_second) {
    std::map<Edge, Edge> copies;
    int inputs = 0;
    for (NodeId id = 0; id < from.size(); ++id) {
      const Node& node = from.node(id);
      if (node.op == OpKind::kInput) {
        copies[{id, 0}] =
            builder_.Input(fmt::format("{}i{}", is_second ? "b" : "a", inputs++), node.outputs[0]);
      } else if (node.op == OpKind::kConstant) {
        copies[{id, 0}] = AddConstant(node, is_second);
      } else {
        AG_TRY(AddOperator(id, node, &copies));
      }
    }
    int outputs = 0;
    for (const GraphOutput& output : from.outputs()) {
      builder_.Output(copies.at(output.edge),
                      fmt::format("{}o{}", is_second ? "b" : "a", outputs++));
    }
    return OkStatus();
  }

  StatusOr<Graph> Build() const { return builder_.Build(); }

 private:
  Edge AddConstant(const Node& node, bool is_second) {
    const ConstantData& value = *node.constant;
    const bool is_synthetic = value.inline_bytes.empty();
    const Digest& name = value.digest;
    return builder_.Constant(node.outputs[0], is_synthetic && is_second ? NameBeside(name) : name,
                             value.inline_bytes);
  }

  Status AddOperator(NodeId id, const Node& node, std::map<Edge, Edge>* copies) {
    std::vector<Edge> operands;
    for (const Edge edge : node.inputs) operands.push_back(copies->at(edge));
    AG_LET(const NodeId copy, builder_.Add(node.op, operands, *node.attributes));
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const auto output = static_cast<int32_t>(i);
      (*copies)[{id, output}] = {copy, output};
    }
    return OkStatus();
  }

  GraphBuilder builder_;
};

// Returns the operators that compute `edges`: the group's nodes in the joint graph.
std::vector<NodeId> OperatorsOf(const Graph& graph, std::vector<Edge> edges) {
  std::set<NodeId> found;
  while (!edges.empty()) {
    const NodeId id = edges.back().node;
    edges.pop_back();
    if (graph.node(id).op == OpKind::kInput || graph.is_constant(id)) continue;
    if (!found.insert(id).second) continue;
    for (const Edge edge : graph.node(id).inputs) edges.push_back(edge);
  }
  return {found.begin(), found.end()};
}

// Adds the group whose inputs and outputs begin at positions `inputs` and `outputs` of the graph's.
void AddGroup(const PairRun& run, const GroupProblem& problem, size_t inputs, size_t outputs,
              Plan* plan) {
  const Graph& graph = run.graph;
  Group group;
  group.pattern = problem.pattern;
  group.cores = problem.cores;
  std::vector<Edge> ends;
  for (size_t i = 0; i < problem.input_layouts.size(); ++i) {
    const Port port{{graph.inputs()[inputs + i], 0}, problem.input_layouts[i]};
    group.inputs.push_back(port);
    plan->places.push_back({port, Place::Kind::kInput, static_cast<int32_t>(inputs + i), 0});
  }
  for (size_t i = 0; i < problem.output_layouts.size(); ++i) {
    const Port port{graph.outputs()[outputs + i].edge, problem.output_layouts[i]};
    group.outputs.push_back(port);
    plan->places.push_back({port, Place::Kind::kOutput, static_cast<int32_t>(outputs + i), 0});
    ends.push_back(port.edge);
  }
  group.nodes = OperatorsOf(graph, ends);
  const int number = static_cast<int>(plan->groups.size());
  plan->groups.push_back(std::move(group));
  plan->streams.push_back({problem.cores, {Launch{number, {}}}});
}

}  // namespace

Status CheckPairProblem(const PairProblem& pair) {
  for (const GroupProblem& group : pair.groups) {
    if (group.pattern == kReorderPattern || group.pattern == kViewPattern) {
      return Err(StatusCode::kDataLoss, "pair problem: a {} is not timed beside another group",
                 group.pattern);
    }
  }
  const auto& [first, second] = pair.groups;
  if (first.cold_cache != second.cold_cache) {
    return Err(StatusCode::kDataLoss, "pair problem: one group is cold");
  }
  if (first.precision == second.precision) return OkStatus();
  return Err(StatusCode::kDataLoss, "pair problem: precisions {} and {}", first.precision,
             second.precision);
}

PairProblem MakePair(PairProblem pair) {
  const auto key = [&](int i) {
    return std::pair(EncodeGroupProblem(pair.groups[i]), pair.kernels[i]);
  };
  if (key(1) < key(0)) {
    std::swap(pair.groups[0], pair.groups[1]);
    std::swap(pair.kernels[0], pair.kernels[1]);
  }
  return pair;
}

std::string EncodePairProblem(const PairProblem& pair) {
  ByteWriter out;
  out.U32(kPairMagic);
  out.U32(kVersion);
  for (size_t i = 0; i < pair.groups.size(); ++i) {
    out.String(EncodeGroupProblem(pair.groups[i]));
    out.String(pair.kernels[i]);
  }
  return out.Take();
}

bool IsPairProblem(std::string_view bytes) {
  const StatusOr<uint32_t> magic = ByteReader(bytes).U32();
  return magic.ok() && *magic == kPairMagic;
}

StatusOr<PairProblem> DecodePairProblem(std::string_view bytes) {
  ByteReader in(bytes);
  AG_LET(const uint32_t magic, in.U32());
  AG_LET(const uint32_t version, in.U32());
  if (magic != kPairMagic || version != kVersion) {
    return Err(StatusCode::kDataLoss, "pair problem: expected version {}, got {} (magic {:#x})",
               kVersion, version, magic);
  }
  PairProblem pair;
  for (size_t i = 0; i < pair.groups.size(); ++i) {
    AG_LET(const std::string group, in.String());
    StatusOr<GroupProblem> problem = DecodeGroupProblem(group);
    AG_TRY(problem, "pair problem");
    pair.groups[i] = *std::move(problem);
    AG_LET(pair.kernels[i], in.String());
  }
  AG_TRY(in.End());
  AG_TRY(CheckPairProblem(pair));
  return pair;
}

std::string Summary(const PairProblem& pair) {
  return Summary(pair.groups[0]) + " beside " + Summary(pair.groups[1]);
}

StatusOr<PairRun> PlanOfPair(const PairProblem& pair) {
  const auto& [first, second] = pair.groups;
  PairBuilder builder;
  AG_TRY(builder.Add(first.graph, false));
  AG_TRY(builder.Add(second.graph, true));
  PairRun run;
  AG_LET(run.graph, builder.Build());
  const size_t inputs = first.input_layouts.size() + second.input_layouts.size();
  const size_t outputs = first.output_layouts.size() + second.output_layouts.size();
  if (run.graph.inputs().size() != inputs || run.graph.outputs().size() != outputs) {
    return Err(StatusCode::kInvalidArgument, "pair: expected {} inputs and {} outputs, got {}, {}",
               inputs, outputs, run.graph.inputs().size(), run.graph.outputs().size());
  }
  Plan& plan = run.plan;
  AddGroup(run, first, 0, 0, &plan);
  AddGroup(run, second, first.input_layouts.size(), first.output_layouts.size(), &plan);
  for (size_t i = 0; i < plan.groups.size(); ++i) plan.groups[i].kernel = pair.kernels[i];
  std::ranges::sort(plan.places);
  plan.graph = run.graph.digest();
  plan.policy.precision = first.precision;
  plan.policy.cold_cache = first.cold_cache;
  return run;
}

}  // namespace ag

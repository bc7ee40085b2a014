#include "plan/fusion/group_problem.h"

#include <algorithm>
#include <map>

#include "base/fields.h"
#include "graph/codec.h"

namespace ag {
namespace {

constexpr uint32_t kGroupMagic = 0x50474741;  // "AGGP".
constexpr uint32_t kVersionWarm = 1;
constexpr uint32_t kVersionCold = 2;  // The same fields.

// Whether the value of the constant matters to the computation: scalars, parameters of element-wise
// operators (an exponent, a condition), the indices of a gather, and what an opaque node reads.
bool KeepsValue(const Node& constant, const Node& reader) {
  if (constant.op != OpKind::kConstant || constant.constant->inline_bytes.empty()) return false;
  return constant.outputs[0].NumElements() == 1 || Has(reader.op, kElementwise) ||
         Has(reader.op, kBarrier) || reader.op == OpKind::kGather;
}

// Copies a group's operators into a separate graph.
class Extractor {
 public:
  Extractor(const Graph& graph, const Group& group) : graph_(graph), group_(group) {}

  Graph Extract() {
    for (size_t i = 0; i < group_.inputs.size(); ++i) {
      const Edge edge = group_.inputs[i].edge;
      copies_[edge] = builder_.Input(fmt::format("i{}", i), graph_.type(edge));
    }
    for (const NodeId id : group_.nodes) Copy(id);
    for (size_t i = 0; i < group_.outputs.size(); ++i) {
      builder_.Output(OutputEdge(group_.outputs[i].edge), fmt::format("o{}", i));
    }
    StatusOr<Graph> graph = builder_.Build();
    AG_CHECK(graph.ok());
    return *std::move(graph);
  }

 private:
  // Returns the copy of an output edge. The output of a reorder is its input; a copy of a constant
  // is timed like a copy.
  Edge OutputEdge(Edge edge) {
    const auto [it, is_new] = copies_.try_emplace(edge);
    if (is_new) it->second = builder_.Input("i0", graph_.type(edge));
    return it->second;
  }

  Edge Constant(Edge edge, const Node& reader) {
    const Node& node = graph_.node(edge.node);
    const TensorType& type = graph_.type(edge);
    if (KeepsValue(node, reader)) {
      return builder_.Constant(type, node.constant->digest, node.constant->inline_bytes);
    }
    return builder_.Constant(type, SyntheticConstant(constants_, type));
  }

  void Copy(NodeId id) {
    const Node& node = graph_.node(id);
    std::vector<Edge> operands;
    for (const Edge edge : node.inputs) {
      auto it = copies_.find(edge);
      if (it == copies_.end()) {
        AG_CHECK(graph_.is_constant(edge.node));
        it = copies_.emplace(edge, Constant(edge, node)).first;
        ++constants_;
      }
      operands.push_back(it->second);
    }
    const StatusOr<NodeId> copy = builder_.AddCopy(node, operands);
    AG_CHECK(copy.ok());
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const int32_t output = static_cast<int32_t>(i);
      copies_[{id, output}] = {*copy, output};
    }
  }

  const Graph& graph_;
  const Group& group_;
  GraphBuilder builder_;
  std::map<Edge, Edge> copies_;
  int constants_ = 0;
};

}  // namespace

Digest SyntheticConstant(int position, const TensorType& type) {
  return Sha256(fmt::format("synthetic constant {} {}", position, type.ToString()));
}

GroupProblem ExtractGroup(const Graph& graph, const Group& group, const Policy& policy) {
  GroupProblem problem;
  problem.graph = Extractor(graph, group).Extract();
  problem.pattern = group.pattern;
  for (const Port& port : group.inputs) problem.input_layouts.push_back(port.layout);
  if (group.inputs.empty() && group.nodes.empty()) problem.input_layouts = {Layout::kPlain};
  for (const Port& port : group.outputs) problem.output_layouts.push_back(port.layout);
  problem.cores = group.cores;
  problem.precision = policy.precision;
  problem.cold_cache = policy.cold_cache;
  return problem;
}

Status CheckGroupProblem(const GroupProblem& problem) {
  const Graph& graph = problem.graph;
  if (problem.input_layouts.size() != graph.inputs().size() ||
      problem.output_layouts.size() != graph.outputs().size()) {
    return Err(StatusCode::kDataLoss, "expected {} and {} layouts, got {} and {}",
               graph.inputs().size(), graph.outputs().size(), problem.input_layouts.size(),
               problem.output_layouts.size());
  }
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    if (!CanHave(graph.type({graph.inputs()[i], 0}), problem.input_layouts[i])) {
      return Err(StatusCode::kDataLoss, "input {} cannot have its layout", i);
    }
  }
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    if (!CanHave(graph.type(graph.outputs()[i].edge), problem.output_layouts[i])) {
      return Err(StatusCode::kDataLoss, "output {} cannot have its layout", i);
    }
  }
  return OkStatus();
}

void Fields(auto& io, Is<GroupProblem> auto& problem) {
  io.Nested(problem.graph, EncodeGraph, DecodeGraph);
  io(problem.pattern, problem.input_layouts, problem.output_layouts, problem.cores,
     problem.precision);
}

std::string EncodeGroupProblem(const GroupProblem& problem) {
  ByteWriter out;
  out.U32(kGroupMagic);
  out.U32(problem.cold_cache ? kVersionCold : kVersionWarm);
  return EncodeFields(problem, std::move(out));
}

StatusOr<GroupProblem> DecodeGroupProblem(std::string_view bytes) {
  ByteReader in(bytes);
  AG_LET(const uint32_t magic, in.U32());
  AG_LET(const uint32_t version, in.U32());
  if (magic != kGroupMagic || (version != kVersionWarm && version != kVersionCold)) {
    return Err(StatusCode::kDataLoss,
               "group problem: expected version {} or {}, got {} (magic {:#x})", kVersionWarm,
               kVersionCold, version, magic);
  }
  AG_LET(GroupProblem problem, DecodeFields<GroupProblem>(in));
  problem.cold_cache = version == kVersionCold;
  if (problem.cores > kCoresMax) {
    return Err(StatusCode::kDataLoss, "group problem: cores: {}", problem.cores);
  }
  AG_TRY(CheckGroupProblem(problem), "group problem");
  return problem;
}

Digest GroupKey(std::string_view problem_bytes, const Environment& environment) {
  ByteWriter out;
  out.String(problem_bytes);
  out.String(environment);
  return Sha256(out.bytes());
}

Plan SingleGroupPlan(const GroupProblem& problem) {
  const Graph& graph = problem.graph;
  Group group;
  group.pattern = problem.pattern;
  group.cores = problem.cores;
  Plan plan;
  for (NodeId id = 0; id < graph.size(); ++id) {
    if (graph.node(id).op != OpKind::kInput && !graph.is_constant(id)) group.nodes.push_back(id);
  }
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const Port port{{graph.inputs()[i], 0}, problem.input_layouts[i]};
    group.inputs.push_back(port);
    plan.places.push_back({port, Place::Kind::kInput, static_cast<int32_t>(i), 0});
  }
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    const Port port{graph.outputs()[i].edge, problem.output_layouts[i]};
    group.outputs.push_back(port);
    plan.places.push_back({port, Place::Kind::kOutput, static_cast<int32_t>(i), 0});
  }
  std::ranges::sort(plan.places);
  plan.graph = graph.digest();
  plan.policy.precision = problem.precision;
  plan.policy.cold_cache = problem.cold_cache;
  plan.groups.push_back(std::move(group));
  plan.streams.push_back({problem.cores, {Launch{0, {}}}});
  return plan;
}

std::string Summary(const GroupProblem& problem) {
  std::string text = problem.pattern + ":";
  for (const Node& node : problem.graph.nodes()) {
    if (!Has(node.op, kLeaf)) text += fmt::format(" {}", Info(node.op).name);
  }
  const auto& outputs = problem.graph.outputs();
  if (!outputs.empty()) text += " " + problem.graph.type(outputs[0].edge).ToString();
  if (problem.cold_cache) text += " cold";
  return text;
}

}  // namespace ag

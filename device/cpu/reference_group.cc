// Groups that no fast kernel takes, by the reference kernels: right for every type of plain layout,
// and slow.
#include <algorithm>
#include <cstring>
#include <map>

#include "device/cpu/kernel.h"
#include "graph/reference/evaluate.h"

namespace ag::cpu {
namespace {

class ReferenceGroup : public Kernel {
 public:
  // The graph's inputs are the group's ports, then its constants.
  Status Prepare(const GroupContext& context) {
    cores_ = context.cores;
    GraphBuilder builder;
    for (const Port& port : context.group.inputs) {
      const TensorType& type = context.graph.type(port.edge);
      copies_[port.edge] = builder.Input(fmt::format("i{}", types_.size()), type);
      types_.push_back(type);
    }
    for (const NodeId id : context.group.nodes) AG_TRY(Copy(context, id, builder));
    for (size_t i = 0; i < context.group.outputs.size(); ++i) {
      builder.Output(copies_.at(context.group.outputs[i].edge), fmt::format("o{}", i));
    }
    copies_.clear();
    AG_LET(Graph graph, builder.Build());
    graph_ = std::make_unique<const Graph>(std::move(graph));
    return OkStatus();
  }

  Status Run(const RunContext&, Inputs inputs, Outputs outputs) override {
    std::vector<Tensor> operands;
    for (size_t i = 0; i < types_.size(); ++i) {
      const auto bytes = static_cast<size_t>(types_[i].Bytes());
      operands.push_back(
          Tensor::View(types_[i], {static_cast<const char*>(inputs[i]), bytes}, nullptr));
    }
    operands.insert(operands.end(), constants_.begin(), constants_.end());
    AG_LET(const std::vector<Tensor> results,
           Evaluate(*graph_, operands, MemoryWeights(), {.threads = cores_}));
    for (size_t i = 0; i < results.size(); ++i) {
      const std::string_view bytes = results[i].bytes();
      if (!bytes.empty()) std::memcpy(outputs[i], bytes.data(), bytes.size());
    }
    return OkStatus();
  }

 private:
  Status Copy(const GroupContext& context, NodeId id, GraphBuilder& builder) {
    const Node& node = context.graph.node(id);
    std::vector<Edge> operands;
    for (const Edge& edge : node.inputs) {
      const auto [copy, is_new] = copies_.try_emplace(edge);
      if (is_new) {
        copy->second =
            builder.Input(fmt::format("c{}", constants_.size()), context.graph.type(edge));
        AG_LET(Tensor value, context.constants->Get(edge));
        constants_.push_back(std::move(value));
      }
      operands.push_back(copy->second);
    }
    AG_LET(const NodeId made, builder.AddCopy(node, operands));
    for (int32_t i = 0; i < static_cast<int32_t>(node.outputs.size()); ++i) {
      copies_[{id, i}] = {made, i};
    }
    return OkStatus();
  }

  int cores_ = 1;
  std::unique_ptr<const Graph> graph_;
  std::vector<TensorType> types_;  // Of the ports.
  std::vector<Tensor> constants_;  // In the order of their inputs.
  std::map<Edge, Edge> copies_;    // While the graph is built.
};

StatusOr<std::vector<std::string>> ReferenceNames(const GroupContext& context) {
  const auto is_known = [&](NodeId id) { return context.graph.node(id).op != OpKind::kOpaque; };
  if (!context.group.nodes.empty() && ArePlain(context.group) &&
      std::ranges::all_of(context.group.nodes, is_known)) {
    return std::vector<std::string>{std::string(kReferenceName)};
  }
  return Err(StatusCode::kUnimplemented, "group {}: not for the reference kernels",
             context.group.pattern);
}

StatusOr<std::unique_ptr<Kernel>> MakeReference(const GroupContext& context, const std::string&,
                                                size_t* done) {
  *done = context.group.nodes.size();
  auto kernel = std::make_unique<ReferenceGroup>();
  AG_TRY(kernel->Prepare(context));
  return kernel;
}

}  // namespace

const Family kReferenceFamily = {ReferenceNames, MakeReference, true};

}  // namespace ag::cpu

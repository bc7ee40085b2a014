#include "device/cpu/retyped_graph.h"

#include <algorithm>
#include <map>
#include <vector>

#include "device/cpu/half_loops.h"
#include "plan/spec/layout.h"

namespace ag::cpu {
namespace {

DType WideDType(DType dtype, std::string_view) { return IsHalf(dtype) ? DType::kFloat32 : dtype; }

bool HasHalf(const Graph& graph) {
  for (NodeId id = 0; id < graph.size(); ++id) {
    const auto& outputs = graph.node(id).outputs;
    if (std::ranges::any_of(outputs, [](const TensorType& t) { return IsHalf(t.dtype); })) {
      return true;
    }
  }
  return false;
}

// Returns the elements as `dtype`. REQUIRES: one of the two types is f32, the other a half.
Tensor Converted(const Tensor& tensor, DType dtype) {
  Tensor converted = Tensor::Zeros({dtype, tensor.type().shape});
  const int64_t n = tensor.type().NumElements();
  if (IsHalf(dtype)) {
    NarrowToHalf(dtype, tensor.As<float>().data(), converted.Mutable<uint16_t>().data(), n);
  } else {
    WidenHalf(tensor.type().dtype, tensor.As<uint16_t>().data(), converted.Mutable<float>().data(),
              n);
  }
  return converted;
}

}  // namespace

// The constants of a retyped graph under names of their own: one content may be f16 here and bf16
// there.
class RetypedGraph::Weights : public WeightSource {
 public:
  explicit Weights(const WeightSource* inner) : inner_(inner) {}

  // Returns the name of the constant as `to`; keeps what Get needs.
  Digest Add(const Node& node, DType to) {
    const DType from = node.outputs[0].dtype;
    const Digest name = Sha256(
        fmt::format("{} as {}, {}", DTypeName(from), DTypeName(to), node.constant->digest.Hex()));
    converted_.emplace(name, std::pair{node.constant->digest, from});
    if (!node.constant->inline_bytes.empty()) {
      const Tensor own = Tensor::FromBytes(node.outputs[0], node.constant->inline_bytes);
      inline_.insert_or_assign(name, Converted(own, to));
    }
    return name;
  }

  StatusOr<Tensor> Get(const Digest& digest, const TensorType& type) const override {
    // Equal bytes have one name, whatever their shape.
    if (const auto found = inline_.find(digest); found != inline_.end()) {
      return found->second.Retyped(type);
    }
    const auto found = converted_.find(digest);
    if (found == converted_.end()) return inner_->Get(digest, type);
    AG_LET(const Tensor own, inner_->Get(found->second.first, {found->second.second, type.shape}));
    return Converted(own, type.dtype);
  }

  bool names_content() const override { return inner_->names_content(); }

  // Returns the bytes that a converted constant carries itself.
  std::string_view InlineBytes(const Digest& name) const {
    const auto found = inline_.find(name);
    return found == inline_.end() ? std::string_view() : found->second.bytes();
  }

 private:
  const WeightSource* inner_;
  std::map<Digest, std::pair<Digest, DType>> converted_;
  std::map<Digest, Tensor> inline_;
};

StatusOr<std::unique_ptr<RetypedGraph>> RetypedGraph::Make(const Graph& graph,
                                                           const WeightSource* weights,
                                                           TypeOf type_of,
                                                           std::string_view precision) {
  auto retyped = std::make_unique<RetypedGraph>();
  auto source = std::make_shared<Weights>(weights);
  GraphBuilder builder;
  std::vector<NodeId> made(static_cast<size_t>(graph.size()));
  const auto edge_of = [&](Edge e) { return Edge{made[static_cast<size_t>(e.node)], e.output}; };
  const auto retype = [&](const TensorType& type) {
    return TensorType{type_of(type.dtype, precision), type.shape};
  };
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const NodeId id = graph.inputs()[i];
    made[id] = builder.Input(graph.input_name(i), retype(graph.type({id, 0}))).node;
  }
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    if (node.op == OpKind::kInput) continue;
    const TensorType type = retype(node.outputs[0]);
    if (node.op == OpKind::kConstant && type.dtype != node.outputs[0].dtype) {
      const Digest name = source->Add(node, type.dtype);
      made[id] = builder.Constant(type, name, source->InlineBytes(name)).node;
      continue;
    }
    std::vector<Edge> operands;
    for (const Edge& e : node.inputs) operands.push_back(edge_of(e));
    Node copy = node;
    TensorTypes types;
    for (const TensorType& output : node.outputs) types.push_back(retype(output));
    NodeFacts facts{node.facts->attributes, std::move(types), node.facts->constant};
    if (node.op == OpKind::kCast) {
      const auto to = static_cast<int64_t>(facts.outputs[0].dtype);
      facts.attributes = std::make_shared<const Attributes>(Attributes{{"to", to}});
    }
    copy.SetFacts(std::move(facts));
    AG_LET(made[id], builder.AddCopy(copy, operands));
  }
  for (const GraphOutput& output : graph.outputs()) {
    builder.Output(edge_of(output.edge), output.name);
  }
  std::vector<NodeId> place;
  AG_LET(retyped->graph_, builder.Build(&place));
  for (NodeId id = 0; id < graph.size(); ++id) AG_CHECK(place[made[id]] == id);
  if (weights != nullptr) {
    retyped->weights_ = source;
    retyped->constants_ = std::make_unique<Constants>(retyped->graph_, *retyped->weights_);
  }
  return retyped;
}

StatusOr<std::unique_ptr<RetypedGraph>> RetypedGraph::Wide(const Graph& graph,
                                                           const WeightSource* weights) {
  return Make(graph, weights, WideDType, {});
}

StatusOr<std::unique_ptr<RetypedGraph>> RetypedGraph::Stored(const Graph& graph,
                                                             const WeightSource* weights,
                                                             std::string_view precision) {
  return Make(graph, weights, StoredDType, precision);
}

StatusOr<FloatGraphs> FloatGraphs::Of(const Graph& graph, const WeightSource* weights,
                                      std::string_view precision) {
  FloatGraphs graphs;
  const bool stores_halves = StoredDType(DType::kFloat32, precision) != DType::kFloat32;
  if (stores_halves) {
    AG_LET(graphs.stored, RetypedGraph::Stored(graph, weights, precision));
  }
  if (stores_halves || HasHalf(graph)) {
    AG_LET(graphs.wide, RetypedGraph::Wide(graph, weights));
  }
  return graphs;
}

}  // namespace ag::cpu

#include "lab/taso/canonical.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "graph/reference/evaluate_as.h"
#include "graph/tensor.h"

namespace ag {
namespace {

class Former {
 public:
  Former(const Graph& graph, TasoForm form) : graph_(graph), form_(form) {
    for (size_t i = 0; i < graph.inputs().size(); ++i) {
      known_[{graph.inputs()[i], 0}] = Sha256("input " + graph.input_name(i)).Hex();
    }
  }

  std::string Run() {
    std::string text;
    for (const GraphOutput& output : graph_.outputs()) text += Of(output.edge) + " ";
    return text;
  }

 private:
  std::string Of(Edge edge) {
    const auto known = known_.find(edge);
    if (known != known_.end()) return known->second;
    std::string form;
    if (graph_.is_constant(edge.node)) form = Constant(edge);
    const OpKind op = graph_.node(edge.node).op;
    const bool chain = op == OpKind::kAdd || op == OpKind::kMul;
    if (form.empty() && chain && form_ == TasoForm::kRegrouped) form = Chain(edge, op);
    if (form.empty()) form = Structure(edge);
    return known_[edge] = Sha256(form).Hex();
  }

  // Returns the value of a constant part; "": it cannot be computed exactly.
  std::string Constant(Edge edge) const {
    const Edge edges[] = {edge};
    const auto value = EvaluateEdgesAs<Residue>(
        graph_, edges, {}, [&](NodeId id) -> StatusOr<Array<Residue>> { return Leaf(id); });
    if (!value.ok()) return "";
    std::string form = "constant" + ShapeToString((*value)[0].shape);
    for (const Residue& element : (*value)[0].values) form += fmt::format(" {:x}", element.p);
    return form;
  }

  Array<Residue> Leaf(NodeId id) const {
    const Node& node = graph_.node(id);
    const TensorType& type = node.outputs[0];
    const std::string& bytes = node.constant->inline_bytes;
    if (bytes.empty()) {
      uint64_t seed = 0;
      std::memcpy(&seed, node.constant->digest.bytes.data(), sizeof(seed));
      return RandomArray<Residue>(type, seed);
    }
    const Tensor tensor = Tensor::View(type, bytes, node.facts);
    return ArrayOf<Residue>(type.shape, tensor.ToDoubles());
  }

  void Members(Edge edge, OpKind op, std::vector<Edge>* members) {
    const Node& node = graph_.node(edge.node);
    if (node.op != op || graph_.is_constant(edge.node)) {
      members->push_back(edge);
      return;
    }
    for (const Edge& input : node.inputs) Members(input, op, members);
  }

  // Returns the form of a sum or a product from its members.
  std::string Chain(Edge edge, OpKind op) {
    std::vector<Edge> members;
    Members(edge, op, &members);
    std::vector<std::string> forms;
    for (const Edge& member : members) forms.push_back(Of(member));
    std::sort(forms.begin(), forms.end());
    return fmt::format("{} {}", Info(op).name, fmt::join(forms, " "));
  }

  std::string Structure(Edge edge) {
    const Node& node = graph_.node(edge.node);
    std::vector<std::string> forms;
    for (const Edge& input : node.inputs) forms.push_back(Of(input));
    if (Has(node.op, kCommutative)) std::sort(forms.begin(), forms.end());
    std::string form =
        fmt::format("{}.{} {}", Info(node.op).name, edge.output, fmt::join(forms, " "));
    for (const auto& [name, value] : node.attributes->items()) form += Attribute(name, value);
    return form;
  }

  static std::string Attribute(const std::string& name, const AttributeValue& value) {
    std::string text = " " + name + "=";
    if (const auto* integer = std::get_if<int64_t>(&value)) return text + std::to_string(*integer);
    if (const auto* real = std::get_if<double>(&value)) return text + fmt::format("{}", *real);
    if (const auto* list = std::get_if<Ints>(&value)) {
      return text + fmt::format("{}", fmt::join(*list, ","));
    }
    return text + std::get<std::string>(value);
  }

  const Graph& graph_;
  const TasoForm form_;
  std::map<Edge, std::string> known_;
};

}  // namespace

std::string TasoFormOf(const Graph& graph, TasoForm form) { return Former(graph, form).Run(); }

}  // namespace ag

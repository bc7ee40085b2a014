#include "lab/generate/key.h"

#include <algorithm>
#include <vector>

#include "base/digest.h"
#include "base/text.h"

namespace ag::generate {
namespace {

class Keys {
 public:
  Keys(const Graph& graph, OpMask grouped)
      : graph_(graph), grouped_(grouped), keys_(static_cast<size_t>(graph.size())) {}

  std::string Of(Edge edge) {
    std::string& key = keys_[static_cast<size_t>(edge.node)];
    if (key.empty()) key = Make(edge.node);
    return edge.output == 0 ? key : fmt::format("{}#{}", key, edge.output);
  }

 private:
  bool IsZero(const Node& node) const {
    if (node.op == OpKind::kConstant) {
      const std::string& bytes = node.constant->inline_bytes;
      return std::all_of(bytes.begin(), bytes.end(), [](char c) { return c == 0; });
    }
    if (node.op == OpKind::kSub && node.inputs[0] == node.inputs[1]) return true;
    if (node.op != OpKind::kSub && node.op != OpKind::kAdd && node.op != OpKind::kConcat) {
      return false;
    }
    return std::all_of(node.inputs.begin(), node.inputs.end(),
                       [&](Edge e) { return IsZero(graph_.node(e.node)); });
  }

  // Collects the operands of a chain of one operator, in order.
  void Members(const Node& node, const Edge& edge, std::vector<std::string>* members) {
    const Node& below = graph_.node(edge.node);
    const bool same = below.op == node.op && *below.attributes == *node.attributes &&
                      (grouped_ & MaskOf(node.op)).any();
    if (!same) {
      members->push_back(Of(edge));
      return;
    }
    for (const Edge& e : below.inputs) Members(node, e, members);
  }

  std::string Make(NodeId id) {
    const Node& node = graph_.node(id);
    if (node.op == OpKind::kInput) {
      for (size_t i = 0; i < graph_.inputs().size(); ++i) {
        if (graph_.inputs()[i] == id) return fmt::format("i{}", i);
      }
    }
    if (IsZero(node)) return "0" + ShapeToString(node.outputs[0].shape);
    if (node.op == OpKind::kConstant) return "c" + node.constant->digest.Hex();
    std::vector<std::string> operands;
    for (const Edge& e : node.inputs) Members(node, e, &operands);
    if (Has(node.op, kCommutative)) std::sort(operands.begin(), operands.end());
    std::string key = Info(node.op).text_name + "(" + Join(operands, ",") + ";";
    for (const auto& [name, value] : node.attributes->items()) {
      if (const auto* i = std::get_if<int64_t>(&value)) key += fmt::format("{}={},", name, *i);
      if (const auto* l = std::get_if<Ints>(&value)) key += name + "=" + Join(*l, "x") + ",";
      if (const auto* d = std::get_if<double>(&value)) key += name + "=" + FormatDouble(*d) + ",";
    }
    key += ")";
    if (key.size() < 400) return key;
    return Sha256(key).Hex();
  }

  const Graph& graph_;
  const OpMask grouped_;
  std::vector<std::string> keys_;
};

void Count(const ag::Term& term, OpMask* mask) {
  if (term.kind == ag::Term::Kind::kOperator && term.op_class == 0) *mask |= MaskOf(term.op);
  for (const ag::Term& operand : term.operands) Count(operand, mask);
}

}  // namespace

OpMask OpsIn(const Graph& graph) {
  OpMask ops;
  for (const Node& node : graph.nodes()) ops |= MaskOf(node.op);
  return ops;
}

OpMask OpsIn(const RulePattern& pattern) {
  OpMask ops;
  for (const ag::Term& source : pattern.sources) Count(source, &ops);
  return ops;
}

std::string KeyOf(const Graph& graph, OpMask grouped) {
  Keys keys(graph, grouped);
  std::string key;
  for (const GraphOutput& output : graph.outputs()) key += keys.Of(output.edge) + ";";
  return key;
}

}  // namespace ag::generate

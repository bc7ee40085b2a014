#include "graph/onnx/export/node_rules.h"

#include "graph/onnx/export/correspondence.h"

namespace ag {

NodeRules::NodeRules(Graph start)
    : graph_(std::move(start)), rules_(static_cast<size_t>(graph_.size())) {}

void NodeRules::Next(const Graph& after, const std::string& rule) {
  std::vector<std::string> rules(static_cast<size_t>(after.size()));
  nodes_ += after.size();
  if (nodes_ <= kNodesMax) {
    const std::vector<NodeId> before = Correspondence(graph_, after);
    for (size_t i = 0; i < rules.size(); ++i) {
      rules[i] = before[i] < 0 ? rule : rules_[static_cast<size_t>(before[i])];
    }
  }
  graph_ = after;
  rules_ = std::move(rules);
}

}  // namespace ag

// Which rule made each node of a graph, followed through the graphs of its rewriting
// (graph/onnx/export/correspondence.h). One thread at a time.
#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"

namespace ag {

class NodeRules {
 public:
  // No rule made the nodes of `start`.
  explicit NodeRules(Graph start);

  // Goes on to `after`, which applications of `rule` made of the last graph; "": something else
  // did. When all graphs together have more than kNodesMax nodes, no rule is known any more.
  void Next(const Graph& after, const std::string& rule);
  static constexpr int64_t kNodesMax = 4'000'000;  // Some seconds.

  // By node of the last graph; "": none, or not known.
  const std::vector<std::string>& rules() const { return rules_; }

 private:
  Graph graph_;
  std::vector<std::string> rules_;
  int64_t nodes_ = 0;
};

}  // namespace ag

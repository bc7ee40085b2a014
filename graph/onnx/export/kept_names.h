// The names that a rewritten graph keeps of the user's model (graph/onnx/export/correspondence.h),
// and for new nodes the nodes in whose place they stand. Immutable.
#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/onnx/origin.h"

namespace ag {

class KeptNames {
 public:
  // `imported` is the graph that origin.names are of; null: nothing is kept. Both graphs must
  // outlive this.
  KeptNames(const Graph& graph, const OnnxOrigin& origin, const Graph* imported);

  // Whether nothing in the user's model is the node. False where no names are kept.
  bool IsNew(NodeId id) const;
  // The name of the node, or of the value, in the user's model; "" when it is new or had none.
  const std::string& NodeOf(NodeId id) const;
  const std::string& ValueOf(Edge edge) const;
  // The comment and the metadata of a node of the user's model; "" when it is new or had none.
  const std::string& NotesOf(NodeId id) const;
  // The name of the first weight that a constant is made of; "": it has none.
  const std::string& WeightOf(NodeId id) const;
  // The names of the nodes that are gone and read the same weights as the new node, or else the
  // same values. A weight that several of them read, as equal ones of several layers are, counts
  // only where nothing else does. Empty for a node that is kept. At most kOriginsMax.
  std::vector<std::string> OriginsOf(NodeId id) const;
  static constexpr size_t kOriginsMax = 8;

 private:
  const NodeNames* Of(NodeId id) const;
  struct Beside {
    std::vector<std::string> names;
    std::vector<std::string> of_shared_weights;
  };
  Beside GoneBeside(NodeId id) const;
  void AddGoneReaders(NodeId old, std::vector<std::string>* names) const;
  std::vector<NodeId> WeightsBelow(NodeId id) const;

  const Graph& graph_;
  const Graph* imported_;
  const std::vector<NodeNames>& names_;
  const std::vector<std::string>& notes_;
  std::vector<NodeId> old_;    // By node of the graph; -1: new.
  std::vector<bool> is_gone_;  // By node of the imported graph.
};

}  // namespace ag

// What is the same in every run of a dynamic part: subgraphs, parsed once, and the results of nodes
// that read nothing but constants. One thread at a time.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "graph/onnx/import/ready_operators.h"
#include "graph/onnx/imported_model.h"
#include "graph/onnx/wire.h"

namespace ag {

// A subgraph made ready to be written out again and again.
struct ParsedSubgraph {
  OnnxModel model;
  std::vector<int> order;                                     // Of its nodes, producers first.
  std::vector<std::pair<std::string, GivenOperand>> weights;  // Of a kept one: with numbers.
};

class LastingValues {
 public:
  // Returns the graph that is attribute `name` of the node. With `keeps` it is parsed once:
  // REQUIRES that the node's bytes outlive this. Errors as of ParseSubgraph and Densify.
  StatusOr<std::shared_ptr<ParsedSubgraph>> SubgraphOf(const OnnxNode& node, std::string_view name,
                                                       const ImportLimits& limits, bool keeps);

  // Returns what Keep has of an operator or node with these operands, else null. `form` names what
  // is computed, `operands` are the numbers of lasting values, 0 for an omitted one.
  using Values = std::vector<GivenOperand>;
  const Values* Find(std::string_view form, const std::vector<int64_t>& operands) const;
  // Keeps the results and numbers those without a number, unless all that is kept would pass a
  // limit.
  void Keep(std::string_view form, const std::vector<int64_t>& operands, Values& results);

  // The number of weight `i` of the program; other lasting values have positive numbers.
  static int64_t OfWeight(size_t i) { return -1 - static_cast<int64_t>(i); }

 private:
  int64_t last_ = 0, bytes_ = 0;
  absl::flat_hash_map<std::string, Values> values_;  // By form and operands.
  absl::flat_hash_map<std::pair<const char*, std::string>, std::shared_ptr<ParsedSubgraph>>
      subgraphs_;
};

// What an importer that computes all nodes keeps from run to run.
struct RunMemory {
  LastingValues values;
  ReadyOperators operators;
};

}  // namespace ag

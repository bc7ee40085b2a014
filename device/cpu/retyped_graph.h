// A graph with other float types in the place of its own: the same node ids, so that a group of the
// one is a group of the other. Its constants are converted when they are read.
#pragma once

#include <memory>
#include <string_view>

#include "graph/passes/constants.h"

namespace ag::cpu {

// One thread at a time, but for its constants.
class RetypedGraph {
 public:
  // Returns the graph with f32 in the place of f16 and bf16. `weights`, null for questions that
  // read none, must outlive the result.
  static StatusOr<std::unique_ptr<RetypedGraph>> Wide(const Graph& graph,
                                                      const WeightSource* weights);
  // Returns the graph with the types that memory holds under `precision` (StoredType,
  // plan/spec/layout.h).
  static StatusOr<std::unique_ptr<RetypedGraph>> Stored(const Graph& graph,
                                                        const WeightSource* weights,
                                                        std::string_view precision);

  const Graph& graph() const { return graph_; }
  Constants* constants() { return weights_ == nullptr ? nullptr : constants_.get(); }

 private:
  class Weights;
  using TypeOf = DType (*)(DType dtype, std::string_view precision);
  static StatusOr<std::unique_ptr<RetypedGraph>> Make(const Graph& graph,
                                                      const WeightSource* weights, TypeOf type_of,
                                                      std::string_view precision);

  Graph graph_;
  std::shared_ptr<const WeightSource> weights_;
  std::unique_ptr<Constants> constants_;
};

// The graphs beside a plan's own that kernels are made with. Null where they are that one.
struct FloatGraphs {
  std::unique_ptr<RetypedGraph> stored;  // As memory holds tensors: under precision bf16.
  std::unique_ptr<RetypedGraph> wide;    // In f32: where the graph, or `stored`, has 16 bits.

  static StatusOr<FloatGraphs> Of(const Graph& graph, const WeightSource* weights,
                                  std::string_view precision);
};

}  // namespace ag::cpu

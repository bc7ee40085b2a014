// Groups with f16 or bf16 tensors, computed in f32: what a group reads from outside is widened, its
// kernels are those of the same group in f32, and what it writes is rounded to nearest even. The
// caller's memory holds the 16-bit values; the arena holds them as f32 (FloatPorts), so that only
// the rounding is left inside a plan. Groups of the caller's memory alone that only move bytes need
// none of it, and reference kernels know the types themselves.
#pragma once

#include <map>
#include <memory>

#include "device/cpu/kernel.h"

namespace ag::cpu {

// A graph with f32 in the place of f16 and bf16: the same node ids, so that a group of the one is a
// group of the other. Its constants are widened when they are read. One thread at a time.
class WideGraph {
 public:
  // Returns null when no value of the graph is f16 or bf16. `weights`, null for questions that read
  // none, must outlive the result.
  static StatusOr<std::unique_ptr<WideGraph>> Of(const Graph& graph, const WeightSource* weights);

  const Graph& graph() const { return graph_; }
  Constants* constants() { return weights_ == nullptr ? nullptr : constants_.get(); }

 private:
  class Weights;

  Graph graph_;
  std::shared_ptr<const WeightSource> weights_;
  std::unique_ptr<Constants> constants_;
};

// Whether the group has a 16-bit value and a wide graph is there.
bool CanWiden(const GroupContext& context);

// The same group of the wide graph, with the types to which it rounds.
class Widened {
 public:
  explicit Widened(const GroupContext& context);  // REQUIRES: CanWiden(context).
  Widened(const Widened&) = delete;
  Widened& operator=(const Widened&) = delete;

  const GroupContext& context() const { return context_; }

 private:
  std::vector<DType> rounding_;
  GroupContext context_;
};

// Returns a kernel that makes what `kernel` reads and writes fit the ports of the group: values in
// f32 when it `is_wide`, a kernel of Widened, else those of the graph.
std::unique_ptr<Kernel> WithConversions(const GroupContext& context, std::unique_ptr<Kernel> kernel,
                                        bool is_wide);

}  // namespace ag::cpu

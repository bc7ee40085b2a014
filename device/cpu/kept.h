// Fast kernels of operators in ONNX's own form. Each is made for one form of its operator; other
// forms run on the reference kernel (kept.cc).
#pragma once

#include "device/cpu/kernel.h"
#include "graph/onnx/operators/operators.h"

namespace ag::cpu {

// kUnimplemented: the kernel lacks the form. With `context.constants` null, checks this only.
StatusOr<std::unique_ptr<Kernel>> MakeRecurrent(const GroupContext& context,
                                                const KeptOperator& kept);
StatusOr<std::unique_ptr<Kernel>> MakeTransposed(const GroupContext& context,
                                                 const KeptOperator& kept);
StatusOr<std::unique_ptr<Kernel>> MakeTransposedTiles(const GroupContext& context,
                                                      const KeptOperator& kept);

// The operands of a node by their place in ONNX's form, where some may be omitted.
class KeptOperands {
 public:
  KeptOperands(const GroupContext& context, const KeptOperator& kept);

  bool Has(size_t i) const { return i < edges_.size() && edges_[i].node >= 0; }
  Edge At(size_t i) const { return edges_[i]; }
  const Shape& ShapeOf(size_t i) const { return context_.graph.type(edges_[i]).shape; }
  bool IsConstant(size_t i) const { return Has(i) && context_.InputOf(edges_[i]) < 0; }
  // True when every operand and result is f32 in plain layout; operand `but` may have another type.
  bool IsPlainFloat(int but = -1) const;
  // True when the node omits result `i` of ONNX's form, or the graph says that it has this shape.
  bool ResultIs(size_t i, const Shape& shape) const;
  // Returns the port of the group for the node's result `i` in ONNX's form; -1: nobody reads it.
  int OutputPort(size_t i) const;

 private:
  const GroupContext& context_;
  std::vector<Edge> edges_;
  std::vector<int> results_;  // By place in ONNX's form: the node's output; -1: omitted.
};

}  // namespace ag::cpu

// Element-wise operators of a group as one function of generated text: stored elements in, stored
// elements out. A chain is nothing else; convolutions and matrix products end in one.
#pragma once

#include "device/cuda/codegen/group_text.h"

namespace ag::cuda {

class Pointwise {
 public:
  // The operators group.nodes[first..]. With first > 0, what the node before them computes is not
  // read from memory but given as a computed value. kUnimplemented: an operator that is not
  // element-wise (batch norm counts as such), or an element type.
  static StatusOr<Pointwise> Make(const GroupContext& context, size_t first);
  // The operators group.nodes[first..end), whose last one's value is the only result. REQUIRES:
  // first > 0.
  static StatusOr<Pointwise> Between(const GroupContext& context, size_t first, size_t end);

  // What the function reads from memory: x0, x1, ...
  struct Operand {
    Edge edge;
    Shape shape;  // As broadcasting sees it: batch norm's vectors lie along axis 1.
  };
  const std::vector<Operand>& operands() const { return operands_; }

  // Declares "name(v, x0, x1, ..., y0, ...)" over `arguments` (of operands() in order); `v` only
  // with first > 0. It has one y for each output port of the group, or one for the node that was
  // given when there is no operator.
  Text Define(const std::string& name, std::span<const TensorArgument> arguments,
              std::span<const TensorArgument> results) const;

 private:
  static StatusOr<Pointwise> Statements(const GroupContext& context, size_t first, size_t end);
  Status AddNode(const GroupContext& context, size_t i);
  StatusOr<std::string> Value(const GroupContext& context, const Node& node, size_t index);

  struct Statement {
    std::string type, name, value;
  };
  bool is_given_ = false;
  DType given_ = DType::kFloat32;
  std::vector<Operand> operands_;
  std::vector<Statement> statements_;
  std::vector<std::pair<Edge, std::string>> values_;  // What is known by which name.
  std::vector<std::string> results_;                  // By output port.
};

// The value of one element-wise node as an expression of its operands' names or literals.
StatusOr<std::string> PointwiseExpression(const Graph& graph, const Node& node,
                                          std::span<const std::string> operands);

// The only element of a constant whose bytes the graph carries; nothing for others.
std::optional<double> ScalarOf(const Graph& graph, Edge edge);

}  // namespace ag::cuda

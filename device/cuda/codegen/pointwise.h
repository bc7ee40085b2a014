// The element-wise operators of a group as one function of generated text: stored elements in,
// stored elements out. A chain consists of it; convolutions and matrix products end in it.
// Immutable once made, so thread-safe.
#pragma once

#include "device/cuda/codegen/group_text.h"

namespace ag::cuda {

class Pointwise {
 public:
  // Returns the function of the operators group.nodes[first..]. With first > 0, the result of the
  // node before them is a parameter and not read from memory. kUnimplemented: an operator that is
  // not element-wise (batch norm counts as such), or an element type.
  static StatusOr<Pointwise> Make(const GroupContext& context, size_t first);
  // Returns the function of the operators group.nodes[first..end), whose only result is that of the
  // last one. REQUIRES: first > 0.
  static StatusOr<Pointwise> Between(const GroupContext& context, size_t first, size_t end);

  // The tensors that the function reads from memory: x0, x1, ...
  struct Operand {
    Edge edge;
    Shape shape;  // As broadcasting sees it: batch norm's vectors lie along axis 1.
  };
  const std::vector<Operand>& operands() const { return operands_; }

  // Returns the text of "name(v, x0, x1, ..., y0, ...)" over `arguments` (of operands() in order);
  // `v` exists only with first > 0. It has one y for each output port of the group, or one for the
  // given node when there is no operator.
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
  std::vector<std::pair<Edge, std::string>> values_;  // Known values by name.
  std::vector<std::string> results_;                  // By output port.
};

// Returns what an integer type keeps of `value`, a name or call of type long long: the last bits.
std::string Wrapped(DType dtype, const std::string& value);

// Returns the value of one element-wise node as an expression of its operands' names or literals.
StatusOr<std::string> PointwiseExpression(const Graph& graph, const Node& node,
                                          std::span<const std::string> operands);

// Returns the only element of a constant whose bytes the graph carries as a literal; nothing for
// other edges. REQUIRES: StoredType of its type is OK.
std::optional<std::string> ScalarOf(const Graph& graph, Edge edge);

}  // namespace ag::cuda

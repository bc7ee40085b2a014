// Terms: the small graphs that the generator enumerates. A term is one output of an operator over
// other terms; sub-terms are shared, so a term with k distinct operators costs k however often one
// of them is read. Plain data: the enumeration writes it, everything after only reads it.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/scalar.h"
#include "rules/generate/world.h"

namespace ag::generate {

using TermId = int32_t;
inline constexpr int kOpsMax = 4;  // Distinct operators of a term.

// A few ids by value.
struct Ids {
  std::array<int32_t, kOpsMax> ids{};
  uint8_t count = 0;

  void push_back(int32_t id) { ids[count++] = id; }
  void pop_back() { --count; }
  size_t size() const { return count; }
  bool empty() const { return count == 0; }
  int32_t back() const { return ids[count - 1u]; }
  int32_t operator[](size_t i) const { return ids[i]; }
  const int32_t* begin() const { return ids.data(); }
  const int32_t* end() const { return ids.data() + count; }
};

// An operator that is not in the table: element-wise, defined by the caller on the prime field.
struct ExtraOperator {
  std::string name;
  int arity = 1;                                // 1 or 2.
  Residue (*call)(Residue, Residue) = nullptr;  // The second argument of a unary one is 0.
};

// One operator with its attributes over operands of certain types, ready to run.
struct Call {
  OpKind op = OpKind::kRelu;
  const ExtraOperator* extra = nullptr;  // Instead of `op`.
  std::vector<Node> nodes;               // By assignment: attributes and output types.
  // By assignment. One more than a term has for a convolution: its bias, which is zeros.
  std::vector<std::vector<TensorType>> operands;
  std::vector<int> types;  // Of the outputs.
};

struct Term {
  int call = -1;  // -1: a leaf.
  int leaf = -1;
  int output = 0;
  int type = 0;
  uint32_t variables = 0;  // Leaves it reads, as bits.
  Ids operands;
  Ids nodes;  // Its distinct operators, ascending.
};

struct TermTable {
  Universe universe;
  std::deque<Shapes> types;  // Stay where they are as more come.
  std::vector<Call> calls;
  std::vector<Term> terms;

  const Term& term(TermId id) const { return terms[static_cast<size_t>(id)]; }
  const Call& call(const Term& t) const { return calls[static_cast<size_t>(t.call)]; }
  const Shapes& shapes(TermId id) const { return types[static_cast<size_t>(term(id).type)]; }
};

// Two lists of roots that agreed, element by element, in every assignment. One root on each side,
// or several that hang together on the right.
struct Equation {
  std::shared_ptr<const TermTable> table;
  std::vector<TermId> left;
  std::vector<TermId> right;
};

int OpsOf(const TermTable& table, const std::vector<TermId>& roots);
uint32_t VariablesOf(const TermTable& table, const std::vector<TermId>& roots);

// Whether no leaf is read twice below the roots.
bool IsLinear(const TermTable& table, const std::vector<TermId>& roots);

// Whether `small` is left of `large` when operators are taken away, each in favor of an operand.
bool IsEmbedded(const TermTable& table, TermId small, TermId large);

// Whether every leaf and every attribute of the target stands in the source.
bool SaysAll(const TermTable& table, const std::vector<TermId>& source,
             const std::vector<TermId>& target);

// Equal for lists of roots that differ only in which leaves of one type they name.
uint64_t RenamedHash(const TermTable& table, const std::vector<TermId>& left,
                     const std::vector<TermId>& right);

// The roots as a graph in the shapes of `assignment`; every leaf of the table is an input. The
// operators are those of the table alone. kInvalidArgument: an extra operator.
StatusOr<Graph> GraphOf(const TermTable& table, const std::vector<TermId>& roots,
                        size_t assignment);

}  // namespace ag::generate

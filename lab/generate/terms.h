// Terms: the small graphs that the generator enumerates. A term is one output of an operator over
// other terms. Sub-terms are shared, so a term costs its number of distinct operators. Plain data:
// only the enumeration writes it; safe to share between threads afterwards.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/reference/scalar.h"
#include "lab/generate/world.h"

namespace ag::generate {

using TermId = int32_t;
inline constexpr int kOpsMax = 4;  // Distinct operators of a term.

// A few ids, stored in place.
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

// An operator outside the table: element-wise, defined by the caller on the prime field.
struct ExtraOperator {
  std::string name;
  int arity = 1;                                // 1 or 2.
  Residue (*call)(Residue, Residue) = nullptr;  // The second argument of a unary one is 0.
};

// One operator with attributes, for operands of certain types.
struct Call {
  OpKind op = OpKind::kRelu;
  const ExtraOperator* extra = nullptr;  // Instead of `op`.
  std::vector<Node> nodes;               // By assignment: attributes and output types.
  // By assignment. For a convolution it has one more than the term: its bias, which is zeros.
  std::vector<std::vector<TensorType>> operands;
  std::vector<int> types;  // The types of the outputs.
};

struct Term {
  int call = -1;  // -1: a leaf.
  int leaf = -1;
  int output = 0;
  int type = 0;
  uint32_t variables = 0;  // The leaves that it reads, as bits.
  Ids operands;
  Ids nodes;  // Its distinct operators, ascending.
};

struct TermTable {
  Universe universe;
  std::deque<Shapes> types;  // A deque: references stay valid.
  std::vector<Call> calls;
  std::vector<Term> terms;

  const Term& term(TermId id) const { return terms[static_cast<size_t>(id)]; }
  const Call& call(const Term& t) const { return calls[static_cast<size_t>(t.call)]; }
  const Shapes& shapes(TermId id) const { return types[static_cast<size_t>(term(id).type)]; }
};

// Two lists of roots that are equal, element by element, in every assignment. One root on each
// side, or several with shared nodes on the right.
struct Equation {
  std::shared_ptr<const TermTable> table;
  std::vector<TermId> left;
  std::vector<TermId> right;
};

// Returns the number of distinct operators below the roots.
int OpsOf(const TermTable& table, const std::vector<TermId>& roots);
// Returns the leaves below the roots, as bits.
uint32_t VariablesOf(const TermTable& table, const std::vector<TermId>& roots);

// Returns true when every leaf is read at most once below the roots.
bool IsLinear(const TermTable& table, const std::vector<TermId>& roots);

// Returns true when `small` results from `large` by replacing operators with one of their operands.
bool IsEmbedded(const TermTable& table, TermId small, TermId large);

// Returns true when every leaf and every attribute of the target is in the source.
bool SaysAll(const TermTable& table, const std::vector<TermId>& source,
             const std::vector<TermId>& target);

// Returns a hash that is equal for lists of roots that differ only in the names of leaves of one
// type.
uint64_t RenamedHash(const TermTable& table, const std::vector<TermId>& left,
                     const std::vector<TermId>& right);

// Returns the roots as a graph in the shapes of `assignment`. Every leaf of the table is an input.
// kInvalidArgument: an extra operator.
StatusOr<Graph> GraphOf(const TermTable& table, const std::vector<TermId>& roots,
                        size_t assignment);

}  // namespace ag::generate

// A parsed rule (docs/rules.md): terms with names resolved to slots. Only the parser makes it;
// matcher, applier and verifier read it. Plain data; safe to share between threads.
#pragma once

#include <string>
#include <vector>

#include "graph/op_kind.h"
#include "rules/language/expression.h"
#include "rules/language/rule_set.h"

namespace ag {

struct AttributeTerm {
  std::string name;
  Expression value;      // A plain name binds or compares; other expressions compare.
  bool literal = false;  // Without names: comparable at once.
  size_t offset = 0;
};

// The output of the operator that a term stands for.
enum class OutputChoice : uint8_t { kOnly, kLiteral, kEach };

struct Term {
  enum class Kind : uint8_t { kVariable, kScalar, kOperator };
  Kind kind = Kind::kVariable;

  std::string name;  // The variable, or the name in "name:"; "": none.
  int slot = -1;
  bool indexed = false;  // x[i]
  std::string index_name;

  OpKind op = OpKind::kRelu;  // kOperator.
  uint32_t op_class = 0;      // Any operator with this trait: unary.f, binary.f.
  std::string label;          // The f of unary.f; "": none.
  int label_slot = -1;
  int node_slot = -1;  // For terms with [i]: the node itself, shared by all i.
  std::vector<Term> operands;
  std::vector<AttributeTerm> attributes;
  OutputChoice output_choice = OutputChoice::kOnly;
  int output = 0;
  std::string output_index;  // The i of op(...)[i].

  Expression scalar;  // kScalar: {e}, a float constant with one element.

  bool spread = false;  // "t...": one operand for each i.
  int index = -1;       // Index letter of x[i], of the spread, or of op(...)[i].
  size_t offset = 0;
};

struct Guard {
  Expression value;
  int binds_slot = -1;       // "n = e" binds n, or compares when n is bound.
  bool per_element = false;  // Has x[i] outside a spread: holds for every i.
  bool spreads = false;      // Has a spread: decided when all i are known.
  int index = -1;            // Its index letter; -1: none.
};

struct SlotInfo {
  enum class Kind : uint8_t { kTensor, kAttribute, kLabel, kNode };
  std::string name;
  Kind kind = Kind::kTensor;
  int index = -1;  // Index letter of a family; -1: a single value.
  bool in_source = true;
};

struct RulePattern {
  std::vector<Term> sources;
  std::vector<Term> targets;
  std::vector<Guard> guards;
  std::vector<SlotInfo> slots;
  std::vector<std::string> indices;  // Index letters.
  int each = -1;                     // "each i:": the index of the one root family; -1: none.
  bool clean_up = false;
};

}  // namespace ag

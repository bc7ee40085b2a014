// The operator kinds, and the facts about each from the table graph/ops.def. Only these two files
// list operators. Nothing switches over OpKind: what several places ask of an operator is a trait,
// what one place knows of a few operators is a table or a test there.
// Immutable tables; safe to share between threads.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "graph/attributes.h"

namespace ag {

enum class OpKind : uint8_t {
#define OP(name, ...) k##name,
#include "graph/ops.def"
#undef OP
};

inline constexpr int kOpKindCount = 0
#define OP(name, ...) +1
#include "graph/ops.def"
#undef OP
    ;

// The properties of operators that passes ask for, instead of switching on the kind.
enum OpTrait : uint32_t {
  kLeaf = 1u << 0,         // Input, Constant: no operands.
  kElementwise = 1u << 1,  // Output element i depends only on operand elements i, after broadcast.
  kUnary = 1u << 2,        // Element-wise with one tensor operand.
  kBinary = 1u << 3,       // Element-wise with two operands, numpy broadcast.
  kCommutative = 1u << 4,
  kContraction = 1u << 5,  // Conv, MatMul: sums of products.
  kReduction = 1u << 6,
  kPooling = 1u << 7,
  kMovement = 1u << 8,  // Moves elements, computes nothing; may be a view.
  kNormalization = 1u << 9,
  kComposite = 1u << 10,       // Export expands it when the model's opset lacks it.
  kBarrier = 1u << 11,         // Opaque: nothing moves across it.
  kZeroToZero = 1u << 12,      // Unary with f(0) = 0.
  kResampling = 1u << 13,      // Resize: weighted sums of a few elements along each axis.
  kActivation = 1u << 14,      // Unary, float to float; devices fuse it behind a contraction.
  kTranscendental = 1u << 15,  // Costs about as much as a polynomial of degree ten.
  kMonotone = 1u << 16,    // Never falls where its operand rises, while alpha and gamma are >= 0.
  kArithmetic = 1u << 17,  // Sums, products, quotients: every field computes it exactly.
  kOrdered = 1u << 18,     // Computed exactly where numbers have an order: it compares or rounds.
  kLogic = 1u << 19,       // Booleans from Booleans.
  kPredicate = 1u << 20,   // Booleans from numbers.
};

// One attribute of an operator, from ops.def's schema column: "i" int, "f" float, "is" list of
// ints, "s" string.
struct AttributeSchema {
  std::string name;
  char kind;  // 'i', 'f', 'L' for a list of ints, 's'.
  // As in ops.def; "" when the attribute is required, or when the default is "".
  std::string default_text;
  std::optional<AttributeValue> default_value;  // None: required.
};

struct OpInfo {
  OpKind kind;
  std::string_view name;  // The name in the table, "LayerNorm".
  std::string text_name;  // The name in the text form and in rules, "layer_norm".
  std::string onnx_name;  // "" when ONNX has no such operator.
  int onnx_since;         // The opset that brought it, when exports may be older; else 0.
  std::string onnx_else;  // Export to older opsets: an expression of x in the text form, or "".
  int arity_min;
  int arity_max;  // -1: no limit.
  uint32_t traits;
  std::vector<AttributeSchema> attributes;  // Sorted by name.
};

const OpInfo& Info(OpKind kind);

// The traits by operator, so that Has needs no call.
inline constexpr std::array<uint32_t, kOpKindCount> kTraits = {
#define OP(name, onnx, arity_min, arity_max, traits, ...) uint32_t{0} | (traits),
#include "graph/ops.def"
#undef OP
};
inline bool Has(OpKind kind, OpTrait trait) {
  return (kTraits[static_cast<size_t>(kind)] & trait) != 0;
}

// Returns the operator of this name. kNotFound, with a suggestion: there is none.
StatusOr<OpKind> OpKindFromText(std::string_view text_name);
std::span<const OpInfo> AllOps();

// Returns the page docs/operators.md. A test compares it with the file; AG_WRITE_DOCS=1 graph_test
// writes the file.
std::string FormatOperatorTable();

}  // namespace ag

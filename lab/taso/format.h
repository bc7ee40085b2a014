// TASO's rules as in its file (proto/autograph/v1/taso.proto): two small graphs of operators over
// variables without shapes. Plain data; pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace ag {

// OpType of the file. Only our table of TASO's built-ins has the last two.
enum class TasoOpType : int32_t {
  kConv = 3,
  kMaxPool = 6,
  kAveragePool = 7,
  kRelu = 8,
  kSigmoid = 9,
  kTanh = 10,
  kBatchNorm = 11,
  kConcat = 12,
  kSplit = 13,
  kReshape = 14,
  kTranspose = 15,
  kAdd = 16,
  kMul = 17,
  kMatMul = 18,
  kScalarMul = 19,
  kEnlarge = 20,
  kMergeGroups = 21,
  kConstantIdentity = 22,
  kConstantConv = 23,
  kConstantOne = 24,
  kConstantPool = 25,
  kFoldedWeights = -1,  // (w, scale, variance): weights with a batch-norm folded in.
  kFoldedBias = -2,     // (scale, bias, mean, variance): the bias for them.
};

// PMParameter of the file.
enum class TasoKey : int32_t {
  kOpType = 0,
  kInputs = 1,
  kOutputs = 2,
  kGroup = 3,
  kKernelHeight = 4,
  kKernelWidth = 5,
  kStrideHeight = 6,
  kStrideWidth = 7,
  kPadding = 8,  // kTasoSame, kTasoValid.
  kActivation = 9,
  kRank = 10,
  kAxis = 11,
  kPermutation = 12,  // perm[0] * rank^(rank-1) + ... + perm[rank-1].
  kOutShuffle = 13,
  kMergeCount = 14,
  kAxes = 15,
  kKeepDims = 16,
  kEpsilon = 17,  // The bits of a float.
};

constexpr int kTasoSame = 0;
constexpr int kTasoValid = 1;
enum class TasoActivation : int32_t { kNone = 0, kSigmoid = 1, kRelu = 2, kTanh = 3 };

struct TasoTensor {
  int op = 0;  // Index of an operator on the same side; negative: a variable.
  int output = 0;
  auto operator<=>(const TasoTensor&) const = default;
};

struct TasoOperator {
  TasoOpType type = TasoOpType::kRelu;
  std::vector<TasoTensor> inputs;
  std::map<TasoKey, int> parameters;

  int Get(TasoKey key, int otherwise) const;
  int outputs() const { return type == TasoOpType::kSplit ? Get(TasoKey::kOutputs, 2) : 1; }
  TasoActivation activation() const {
    return static_cast<TasoActivation>(Get(TasoKey::kActivation, 0));
  }
};

struct TasoMapping {
  TasoTensor source, target;
};

struct TasoRule {
  std::string name;  // Its number in the file, or the name of a built-in.
  std::vector<TasoOperator> source, target;
  std::vector<TasoMapping> mappings;

  // Returns the variables of the source, in the order of their first use.
  std::vector<int> Variables() const;
};

// Returns "CONV2D" or similar; "": the format does not have the number.
std::string_view TasoOpName(TasoOpType type);

// Returns "x1", "w4", "i2": the generator's names; others are v and their number.
std::string TasoVariableName(int variable);

// Returns the permutation of a TRANSPOSE of `rank` axes; empty: `code` is none.
std::vector<int64_t> TasoPermutation(int code, int rank);

// Returns one line: "concat1(conv(i1, w4), conv(i2, w5)) => conv(concat1(i1, i2), concat0(w4,
// w5))".
std::string FormatTasoRule(const TasoRule& rule);

// Checks what must hold for all shapes: known operators with their operands and parameters,
// operands that exist and come before, outputs that exist. kInvalidArgument names the side, the
// operator and the mistake.
Status CheckTasoRule(const TasoRule& rule);

// Returns the rules of a file, named by their number from 0. kInvalidArgument names the byte or the
// rule and the mistake: not a TASO file, truncated, or a rule that CheckTasoRule refuses.
StatusOr<std::vector<TasoRule>> ReadTasoFile(std::string_view bytes);

}  // namespace ag

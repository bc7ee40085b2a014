// Scaled dot-product attention and rotary positions in double precision, for ONNX's operators and
// those of com.microsoft. Pure functions.
#pragma once

#include <functional>
#include <limits>
#include <vector>

#include "graph/onnx/operators/operator_call.h"

namespace ag::onnx_operators {

// Queries, keys or values: [batch, heads, steps, size], row-major.
struct HeadRows {
  int64_t batch = 0, heads = 0, steps = 0, size = 0;
  std::vector<double> values;

  // Returns the place of a row in `values`.
  int64_t At(int64_t b, int64_t h, int64_t s) const { return ((b * heads + h) * steps + s) * size; }
  Shape shape() const { return {batch, heads, steps, size}; }
};

// Fills the rows from `from`, where a row begins at `first` plus its place times the steps.
struct RowLayout {
  int64_t first = 0, by_batch = 0, by_head = 0, by_step = 0;
};
HeadRows ReadRows(HeadRows sizes, const double* from, const RowLayout& layout);

// Returns operand `i`, [batch, heads, steps, size] or [batch, steps, heads * size]; `heads` is for
// the latter. kInvalidArgument: it has another rank, or is not divisible by `heads`.
StatusOr<HeadRows> HeadRowsOf(const OperatorCall& call, size_t i, int64_t heads);

// Returns the steps of `past`, then those of `now`. kInvalidArgument: other sizes differ.
StatusOr<HeadRows> AppendSteps(const HeadRows& past, const HeadRows& now);

// Makes result `i`: [batch, heads, steps, size], or flat [batch, steps, heads * size].
enum class RowForm : uint8_t { kHeads, kFlat };
Status GiveRows(OperatorCall& call, size_t i, DType dtype, const HeadRows& rows, RowForm form);

// What is added to the score of a key for a query: -infinity means that it is not attended.
using ScoreBias = std::function<double(int64_t batch, int64_t head, int64_t query, int64_t key)>;

// Reads operand `i` as a bias that broadcasts to [batch, heads, queries, keys]. Booleans say what
// is attended. `pad`: keys beyond the last axis are not attended. kInvalidArgument: it does not
// broadcast.
enum class ShortBias : uint8_t { kBroadcast, kPad };
StatusOr<ScoreBias> ScoreBiasOf(const OperatorCall& call, size_t i, const Shape& scores,
                                ShortBias form);

// The stages of the scores: products, after the soft cap, with the bias, after softmax.
enum class ScoreStage : uint8_t { kProduct, kCapped, kBiased, kSoftmax };

struct AttentionWork {
  HeadRows q, k, v;  // A head of k and v serves q.heads / k.heads heads of q.
  double scale = 1;
  double softcap = 0;           // 0: none.
  std::vector<ScoreBias> bias;  // Added up.
  std::vector<double> sinks;    // By head: the score of a further key without a value; or none.
  RowForm form = RowForm::kHeads;
  size_t scores_result = 3;  // Made when the node wants it.
  ScoreStage stage = ScoreStage::kProduct;
  // What that result says of keys that are not attended.
  double unattended = -std::numeric_limits<double>::infinity();
};

// Puts the caches of keys and values, operands `first` and `first` + 1, before the keys and values
// of `work` and returns how many steps they have; 0 without caches. kInvalidArgument: only one is
// given, or its sizes do not fit.
StatusOr<int64_t> PrependCaches(const OperatorCall& call, size_t first, AttentionWork& work);

// Makes result 0 of softmax(scale * q * k^T + bias) * v, in the type of operand 0. A query that
// attends nothing gives zeros. kInvalidArgument: sizes do not fit.
Status GiveAttention(OperatorCall& call, const AttentionWork& work);

// Rotates pairs of the first 2 * half elements of each row by angles of a table [rows, width]:
// neighbours (interleaved), or one of each half. `row` says the row of the table for a step.
struct Rotation {
  std::vector<double> cosines, sines;
  int64_t half = 0, width = 0;
  bool interleaved = false;
  std::function<int64_t(int64_t batch, int64_t step)> row;
};
// Returns cosines and sines of the operands, with half = width. kInvalidArgument: their shapes
// differ, or have another rank than `rank`.
StatusOr<Rotation> RotationOf(const OperatorCall& call, size_t cosines, size_t sines, int64_t rank);
// kOutOfRange: a row is not in the table. kInvalidArgument: its rows or those of x are too short.
Status Rotate(const Rotation& rotation, HeadRows& rows);

}  // namespace ag::onnx_operators

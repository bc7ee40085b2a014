// Random shapes and attributes for the verifier's instances, by operator. They are proposals: they
// should often fit, because an instance whose parts do not fit is thrown away. One thread at a
// time.
#pragma once

#include <optional>
#include <vector>

#include "graph/attributes.h"
#include "graph/graph.h"
#include "rules/verify/choices.h"

namespace ag {

// One operator before it is sampled.
struct OperatorDraft {
  OpKind op = OpKind::kRelu;
  int outputs = 1;                             // For split.
  std::optional<Shape> want;                   // The shape that its reader wants.
  DType want_dtype = DType::kFloat64;          // The element type that its reader wants.
  std::vector<std::optional<Shape>> operands;  // Shapes that are known already.
  Attributes attributes;                       // Those that are known already.
};

class ShapeSampler {
 public:
  // `choices` must outlive this.
  ShapeSampler(Choices* choices, int size) : random_(*choices), size_(size) {}

  Choices& random() { return random_; }
  bool Chance(int percent) { return random_.Chance(percent); }
  int64_t Dim();  // In [1, size]; 1 more often than others.
  Shape AnyShape(int rank_min = 1, int rank_max = 4);
  Shape Weaker(const Shape& shape);  // Broadcasts to `shape`; often `shape` itself.

  // Returns the element type of operand `index` for a result of type `want`.
  static DType OperandType(OpKind op, size_t index, DType want);
  // Returns a shape for operand `index`. The operands before it are known.
  Shape Operand(const OperatorDraft& draft, size_t index);
  // Sample the attributes on which operands depend and, when all operands are known, the others.
  void EarlyAttributes(OperatorDraft* draft);
  void LateAttributes(OperatorDraft* draft);

 private:
  Shape NearlyAlike(Shape shape);
  Shape ConvOperand(const OperatorDraft& draft, size_t index);
  Shape MatMulOperand(const OperatorDraft& draft, size_t index);
  Shape NewMatMulOperand(const OperatorDraft& draft, size_t index);
  Shape ConcatOperand(const OperatorDraft& draft, size_t index);
  Shape PoolOperand(const OperatorDraft& draft, size_t index);
  Shape BatchNormOperand(const OperatorDraft& draft, size_t index);
  Shape WithAxis(const OperatorDraft& draft, Shape shape);
  Shape LayerNormOperand(const OperatorDraft& draft, size_t index);
  Shape GatherOperand(const OperatorDraft& draft, size_t index);
  Shape SplitOperand(const OperatorDraft& draft, size_t index);
  Shape ResizeOperand(const OperatorDraft& draft, size_t index);
  Shape ReshapeOperand(const OperatorDraft& draft, size_t index);
  Shape TransposeOperand(const OperatorDraft& draft, size_t index);
  Shape PlainOperand(const OperatorDraft& draft, size_t index);
  void WindowAttributes(OperatorDraft* draft);
  void ElementwiseAttributes(OperatorDraft* draft);
  void SliceRanges(OperatorDraft* draft, const Shape& x);
  void PadSizes(OperatorDraft* draft, const Shape& x);
  void SplitSizes(OperatorDraft* draft);
  void ResizeAttributes(OperatorDraft* draft, const Shape& x);
  Ints Factors(int64_t elements);
  Shape ShapeOf(const OperatorDraft& draft, size_t index);

  Choices& random_;
  int size_;
  // The last convolution, pool or matrix product; the next one is often similar.
  Shape conv_input_, conv_kernel_, pool_input_, matmul_rows_, matmul_columns_;
};

}  // namespace ag

// Random shapes and attributes for the verifier's instances, by operator. Everything is a proposal:
// an instance whose parts do not fit is thrown away, so these need to be likely, not right.
#pragma once

#include <optional>
#include <vector>

#include "graph/attributes.h"
#include "graph/graph.h"
#include "rules/choices.h"

namespace ag {

// One operator about to be drawn.
struct OperatorDraft {
  OpKind op = OpKind::kRelu;
  int outputs = 1;                             // Of split.
  std::optional<Shape> want;                   // The shape that its reader would like.
  DType want_dtype = DType::kFloat64;          // And the element type.
  std::vector<std::optional<Shape>> operands;  // Shapes that are known already.
  Attributes attributes;                       // Those that are known already.
};

class ShapeDraw {
 public:
  // `choices` must outlive this.
  ShapeDraw(Choices* choices, int size) : random_(*choices), size_(size) {}

  Choices& random() { return random_; }
  bool Chance(int percent) { return random_.Chance(percent); }
  int64_t Dim();  // In [1, size], 1 more often than its share.
  Shape AnyShape(int rank_min = 1, int rank_max = 4);
  Shape Weaker(const Shape& shape);  // One that broadcasts to it; often itself.

  // The element type that operand `index` needs for a result of type `want`.
  static DType OperandType(OpKind op, size_t index, DType want);
  // A shape for operand `index`; operands before it are known.
  Shape Operand(const OperatorDraft& draft, size_t index);
  // Attributes that operands depend on, and, when all operands are known, the rest.
  void EarlyAttributes(OperatorDraft* draft);
  void LateAttributes(OperatorDraft* draft);

 private:
  Shape NearlyAlike(Shape shape);
  Shape ConvOperand(const OperatorDraft& draft, size_t index);
  Shape MatMulOperand(const OperatorDraft& draft, size_t index);
  Shape NewMatMulOperand(const OperatorDraft& draft, size_t index);
  Shape ConcatOperand(const OperatorDraft& draft, size_t index);
  void WindowAttributes(OperatorDraft* draft);
  void UnaryAttributes(OperatorDraft* draft);
  void SliceRanges(OperatorDraft* draft, const Shape& x);
  void PadSizes(OperatorDraft* draft, const Shape& x);
  void SplitSizes(OperatorDraft* draft);
  void ResizeAttributes(OperatorDraft* draft, const Shape& x);
  Ints Factors(int64_t elements);
  Shape ShapeOf(const OperatorDraft& draft, size_t index);

  Choices& random_;
  int size_;
  // What the last convolution, pool or matrix product looked like: siblings are alike more often
  // than not.
  Shape conv_input_, conv_kernel_, pool_input_, matmul_rows_, matmul_columns_;
};

}  // namespace ag

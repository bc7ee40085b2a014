// Kernels over rows of neighbouring elements, in which several threads share a row: softmax and
// normalizations. A thread keeps few elements in registers and reads many again in every pass. One
// thread at a time for one Text.
#pragma once

#include "device/cuda/codegen/group_text.h"

namespace ag::cuda {

// The division of rows among threads.
struct RowCut {
  int64_t rows = 0, count = 0;  // Rows, and elements of each.
  int64_t vector = 1;           // Elements that are read at once.
  int64_t threads = 32;         // Of a row: a power of two.

  int64_t rows_per_block() const { return threads < 32 ? 128 / threads : threads > 32 ? 1 : 4; }
  // Vectors of a thread.
  int64_t vectors() const { return CeilDiv(count, threads * vector); }
  bool in_registers() const { return vectors() * vector <= kRegistersMax; }
  static constexpr int64_t kRegistersMax = 32;
};

// Returns the names "rows/<threads>" to try, best guess first; CutOf returns the cut of a name.
std::vector<std::string> RowVariants(int64_t count, int64_t vector);
RowCut CutOf(int64_t rows, int64_t count, int64_t vector, const std::string& variant);

// Returns the widest vector for rows of `count` elements of this size.
int64_t RowVectorOf(int64_t count, int64_t bytes);

// Writes the passes over the rows of `from`.
class RowText {
 public:
  // Declares lane, row and base (the row's first element), and reads the row where it is kept.
  RowText(Text* text, const RowCut& cut, const TensorArgument& from);

  bool keeps() const { return cut_.in_registers(); }
  std::string type() const { return std::string(ComputedType(from_.stored)); }

  // Writes a pass: `body` is a statement over each element v at place e + k of the row. Where the
  // row is kept, the statement may change v for later passes.
  void ForEach(const std::string& body);
  // Writes variable = its fold over the threads of the row by ag_sum or ag_most.
  void Fold(const std::string& fold, const std::string& variable);
  // Writes `value`, an expression of v, to `to`; `operands` are vectors along the row, read as c0,
  // c1, ...
  void Store(const TensorArgument& to, const std::string& value,
             std::span<const TensorArgument> operands = {});

  GroupText::Launch launch() const;

 private:
  void OpenVectors();  // For each vector of the thread's, which begins at e.
  void CloseVectors();
  std::string Element() const;  // The declaration of v.

  Text& text_;
  const RowCut cut_;
  const TensorArgument from_;
  int folds_ = 0;
};

}  // namespace ag::cuda

// The part of a kernel that follows the sums of a convolution or a matrix product: bias, residuals,
// activation, the store. It works on an output of three axes; rows and columns run along two of
// them. One thread at a time.
#pragma once

#include "device/cuda/codegen/pointwise.h"

namespace ag::cuda {

class Epilogue {
 public:
  // Returns the epilogue of the operators group.nodes[first..]. kUnimplemented: as Pointwise, and
  // several outputs.
  static StatusOr<Epilogue> Make(const GroupContext& context, size_t first = 1);

  // The three axes of the output and of tensors of its shape or that broadcast to it: (image,
  // channel, position) of a convolution, (batch, row, column) of a product.
  enum class View : uint8_t { kConvolution, kProduct };

  // Names the operands in the kernel that is being written, and defines the epilogue's function on
  // the first call. Adds `bias` (of a convolution) first, if given. `padding`: channels behind the
  // output's own that the kernel computes, too, and that Apply sets to zero; at most PaddingOf.
  Status Bind(GroupText* group, View view, std::optional<Edge> bias, int64_t padding = 0);

  // Returns the number of padding channels that the output and all its operands have; 0 where they
  // differ.
  static int64_t PaddingOf(const GroupContext& context);

  const Sizes& sizes() const { return sizes_; }  // Of the three axes, padding included.
  const Sizes& strides() const { return operands_[0].strides; }  // Of the output.

  // Returns how many neighbours along `axis`, at most `most`, can be written and read at once.
  int64_t VectorOf(size_t axis, int64_t most) const;

  // Writes `vector` outputs that are neighbours along `axis`, from the sums that `sum` names with k
  // for the neighbour: "acc[k]". `place` has the coordinates of the first.
  void Apply(Text* text, const std::vector<std::string>& place, size_t axis, int64_t vector,
             const std::string& sum) const;

 private:
  struct Operand {
    TensorArgument argument;
    Sizes strides;  // Along the three axes.
  };
  explicit Epilogue(Pointwise steps) : steps_(std::move(steps)) {}

  Pointwise steps_;
  bool is_defined_ = false, has_bias_ = false;
  int64_t padding_ = 0;
  Sizes sizes_;
  std::vector<Operand> operands_;  // The output, the bias if any, operands of the steps.
};

}  // namespace ag::cuda

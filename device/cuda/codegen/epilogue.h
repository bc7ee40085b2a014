// What follows the sums of a convolution or a matrix product, in the same kernel: bias, residuals,
// activation, the store. All of it works on an output of three axes, two of which its rows and
// columns run along.
#pragma once

#include "device/cuda/codegen/pointwise.h"

namespace ag::cuda {

class Epilogue {
 public:
  // Of the operators group.nodes[first..]. kUnimplemented: as Pointwise, and several outputs.
  static StatusOr<Epilogue> Make(const GroupContext& context, size_t first = 1);

  // Three axes of the output and where a tensor of its shape or of one that broadcasts to it lies
  // along each: (image, channel, position) of a convolution, (batch, row, column) of a product.
  enum class View : uint8_t { kConvolution, kProduct };

  // Names the operands in the kernel that is being written; `bias` is added first where there is
  // one (of a convolution). Defines the function on the first call. `padding`: channels behind the
  // output's own that the kernel computes too, Apply makes zeros of them; at most PaddingOf.
  Status Bind(GroupText* group, View view, std::optional<Edge> bias, int64_t padding = 0);

  // How many channels of padding the output and all it is made of have; 0 where they differ.
  static int64_t PaddingOf(const GroupContext& context);

  const Sizes& sizes() const { return sizes_; }  // Of the three axes, padding included.
  const Sizes& strides() const { return operands_[0].strides; }  // Of the output.

  // The most neighbours along `axis`, at most `most`, that can be written and read at once.
  int64_t VectorOf(size_t axis, int64_t most) const;

  // Writes `vector` outputs that are neighbours along `axis`, from the sums that `sum` names (with
  // k for the neighbour): "acc[k]". `place` are the coordinates of the first.
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
  std::vector<Operand> operands_;  // The output, the bias where there is one, those of the steps.
};

}  // namespace ag::cuda

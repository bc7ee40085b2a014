// The text of a group while it is written: kernels one after another, each with its arguments, the
// constants that they read, the workspace between them.
#pragma once

#include <optional>

#include "device/cuda/codegen/generate.h"
#include "device/cuda/codegen/space.h"
#include "device/cuda/codegen/stored.h"
#include "device/cuda/codegen/text.h"

namespace ag::cuda {

// A tensor as a kernel sees it: the name of a pointer, what it points to, and how it lies there.
struct TensorArgument {
  std::string name;  // "i0", "o0", "c0", "w0".
  DType stored = DType::kFloat32;
  Shape shape;
  Sizes strides;  // By axis of the shape; elements.
  // Zeros behind the channels of each pixel (plan/layout.h), axis 1 with stride 1.
  int64_t padding = 0;

  std::string_view type() const { return *StoredType(stored); }
  Sizes StridesAs(std::span<const int64_t> shape_as) const {
    return BroadcastTo(shape, strides, shape_as);
  }
};

// How a constant is wanted where an operand is one.
struct ConstantForm {
  std::optional<DType> stored;  // Nothing: vectors in the graph's type, others as tensors are.
  std::vector<int> order;       // See GeneratedConstant.
  Shape padded;                 // Likewise.
};

class GroupText {
 public:
  explicit GroupText(const GroupContext& context) : context_(context) {}

  const GroupContext& context() const { return context_; }

  // Appends functions that later kernels call.
  void Function(const Text& text) { group_.source += text.str() + "\n"; }

  // Starts a kernel; what is named until EndKernel becomes its arguments.
  void BeginKernel(std::string name);

  // An operand that comes from outside the group, a port or a constant. kUnimplemented: a blocked
  // layout or an element type without a name.
  StatusOr<TensorArgument> Source(Edge edge, const ConstantForm& form = {});
  // The group's output port at `index`.
  StatusOr<TensorArgument> Target(size_t index);
  // A dense tensor of the group's workspace; the same offset is the same tensor.
  TensorArgument Workspace(int64_t offset_bytes, DType dtype, const Shape& shape);

  struct Launch {
    std::array<int64_t, 3> grid{1, 1, 1};
    int64_t threads = 1;  // Blocks have one dimension.
  };
  // Says that the kernel's body writes the padding of its targets itself, with the channels.
  void PaddingIsWritten() { padded_.clear(); }
  // Appends the kernel: its head, the word that lets the next kernel begin, the wait for what was
  // launched before, then `body`. Further blocks, which leave before the body, write zeros into the
  // padding of the kernel's targets. kUnimplemented: the grid is larger than a GPU allows.
  Status EndKernel(const Launch& launch, const Text& body);

  void NeedWorkspace(int64_t bytes) { group_.workspace_bytes = bytes; }
  GeneratedGroup Take();

 private:
  StatusOr<TensorArgument> Argument(GeneratedArgument::Kind kind, int index, const TensorType& type,
                                    Layout layout);
  std::string Register(GeneratedArgument::Kind kind, int index, int64_t offset_bytes,
                       std::string_view type);
  StatusOr<TensorArgument> Constant(Edge edge, const ConstantForm& form);
  void WritePadding(Launch* launch, Text* text) const;

  const GroupContext& context_;
  GeneratedGroup group_;
  GeneratedKernel kernel_;
  // Of the kernel in the making: parameters, and targets whose padding nobody has written yet.
  std::vector<std::string> parameters_;
  std::vector<TensorArgument> padded_;
};

// Types and names that a variant is made of: the numbers in "tiled/64x32" are 64 and 32.
std::vector<int64_t> NumbersIn(std::string_view variant);

inline int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace ag::cuda

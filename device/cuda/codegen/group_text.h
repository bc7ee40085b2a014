// The text of a group while it is written: its kernels one after another, each with its arguments,
// the constants that they read, and the workspace between them. One thread at a time.
//
// Invariants: every kernel waits for the launches before it (ag_wait) before its body, so a group
// may begin early. The body writes a target's elements; its padding is written by the body as well
// (PaddingIsWritten) or by further blocks that return before the body.
#pragma once

#include <optional>

#include "device/cuda/codegen/generate.h"
#include "device/cuda/codegen/space.h"
#include "device/cuda/codegen/stored.h"
#include "device/cuda/codegen/text.h"

namespace ag::cuda {

// A tensor as a kernel sees it: the name of its pointer, its type and its strides.
struct TensorArgument {
  std::string name;  // "i0", "o0", "c0", "w0".
  DType stored = DType::kFloat32;
  Shape shape;
  Sizes strides;  // By axis of the shape; elements.
  // Zeros behind the channels of each pixel (plan/spec/layout.h), where axis 1 has stride 1.
  int64_t padding = 0;

  std::string_view type() const { return *StoredType(stored); }
  Sizes StridesAs(std::span<const int64_t> shape_as) const {
    return BroadcastTo(shape, strides, shape_as);
  }
};

// The form of a constant operand.
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

  // Starts a kernel; tensors that are named until EndKernel become its arguments.
  void BeginKernel(std::string name);

  // Names an operand from outside the group, a port or a constant. kUnimplemented: a blocked layout
  // or an element type without a name.
  StatusOr<TensorArgument> Source(Edge edge, const ConstantForm& form = {});
  // Names the group's output port at `index`.
  StatusOr<TensorArgument> Target(size_t index);
  // Names a dense tensor of the group's workspace; the same offset is the same tensor.
  TensorArgument Workspace(int64_t offset_bytes, DType dtype, const Shape& shape);

  struct Launch {
    std::array<int64_t, 3> grid{1, 1, 1};
    int64_t threads = 1;  // Blocks have one dimension.
  };
  // Declares that the kernel's body itself writes the padding of its targets, with the channels.
  void PaddingIsWritten() { padded_.clear(); }
  // Appends the kernel: its head, the word that lets the next kernel begin, the wait for earlier
  // launches, then `body`. Further blocks, which return before the body, write zeros into the
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
  // Of the current kernel: its parameters, and the targets whose padding is not written yet.
  std::vector<std::string> parameters_;
  std::vector<TensorArgument> padded_;
};

// Returns the numbers in a variant's name: 64 and 32 of "tiled/64x32".
std::vector<int64_t> NumbersIn(std::string_view variant);

inline int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace ag::cuda

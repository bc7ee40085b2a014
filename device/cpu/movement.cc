// Operators that move elements: each is one or several strided copies. Concat, split, slice and
// padding by a constant also work on blocked channels, as long as no cut is inside a block of
// channels.
#include <algorithm>

#include "device/cpu/kernel.h"
#include "device/cpu/strided.h"
#include "graph/shapes.h"

namespace ag::cpu {
namespace {

using Sizes = std::vector<int64_t>;

// A tensor's axes with their strides in memory; a blocked tensor has five, its channel axis counted
// in blocks.
struct Box {
  Sizes dims;
  Sizes strides;
};

Box BoxOf(const TensorType& type, Layout layout) {
  Box box;
  const int64_t block = BlockOf(layout);
  box.dims.assign(type.shape.begin(), type.shape.end());
  if (block > 1) {
    box.dims[1] = (box.dims[1] + block - 1) / block;
    box.dims.push_back(block);
  }
  const bool is_last = layout == Layout::kChannelsLast;
  box.strides = is_last ? DenseStrides(type.shape, layout) : RowMajorStrides(box.dims);
  return box;
}

struct Move {
  Copy copy;
  int input = 0;  // A port, or, beyond the ports, a held constant.
  int output = 0;
};

class Movement : public Kernel {
 public:
  Movement(std::vector<Move> moves, std::vector<Tensor> held, int cores)
      : moves_(std::move(moves)), held_(std::move(held)), cores_(cores) {}

  // Fills outputs[0] with copies of this element first.
  void FillFirst(int64_t elements, int64_t element_bytes, const Tensor& element) {
    fill_ = Copy({{elements, 0, 1}}, 0, 0, element_bytes);
    element_ = element;
    fills_ = true;
  }

  Status Run(const RunContext&, Inputs inputs, Outputs outputs) override {
    if (fills_) fill_.Run(cores_, element_.bytes().data(), outputs[0]);
    const int ports = static_cast<int>(inputs.size());
    for (const Move& move : moves_) {
      const void* from =
          move.input < ports ? inputs[move.input] : held_[move.input - ports].bytes().data();
      move.copy.Run(cores_, from, outputs[move.output]);
    }
    return OkStatus();
  }

 private:
  std::vector<Move> moves_;
  std::vector<Tensor> held_;
  int cores_;
  bool fills_ = false;
  Copy fill_;
  Tensor element_;
};

// Collects the copies of one node.
class Builder {
 public:
  explicit Builder(const GroupContext& context)
      : context_(context),
        node_(context.node(0)),
        bytes_(SizeOf(context.graph.type(node_.inputs[0]).dtype)) {}

  StatusOr<std::unique_ptr<Kernel>> Build() {
    AG_TRY(CheckLayouts());
    AG_TRY(AddMoves());
    auto kernel = std::make_unique<Movement>(std::move(moves_), std::move(held_), context_.cores);
    if (node_.op == OpKind::kPad) {
      const TensorType& out = node_.outputs[0];
      Tensor element = Tensor::Zeros({out.dtype, {1}});
      element.Put(0, node_.Float("value"));
      kernel->FillFirst(LayoutBytes(out, context_.group.outputs[0].layout) / bytes_, bytes_,
                        element);
    }
    return kernel;
  }

  Status CheckLayouts() const {
    const Layout layout = context_.group.outputs[0].layout;
    if (node_.op == OpKind::kTranspose) return CheckDense();
    for (const Port& port : context_.group.inputs) {
      if (port.layout != layout) return Refuse(port.layout, "mixed");
    }
    for (const Port& port : context_.group.outputs) {
      if (port.layout != layout) return Refuse(port.layout, "mixed");
    }
    for (const Edge& edge : node_.inputs) {
      if (context_.InputOf(edge) < 0 && layout != Layout::kPlain) {
        return Refuse(layout, "constants");
      }
    }
    if (layout != Layout::kPlain && !SuitsBlocks(BlockOf(layout))) {
      return Refuse(layout, "cut channels");
    }
    return OkStatus();
  }

 private:
  Status Refuse(Layout layout, std::string_view why) const {
    return Err(StatusCode::kUnimplemented, "{}: layout {} ({})", Info(node_.op).name,
               LayoutName(layout), why);
  }

  // Transposes go from any dense layout to any.
  Status CheckDense() const {
    for (const auto* ports : {&context_.group.inputs, &context_.group.outputs}) {
      for (const Port& port : *ports) {
        if (!IsDense(port.layout)) return Refuse(port.layout, "blocks or padding");
      }
    }
    return OkStatus();
  }

  // Returns the range of axis 1 that a slice takes.
  SliceRange ChannelRange() const {
    const int64_t size = context_.graph.type(node_.inputs[0]).shape[1];
    const Ints& axes = node_.IntList("axes");
    for (size_t i = 0; i < axes.size(); ++i) {
      if (axes[i] != 1) continue;
      return ResolveSlice(size, node_.IntList("starts")[i], node_.IntList("ends")[i],
                          node_.IntList("steps")[i]);
    }
    return {0, 1, size};
  }

  // Returns true when only whole blocks of channels move.
  bool SuitsBlocks(int64_t block) const {
    const auto channels = [&](const TensorType& type) { return type.shape[1]; };
    if (node_.op == OpKind::kConcat) {
      if (node_.Int("axis") != 1) return true;
      for (size_t i = 0; i + 1 < node_.inputs.size(); ++i) {
        if (channels(context_.graph.type(node_.inputs[i])) % block != 0) return false;
      }
      return true;
    }
    if (node_.op == OpKind::kSplit) {
      const Ints& sizes = node_.IntList("sizes");
      return node_.Int("axis") != 1 || std::all_of(sizes.begin(), sizes.end() - 1,
                                                   [&](int64_t size) { return size % block == 0; });
    }
    if (node_.op == OpKind::kSlice) {
      const SliceRange range = ChannelRange();
      const int64_t left = channels(context_.graph.type(node_.inputs[0])) - range.start;
      return range.step == 1 && range.start % block == 0 &&
             (range.count % block == 0 || range.count == left);
    }
    if (node_.op != OpKind::kPad) return false;
    if (block == 1) return true;
    const Ints& pads = node_.IntList("pads");
    const bool zero = node_.Float("value") == 0 || channels(node_.outputs[0]) % block == 0;
    return zero && pads[1] == 0 && pads[5] == 0 && node_.attributes->String("mode") == "constant";
  }

  Box In(size_t i) const {
    const int port = context_.InputOf(node_.inputs[i]);
    const Layout layout = port < 0 ? Layout::kPlain : context_.group.inputs[port].layout;
    return BoxOf(context_.graph.type(node_.inputs[i]), layout);
  }
  Box Out(size_t i) const { return BoxOf(node_.outputs[i], context_.group.outputs[0].layout); }

  void Add(const Sizes& dims, const Sizes& from, int64_t from_offset, const Sizes& to,
           int64_t to_offset, int input, int output) {
    std::vector<CopyAxis> axes;
    for (size_t d = 0; d < dims.size(); ++d) axes.push_back({dims[d], from[d], to[d]});
    moves_.push_back({Copy(std::move(axes), from_offset, to_offset, bytes_), input, output});
  }

  // Returns the position of the node's output among the group's outputs; -1: nothing reads it.
  int OutputOf(int32_t output) const {
    for (size_t i = 0; i < context_.group.outputs.size(); ++i) {
      if (context_.group.outputs[i].edge == Edge{context_.group.nodes[0], output}) {
        return static_cast<int>(i);
      }
    }
    return -1;
  }

  Status AddMoves() {
    if (node_.op == OpKind::kConcat) return Concat();
    if (node_.op == OpKind::kSplit) return Split();
    if (node_.op == OpKind::kSlice) return Slice();
    if (node_.op == OpKind::kTranspose) return Transpose();
    if (node_.op == OpKind::kReshape) return Reshape();
    if (node_.op == OpKind::kExpand) return Expand();
    if (node_.op == OpKind::kPad) return Pad();
    return Err(StatusCode::kUnimplemented, "{}: not a movement", Info(node_.op).name);
  }

  Status Concat() {
    const Box out = Out(0);
    const int64_t axis = node_.Int("axis");
    int64_t at = 0;
    for (size_t i = 0; i < node_.inputs.size(); ++i) {
      const Box in = In(i);
      AG_LET(const int port, Source(i));
      Add(in.dims, in.strides, 0, out.strides, at * out.strides[axis], port, 0);
      at += in.dims[axis];
    }
    return OkStatus();
  }

  Status Split() {
    const Box in = In(0);
    AG_LET(const int port, Source(0));
    const int64_t axis = node_.Int("axis");
    int64_t at = 0;
    for (size_t i = 0; i < node_.outputs.size(); ++i) {
      const Box out = Out(i);
      const int slot = OutputOf(static_cast<int32_t>(i));
      if (slot >= 0) {
        Add(out.dims, in.strides, at * in.strides[axis], out.strides, 0, port, slot);
      }
      at += out.dims[axis];
    }
    return OkStatus();
  }

  Status Slice() {
    const Box in = In(0), out = Out(0);
    AG_LET(const int port, Source(0));
    Sizes from = in.strides;
    int64_t offset = 0;
    const Ints& axes = node_.IntList("axes");
    for (size_t i = 0; i < axes.size(); ++i) {
      const int64_t axis = axes[i];
      const int64_t size = context_.graph.type(node_.inputs[0]).shape[axis];
      const SliceRange range = ResolveSlice(size, node_.IntList("starts")[i],
                                            node_.IntList("ends")[i], node_.IntList("steps")[i]);
      if (range.count == 0) return OkStatus();
      const int64_t block = axis == 1 ? BlockOf(context_.group.outputs[0].layout) : 1;
      offset += range.start / block * in.strides[axis];
      from[axis] = in.strides[axis] * (range.count == 1 ? 1 : range.step);
    }
    Add(out.dims, from, offset, out.strides, 0, port, 0);
    return OkStatus();
  }

  Status Transpose() {
    const Box in = In(0), out = Out(0);
    AG_LET(const int port, Source(0));
    Sizes from;
    for (const int64_t axis : node_.IntList("perm")) from.push_back(in.strides[axis]);
    Add(out.dims, from, 0, out.strides, 0, port, 0);
    return OkStatus();
  }

  Status Reshape() {
    AG_LET(const int port, Source(0));
    Add({node_.outputs[0].NumElements()}, {1}, 0, {1}, 0, port, 0);
    return OkStatus();
  }

  Status Expand() {
    const Box in = In(0), out = Out(0);
    AG_LET(const int port, Source(0));
    Sizes from(out.dims.size(), 0);
    const size_t missing = out.dims.size() - in.dims.size();
    for (size_t d = 0; d < in.dims.size(); ++d) {
      if (in.dims[d] != 1) from[missing + d] = in.strides[d];
    }
    Add(out.dims, from, 0, out.strides, 0, port, 0);
    return OkStatus();
  }

  // Pads; negative pads crop. Constant mode is one copy of the rest; the other modes are made of
  // runs.
  Status Pad() {
    const Box in = In(0), out = Out(0);
    AG_LET(const int port, Source(0));
    const Ints& pads = node_.IntList("pads");
    if (node_.attributes->String("mode") != "constant") return PadByIndex(in, out, port);
    Sizes dims = in.dims;
    int64_t from = 0, to = 0;
    for (size_t d = 0; d < pads.size() / 2; ++d) {
      const int64_t begin = pads[d], end = pads[pads.size() / 2 + d];
      dims[d] += std::min<int64_t>(begin, 0) + std::min<int64_t>(end, 0);
      from += std::max<int64_t>(-begin, 0) * in.strides[d];
      to += std::max<int64_t>(begin, 0) * out.strides[d];
      if (dims[d] <= 0) return OkStatus();
    }
    Add(dims, in.strides, from, out.strides, to, port, 0);
    return OkStatus();
  }

  // Reflect and edge modes cut every axis into runs that step by 1, 0 or -1 through the input; the
  // copies are the product of the axes' runs (3 per padded axis).
  struct Run {
    int64_t from, to, size, step;
  };
  static std::vector<Run> RunsOf(int64_t size, int64_t begin, int64_t end, bool reflect) {
    std::vector<Run> runs;
    if (begin > 0) runs.push_back({reflect ? begin : 0, 0, begin, reflect ? -1 : 0});
    runs.push_back({0, begin, size, 1});
    if (end > 0)
      runs.push_back({reflect ? size - 2 : size - 1, begin + size, end, reflect ? -1 : 0});
    return runs;
  }

  Status PadByIndex(const Box& in, const Box& out, int port) {
    const Ints& pads = node_.IntList("pads");
    const bool reflect = node_.attributes->String("mode") == "reflect";
    const size_t rank = in.dims.size();
    std::vector<std::vector<Run>> runs;
    size_t copies = 1;
    for (size_t d = 0; d < rank; ++d) {
      runs.push_back(RunsOf(in.dims[d], pads[d], pads[rank + d], reflect));
      copies *= runs.back().size();
    }
    for (size_t i = 0; i < copies; ++i) {
      Sizes dims(rank), strides(rank);
      int64_t from = 0, to = 0;
      size_t rest = i;
      for (size_t d = 0; d < rank; ++d) {
        const Run& run = runs[d][rest % runs[d].size()];
        rest /= runs[d].size();
        dims[d] = run.size;
        strides[d] = run.step * in.strides[d];
        from += run.from * in.strides[d];
        to += run.to * out.strides[d];
      }
      Add(dims, strides, from, out.strides, to, port, 0);
    }
    return OkStatus();
  }

  StatusOr<int> Source(size_t index) {
    const Edge edge = node_.inputs[index];
    if (const int port = context_.InputOf(edge); port >= 0) return port;
    AG_LET(Tensor value, context_.constants->Get(edge));
    held_.push_back(std::move(value));
    return static_cast<int>(context_.group.inputs.size() + held_.size() - 1);
  }

  const GroupContext& context_;
  const Node& node_;
  const int64_t bytes_;
  std::vector<Move> moves_;
  std::vector<Tensor> held_;
};

StatusOr<std::vector<std::string>> MovementNames(const GroupContext& context) {
  AG_TRY(Builder(context).CheckLayouts());
  return std::vector<std::string>{"copy"};
}

StatusOr<std::unique_ptr<Kernel>> MakeMovement(const GroupContext& context, const std::string&,
                                               size_t* done) {
  *done = 1;
  return Builder(context).Build();
}

}  // namespace

const Family kMovementFamily = {MovementNames, MakeMovement};

}  // namespace ag::cpu

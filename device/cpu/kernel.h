// The kernels of the CPU device: made once for a group (weights packed, primitives compiled), then
// run any number of times without allocating. One thread at a time for one kernel.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "device/cpu/aligned.h"
#include "graph/passes/constants.h"
#include "plan/plan.h"

struct dnnl_stream;

namespace ag::cpu {

class PackedWeights;
class RetypedGraph;

// The resources of a kernel while it runs. Belongs to one stream.
struct RunContext {
  dnnl_stream* stream = nullptr;
  std::byte* scratch = nullptr;  // Kernel::scratch_bytes() of memory, 64-byte aligned.
};

// Inputs and outputs are in the order of the group's ports.
using Inputs = std::span<const void* const>;
using Outputs = std::span<void* const>;

// True when every port of the group is in plain layout.
bool ArePlain(const Group& group);

class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual Status Run(const RunContext& context, Inputs inputs, Outputs outputs) = 0;
  virtual size_t scratch_bytes() const { return 0; }
  // Whether the outputs are rounded as GroupContext::rounding says.
  virtual bool rounds() const { return false; }
};

// For each port of a group, whether memory holds f32 where the graph says f16 or bf16; empty: none.
struct FloatPorts {
  std::vector<bool> inputs, outputs;
};

// A group to make a kernel for.
struct GroupContext {
  const Graph& graph;
  const Group& group;
  int cores = 1;
  Constants* constants = nullptr;
  PackedWeights* packed = nullptr;     // Null: every kernel packs its own.
  RetypedGraph* wide = nullptr;        // The graph in f32, where it has 16-bit floats.
  const FloatPorts* floats = nullptr;  // Null: no port is one.
  // In a group of the wide graph: its outputs' types in the graph itself. A kernel may round what
  // it writes to them.
  std::span<const DType> rounding = {};
  bool prefers_held_weights = false;  // See HeldForms (onednn.h).
  // The policy's precision is bf16: `graph` has it in the place of f32, and memory between groups
  // holds it. Kernels may compute on bf16 with sums in f32.
  bool stores_bf16 = false;

  const Node& node(size_t i) const { return graph.node(group.nodes[i]); }
  // Returns the position of `edge` among the group's input ports; -1: it is a constant or made
  // inside.
  int InputOf(Edge edge) const;
  // Returns the port of node i's operand `index`; kUnimplemented when it is a constant or made
  // inside.
  StatusOr<int> InputPort(size_t i, size_t index) const;
  bool IsInside(NodeId id) const;
  // Whether kernels take values of the type as floats: f32, and bf16 under its precision.
  bool IsComputed(DType dtype) const {
    return dtype == DType::kFloat32 || (stores_bf16 && dtype == DType::kBFloat16);
  }
  // Returns the constants in f32 where IsComputed, unrounded; else as `graph` has them.
  Constants* FloatConstants() const;
};

// A family of kernels, chosen by the group's first operator (its anchor). `names` returns the
// kernels that can run the group, best guess first. `make` makes a kernel that computes the group's
// first *done nodes (at least 1) into outputs[0], in the layout of the group's output; kernels.cc
// adds an element-wise pass for the rest. Kernels of a family that `takes_all` compute every node
// and all outputs.
struct Family {
  StatusOr<std::vector<std::string>> (*names)(const GroupContext& context);
  StatusOr<std::unique_ptr<Kernel>> (*make)(const GroupContext& context, const std::string& name,
                                            size_t* done);
  bool takes_all = false;
};

extern const Family kConvolutionFamily;
extern const Family kExpansionFamily;  // A convolution of one tap and a depthwise one.
extern const Family kScaledFamily;     // A convolution of an image times one number a channel.
extern const Family kDenseFamily;
extern const Family kChainFamily;  // Element-wise operators and batch norm, any number of outputs.
extern const Family kPoolFamily;
extern const Family kResizeFamily;
extern const Family kReduceFamily;
extern const Family kAttentionFamily;  // Two products with softmax between them.
extern const Family kRotaryFamily;     // Rotary embeddings.
extern const Family kSoftmaxFamily;
extern const Family kLayerNormFamily;  // Also behind a chain.
extern const Family kMovementFamily;
extern const Family kGatherFamily;
extern const Family kKeptFamily;  // Opaque nodes, by their reference kernels.
extern const Family kReorderFamily;
extern const Family kReferenceFamily;  // What the others lack, by the reference kernels.

// The name of the kernels that run an operator's reference kernel, in kKeptFamily and
// kReferenceFamily.
inline constexpr std::string_view kReferenceName = "reference";

// Returns the kernels for the group, best guess first. kUnimplemented names what is missing.
StatusOr<std::vector<std::string>> KernelNames(const GroupContext& context);

// Makes the group's kernel; "" is the first of KernelNames. kInvalidArgument: no such kernel.
StatusOr<std::unique_ptr<Kernel>> MakeKernel(const GroupContext& context, const std::string& name);

}  // namespace ag::cpu

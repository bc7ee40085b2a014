// What of a graph follows from sizes that its model leaves open, learnt from the same graph at
// several sizes. Export writes those parts as computed from the sizes of inputs. Immutable.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/onnx/export/size_formula.h"
#include "graph/onnx/origin.h"
#include "graph/onnx/wire.h"
#include "graph/weights.h"

namespace ag {

// What makes the elements of a constant whose sizes are open.
struct OpenConstant {
  enum class Kind {
    kSpread,  // `part` along the axes whose sizes are open.
    kPlaces,  // first + step x place along `axis`.
    kMask,    // On the last two axes, first left of the diagonal, which lies `offset` to the
              // right, and other from it on.
  };
  Kind kind = Kind::kSpread;
  std::vector<Tensor> part;  // One, for kSpread.
  int axis = -1;
  double first = 0, step = 0, other = 0;
  int64_t offset = 0;
};
// Returns what makes all the tensors, which are one constant at several sizes; nothing when it is
// none of these.
std::optional<OpenConstant> OpenConstantOf(std::span<const Tensor> tensors);

class OpenSizes {
 public:
  OpenSizes() = default;  // Of a graph whose sizes are all fixed.

  // Learns from `graphs`: the graph that is written, then the same one at other sizes, node by
  // node. kFailedPrecondition names the node and what in it differs in a way that no size explains.
  static StatusOr<OpenSizes> Learn(std::vector<Graph> graphs, const OnnxOrigin& origin);

  bool empty() const { return graphs_.empty(); }
  // Whether the value of a constant node depends on sizes.
  bool IsOpen(NodeId id) const { return !open_.empty() && open_[id]; }

  // Returns the formula of each entry of a list of sizes of node `id`; nothing when no entry
  // depends on sizes. An entry without a formula is empty. The formulas read sizes of inputs, of
  // the node's operands and of earlier nodes.
  struct Entry {
    std::vector<int64_t> values;  // In each graph.
    std::optional<SizeFormula> formula;
  };
  std::optional<std::vector<Entry>> List(NodeId id, std::string_view attribute) const;
  // Returns the formula of a size that has these values, for a reader in front of node `before`.
  std::optional<SizeFormula> Formula(std::span<const int64_t> values, NodeId before) const;
  // Returns the values of one size in all graphs.
  std::vector<int64_t> ValuesOf(SizePlace place) const;

  // Returns the dimensions of a value for people and other runtimes: a number, or the name of the
  // open size that it is; "" where it has no name.
  std::vector<OnnxDim> DimsOf(Edge edge) const;

  // Returns the bytes of constant `id` in each graph.
  StatusOr<std::vector<Tensor>> Tensors(NodeId id, const WeightSource& weights) const;

  // Returns "1x3x224 at x=2x3x224, 1x5x224 at x=4x3x224": the values of a list in all graphs.
  std::string Examples(std::span<const Ints> lists) const;

 private:
  struct OpenDim {
    SizePlace place;
    std::string name;
    std::vector<int64_t> values;
  };
  Status Compare(NodeId id) const;
  std::vector<KnownSize> KnownBefore(NodeId id, std::span<const int64_t> values) const;

  std::vector<Graph> graphs_;
  std::vector<bool> open_;          // By node.
  std::vector<OpenDim> open_dims_;  // Of inputs; the first of each size.
};

}  // namespace ag

#include "plan/fusion/contraction_blocks.h"

#include <algorithm>
#include <cmath>

#include "plan/spec/layout.h"

namespace ag {
namespace {

int64_t Pieces(int64_t size, int64_t piece) { return (size + piece - 1) / piece; }

int64_t CountBlocks(const Contraction& c, int64_t side) {
  return c.products * Pieces(c.rows, side) * Pieces(c.columns, side);
}

double MultiplicationsOf(const Contraction& c) {
  return static_cast<double>(c.products * c.rows) * static_cast<double>(c.columns * c.depth);
}

Contraction ConvolutionOf(const Graph& graph, const Node& node) {
  const TensorType& weights = graph.type(node.inputs[1]);
  const int64_t channels = weights.shape[0], groups = node.Int("group");
  return {.products = groups,
          .rows = node.outputs[0].NumElements() / channels,
          .columns = channels / groups,
          .depth = weights.NumElements() / channels};
}

Contraction ProductOf(const Graph& graph, const Node& node) {
  const TensorType& right = graph.type(node.inputs[1]);
  const int64_t depth = graph.type(node.inputs[0]).shape.back();
  const int64_t columns = right.shape.back();
  const int64_t products = right.NumElements() / (depth * columns);
  return {.products = products,
          .rows = node.outputs[0].NumElements() / columns / products,
          .columns = columns,
          .depth = depth};
}

}  // namespace

bool IsDepthwise(const Graph& graph, const Node& conv) {
  return conv.Int("group") > 1 && graph.type(conv.inputs[1]).shape[1] == 1;
}

std::optional<Contraction> FindContraction(const Graph& graph, std::string_view precision) {
  std::optional<Contraction> largest;
  for (const Node& node : graph.nodes()) {
    const bool is_conv = node.op == OpKind::kConv && !IsDepthwise(graph, node);
    if (!is_conv && node.op != OpKind::kMatMul) continue;
    if (node.outputs[0].NumElements() == 0 || graph.type(node.inputs[1]).NumElements() == 0) {
      continue;
    }
    Contraction found = is_conv ? ConvolutionOf(graph, node) : ProductOf(graph, node);
    found.element_bytes = SizeOf(StoredType(graph.type(node.inputs[0]), precision).dtype);
    if (!largest || MultiplicationsOf(found) > MultiplicationsOf(*largest)) largest = found;
  }
  return largest;
}

ContractionBlocks BlocksOf(const Contraction& contraction, const DeviceSpec& spec, int cores) {
  int64_t side = std::max<int64_t>(1, std::llround(std::sqrt(spec.block_outputs)));
  while (2 * side <= kBlockSideMax && CountBlocks(contraction, 2 * side) >= cores) side *= 2;
  const int64_t blocks = CountBlocks(contraction, side);
  const double block_bytes =
      static_cast<double>(2 * side * contraction.depth * contraction.element_bytes);
  return {.blocks = blocks, .load_bytes = static_cast<double>(blocks) * block_bytes};
}

}  // namespace ag

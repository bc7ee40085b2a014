// Layers: what one kernel computes, an anchor operator with the element-wise operators behind it
// (GraphTurbo's loop fusion within a layer, Zhao et al., OSDI 2023, section 5.1). The sub-graphs
// are made of layers. Plain data and pure functions.
#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"

namespace ag {

struct Layer {
  std::vector<NodeId> nodes;   // Ascending. Only the last one's results leave the layer.
  std::vector<Edge> inputs;    // Read from outside, without constants; ascending.
  std::vector<Edge> outputs;   // Of the last node: those that are read or are graph outputs.
  int64_t weight_bytes = 0;    // Constants; of a gather's table only the rows that it picks.
  double matrix_flops = 0;     // Of contractions.
  double vector_flops = 0;     // Of all other operators.
  bool moves_nothing = false;  // Reshapes alone: the result is the operand's memory.
  Edge in_place;  // The operand whose memory the result may take, by the last node; node -1: none.
};

struct LayeredGraph {
  Graph graph;
  std::string precision;      // Of the stored tensors (StoredType).
  std::vector<Layer> layers;  // In topological order.
  std::vector<int> layer_of;  // By NodeId; -1: an input or a constant.

  int64_t Bytes(Edge edge) const;
  NodeId last(int layer) const { return layers[layer].nodes.back(); }
};

// Returns the layers of the graph. An element-wise operator or a reshape joins the layer of its
// last producer when nothing else reads that result.
LayeredGraph FormLayers(const Graph& graph, const std::string& precision);

// Returns the largest number of bytes in use while the layers run in this order, without weights:
// inputs from outside from the start until their last reader, results until their last reader, or
// to the end when something outside reads them. Each layer writes beside what it reads; inside a
// layer, operators write in place. REQUIRES: `layers` is ascending.
int64_t PeakBytes(const LayeredGraph& layered, const std::vector<int>& layers);

}  // namespace ag

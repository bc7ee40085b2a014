// The data of a Graph. Private to graph.cc, graph_builder.cc and patch.cc. Immutable once built,
// except the digest, which is computed once; safe to share between threads.
#pragma once

#include <mutex>

#include "graph/graph.h"
#include "graph/structure_hash.h"

namespace ag {

struct Graph::Data {
  std::vector<Node> nodes;
  std::vector<NodeId> inputs;
  std::vector<std::string> input_names;
  std::vector<GraphOutput> outputs;

  // Edges are numbered node by node: edge (n, o) has the number edge_begin[n] + o. The uses of edge
  // e are uses[use_begin[e] .. use_begin[e + 1]).
  std::vector<int32_t> edge_begin;
  std::vector<int32_t> use_begin;
  std::vector<Use> uses;
  std::vector<uint8_t> is_output;    // By edge.
  std::vector<uint8_t> is_constant;  // By node.

  // HashOfNodeAlone by node, or empty: GraphPatch::Build hands on what its patch knows.
  std::vector<StructureHash> alone;

  mutable std::once_flag digest_once;
  mutable Digest digest;
};

}  // namespace ag

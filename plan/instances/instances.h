// Instances: a sub-graph of factor f runs f times, each time on an f-th of its tensors; and the
// order in which the instances of all sub-graphs run, GraphTurbo's Algorithm 3 (Zhao et al., OSDI
// 2023, section 4.2). Pure functions.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "plan/instances/sub_graphs.h"

namespace ag {

struct Instance {
  int sub_graph = 0;
  int64_t number = 0;  // 0 to factor - 1.
};

struct InstanceGraph {
  std::vector<Instance> instances;        // Sub-graph by sub-graph, by number.
  std::vector<std::vector<int>> readers;  // By instance, ascending.
  std::vector<std::vector<int>> producers;
  int64_t coarse_edges = 0;  // Pairs of instances whose sub-graphs read each other.
  int64_t fine_edges = 0;    // Of these, those whose pieces meet; the others are dropped.
};

// Returns the instances first..last (numbers) of the producer's sub-graph whose pieces of `tensor`
// instance `number` of the sub-graph `reader` reads. Both cut along one axis: the pieces that
// overlap; else all.
std::pair<int64_t, int64_t> PiecesRead(const LayeredGraph& layered, const SubGraph& producer,
                                       const SubGraph& reader, Edge tensor, int64_t number);

// Returns the axis along which the sub-graph's readers of `tensor` cut it, or -1: read whole.
int AxisRead(const LayeredGraph& layered, const SubGraph& reader, Edge tensor);

InstanceGraph MakeInstances(const LayeredGraph& layered, const std::vector<SubGraph>& subs);

// Returns the order in which ready instances run first in, first out: sub-graph by sub-graph.
std::vector<int> BreadthFirstOrder(const InstanceGraph& graph);
// Returns the order in which the instance runs next that became ready last: a reader runs as soon
// as its producers are done.
std::vector<int> DepthFirstOrder(const InstanceGraph& graph);

// Returns "a8 a7 b4 ...": a letter for each sub-graph ("a" to "z", then "a'", ...), numbers from 1.
std::string FormatOrder(const InstanceGraph& graph, const std::vector<int>& order);

}  // namespace ag

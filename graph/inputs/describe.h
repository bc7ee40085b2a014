// What values an input of a graph may take, so that a model runs on made data as it does on real
// ones: by the input's role, and by what the graph does with it. A graph that reads rows of a table
// by an input's values bounds them by the table's size. Pure functions.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/input_role.h"

namespace ag {

struct InputSpec {
  std::string name;
  TensorType type;
  InputRole role = InputRole::kNumbers;
  // Of integers: the smallest and the largest value.
  int64_t low = 0, high = 1;
  // Of a mask: how many ones a row may have, because the graph counts them.
  int64_t ones_max = std::numeric_limits<int64_t>::max();
};

// Describes an input by its name and type alone.
InputSpec DescribeInput(const std::string& name, const TensorType& type);

// Describes all inputs of the graph, in their order.
std::vector<InputSpec> DescribeInputs(const Graph& graph);

}  // namespace ag

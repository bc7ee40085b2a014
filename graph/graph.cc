#include "graph/graph.h"

#include "graph/codec.h"
#include "graph/graph_data.h"

namespace ag {

Graph::Graph() {
  static const auto& empty = *new std::shared_ptr<const Data>(IndexGraph({}, {}, {}, {}));
  tables_ = empty;
}

Graph::Graph(std::shared_ptr<const Data> data) : tables_(std::move(data)) {}

const Digest& Graph::digest() const {
  const Data& own = data();
  std::call_once(own.digest_once, [&] { own.digest = Sha256(CanonicalBytes(*this)); });
  return own.digest;
}

namespace {

bool IsConstant(const Node& node, const std::vector<uint8_t>& is_constant) {
  if (node.op == OpKind::kConstant) return true;
  if (node.inputs.empty() || (Has(node.op, kBarrier) && node.Int("recipe") == 0)) return false;
  for (const Edge& input : node.inputs) {
    if (is_constant[input.node] == 0) return false;
  }
  return true;
}

}  // namespace

std::shared_ptr<Graph::Data> Graph::IndexGraph(std::vector<Node> nodes, std::vector<NodeId> inputs,
                                               std::vector<std::string> input_names,
                                               std::vector<GraphOutput> outputs) {
  auto data = std::make_shared<Data>();
  data->edge_begin.reserve(nodes.size() + 1);
  data->facts.reserve(nodes.size());
  data->operand_begin.reserve(nodes.size() + 1);
  data->operands.reserve(2 * nodes.size());
  data->is_constant.resize(nodes.size());
  int32_t edges = 0;
  for (size_t i = 0; i < nodes.size(); ++i) {
    data->edge_begin.push_back(edges);
    edges += static_cast<int32_t>(nodes[i].outputs.size());
    data->facts.push_back(nodes[i].facts.get());
    data->operand_begin.push_back(static_cast<int32_t>(data->operands.size()));
    data->operands.insert(data->operands.end(), nodes[i].inputs.begin(), nodes[i].inputs.end());
    data->is_constant[i] = IsConstant(nodes[i], data->is_constant) ? 1 : 0;
  }
  data->edge_begin.push_back(edges);
  data->operand_begin.push_back(static_cast<int32_t>(data->operands.size()));
  const auto index = [&](Edge e) {
    return static_cast<size_t>(data->edge_begin[e.node] + e.output);
  };

  // Sorts all uses by the edge that they read (counting sort).
  data->use_begin.assign(static_cast<size_t>(edges) + 2, 0);
  for (const Edge& e : data->operands) ++data->use_begin[index(e) + 2];
  for (size_t i = 2; i < data->use_begin.size(); ++i) data->use_begin[i] += data->use_begin[i - 1];
  data->uses.resize(static_cast<size_t>(data->use_begin.back()));
  for (size_t i = 0; i < nodes.size(); ++i) {
    const int32_t begin = data->operand_begin[i];
    for (int32_t at = begin; at < data->operand_begin[i + 1]; ++at) {
      const Edge& e = data->operands[static_cast<size_t>(at)];
      const auto slot = static_cast<size_t>(data->use_begin[index(e) + 1]++);
      data->uses[slot] = {static_cast<NodeId>(i), at - begin};
    }
  }
  data->is_output.assign(static_cast<size_t>(edges), 0);
  for (const GraphOutput& output : outputs) data->is_output[index(output.edge)] = 1;
  data->nodes = std::move(nodes);
  data->inputs = std::move(inputs);
  data->input_names = std::move(input_names);
  data->outputs = std::move(outputs);
  return data;
}

}  // namespace ag

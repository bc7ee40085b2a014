#include "graph/onnx/export/open_sizes.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "graph/size_attributes.h"

namespace ag {
namespace {

bool AllEqual(std::span<const int64_t> values) {
  return std::ranges::all_of(values, [&](int64_t v) { return v == values[0]; });
}

Status Differ(NodeId id, const Node& node, const std::string& what) {
  return Err(StatusCode::kFailedPrecondition, "node {} ({}): {} at other sizes", id,
             Info(node.op).text_name, what);
}

bool SameTensors(const Node& a, const Node& b) {
  return std::ranges::equal(a.outputs, b.outputs, [](const TensorType& x, const TensorType& y) {
    return x.dtype == y.dtype && x.shape.size() == y.shape.size();
  });
}

}  // namespace

StatusOr<OpenSizes> OpenSizes::Learn(std::vector<Graph> graphs, const OnnxOrigin& origin) {
  OpenSizes sizes;
  sizes.graphs_ = std::move(graphs);
  const Graph& first = sizes.graphs_.front();
  for (const Graph& other : sizes.graphs_) {
    if (other.size() != first.size() || other.inputs() != first.inputs()) {
      return Err(StatusCode::kFailedPrecondition, "{} nodes are {} at other sizes", first.size(),
                 other.size());
    }
  }
  for (const auto& [place, name] : origin.dim_names) {
    const size_t colon = place.rfind(':');
    for (size_t i = 0; i < first.inputs().size(); ++i) {
      if (first.input_name(i) != place.substr(0, colon)) continue;
      int axis = 0;
      const auto rank = static_cast<int>(first.type({first.inputs()[i], 0}).shape.size());
      if (!absl::SimpleAtoi(place.substr(colon + 1), &axis) || axis < 0 || axis >= rank) continue;
      OpenDim dim{{{first.inputs()[i], 0}, axis}, name, {}};
      dim.values = sizes.ValuesOf(dim.place);
      sizes.open_dims_.push_back(std::move(dim));
    }
  }
  sizes.open_.resize(static_cast<size_t>(first.size()));
  for (NodeId id = 0; id < first.size(); ++id) {
    AG_TRY(sizes.Compare(id));
    if (!first.is_constant(id)) continue;
    const Node& node = first.node(id);
    bool open = std::ranges::any_of(node.inputs, [&](Edge e) { return sizes.open_[e.node]; });
    for (const Graph& other : sizes.graphs_) {
      const Node& there = other.node(id);
      open = open || *there.attributes != *node.attributes || there.outputs != node.outputs ||
             (node.constant != nullptr && there.constant->digest != node.constant->digest);
    }
    sizes.open_[id] = open;
  }
  return sizes;
}

// Refuses a node that is another one in another graph, or whose attributes differ where export
// cannot write them as computed.
Status OpenSizes::Compare(NodeId id) const {
  const Node& node = graphs_[0].node(id);
  for (const Graph& other : graphs_) {
    const Node& there = other.node(id);
    if (node.op != there.op || node.inputs != there.inputs || !SameTensors(node, there)) {
      return Differ(id, node,
                    fmt::format("another node ({}) stands here", Info(there.op).text_name));
    }
    for (const auto& [name, value] : node.attributes->items()) {
      const AttributeValue* const found = there.attributes->Find(name);
      if (found != nullptr && HoldsSizes(node.op, name) &&
          std::get<Ints>(*found).size() == std::get<Ints>(value).size()) {
        continue;
      }
      const bool same =
          found != nullptr && Attributes({{name, value}}) == Attributes({{name, *found}});
      if (!same) return Differ(id, node, fmt::format("attribute {} is another", Quoted(name)));
    }
    if (node.op == OpKind::kResize && !node.IntList("scales").empty() &&
        there.IntList("scales") != node.IntList("scales")) {
      return Differ(id, node, "its scales are others");
    }
  }
  return OkStatus();
}

std::vector<int64_t> OpenSizes::ValuesOf(SizePlace place) const {
  std::vector<int64_t> values;
  for (const Graph& graph : graphs_) values.push_back(graph.type(place.edge).shape[place.axis]);
  return values;
}

// The sizes that a formula may read: those of the operand and of the inputs; of all earlier nodes
// only those that are the size itself.
std::vector<KnownSize> OpenSizes::KnownBefore(NodeId id, std::span<const int64_t> values) const {
  std::vector<KnownSize> known;
  const auto add = [&](SizePlace place, bool only_equal) {
    std::vector<int64_t> sizes = ValuesOf(place);
    if (AllEqual(sizes) || (only_equal && !std::ranges::equal(sizes, values))) return;
    const auto is_known = [&](const KnownSize& other) { return other.values == sizes; };
    if (std::ranges::none_of(known, is_known)) known.push_back({place, std::move(sizes)});
  };
  const auto add_all = [&](Edge edge, bool only_equal) {
    const auto rank = static_cast<int>(graphs_[0].type(edge).shape.size());
    for (int axis = 0; axis < rank; ++axis) add({edge, axis}, only_equal);
  };
  for (const OpenDim& dim : open_dims_) add(dim.place, false);
  const bool is_node = id < graphs_[0].size();  // Else it is behind all of them.
  for (const Edge& operand : is_node ? graphs_[0].node(id).inputs : decltype(Node::inputs)()) {
    if (!graphs_[0].is_constant(operand.node)) add_all(operand, false);
  }
  for (NodeId earlier = 0; earlier < id; ++earlier) {
    if (graphs_[0].is_constant(earlier)) continue;
    const auto outputs = static_cast<int32_t>(graphs_[0].node(earlier).outputs.size());
    for (int32_t output = 0; output < outputs; ++output) add_all({earlier, output}, true);
  }
  return known;
}

std::optional<SizeFormula> OpenSizes::Formula(std::span<const int64_t> values,
                                              NodeId before) const {
  if (AllEqual(values)) return SizeFormula{{}, values[0], 1};
  return FindFormula(values, KnownBefore(before, values));
}

std::optional<std::vector<OpenSizes::Entry>> OpenSizes::List(NodeId id,
                                                             std::string_view attribute) const {
  if (graphs_.empty()) return std::nullopt;
  const Ints& first = graphs_[0].node(id).IntList(attribute);
  std::vector<Entry> entries(first.size());
  bool open = false;
  for (size_t i = 0; i < first.size(); ++i) {
    for (const Graph& graph : graphs_) {
      entries[i].values.push_back(graph.node(id).IntList(attribute)[i]);
    }
    open = open || !AllEqual(entries[i].values);
    entries[i].formula = Formula(entries[i].values, id);
  }
  if (!open) return std::nullopt;
  return entries;
}

std::vector<OnnxDim> OpenSizes::DimsOf(Edge edge) const {
  std::vector<OnnxDim> dims;
  const auto rank = static_cast<int>(graphs_[0].type(edge).shape.size());
  for (int axis = 0; axis < rank; ++axis) {
    const SizePlace place{edge, axis};
    const std::vector<int64_t> values = ValuesOf(place);
    const auto same_place = std::ranges::find(open_dims_, place, &OpenDim::place);
    if (same_place != open_dims_.end()) {
      dims.push_back({.name = same_place->name});
      continue;
    }
    dims.push_back(AllEqual(values) ? OnnxDim{.size = values[0]} : OnnxDim{});
    const auto is_it = [&](const OpenDim& dim) {
      return dim.values == values && !dim.name.empty() && dim.name != "?";
    };
    const auto named = std::ranges::find_if(open_dims_, is_it);
    if (dims.back().size < 0 && named != open_dims_.end()) dims.back().name = named->name;
  }
  return dims;
}

StatusOr<std::vector<Tensor>> OpenSizes::Tensors(NodeId id, const WeightSource& weights) const {
  std::vector<Tensor> tensors;
  for (const Graph& graph : graphs_) {
    const Node& node = graph.node(id);
    AG_LET(Tensor tensor, ConstantOf(weights, node.constant->digest, node.outputs[0]));
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

std::string OpenSizes::Examples(std::span<const Ints> lists) const {
  std::vector<std::string> texts;
  for (size_t i = 0; i < graphs_.size(); ++i) {
    std::vector<std::string> inputs;
    for (size_t k = 0; k < graphs_[i].inputs().size(); ++k) {
      const Edge input{graphs_[i].inputs()[k], 0};
      inputs.push_back(fmt::format("{}={}", graphs_[i].input_name(k),
                                   fmt::join(graphs_[i].type(input).shape, "x")));
    }
    texts.push_back(fmt::format("{} at {}", fmt::join(lists[i], "x"), fmt::join(inputs, " ")));
  }
  return absl::StrJoin(texts, ", ");
}

}  // namespace ag

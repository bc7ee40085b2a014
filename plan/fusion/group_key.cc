#include "plan/fusion/group_key.h"

#include <bit>

#include "absl/container/inlined_vector.h"
#include "graph/hash.h"

namespace ag {
namespace {

void Add(LocalKey* key, uint64_t v) {
  key->a = MixIn(key->a, v);
  key->b = MixIn(key->b + 0x632be59bd9b4e019ull, ~v);
}

void AddBytes(LocalKey* key, std::string_view bytes) { Add(key, MixBytes(bytes.size(), bytes)); }

void AddType(LocalKey* key, const TensorType& type) {
  Add(key, static_cast<uint64_t>(type.dtype) << 8 | type.shape.size());
  for (const int64_t size : type.shape) Add(key, static_cast<uint64_t>(size));
}

// Leaves names out: every node of an operator has the same attributes in the same order.
void AddAttributes(LocalKey* key, const Attributes& attributes) {
  for (const auto& [name, value] : attributes.items()) {
    if (const auto* i = std::get_if<int64_t>(&value)) {
      Add(key, static_cast<uint64_t>(*i));
    } else if (const auto* f = std::get_if<double>(&value)) {
      Add(key, std::bit_cast<uint64_t>(*f));
    } else if (const auto* list = std::get_if<Ints>(&value)) {
      Add(key, list->size());
      for (const int64_t item : *list) Add(key, static_cast<uint64_t>(item));
    } else {
      AddBytes(key, std::get<std::string>(value));
    }
  }
}

LocalKey Begin(const KeyFrame& frame) {
  LocalKey key;
  AddBytes(&key, frame.pattern);
  AddBytes(&key, frame.precision);
  Add(&key, static_cast<uint64_t>(frame.cores) << 1 | (frame.cold_cache ? 1 : 0));
  return key;
}

enum OperandKind : uint64_t { kLink = 1, kPort = 2, kConstant = 3 };

}  // namespace

GroupKeys::GroupKeys(const Graph& graph, const NodeLayouts& layouts)
    : graph_(graph), layouts_(layouts), nodes_(graph.size()) {
  for (NodeId id = 0; id < graph.size(); ++id) {
    if (!graph.is_constant(id) && graph.node(id).op != OpKind::kInput) nodes_[id] = OfNode(id);
  }
}

LocalKey GroupKeys::OfNode(NodeId id) const {
  const Node& node = graph_.node(id);
  LocalKey key;
  Add(&key, static_cast<uint64_t>(node.op) << 8 | static_cast<uint64_t>(layouts_.of[id]));
  AddAttributes(&key, *node.attributes);
  for (const Edge operand : node.inputs) {
    const Node& from = graph_.node(operand.node);
    AddType(&key, graph_.type(operand));
    if (from.op == OpKind::kConstant) AddBytes(&key, from.constant->inline_bytes);
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const Edge edge{id, static_cast<int32_t>(i)};
    AddType(&key, node.outputs[i]);
    Add(&key, graph_.uses(edge).empty() && !graph_.is_output(edge) ? 0 : 1);
  }
  return key;
}

LocalKey GroupKeys::OfPath(std::span<const NodeId> path, const KeyFrame& frame) const {
  LocalKey key = Begin(frame);
  absl::InlinedVector<Edge, 8> seen;  // The key also depends on which operands are the same tensor.
  for (size_t i = 0; i < path.size(); ++i) {
    Add(&key, nodes_[path[i]].a);
    Add(&key, nodes_[path[i]].b);
    for (const Edge operand : graph_.node(path[i]).inputs) {
      if (i > 0 && operand.node == path[i - 1]) {
        Add(&key, kLink);
        continue;
      }
      size_t position = 0;
      while (position < seen.size() && seen[position] != operand) ++position;
      if (position == seen.size()) seen.push_back(operand);
      Add(&key, position << 2 | (graph_.is_constant(operand.node) ? kConstant : kPort));
    }
  }
  return key;
}

LocalKey KeyOfReorder(const TensorType& type, Layout from, Layout to, const KeyFrame& frame) {
  LocalKey key = Begin(frame);
  AddType(&key, type);
  Add(&key, static_cast<uint64_t>(from) << 8 | static_cast<uint64_t>(to));
  return key;
}

}  // namespace ag

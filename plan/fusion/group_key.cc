#include "plan/fusion/group_key.h"

#include <algorithm>
#include <bit>

#include "graph/hash.h"

namespace ag {
namespace {

constexpr uint64_t kOddA = 0x9e3779b97f4a7c15ull, kOddB = 0xd6e8feb86659fd93ull;
constexpr LocalKey kStart{kOddB, kOddA};

// One step per half: a bijection of the half for each value, and another one for the other half.
void Add(LocalKey* key, uint64_t v) {
  key->a = (key->a ^ v) * kOddA;
  key->a ^= key->a >> 32;
  key->b = (key->b + std::rotl(v, 32)) * kOddB;
  key->b ^= key->b >> 29;
}

void AddBytes(LocalKey* key, std::string_view bytes) { Add(key, MixBytes(bytes.size(), bytes)); }

void AddKey(LocalKey* key, const LocalKey& other) {
  Add(key, other.a);
  Add(key, other.b);
}

void AddType(LocalKey* key, const TensorType& type) {
  Add(key, static_cast<uint64_t>(type.dtype) << 8 | type.shape.size());
  for (const int64_t size : type.shape) Add(key, static_cast<uint64_t>(size));
}

void AddHash(LocalKey* key, const StructureHash& hash) {
  Add(key, hash.a);
  Add(key, hash.b);
}

enum OperandKind : uint64_t { kLink = 1, kPort = 2, kConstant = 3 };

constexpr uint64_t kReadOutside = 4;

LocalKey KeyOfOperator(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  LocalKey key = kStart;
  AddHash(&key, node.hash);
  for (const Edge operand : node.inputs) {
    const Node& from = graph.node(operand.node);
    AddType(&key, from.outputs[operand.output]);
    const bool has_bytes = from.op == OpKind::kConstant && !from.constant->inline_bytes.empty();
    if (has_bytes) AddHash(&key, from.hash);
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const Edge edge{id, static_cast<int32_t>(i)};
    AddType(&key, node.outputs[i]);
    Add(&key, graph.uses(edge).empty() && !graph.is_output(edge) ? 0 : 1);
  }
  return key;
}

}  // namespace

LocalKey KeyOfFrame(const KeyFrame& frame) {
  LocalKey key = kStart;
  AddBytes(&key, frame.pattern);
  AddBytes(&key, frame.precision);
  Add(&key, static_cast<uint64_t>(frame.cores) << 1 | (frame.cold_cache ? 1 : 0));
  return key;
}

std::vector<LocalKey> KeysOfOperators(const Graph& graph, std::span<const NodeId> operators) {
  std::vector<LocalKey> keys(static_cast<size_t>(graph.size()));
  for (const NodeId id : operators) keys[id] = KeyOfOperator(graph, id);
  return keys;
}

void GroupKeys::AddNode(Path* path, NodeId id) const {
  AddKey(&path->key, operators_[id]);
  Add(&path->key, static_cast<uint64_t>(layouts_.of[id]));
}

void GroupKeys::Extend(Path* path, NodeId id) const {
  AddNode(path, id);
  for (const Edge operand : graph_.node(id).inputs) {
    if (path->last >= 0 && operand.node == path->last) {
      Add(&path->key, kLink);
      continue;
    }
    AddOutside(path, operand);
  }
  path->last = id;
}

GroupKeys::Path GroupKeys::OfPiece(std::span<const NodeId> nodes, const NodeMarks& inside) const {
  Path path;
  for (const NodeId id : nodes) {
    AddNode(&path, id);
    for (const Edge operand : graph_.node(id).inputs) {
      const int place = inside.PlaceOf(operand.node);
      if (place < 0) {
        AddOutside(&path, operand);
      } else {
        Add(&path.key, static_cast<uint64_t>(place + 1) << 2 | kLink);
      }
    }
    const auto is_outside = [&](const Use& use) { return !inside.Has(use.node); };
    if (id != nodes.back() &&
        (graph_.is_output({id, 0}) || std::ranges::any_of(graph_.uses({id, 0}), is_outside))) {
      Add(&path.key, kReadOutside);
    }
  }
  return path;
}

void GroupKeys::AddOutside(Path* path, Edge operand) const {
  auto& seen = path->operands;
  const auto position = static_cast<size_t>(std::ranges::find(seen, operand) - seen.begin());
  if (position == seen.size()) seen.push_back(operand);
  Add(&path->key, position << 2 | (graph_.is_constant(operand.node) ? kConstant : kPort));
}

LocalKey GroupKeys::KeyOf(const LocalKey& path, const LocalKey& frame) {
  LocalKey key = frame;
  AddKey(&key, path);
  return key;
}

LocalKey KeyOfReorder(const TensorType& type, Layout from, Layout to, LocalKey key) {
  AddType(&key, type);
  Add(&key, static_cast<uint64_t>(from) << 8 | static_cast<uint64_t>(to));
  return key;
}

}  // namespace ag

#include "graph/structure_hash.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "graph/patch.h"

namespace ag {
namespace {

constexpr uint64_t kOther = 0x2545f4914f6cdd1dull;  // Makes the second half differ from the first.

StructureHash MixWord(StructureHash hash, uint64_t v) {
  return {MixIn(hash.a, v), MixIn(hash.b, v ^ kOther)};
}

// Equal for values that compare equal in Attributes: all NaNs are the same.
StructureHash MixValue(StructureHash hash, const AttributeValue& value) {
  hash = MixWord(hash, value.index());
  if (const auto* i = std::get_if<int64_t>(&value)) return MixWord(hash, static_cast<uint64_t>(*i));
  if (const auto* f = std::get_if<double>(&value)) {
    return MixWord(hash, std::isnan(*f) ? ~0ull : std::bit_cast<uint64_t>(*f));
  }
  if (const auto* list = std::get_if<Ints>(&value)) {
    hash = MixWord(hash, list->size());
    for (const int64_t i : *list) hash = MixWord(hash, static_cast<uint64_t>(i));
    return hash;
  }
  return MixWord(hash, MixBytes(0, std::get<std::string>(value)));
}

StructureHash MixType(StructureHash hash, const TensorType& type) {
  hash = MixWord(hash, static_cast<uint64_t>(type.dtype) << 32 | type.shape.size());
  for (const int64_t size : type.shape) hash = MixWord(hash, static_cast<uint64_t>(size));
  return hash;
}

uint64_t OrderHashOf(const AttributeValue& value) {
  if (const auto* i = std::get_if<int64_t>(&value)) return Mix(static_cast<uint64_t>(*i));
  if (const auto* f = std::get_if<double>(&value)) return Mix(std::bit_cast<uint64_t>(*f));
  if (const auto* list = std::get_if<Ints>(&value)) {
    uint64_t hash = list->size();
    for (const int64_t i : *list) hash = MixIn(hash, static_cast<uint64_t>(i));
    return hash;
  }
  return MixBytes(0, std::get<std::string>(value));
}

uint64_t OrderHashOf(const TensorType& type) {
  uint64_t hash = static_cast<uint64_t>(type.dtype);
  for (const int64_t size : type.shape) hash = MixIn(hash, static_cast<uint64_t>(size));
  return hash;
}

}  // namespace

StructureHash HashOfNodeAlone(const Node& node) {
  StructureHash hash{static_cast<uint64_t>(node.op) << 32 | node.inputs.size(), kOther};
  for (const auto& [name, value] : node.attributes->items()) {
    hash = MixValue(MixWord(hash, MixBytes(0, name)), value);
  }
  if (Has(node.op, kLeaf) || Has(node.op, kBarrier)) {
    for (const TensorType& type : node.outputs) hash = MixType(hash, type);
  }
  if (node.op == OpKind::kConstant) {
    static_assert(sizeof(node.constant->digest.bytes) >= 16);
    uint64_t words[2];
    std::memcpy(words, node.constant->digest.bytes.data(), sizeof(words));
    hash = MixIn(hash, {words[0], words[1]});
  }
  return MixWord(hash, 0);
}

uint64_t OrderHashOfNode(const Node& node) {
  uint64_t hash = MixBytes(0, Info(node.op).text_name);
  for (const auto& [name, value] : node.attributes->items()) {
    hash = MixIn(MixBytes(hash, name), OrderHashOf(value));
  }
  if (node.op == OpKind::kConstant) {
    uint64_t head = 0;
    std::memcpy(&head, node.constant->digest.bytes.data(), sizeof(head));
    hash = MixIn(MixIn(hash, head), OrderHashOf(node.outputs[0]));
  }
  return hash;
}

StructureHash HashOfStructure(const Graph& graph) {
  return *GraphPatch(graph).Hash();  // A graph has no cycle.
}

}  // namespace ag

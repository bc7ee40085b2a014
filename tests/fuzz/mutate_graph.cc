#include "tests/fuzz/mutate_graph.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "graph/codec.h"
#include "graph/op_kind.h"

namespace ag {
namespace {

using LooseEdge = std::pair<uint32_t, uint32_t>;
struct LooseType {
  uint8_t dtype = 0;
  Ints sizes;
};

// A node as its bytes say it, right or wrong.
struct LooseNode {
  std::string op;
  std::vector<std::pair<std::string, AttributeValue>> attributes;
  std::vector<LooseEdge> inputs;
  std::vector<LooseType> types;
  Digest digest;
  std::string text;  // The name of an input, the inline bytes of a constant.
};

struct LooseGraph {
  uint32_t magic = 0, version = 0;
  std::vector<LooseNode> nodes;
  std::vector<LooseEdge> outputs;
  std::vector<std::string> output_names;
};

bool HasTypes(const std::string& op) {
  const StatusOr<OpKind> kind = OpKindFromText(op);
  return kind.ok() && (Has(*kind, kLeaf) || Has(*kind, kBarrier));
}

StatusOr<std::vector<LooseEdge>> ReadEdges(ByteReader& in) {
  AG_LET(const uint64_t count, in.Count(8));
  std::vector<LooseEdge> edges(count);
  for (auto& [node, output] : edges) {
    AG_LET(node, in.U32());
    AG_LET(output, in.U32());
  }
  return edges;
}

StatusOr<AttributeValue> ReadValue(ByteReader& in) {
  AG_LET(const uint8_t kind, in.U8());
  AttributeValue value;
  if (kind == 1) {
    AG_LET(value, in.I64());
  } else if (kind == 2) {
    AG_LET(value, in.F64());
  } else if (kind == 3) {
    AG_LET(value, in.Ints());
  } else {
    AG_LET(value, in.String());
  }
  return value;
}

StatusOr<LooseNode> ReadNode(ByteReader& in) {
  LooseNode node;
  AG_LET(node.op, in.String());
  AG_LET(const uint64_t attributes, in.Count(9));
  for (uint64_t i = 0; i < attributes; ++i) {
    AG_LET(std::string name, in.String());
    AG_LET(AttributeValue value, ReadValue(in));
    node.attributes.emplace_back(std::move(name), std::move(value));
  }
  AG_LET(node.inputs, ReadEdges(in));
  if (HasTypes(node.op)) {
    AG_LET(const uint64_t types, in.Count(9));
    for (uint64_t i = 0; i < types; ++i) {
      LooseType& type = node.types.emplace_back();
      AG_LET(type.dtype, in.U8());
      AG_LET(type.sizes, in.Ints());
    }
  }
  if (node.op == "constant") {
    AG_LET(node.digest, in.ReadDigest());
  }
  return node;
}

StatusOr<LooseGraph> Read(std::string_view bytes) {
  ByteReader in(bytes);
  LooseGraph graph;
  AG_LET(graph.magic, in.U32());
  AG_LET(graph.version, in.U32());
  AG_LET(const uint64_t count, in.Count(24));
  for (uint64_t i = 0; i < count; ++i) {
    AG_LET(LooseNode node, ReadNode(in));
    graph.nodes.push_back(std::move(node));
  }
  AG_LET(graph.outputs, ReadEdges(in));
  const auto read_texts = [&](const char* op) -> Status {
    for (LooseNode& node : graph.nodes) {
      if (node.op != op) continue;
      AG_LET(node.text, in.String());
    }
    return OkStatus();
  };
  AG_TRY(read_texts("input"));
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    AG_LET(std::string name, in.String());
    graph.output_names.push_back(std::move(name));
  }
  AG_TRY(read_texts("constant"));
  return graph;
}

void WriteEdges(const std::vector<LooseEdge>& edges, ByteWriter& out) {
  out.U64(edges.size());
  for (const auto& [node, output] : edges) {
    out.U32(node);
    out.U32(output);
  }
}

std::string Write(const LooseGraph& graph) {
  ByteWriter out;
  out.U32(graph.magic);
  out.U32(graph.version);
  out.U64(graph.nodes.size());
  for (const LooseNode& node : graph.nodes) {
    out.String(node.op);
    Attributes attributes;
    for (const auto& [name, value] : node.attributes) attributes.Set(name, value);
    WriteAttributes(attributes, &out);
    WriteEdges(node.inputs, out);
    if (HasTypes(node.op)) {
      out.U64(node.types.size());
      for (const LooseType& type : node.types) {
        out.U8(type.dtype);
        out.Ints(type.sizes);
      }
    }
    if (node.op == "constant") out.AddDigest(node.text.empty() ? node.digest : Sha256(node.text));
  }
  WriteEdges(graph.outputs, out);
  for (const LooseNode& node : graph.nodes) {
    if (node.op == "input") out.String(node.text);
  }
  for (const std::string& name : graph.output_names) out.String(name);
  for (const LooseNode& node : graph.nodes) {
    if (node.op == "constant") out.String(node.text);
  }
  return out.Take();
}

class GraphMutator {
 public:
  GraphMutator(LooseGraph& graph, Random& random) : graph_(graph), random_(random) {}

  void Change() {
    if (graph_.nodes.empty()) return AddNode();
    LooseNode& node = graph_.nodes[random_.Below(graph_.nodes.size())];
    switch (random_.Below(6)) {
      case 0:
        return AddNode();
      case 1:
        return RemoveNode();
      case 2:
        return ChangeOperands(node);
      case 3:
        return ChangeLeaf(node);
      default:
        return ChangeAttribute(node);
    }
  }

 private:
  bool OneIn(uint64_t n) { return random_.Below(n) == 0; }

  int64_t AnyInt() {
    static constexpr std::array kEdges = {int64_t{0},
                                          int64_t{-1},
                                          std::numeric_limits<int64_t>::max(),
                                          std::numeric_limits<int64_t>::min(),
                                          int64_t{1} << 31,
                                          int64_t{1} << 40,
                                          int64_t{1} << 62};
    if (OneIn(4)) return kEdges[random_.Below(kEdges.size())];
    return random_.Between(-4, OneIn(4) ? 300 : 9);
  }

  void ChangeInts(Ints& list) {
    if (list.empty() || OneIn(4)) return list.push_back(AnyInt());
    if (OneIn(4)) return list.pop_back();
    list[random_.Below(list.size())] = AnyInt();
  }

  AttributeValue AnyValue(char kind) {
    if (kind == 'i') return AnyInt();
    if (kind == 'f') return random_.Normal() * (OneIn(4) ? 1e300 : 1.0);
    if (kind == 's') return std::string("linear");
    Ints list;
    for (uint64_t count = random_.Below(5); count > 0; --count) list.push_back(AnyInt());
    return list;
  }

  void ChangeAttribute(LooseNode& node) {
    if (node.attributes.empty()) return ChangeOperands(node);
    const size_t at = random_.Below(node.attributes.size());
    AttributeValue& value = node.attributes[at].second;
    if (OneIn(16)) {
      node.attributes.erase(node.attributes.begin() + static_cast<std::ptrdiff_t>(at));
    } else if (auto* list = std::get_if<Ints>(&value)) {
      ChangeInts(*list);
    } else if (auto* text = std::get_if<std::string>(&value)) {
      text->resize(random_.Below(text->size() + 2), 'x');
    } else {
      value = AnyValue(std::holds_alternative<int64_t>(value) ? 'i' : 'f');
    }
  }

  LooseEdge AnyEdge(size_t before) {
    if (OneIn(32)) return {static_cast<uint32_t>(AnyInt()), static_cast<uint32_t>(AnyInt())};
    return {static_cast<uint32_t>(random_.Below(std::max<size_t>(before, 1))),
            OneIn(8) ? static_cast<uint32_t>(random_.Below(4)) : 0};
  }

  void ChangeOperands(LooseNode& node) {
    const auto at = static_cast<size_t>(&node - graph_.nodes.data());
    if (node.inputs.empty() || OneIn(8)) return node.inputs.push_back(AnyEdge(at));
    if (OneIn(8)) return node.inputs.pop_back();
    node.inputs[random_.Below(node.inputs.size())] = AnyEdge(at);
  }

  // Changes a type or the elements of a leaf, of another node its operator.
  void ChangeLeaf(LooseNode& node) {
    if (node.types.empty()) {
      node.op = AllOps()[random_.Below(AllOps().size())].text_name;
      return;
    }
    LooseType& type = node.types[random_.Below(node.types.size())];
    if (OneIn(4)) type.dtype = static_cast<uint8_t>(random_.Below(24));
    if (OneIn(2)) ChangeInts(type.sizes);
    if (node.op == "constant" && !node.text.empty()) {
      node.text[random_.Below(node.text.size())] = static_cast<char>(random_.Next());
      if (OneIn(4)) node.text.resize(random_.Below(257), '\1');
    }
  }

  // Adds a node behind the others. An output, or one more, is its result.
  void AddNode() {
    const OpInfo& info = AllOps()[random_.Below(AllOps().size())];
    LooseNode node{.op = info.text_name};
    const int most = info.arity_max < 0 ? info.arity_min + 3 : info.arity_max;
    for (auto count = random_.Between(info.arity_min, most); count > 0; --count) {
      node.inputs.push_back(AnyEdge(graph_.nodes.size()));
    }
    for (const AttributeSchema& attribute : info.attributes) {
      const bool plain = attribute.default_value.has_value() && !OneIn(3);
      node.attributes.emplace_back(attribute.name,
                                   plain ? *attribute.default_value : AnyValue(attribute.kind));
    }
    if (HasTypes(node.op)) node.types = {{0, {2}}};
    const LooseEdge made{static_cast<uint32_t>(graph_.nodes.size()), 0};
    graph_.nodes.push_back(std::move(node));
    if (!graph_.outputs.empty() && OneIn(2)) {
      graph_.outputs[random_.Below(graph_.outputs.size())] = made;
    } else {
      graph_.outputs.push_back(made);
      graph_.output_names.push_back("o" + std::to_string(random_.Below(100)));
    }
  }

  // Removes a node; who read it reads another one.
  void RemoveNode() {
    const auto at = static_cast<uint32_t>(random_.Below(graph_.nodes.size()));
    graph_.nodes.erase(graph_.nodes.begin() + at);
    const auto rename = [&](std::vector<LooseEdge>& edges) {
      for (auto& [node, output] : edges) {
        if (node >= at && node > 0) --node;
      }
    };
    for (LooseNode& node : graph_.nodes) rename(node.inputs);
    rename(graph_.outputs);
  }

  LooseGraph& graph_;
  Random& random_;
};

}  // namespace

std::string MutatedGraph(std::string_view bytes, Random& random) {
  StatusOr<LooseGraph> graph = Read(bytes);
  if (!graph.ok()) return "";
  GraphMutator mutator(*graph, random);
  for (uint64_t changes = 1 + random.Below(4); changes > 0; --changes) mutator.Change();
  return Write(*graph);
}

}  // namespace ag

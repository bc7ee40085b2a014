// Which rules of TASO's published file follow from generated ones. The file is not part of the
// repository: the tests skip where it is absent.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <set>

#include "base/file.h"
#include "base/text.h"
#include "graph/tensor.h"
#include "rules/generate/generate.h"
#include "rules/generate/known.h"

namespace ag::generate {
namespace {

constexpr char kTasoFile[] = AG_SOURCE_DIR "/../shared/data/taso/graph_subst.pb";

// ---- The file: plain protobuf of five small messages (package GraphSubst).

struct Field {
  int number = 0;
  int64_t integer = 0;
  std::string_view bytes;
};

uint64_t ReadVarint(std::string_view* text) {
  uint64_t value = 0;
  for (int shift = 0; !text->empty(); shift += 7) {
    const auto byte = static_cast<uint8_t>(text->front());
    text->remove_prefix(1);
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if ((byte & 0x80) == 0) break;
  }
  return value;
}

std::vector<Field> FieldsOf(std::string_view text) {
  std::vector<Field> fields;
  while (!text.empty()) {
    const uint64_t tag = ReadVarint(&text);
    Field field{.number = static_cast<int>(tag >> 3)};
    const uint64_t value = ReadVarint(&text);
    if ((tag & 7) == 2) {
      field.bytes = text.substr(0, value);
      text.remove_prefix(std::min<size_t>(value, text.size()));
    } else {
      field.integer = static_cast<int32_t>(value);
    }
    fields.push_back(field);
  }
  return fields;
}

struct TasoTensor {
  int64_t op = 0;  // Negative: a variable.
  int64_t output = 0;
};
struct TasoOp {
  int64_t type = 0;
  std::vector<TasoTensor> inputs;
  std::map<int64_t, int64_t> parameters;
};
struct TasoRule {
  std::vector<TasoOp> sides[2];
  std::vector<TasoTensor> outputs[2];
};

TasoOp OpOf(std::string_view text) {
  TasoOp op;
  for (const Field& field : FieldsOf(text)) {
    if (field.number == 1) op.type = field.integer;
    if (field.number == 1) continue;
    int64_t values[2] = {0, 0};
    for (const Field& part : FieldsOf(field.bytes)) values[part.number - 1] = part.integer;
    if (field.number == 2) op.inputs.push_back({values[0], values[1]});
    if (field.number == 3) op.parameters[values[0]] = values[1];
  }
  return op;
}

std::vector<TasoRule> RulesOf(std::string_view file) {
  std::vector<TasoRule> rules;
  for (const Field& rule_field : FieldsOf(file)) {
    TasoRule rule;
    for (const Field& field : FieldsOf(rule_field.bytes)) {
      if (field.number <= 2) rule.sides[field.number - 1].push_back(OpOf(field.bytes));
      if (field.number != 3) continue;
      int64_t values[4] = {0, 0, 0, 0};
      for (const Field& part : FieldsOf(field.bytes)) values[part.number - 1] = part.integer;
      rule.outputs[0].push_back({values[0], values[2]});
      rule.outputs[1].push_back({values[1], values[3]});
    }
    rules.push_back(std::move(rule));
  }
  return rules;
}

// ---- As graphs, in the shapes of TASO's generator.

// x1-3, w1-3, i1-3, w4-6, w7-9, w10-12, w13: variables -1 to -19. With `wide`, the matrices that
// stand where four axes are needed.
Shape ShapeOf(int64_t variable, bool wide) {
  const int64_t group = (-variable - 1) / 3;
  const Shape matrix[] = {{2, 4}, {4, 4}};
  if (group < 2) return wide ? Shape{4, 4, 3, 3} : matrix[group];
  const Shape others[] = {{2, 4, 5, 5}, {4, 4, 3, 3}, {4, 4, 1, 3}, {4, 4, 3, 1}, {4, 1, 3, 3}};
  return others[std::min<int64_t>(group - 2, 4)];
}

class SideMaker {
 public:
  SideMaker(const TasoRule& rule, bool wide) {
    for (const auto& side : rule.sides) {
      for (const TasoOp& op : side) {
        for (const TasoTensor& input : op.inputs) {
          if (input.op < 0) inputs_.emplace(-input.op, Edge{});
        }
      }
    }
    for (auto& [variable, edge] : inputs_) {
      edge =
          builder_.Input(fmt::format("v{}", variable), {DType::kFloat64, ShapeOf(-variable, wide)});
    }
  }

  StatusOr<Graph> Make(const std::vector<TasoOp>& ops, const std::vector<TasoTensor>& outputs) {
    for (const TasoOp& op : ops) {
      AG_LET(const std::vector<Edge> made, Add(op));
      made_.push_back(made);
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      builder_.Output(Of(outputs[i]), fmt::format("o{}", i));
    }
    return builder_.Build();
  }

 private:
  Edge Of(const TasoTensor& tensor) const {
    if (tensor.op < 0) return inputs_.at(-tensor.op);
    return made_[static_cast<size_t>(tensor.op)][static_cast<size_t>(tensor.output)];
  }

  StatusOr<std::vector<Edge>> Add(const TasoOp& op) {
    std::vector<Edge> inputs;
    for (const TasoTensor& input : op.inputs) inputs.push_back(Of(input));
    const auto one = [&](OpKind kind, Attributes attributes = {}) -> StatusOr<std::vector<Edge>> {
      AG_LET(const NodeId node, builder_.Add(kind, inputs, std::move(attributes)));
      return std::vector<Edge>{{node, 0}};
    };
    const auto parameter = [&](int64_t key) { return op.parameters.at(key); };
    switch (op.type) {
      case 3:
        return AddConv(op, inputs);
      case 8:
        return one(OpKind::kRelu);
      case 12:
        return AddConcat(inputs, parameter(11));
      case 13:
        return AddSplit(inputs[0], parameter(11));
      case 16:
        return one(OpKind::kAdd);
      case 17:
        return one(OpKind::kMul);
      case 18:
        return one(OpKind::kMatMul);
      default:
        return Err(StatusCode::kUnimplemented, "operator type {}", op.type);
    }
  }

  // Stride 1, padded so that the plane stays; the file's ACTI 2 is a relu behind it.
  StatusOr<std::vector<Edge>> AddConv(const TasoOp& op, std::vector<Edge> inputs) {
    const Shape& x = builder_.type(inputs[0]).shape;
    const Shape& w = builder_.type(inputs[1]).shape;
    if (x.size() != 4 || w.size() != 4 || x[1] % w[1] != 0) {
      return Err(StatusCode::kInvalidArgument, "no convolution of these shapes");
    }
    const Tensor zeros = Tensor::Zeros({DType::kFloat64, {w[0]}});
    inputs.push_back(builder_.Constant(zeros.type(), zeros.Name(), zeros.bytes()));
    const int64_t h = w[2] / 2, v = w[3] / 2;
    AG_LET(NodeId node, builder_.Add(OpKind::kConv, inputs,
                                     {{"strides", Ints{1, 1}},
                                      {"pads", Ints{h, v, h, v}},
                                      {"dilations", Ints{1, 1}},
                                      {"group", x[1] / w[1]}}));
    if (op.parameters.at(9) == 2) {
      const Edge before[] = {{node, 0}};
      AG_LET(node, builder_.Add(OpKind::kRelu, before));
    }
    return std::vector<Edge>{{node, 0}};
  }

  StatusOr<std::vector<Edge>> AddConcat(const std::vector<Edge>& inputs, int64_t axis) {
    AG_LET(const NodeId node, builder_.Add(OpKind::kConcat, inputs, {{"axis", axis}}));
    cuts_.clear();
    for (const Edge& input : inputs) {
      cuts_.push_back(builder_.type(input).shape[static_cast<size_t>(axis)]);
    }
    return std::vector<Edge>{{node, 0}};
  }

  // TASO cuts where the concat below was joined; each side of its rules has one.
  StatusOr<std::vector<Edge>> AddSplit(Edge input, int64_t axis) {
    const Edge inputs[] = {input};
    AG_LET(const NodeId node,
           builder_.Add(OpKind::kSplit, inputs, {{"axis", axis}, {"sizes", cuts_}}));
    return std::vector<Edge>{{node, 0}, {node, 1}};
  }

  GraphBuilder builder_;
  std::map<int64_t, Edge> inputs_;
  std::vector<std::vector<Edge>> made_;
  Ints cuts_;
};

std::optional<std::pair<Graph, Graph>> GraphsOf(const TasoRule& rule) {
  for (const bool wide : {false, true}) {
    StatusOr<Graph> source = SideMaker(rule, wide).Make(rule.sides[0], rule.outputs[0]);
    StatusOr<Graph> target = SideMaker(rule, wide).Make(rule.sides[1], rule.outputs[1]);
    if (source.ok() && target.ok()) return std::pair(*std::move(source), *std::move(target));
  }
  return std::nullopt;
}

// Wrong for ordinary convolutions unless channels line up as they do in the shapes above.
const std::set<size_t> kUnsound = {99, 100, 130, 131};

struct Rediscovery {
  int found = 0;
  int rules = 0;
  std::string missing;
};

// Each rule of the file whose two sides `rules` join in a few steps.
Rediscovery Rediscover(const std::string& rules_text) {
  const auto file = ReadFile(kTasoFile);
  const auto rules = RuleSet::Parse(rules_text, "generated.rules");
  EXPECT_TRUE(rules.ok()) << Message(rules.status());
  KnownRules known;
  for (const Rule& rule : rules->rules()) {
    std::vector<std::string> others;
    for (const Rule& other : rules->rules()) {
      if (other.name != rule.name) others.push_back(other.name);
    }
    known.Add({.rules = {FoundRule{.name = rule.name, .rule = rules->Without(others, false)}}});
  }
  Rediscovery result;
  const std::vector<TasoRule> taso = RulesOf(*file);
  for (size_t i = 0; i < taso.size(); ++i) {
    if (kUnsound.contains(i)) continue;
    ++result.rules;
    const auto graphs = GraphsOf(taso[i]);
    const bool joined = graphs && known.Connect(graphs->first, graphs->second, 4, 300);
    result.found += joined;
    if (joined) continue;
    result.missing += fmt::format("#{}: {}\n", i,
                                  graphs ? KeyOf(graphs->first) + " => " + KeyOf(graphs->second)
                                         : "not well typed in the generator's shapes");
  }
  return result;
}

TEST(Taso, RulesThatFollowFromGeneratedOnes) {
  if (!FileExists(kTasoFile)) GTEST_SKIP() << kTasoFile << " is absent";
  const char* path = std::getenv("AUTOGRAPH_GENERATED");
  if (path == nullptr) GTEST_SKIP() << "AUTOGRAPH_GENERATED names no rules file";
  const auto text = ReadFile(path);
  ASSERT_TRUE(text.ok()) << Message(text.status());
  const Rediscovery result = Rediscover(*text);
  std::printf("rediscovered %d of %d\n%s", result.found, result.rules, result.missing.c_str());
  EXPECT_EQ(result.rules, 129);
  EXPECT_GE(result.found, 120);
}

}  // namespace
}  // namespace ag::generate

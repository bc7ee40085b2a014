#include <cmath>
#include <set>

#include "absl/strings/str_join.h"
#include "graph/text_cursor.h"
#include "graph/text_form.h"

namespace ag {
namespace {

bool IsWord(std::string_view name) {
  TextCursor cursor(name);
  return !name.empty() && cursor.Word().size() == name.size() && name != "input" &&
         name != "output" && name != "const";
}

std::string NameText(const std::string& name) { return IsWord(name) ? name : Quote(name); }

class Formatter {
 public:
  explicit Formatter(const Graph& graph) : graph_(graph) {
    for (size_t i = 0; i < graph.inputs().size(); ++i) {
      std::string name = graph.input_name(i);
      while (!taken_.insert(name).second) name += '_';  // Names in the text form are distinct.
      input_names_.emplace(graph.inputs()[i], name);
    }
  }

  std::string Format() {
    std::string text;
    for (const NodeId id : graph_.inputs()) {
      text += fmt::format("input {} {}\n", NameText(input_names_[id]),
                          graph_.node(id).outputs[0].ToString());
    }
    for (NodeId id = 0; id < graph_.size(); ++id) {
      if (graph_.node(id).op != OpKind::kInput) text += Statement(id) + '\n';
    }
    for (const GraphOutput& output : graph_.outputs()) {
      text += fmt::format("output {} = {}\n", Quote(output.name), EdgeName(output.edge));
    }
    return text;
  }

 private:
  std::string EdgeName(Edge e) const {
    const auto input = input_names_.find(e.node);
    if (input != input_names_.end()) return NameText(input->second);
    std::string name = fmt::format("v{}", e.node);
    if (graph_.node(e.node).outputs.size() > 1) name += fmt::format(".{}", e.output);
    while (taken_.contains(name)) name += '_';
    return name;
  }

  std::string Statement(NodeId id) const {
    const Node& node = graph_.node(id);
    std::vector<std::string> results, operands;
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      results.push_back(EdgeName({id, static_cast<int32_t>(i)}));
    }
    for (const Edge& e : node.inputs) operands.push_back(EdgeName(e));
    std::string line = absl::StrJoin(results, ", ") + " = ";
    if (node.op == OpKind::kConstant) return line + ConstantText(node);
    line += fmt::format("{}({})", Info(node.op).text_name, absl::StrJoin(operands, ", "));
    for (const AttributeSchema& schema : Info(node.op).attributes) {
      const AttributeValue& value = *node.attributes->Find(schema.name);
      if (schema.default_value == value) continue;
      line += fmt::format(" {}={}", schema.name, ValueText(node.op, value));
    }
    if (node.op == OpKind::kOpaque) {
      std::vector<std::string> types;
      for (const TensorType& type : node.outputs) types.push_back(type.ToString());
      line += " -> " + absl::StrJoin(types, ", ");
    }
    return line;
  }

  static std::string ValueText(OpKind op, const AttributeValue& value) {
    if (const auto* i = std::get_if<int64_t>(&value)) {
      if (op == OpKind::kCast) return std::string(DTypeName(static_cast<DType>(*i)));
      return fmt::format("{}", *i);
    }
    if (const auto* f = std::get_if<double>(&value)) return fmt::format("{}", *f);
    if (const auto* list = std::get_if<Ints>(&value)) return ShapeToString(*list);
    return NameText(std::get<std::string>(value));
  }

  // Writes inline values when they parse back to the same bytes, else the digest.
  static std::string ConstantText(const Node& node) {
    const TensorType& type = node.outputs[0];
    const std::string head = "const " + type.ToString();
    const std::string& bytes = node.constant->inline_bytes;
    std::string by_digest = fmt::format("{} sha256:{}", head, node.constant->digest.Hex());
    if (bytes.empty() || type.dtype == DType::kString) return by_digest;
    const Tensor tensor = Tensor::FromBytes(type, bytes);
    Tensor again = Tensor::Zeros(type);
    std::vector<std::string> values;
    for (int64_t i = 0; i < type.NumElements(); ++i) {
      if (type.dtype == DType::kInt64) {
        const int64_t value = tensor.As<int64_t>()[static_cast<size_t>(i)];
        again.Mutable<int64_t>()[static_cast<size_t>(i)] = value;
        values.push_back(fmt::format("{}", value));
      } else {
        again.Put(i, tensor.At(i));
        values.push_back(ElementText(type.dtype, tensor.At(i)));
      }
    }
    if (again.bytes() != tensor.bytes()) return by_digest;
    return fmt::format("{} {{{}}}", head, absl::StrJoin(values, ", "));
  }

  static std::string ElementText(DType dtype, double value) {
    // The shortest digits for the float, not for the double that it was converted to.
    if (dtype == DType::kFloat32) return fmt::format("{}", static_cast<float>(value));
    return fmt::format("{}", value);
  }

  const Graph& graph_;
  std::map<NodeId, std::string> input_names_;
  std::set<std::string> taken_;
};

}  // namespace

std::string FormatGraph(const Graph& graph) { return Formatter(graph).Format(); }

}  // namespace ag

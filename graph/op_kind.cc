#include "graph/op_kind.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace ag {
namespace {

// Returns "layer_norm" for "LayerNorm". "MatMul" is one word in papers and in the rules.
std::string TextName(std::string_view name) {
  if (name == "MatMul") return "matmul";
  std::string text;
  for (const char c : name) {
    if (std::isupper(static_cast<unsigned char>(c)) != 0 && !text.empty()) text += '_';
    text += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return text;
}

AttributeValue ParseDefault(char kind, const std::string& text) {
  if (kind == 's') return text;
  if (kind == 'f') {
    double value = 0;
    AG_CHECK(absl::SimpleAtod(text, &value));
    return value;
  }
  if (kind == 'L') {
    AG_CHECK(text == "[]");
    return Ints();
  }
  int64_t value = 0;
  AG_CHECK(kind == 'i' && absl::SimpleAtoi(text, &value));
  return value;
}

// Returns the schemas of a column such as "alpha:f=0.01 beta:f", sorted by name.
std::vector<AttributeSchema> ParseSchemas(std::string_view column) {
  std::vector<AttributeSchema> schemas;
  const std::string text(column);
  const std::vector<std::string> items = absl::StrSplit(text, ' ', absl::SkipEmpty());
  for (const std::string& item : items) {
    const size_t colon = item.find(':');
    AG_CHECK(colon != std::string::npos);
    const size_t equals = item.find('=');
    const std::string kind = item.substr(colon + 1, equals - colon - 1);
    AttributeSchema schema{.name = item.substr(0, colon), .kind = kind == "is" ? 'L' : kind[0]};
    if (equals != std::string::npos) {
      schema.default_text = item.substr(equals + 1);
      schema.default_value = ParseDefault(schema.kind, schema.default_text);
    }
    schemas.push_back(std::move(schema));
  }
  std::sort(schemas.begin(), schemas.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  return schemas;
}

struct OnnxForm {
  std::string name;
  int since = 0;
  std::string otherwise;
};

// Parses a column such as "Mish 18: mul(x, tanh(softplus(x)))".
OnnxForm ParseOnnx(std::string_view column) {
  OnnxForm form;
  if (const size_t colon = column.find(": "); colon != column.npos) {
    form.otherwise = column.substr(colon + 2);
    column = column.substr(0, colon);
  }
  const size_t blank = column.find(' ');
  form.name = column.substr(0, blank);
  if (blank != column.npos)
    AG_CHECK(absl::SimpleAtoi(std::string(column.substr(blank + 1)), &form.since));
  return form;
}

OpInfo MakeInfo(OpKind kind, std::string_view name, std::string_view onnx, int arity_min,
                int arity_max, uint32_t traits, std::string_view attributes) {
  OnnxForm form = ParseOnnx(onnx);
  return {.kind = kind,
          .name = name,
          .text_name = TextName(name),
          .onnx_name = std::move(form.name),
          .onnx_since = form.since,
          .onnx_else = std::move(form.otherwise),
          .arity_min = arity_min,
          .arity_max = arity_max,
          .traits = traits,
          .attributes = ParseSchemas(attributes)};
}

const std::vector<OpInfo>& Table() {
  static const auto& table = *new std::vector<OpInfo>{
#define OP(name, onnx, arity_min, arity_max, traits, attributes, shape_rule, kernel) \
  MakeInfo(OpKind::k##name, #name, onnx, arity_min, arity_max, uint32_t{0} | traits, attributes),
#include "graph/ops.def"
#undef OP
  };
  return table;
}

int EditDistance(std::string_view a, std::string_view b) {
  std::vector<int> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    int diagonal = std::exchange(row[0], static_cast<int>(i));
    for (size_t j = 1; j <= b.size(); ++j) {
      const int replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row.back();
}

std::string ArityText(const OpInfo& info) {
  if (info.arity_max < 0) return fmt::format("{} or more", info.arity_min);
  if (info.arity_min == info.arity_max) return fmt::format("{}", info.arity_min);
  return fmt::format("{} to {}", info.arity_min, info.arity_max);
}

std::string AttributesText(const OpInfo& info) {
  std::vector<std::string> items;
  for (const AttributeSchema& schema : info.attributes) {
    const std::string_view kind = schema.kind == 'i'   ? "int"
                                  : schema.kind == 'f' ? "float"
                                  : schema.kind == 'L' ? "ints"
                                                       : "string";
    if (schema.default_value.has_value()) {
      const std::string shown = schema.default_text.empty() ? "\"\"" : schema.default_text;
      items.push_back(fmt::format("`{}` {} = {}", schema.name, kind, shown));
    } else {
      items.push_back(fmt::format("`{}` {}", schema.name, kind));
    }
  }
  return absl::StrJoin(items, ", ");
}

std::string OnnxText(const OpInfo& info) {
  std::string text = info.onnx_name.empty() ? "-" : info.onnx_name;
  if (info.onnx_since > 0) text += fmt::format(" from opset {}", info.onnx_since);
  if (!info.onnx_else.empty()) text += fmt::format(", else `{}`", info.onnx_else);
  return text;
}

std::string TraitsText(uint32_t traits) {
  static constexpr std::pair<uint32_t, std::string_view> kNames[] = {
      {kLeaf, "leaf"},
      {kElementwise, "element-wise"},
      {kUnary, "unary"},
      {kBinary, "binary"},
      {kCommutative, "commutative"},
      {kContraction, "contraction"},
      {kReduction, "reduction"},
      {kPooling, "pooling"},
      {kMovement, "movement"},
      {kNormalization, "normalization"},
      {kComposite, "composite"},
      {kBarrier, "barrier"},
      {kZeroToZero, "f(0) = 0"},
      {kResampling, "resampling"},
      {kActivation, "activation"},
      {kTranscendental, "transcendental"},
      {kMonotone, "monotone"},
      {kArithmetic, "arithmetic"},
      {kOrdered, "ordered"},
      {kLogic, "logic"},
      {kPredicate, "predicate"}};
  std::vector<std::string> items;
  for (const auto& [bit, name] : kNames) {
    if ((traits & bit) != 0) items.emplace_back(name);
  }
  return absl::StrJoin(items, ", ");
}

}  // namespace

const OpInfo& Info(OpKind kind) {
  static const std::vector<OpInfo>& table = Table();
  return table[static_cast<size_t>(kind)];
}

std::span<const OpInfo> AllOps() { return Table(); }

StatusOr<OpKind> OpKindFromText(std::string_view text_name) {
  static const auto& by_name = *new std::map<std::string, OpKind, std::less<>>([] {
    std::map<std::string, OpKind, std::less<>> result;
    for (const OpInfo& info : Table()) result.emplace(info.text_name, info.kind);
    return result;
  }());
  const auto found = by_name.find(text_name);
  if (found != by_name.end()) return found->second;
  const OpInfo* best = &Table().front();
  int best_distance = 1 << 20;
  const std::string_view compared = text_name.substr(0, 64);
  for (const OpInfo& info : Table()) {
    const int distance = EditDistance(compared, info.text_name);
    if (distance < best_distance) {
      best_distance = distance;
      best = &info;
    }
  }
  return Err(StatusCode::kNotFound, "no operator is called '{}'; did you mean '{}'?", text_name,
             best->text_name);
}

std::string FormatOperatorTable() {
  std::string page =
      "# Operators\n\n"
      "Generated from graph/ops.def by FormatOperatorTable(); `AG_WRITE_DOCS=1 graph_test` writes "
      "it"
      " anew.\n\nAn attribute without `=` is required. Element types: where arithmetic is meant,"
      " operands share one type.\n\n"
      "| text name | ONNX | operands | attributes | traits |\n|---|---|---|---|---|\n";
  for (const OpInfo& info : Table()) {
    page += fmt::format("| `{}` | {} | {} | {} | {} |\n", info.text_name, OnnxText(info),
                        ArityText(info), AttributesText(info), TraitsText(info.traits));
  }
  return page;
}

}  // namespace ag

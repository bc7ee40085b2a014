#include "plan/format/problem_text.h"

#include "base/bytes.h"
#include "base/text.h"
#include "graph/text_form.h"
#include "plan/spec/invalid.h"

namespace ag {
namespace {

constexpr std::string_view kSynthetic = "synthetic";
constexpr std::string_view kGraphKey = "graph=";
constexpr std::string_view kBytesKey = "problem=";
constexpr std::string_view kColdKey = "cold_cache=";

// Returns the statements of a graph's text, which line ends, or semicolons outside quotes,
// separate.
std::vector<std::string> Statements(std::string_view text, char separator) {
  std::vector<std::string> statements(1);
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') quoted = !quoted;
    if (text[i] == separator && !quoted) {
      statements.emplace_back();
      continue;
    }
    statements.back() += text[i];
    if (quoted && text[i] == '\\' && i + 1 < text.size()) statements.back() += text[++i];
  }
  return statements;
}

// "v1 = const f32[4] " of a constant's statement, with its value.
struct ConstantStatement {
  std::string_view head;  // With the blank at its end.
  std::string_view value;
  TensorType type;
};
std::optional<ConstantStatement> AsConstant(std::string_view statement) {
  constexpr std::string_view kWord = " = const ";
  const size_t word = statement.find(kWord);
  if (word == statement.npos || statement.find('"') < word) return std::nullopt;
  const size_t type_begin = word + kWord.size();
  const size_t type_end = statement.find(' ', type_begin);
  const size_t open = statement.find('[', type_begin);
  if (type_end == statement.npos || open > type_end || statement[type_end - 1] != ']') {
    return std::nullopt;
  }
  ConstantStatement found{statement.substr(0, type_end + 1), statement.substr(type_end + 1), {}};
  const StatusOr<DType> dtype = ParseDType(statement.substr(type_begin, open - type_begin));
  if (!dtype.ok()) return std::nullopt;
  found.type.dtype = *dtype;
  const std::string_view sizes = statement.substr(open + 1, type_end - open - 2);
  for (const std::string_view size : Split(sizes, ',')) {
    const StatusOr<int64_t> number = ParseInt(size);
    if (number.ok()) found.type.shape.push_back(*number);
    if (!number.ok() && !sizes.empty()) return std::nullopt;
  }
  return found;
}

std::string NameOf(int position, const TensorType& type) {
  return "sha256:" + SyntheticConstant(position, type).Hex();
}

std::string GraphText(const Graph& graph) {
  std::string text;
  int constants = 0;
  for (std::string& statement : Statements(FormatGraph(graph), '\n')) {
    if (statement.empty()) continue;
    if (const auto constant = AsConstant(statement)) {
      if (constant->value == NameOf(constants, constant->type)) {
        statement = std::string(constant->head) + std::string(kSynthetic);
      }
      ++constants;
    }
    text += (text.empty() ? "" : "; ") + statement;
  }
  return text;
}

StatusOr<Graph> ParseGraphText(std::string_view text) {
  std::string lines;
  int constants = 0;
  for (const std::string& piece : Statements(text, ';')) {
    std::string statement(Trim(piece));
    if (const auto constant = AsConstant(statement)) {
      if (constant->value == kSynthetic) {
        statement = std::string(constant->head) + NameOf(constants, constant->type);
      }
      ++constants;
    }
    lines += statement + "\n";
  }
  StatusOr<Graph> graph = ParseGraph(lines);
  if (!graph.ok()) return Within(graph.status(), "graph");
  return graph;
}

std::string LayoutsText(const std::vector<Layout>& layouts) {
  std::vector<std::string_view> names;
  for (const Layout layout : layouts) names.push_back(LayoutName(layout));
  return Join(names, ",");
}

StatusOr<std::vector<Layout>> ParseLayouts(std::string_view key, std::string_view* text) {
  AG_LET(const std::string names, TakeWord(key, text));
  std::vector<Layout> layouts;
  if (names.empty()) return layouts;
  for (const std::string_view name : Split(names, ',')) {
    AG_LET(const Layout layout, ParseLayout(name));
    layouts.push_back(layout);
  }
  return layouts;
}

std::string AsText(const GroupProblem& problem) {
  return fmt::format("pattern={} precision={} cores={}{} in={} out={} {}{}",
                     EscapeWord(problem.pattern), EscapeWord(problem.precision), problem.cores,
                     problem.cold_cache ? " cold_cache=1" : "", LayoutsText(problem.input_layouts),
                     LayoutsText(problem.output_layouts), kGraphKey, GraphText(problem.graph));
}

bool NeedsEscape(unsigned char c) {
  return c <= ' ' || c >= 0x7f || c == '%' || c == ',' || c == '@';
}

}  // namespace

std::string EscapeWord(std::string_view word) {
  std::string text;
  for (const char c : word) {
    const auto byte = static_cast<unsigned char>(c);
    text += NeedsEscape(byte) ? fmt::format("%{:02x}", byte) : std::string(1, c);
  }
  return text;
}

StatusOr<std::string> UnescapeWord(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string word;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      word += text[i];
      continue;
    }
    const size_t high = i + 2 < text.size() ? kDigits.find(text[i + 1]) : kDigits.npos;
    const size_t low = i + 2 < text.size() ? kDigits.find(text[i + 2]) : kDigits.npos;
    if (high == kDigits.npos || low == kDigits.npos) {
      return Invalid(fmt::format("expected two digits after '%' in '{}'", text));
    }
    word += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return word;
}

StatusOr<std::string> TakeWord(std::string_view key, std::string_view* text) {
  const std::string_view word = text->substr(0, text->find(' '));
  if (!word.starts_with(key) || word.substr(key.size(), 1) != "=") {
    return Invalid(fmt::format("expected {}=, got '{}'", key, word.substr(0, 40)));
  }
  text->remove_prefix(std::min(text->size(), word.size() + 1));
  return std::string(word.substr(key.size() + 1));
}

std::string FormatGroupProblem(const GroupProblem& problem) {
  const std::string bytes = EncodeGroupProblem(problem);
  std::string text = AsText(problem);
  const StatusOr<GroupProblem> again = ParseGroupProblem(text);
  if (again.ok() && EncodeGroupProblem(*again) == bytes) return text;
  return std::string(kBytesKey) + Base64(bytes);
}

StatusOr<GroupProblem> ParseGroupProblem(std::string_view text) {
  if (text.starts_with(kBytesKey)) {
    const StatusOr<std::string> bytes = FromBase64(text.substr(kBytesKey.size()));
    if (!bytes.ok()) return Within(bytes.status(), "problem");
    StatusOr<GroupProblem> problem = DecodeGroupProblem(*bytes);
    if (!problem.ok()) return Invalid(Message(problem.status()));
    return problem;
  }
  GroupProblem problem;
  AG_LET(const std::string pattern, TakeWord("pattern", &text));
  AG_LET(problem.pattern, UnescapeWord(pattern));
  AG_LET(const std::string precision, TakeWord("precision", &text));
  AG_LET(problem.precision, UnescapeWord(precision));
  AG_LET(const std::string cores, TakeWord("cores", &text));
  const StatusOr<int64_t> number = ParseInt(cores);
  if (!number.ok() || *number < 0 || *number > kCoresMax) {
    return Invalid(fmt::format("cores: expected 0 to {}, got '{}'", kCoresMax, cores));
  }
  problem.cores = static_cast<int>(*number);
  if (text.starts_with(kColdKey)) {
    AG_LET(const std::string cold, TakeWord("cold_cache", &text));
    if (cold != "1") return Invalid(fmt::format("cold_cache: expected 1, got '{}'", cold));
    problem.cold_cache = true;
  }
  AG_LET(problem.input_layouts, ParseLayouts("in", &text));
  AG_LET(problem.output_layouts, ParseLayouts("out", &text));
  if (!text.starts_with(kGraphKey)) {
    return Invalid(fmt::format("expected graph=, got '{}'", text.substr(0, 40)));
  }
  AG_LET(problem.graph, ParseGraphText(text.substr(kGraphKey.size())));
  const Status checked = CheckGroupProblem(problem);
  if (!checked.ok()) return Invalid(Message(checked));
  return problem;
}

}  // namespace ag

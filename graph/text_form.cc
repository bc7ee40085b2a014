#include "graph/text_form.h"

#include <map>

#include "graph/shapes.h"
#include "graph/text_cursor.h"

namespace ag {
namespace {

// Greatest depth of nested calls; it bounds the parser's recursion.
constexpr int kNestingMax = 200;

class Parser {
 public:
  Parser(std::string_view text, MemoryWeights* weights) : cursor_(text), weights_(weights) {}

  StatusOr<Graph> Parse() {
    while (!cursor_.AtEnd()) {
      if (!cursor_.AtLineEnd()) AG_TRY(ParseStatement());
      if (!cursor_.AtLineEnd()) return cursor_.Fail("expected the line's end");
      if (!cursor_.AtEnd()) cursor_.NextLine();
    }
    return builder_.Build();
  }

 private:
  Status ParseStatement() {
    const size_t begin = cursor_.at();
    if (cursor_.Peek() != '"') {
      const std::string_view word = cursor_.Word();
      if (word == "input") return ParseInput();
      if (word == "output") return ParseOutput();
    }
    cursor_ = Rewound(begin);
    std::vector<std::string> names;
    do {
      AG_LET(std::string name, ParseNewName());
      names.push_back(std::move(name));
    } while (cursor_.Take(","));
    AG_TRY(cursor_.Expect("="));
    const size_t value_at = cursor_.at();
    AG_LET(const std::vector<Edge> values, ParseExpression());
    if (values.size() != names.size()) {
      return cursor_.Fail(value_at,
                          fmt::format("expected {} values, got {}", names.size(), values.size()));
    }
    for (size_t i = 0; i < names.size(); ++i) names_.emplace(names[i], values[i]);
    return OkStatus();
  }

  Status ParseInput() {
    AG_LET(std::string name, ParseNewName());
    AG_LET(TensorType type, ParseType());
    const Edge edge = builder_.Input(name, std::move(type));
    names_.emplace(std::move(name), edge);
    return OkStatus();
  }

  // Parses: output "name" = expression, or: output name.
  Status ParseOutput() {
    cursor_.SkipBlanks();
    const size_t begin = cursor_.at();
    AG_LET(const std::string name, ParseName());
    if (cursor_.Take("=")) {
      AG_LET(const Edge edge, ParseOperand());
      builder_.Output(edge, name);
      return OkStatus();
    }
    cursor_ = Rewound(begin);
    AG_LET(const Edge edge, ParseOperand());
    builder_.Output(edge, name);
    return OkStatus();
  }

  TextCursor Rewound(size_t at) {
    TextCursor result = cursor_;
    result.MoveTo(at);
    return result;
  }

  // Returns a word, or any characters in quotes.
  StatusOr<std::string> ParseName() {
    if (cursor_.Peek() == '"') return cursor_.Quoted();
    const std::string_view word = cursor_.Word();
    if (word.empty()) return cursor_.Fail("expected a name");
    return std::string(word);
  }

  StatusOr<std::string> ParseNewName() {
    cursor_.SkipBlanks();
    const size_t begin = cursor_.at();
    AG_LET(std::string name, ParseName());
    if (names_.contains(name)) {
      return cursor_.Fail(begin, fmt::format("'{}' is defined already", name));
    }
    return name;
  }

  StatusOr<TensorType> ParseType() {
    cursor_.SkipBlanks();
    const size_t begin = cursor_.at();
    const StatusOr<DType> dtype = ParseDType(cursor_.Word());
    if (!dtype.ok()) return cursor_.Fail(begin, Message(dtype.status()));
    Ints sizes;
    if (cursor_.Peek() == '[') {
      AG_LET(sizes, ParseInts());
    }
    TensorType type{*dtype, Shape(sizes.begin(), sizes.end())};
    const Status status = CheckType(type);
    if (!status.ok()) return cursor_.Fail(begin, Message(status));
    return type;
  }

  StatusOr<Ints> ParseInts() {
    AG_TRY(cursor_.Expect("["));
    cursor_.Open();
    Ints values;
    while (cursor_.Peek() != ']') {
      if (!values.empty()) AG_TRY(cursor_.Expect(","));
      AG_LET(const int64_t value, cursor_.Int());
      values.push_back(value);
    }
    cursor_.Close();
    AG_TRY(cursor_.Expect("]"));
    return values;
  }

  StatusOr<Edge> ParseOperand() {
    cursor_.SkipBlanks();
    const size_t begin = cursor_.at();
    AG_LET(const std::vector<Edge> values, ParseExpression());
    if (values.size() == 1) return values[0];
    return cursor_.Fail(begin, fmt::format("expected 1 value, got {}", values.size()));
  }

  StatusOr<std::vector<Edge>> ParseExpression() {
    cursor_.SkipBlanks();
    const size_t begin = cursor_.at();
    const bool quoted = cursor_.Peek() == '"';
    AG_LET(const std::string name, ParseName());
    if (!quoted && name == "const") {
      AG_LET(const Edge edge, ParseConstant());
      return std::vector<Edge>{edge};
    }
    if (!quoted && cursor_.Peek() == '(') return ParseCall(begin, name);
    const auto found = names_.find(name);
    if (found != names_.end()) return std::vector<Edge>{found->second};
    return cursor_.Fail(begin, fmt::format("'{}' is not defined", name));
  }

  StatusOr<std::vector<Edge>> ParseCall(size_t begin, const std::string& name) {
    const StatusOr<OpKind> op = OpKindFromText(name);
    if (!op.ok()) return cursor_.Fail(begin, Message(op.status()));
    if (++nesting_ > kNestingMax) return cursor_.Fail(begin, "calls are nested too deep");
    AG_TRY(cursor_.Expect("("));
    cursor_.Open();
    std::vector<Edge> operands;
    while (cursor_.Peek() != ')') {
      if (!operands.empty()) AG_TRY(cursor_.Expect(","));
      AG_LET(const Edge operand, ParseOperand());
      operands.push_back(operand);
    }
    cursor_.Close();
    AG_TRY(cursor_.Expect(")"));
    --nesting_;
    AG_LET(Attributes attributes, ParseAttributes(*op));
    StatusOr<NodeId> id = *op == OpKind::kOpaque ? AddOpaque(operands, std::move(attributes))
                                                 : builder_.Add(*op, operands, attributes);
    if (!id.ok() && *op == OpKind::kOpaque) return id.status();
    if (!id.ok()) return cursor_.Fail(begin, Message(id.status()));
    std::vector<Edge> results;
    const auto count = static_cast<int32_t>(builder_.node(*id).outputs.size());
    for (int32_t i = 0; i < count; ++i) results.push_back({*id, i});
    return results;
  }

  // Parses "-> f32[1,2], i64[3]", the output types of an opaque node. In a nested call there is
  // only one type, because a comma begins the next operand.
  StatusOr<NodeId> AddOpaque(const std::vector<Edge>& operands, Attributes attributes) {
    AG_TRY(cursor_.Expect("->"));
    std::vector<TensorType> types;
    do {
      AG_LET(TensorType type, ParseType());
      types.push_back(std::move(type));
    } while (nesting_ == 0 && cursor_.Take(","));
    return builder_.AddOpaque(operands, std::move(attributes), types);
  }

  StatusOr<Attributes> ParseAttributes(OpKind op) {
    Attributes attributes;
    while (cursor_.AtAttribute()) {
      const size_t begin = cursor_.at();
      const std::string name(cursor_.Word());
      AG_TRY(cursor_.Expect("="));
      const AttributeSchema* schema = nullptr;
      for (const AttributeSchema& s : Info(op).attributes) {
        if (s.name == name) schema = &s;
      }
      if (schema == nullptr) {
        return cursor_.Fail(begin,
                            fmt::format("{}: unknown attribute '{}'", Info(op).text_name, name));
      }
      AG_LET(AttributeValue value, ParseValue(op, *schema));
      attributes.Set(name, std::move(value));
    }
    return attributes;
  }

  StatusOr<AttributeValue> ParseValue(OpKind op, const AttributeSchema& schema) {
    if (op == OpKind::kCast) {  // to=f16: the name of an element type for its number.
      const size_t begin = cursor_.at();
      const StatusOr<DType> dtype = ParseDType(cursor_.Word());
      if (!dtype.ok()) return cursor_.Fail(begin, Message(dtype.status()));
      return AttributeValue(static_cast<int64_t>(*dtype));
    }
    if (schema.kind == 'i') {
      AG_LET(const int64_t value, cursor_.Int());
      return AttributeValue(value);
    }
    if (schema.kind == 'f') {
      AG_LET(const double value, cursor_.Double());
      return AttributeValue(value);
    }
    if (schema.kind == 'L') {
      AG_LET(Ints values, ParseInts());
      return AttributeValue(std::move(values));
    }
    AG_LET(std::string value, ParseName());
    return AttributeValue(std::move(value));
  }

  StatusOr<Edge> ParseConstant() {
    AG_LET(const TensorType type, ParseType());
    if (cursor_.Peek() == '{') {
      AG_LET(const Tensor tensor, ParseValues(type));
      return AddConstant(tensor);
    }
    const size_t begin = cursor_.at();
    const std::string_view word = cursor_.Word();
    if (word == "seed") {
      AG_TRY(CheckData(begin, type));
      AG_LET(const int64_t seed, cursor_.Int());
      return AddConstant(SyntheticTensor(type, static_cast<uint64_t>(seed)));
    }
    if (word != "sha256") return cursor_.Fail(begin, "expected {values}, seed or sha256:");
    AG_TRY(cursor_.Expect(":"));
    const size_t digits_at = cursor_.at();
    const StatusOr<Digest> digest = ParseDigest(cursor_.NumberWord());
    if (!digest.ok()) return cursor_.Fail(digits_at, Message(digest.status()));
    return builder_.Constant(type, *digest);
  }

  Edge AddConstant(const Tensor& tensor) {
    const Digest digest = weights_ == nullptr ? tensor.Name() : weights_->Put(tensor);
    return builder_.Constant(tensor.type(), digest, tensor.bytes());
  }

  Status CheckData(size_t at, const TensorType& type) const {
    if (type.dtype != DType::kString && type.NumElements() <= kTextElementsMax) return OkStatus();
    return cursor_.Fail(at, fmt::format("{} cannot be written as data", type.ToString()));
  }

  // Parses {1, 2, 3}; a single value fills all elements.
  StatusOr<Tensor> ParseValues(const TensorType& type) {
    const size_t begin = cursor_.at();
    AG_TRY(CheckData(begin, type));
    AG_TRY(cursor_.Expect("{"));
    cursor_.Open();
    Tensor tensor = Tensor::Zeros(type);
    int64_t count = 0;
    while (cursor_.Peek() != '}') {
      if (count > 0) AG_TRY(cursor_.Expect(","));
      AG_TRY(ParseElement(count++, &tensor));
    }
    cursor_.Close();
    AG_TRY(cursor_.Expect("}"));
    const int64_t elements = type.NumElements();
    if (count != elements && count != 1) {
      return cursor_.Fail(
          begin, fmt::format("{}: expected {} values, got {}", type.ToString(), elements, count));
    }
    const size_t size = static_cast<size_t>(SizeOf(type.dtype));
    const std::span<char> bytes = tensor.Mutable<char>();
    for (int64_t i = count; i < elements; ++i) {
      std::copy_n(bytes.data(), size, bytes.data() + static_cast<size_t>(i) * size);
    }
    return tensor;
  }

  Status ParseElement(int64_t i, Tensor* tensor) {
    const bool fits = i < tensor->type().NumElements();
    if (tensor->type().dtype == DType::kInt64) {  // Exact beyond 2^53.
      AG_LET(const int64_t value, cursor_.Int());
      if (fits) tensor->Mutable<int64_t>()[static_cast<size_t>(i)] = value;
      return OkStatus();
    }
    AG_LET(const double value, cursor_.Double());
    if (fits) tensor->Put(i, value);
    return OkStatus();
  }

  static constexpr int64_t kTextElementsMax = int64_t{1} << 28;

  TextCursor cursor_;
  MemoryWeights* weights_;
  GraphBuilder builder_;
  std::map<std::string, Edge> names_;
  int nesting_ = 0;
};

}  // namespace

StatusOr<Graph> ParseGraph(std::string_view text, MemoryWeights* weights) {
  return Parser(text, weights).Parse();
}

}  // namespace ag

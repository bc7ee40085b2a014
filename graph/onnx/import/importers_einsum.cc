// The importer of Einsum: sums over axes that one operand has alone, then a product of matrices
// between transposes and reshapes. Other forms are kept: more than two operands, a subscript that
// repeats in one of them or has two sizes.
#include <algorithm>
#include <map>

#include "absl/strings/str_split.h"
#include "graph/onnx/import/node_import.h"

namespace ag {
namespace {

// A value whose axes have letters. The axes of an ellipsis have digits, counted from the last.
struct Lettered {
  ValueId value = kNoValue;
  std::string letters;
};

bool HasLetter(std::string_view letters, char c) { return letters.find(c) != letters.npos; }

// Returns the letters of `from` that are in each of `in` and in none of `out`.
std::string LettersOf(std::string_view from, std::initializer_list<std::string_view> in,
                      std::initializer_list<std::string_view> out) {
  std::string found;
  for (const char c : from) {
    const auto has = [&](std::string_view letters) { return HasLetter(letters, c); };
    if (std::ranges::all_of(in, has) && std::ranges::none_of(out, has)) found += c;
  }
  return found;
}

class EinsumImport {
 public:
  explicit EinsumImport(NodeImport& node) : node_(node) {}

  Status Run() {
    AG_TRY(node_.CheckInputs(node_.size(), node_.size()));
    if (node_.size() < 1 || node_.size() > 2 || !IsFloat(node_.Type(node_.In(0)).dtype)) {
      return Refuse();
    }
    AG_TRY(Read());
    for (size_t i = 0; i < operands_.size(); ++i) {
      const std::string_view other = i + 1 < operands_.size() ? operands_[1].letters
                                     : i == 1                 ? operands_[0].letters
                                                              : std::string_view();
      AG_TRY(SumAlone(operands_[i], other));
    }
    if (operands_.size() == 1) return Give(operands_[0]);
    AG_LET(const Lettered product, Multiply(operands_[0], operands_[1]));
    return Give(product);
  }

 private:
  static Status Refuse() {
    return Err(StatusCode::kUnimplemented, "no transposes and one product compute it");
  }

  // Replaces "..." by the digits of so many axes.
  static Status Expand(std::string& term, int64_t axes) {
    const size_t at = term.find("...");
    if (at == term.npos) return OkStatus();
    if (axes < 0 || axes > 9) return Refuse();
    std::string digits;
    for (int64_t i = axes; i-- > 0;) digits += static_cast<char>('0' + i);
    term.replace(at, 3, digits);
    return OkStatus();
  }

  // Reads the equation and the sizes.
  Status Read() {
    std::string equation = node_.String("equation", "");
    std::erase(equation, ' ');
    const size_t arrow = equation.find("->");
    std::vector<std::string> terms = absl::StrSplit(equation.substr(0, arrow), ',');
    if (terms.size() != node_.size()) return Refuse();
    int64_t ellipsis = 0;
    for (size_t i = 0; i < terms.size(); ++i) {
      const int64_t own = node_.Rank(node_.In(i)) - static_cast<int64_t>(terms[i].size()) + 3;
      if (terms[i].find("...") != std::string::npos) ellipsis = std::max(ellipsis, own);
      AG_TRY(Expand(terms[i], own));
      AG_TRY(LearnSizes(terms[i], node_.ShapeOf(node_.In(i))));
      operands_.push_back({node_.In(i), terms[i]});
    }
    if (arrow != std::string::npos) {
      result_ = equation.substr(arrow + 2);
      AG_TRY(Expand(result_, ellipsis));
    } else {
      ResultWithoutArrow(terms);
    }
    for (const char c : result_) {
      if (std::ranges::count(result_, c) > 1 || !sizes_.contains(c)) return Refuse();
    }
    return OkStatus();
  }

  Status LearnSizes(const std::string& letters, const Shape& shape) {
    if (letters.size() != shape.size()) return Refuse();
    for (size_t i = 0; i < letters.size(); ++i) {
      const char c = letters[i];
      if ((std::isalnum(static_cast<unsigned char>(c)) == 0) || letters.find(c) != i) {
        return Refuse();
      }
      if (sizes_.emplace(c, shape[i]).first->second != shape[i]) return Refuse();
    }
    return OkStatus();
  }

  // The axes of the ellipsis, then the letters that occur once, in order.
  void ResultWithoutArrow(const std::vector<std::string>& terms) {
    std::map<char, int> uses;
    for (const std::string& term : terms) {
      for (const char c : term) ++uses[c];
    }
    for (auto it = uses.rbegin(); it != uses.rend(); ++it) {
      if (it->first <= '9') result_ += it->first;
    }
    for (const auto& [c, count] : uses) {
      if (c > '9' && count == 1) result_ += c;
    }
  }

  // Sums over the axes that neither the other operand nor the result has.
  Status SumAlone(Lettered& operand, std::string_view other) {
    const std::string alone = LettersOf(operand.letters, {}, {other, result_});
    if (alone.empty()) return OkStatus();
    Ints axes;
    for (size_t i = 0; i < operand.letters.size(); ++i) {
      if (HasLetter(alone, operand.letters[i])) axes.push_back(static_cast<int64_t>(i));
    }
    AG_LET(operand.value, node_.Emit(OpKind::kReduceSum, {operand.value},
                                     {{"axes", axes}, {"keepdims", int64_t{0}}}));
    operand.letters = LettersOf(operand.letters, {}, {alone});
    return OkStatus();
  }

  Shape ShapeFor(std::string_view letters) const {
    Shape shape;
    for (const char c : letters) shape.push_back(sizes_.at(c));
    return shape;
  }

  StatusOr<ValueId> Transposed(const Lettered& from, std::string_view letters) {
    if (from.letters == letters) return from.value;
    Ints perm;
    for (const char c : letters) perm.push_back(static_cast<int64_t>(from.letters.find(c)));
    return node_.Emit(OpKind::kTranspose, {from.value}, {{"perm", perm}});
  }

  StatusOr<ValueId> Reshaped(ValueId value, const Shape& shape) {
    if (node_.ShapeOf(value) == shape) return value;
    return node_.Reshape(value, shape);
  }

  // Returns the operand as matrices [batch, rows, columns]; each of the three is some axes.
  StatusOr<ValueId> AsMatrices(const Lettered& from, const std::string& batch,
                               const std::string& rows, const std::string& columns) {
    AG_LET(const ValueId turned, Transposed(from, batch + rows + columns));
    Shape shape = ShapeFor(batch);
    shape.push_back(NumElements(ShapeFor(rows)));
    shape.push_back(NumElements(ShapeFor(columns)));
    return Reshaped(turned, shape);
  }

  StatusOr<Lettered> Multiply(const Lettered& a, const Lettered& b) {
    const std::string batch = LettersOf(result_, {a.letters, b.letters}, {});
    const std::string rows = LettersOf(result_, {a.letters}, {b.letters});
    const std::string columns = LettersOf(result_, {b.letters}, {a.letters});
    const std::string inner = LettersOf(a.letters, {b.letters}, {result_});
    AG_LET(const ValueId left, AsMatrices(a, batch, rows, inner));
    AG_LET(const ValueId right, AsMatrices(b, batch, inner, columns));
    // Without a sum each element of the result is one product.
    const OpKind op = inner.empty() ? OpKind::kMul : OpKind::kMatMul;
    AG_LET(const ValueId product, node_.Emit(op, {left, right}));
    Lettered made{.letters = batch + rows + columns};
    AG_LET(made.value, Reshaped(product, ShapeFor(made.letters)));
    return made;
  }

  Status Give(const Lettered& made) { return node_.Out(Transposed(made, result_)); }

  NodeImport& node_;
  std::vector<Lettered> operands_;
  std::string result_;
  std::map<char, int64_t> sizes_;
};

Status ImportEinsum(NodeImport& node) { return EinsumImport(node).Run(); }

}  // namespace

std::span<const NodeImporterRow> EinsumImporters() {
  static constexpr NodeImporterRow kRows[] = {{"Einsum", ImportEinsum, 1}};
  return kRows;
}

}  // namespace ag

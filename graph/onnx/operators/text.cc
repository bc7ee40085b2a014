// Operators on strings. A string is UTF-8; ONNX says nothing of other bytes, which stay as they
// are.
#include "graph/onnx/operators/text.h"

#include <locale.h>
#include <re2/re2.h>
#include <wctype.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "absl/strings/numbers.h"
#include "graph/onnx/operators/layout.h"

namespace ag::onnx_operators {
namespace {

using Strings = std::vector<std::string>;

// Strings that a few nodes double are no text long before numbers are too many.
int64_t TextBytesMax(const OperatorCall& call) {
  return std::min(call.bytes_max(), int64_t{512} << 20);
}

// Makes result `i`. kResourceExhausted: the strings have too many bytes.
Status GiveStrings(OperatorCall& call, size_t i, const Shape& shape, const Strings& strings) {
  int64_t bytes = static_cast<int64_t>((strings.size() + 1) * sizeof(int64_t));
  for (const std::string& value : strings) bytes += static_cast<int64_t>(value.size());
  if (bytes > TextBytesMax(call)) {
    return Err(StatusCode::kResourceExhausted,
               "output {}: its strings have {} bytes, the limit is {}", i, bytes,
               TextBytesMax(call));
  }
  call.Give(i, Tensor::FromStrings(shape, strings));
  return OkStatus();
}

Status CheckStrings(const OperatorCall& call, size_t low, size_t high) {
  AG_TRY(call.CheckInputs(low, high));
  for (size_t i = 0; i < low; ++i) AG_TRY(call.CheckType(i, DType::kString));
  return OkStatus();
}

// The rules for upper and lower case, of Unicode and no language.
locale_t CaseRules() {
  static const locale_t rules = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  return rules;
}

void AppendCodePoint(uint32_t code, std::string& out) {
  if (code < 0x80) {
    out += static_cast<char>(code);
    return;
  }
  const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  const int lead[] = {0, 0xC0, 0xE0, 0xF0};
  out += static_cast<char>(lead[more] | (code >> (6 * more)));
  for (int i = more; i-- > 0;) out += static_cast<char>(0x80 | ((code >> (6 * i)) & 0x3F));
}

// Takes one code point from the front of `text`; a byte that begins none is one by itself, from
// 2^31.
uint32_t TakeCodePoint(std::string_view& text) {
  const auto first = static_cast<uint8_t>(text[0]);
  const size_t size = first < 0x80 ? 1 : first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  uint32_t code = size <= 1 ? first : first & (0x7F >> size);
  bool is_whole = size > 0 && size <= text.size() && first < 0xF5;
  for (size_t i = 1; is_whole && i < size; ++i) {
    const auto next = static_cast<uint8_t>(text[i]);
    is_whole = (next & 0xC0) == 0x80;
    code = (code << 6) | (next & 0x3F);
  }
  text.remove_prefix(is_whole ? size : 1);
  return is_whole ? code : first | 0x80000000U;
}

enum class LetterCase { kAsIs, kLower, kUpper };

std::string InCase(std::string_view text, LetterCase wanted) {
  if (wanted == LetterCase::kAsIs) return std::string(text);
  std::string out;
  while (!text.empty()) {
    const uint32_t code = TakeCodePoint(text);
    if (code >= 0x80000000U) {
      out += static_cast<char>(code & 0xFF);
      continue;
    }
    const auto letter = static_cast<wint_t>(code);
    AppendCodePoint(wanted == LetterCase::kLower ? towlower_l(letter, CaseRules())
                                                 : towupper_l(letter, CaseRules()),
                    out);
  }
  return out;
}

// Operand: [C] or [1,C]. Drops stop words, then changes the case.
Status RunStringNormalizer(OperatorCall& call) {
  AG_TRY(CheckStrings(call, 1, 1));
  const std::string action = call.String("case_change_action", "NONE");
  const bool is_sensitive = call.Int("is_case_sensitive", 0) != 0;
  const std::string locale = call.String("locale", "en_US");
  if (locale.starts_with("tr") || locale.starts_with("az") || locale.starts_with("lt")) {
    return Err(StatusCode::kUnimplemented, "the letters of locale {} are not known",
               Quoted(locale));
  }
  if (action != "NONE" && action != "LOWER" && action != "UPPER") {
    return Err(StatusCode::kInvalidArgument, "case_change_action {} is not known", Quoted(action));
  }
  const Shape& shape = call.ShapeOf(0);
  if (shape.size() != 1 && (shape.size() != 2 || shape[0] != 1)) {
    return Err(StatusCode::kInvalidArgument, "expected [C] or [1,C], got {}",
               call.Type(0).ToString());
  }
  const LetterCase compared = is_sensitive ? LetterCase::kAsIs : LetterCase::kLower;
  const LetterCase wanted = action == "LOWER"   ? LetterCase::kLower
                            : action == "UPPER" ? LetterCase::kUpper
                                                : LetterCase::kAsIs;
  std::set<std::string> stops;
  for (const std::string& word : call.StringList("stopwords").value_or(Strings())) {
    stops.insert(InCase(word, compared));
  }
  Strings kept;
  for (const std::string_view word : call.In(0).Strings()) {
    if (!stops.contains(InCase(word, compared))) kept.push_back(InCase(word, wanted));
  }
  if (kept.empty()) kept.emplace_back();
  Shape result = shape;
  result.back() = static_cast<int64_t>(kept.size());
  return GiveStrings(call, 0, result, kept);
}

Status RunStringConcat(OperatorCall& call) {
  AG_TRY(CheckStrings(call, 2, 2));
  AG_LET(const Shape shape, BroadcastOf(call));
  const auto a = call.In(0).Strings(), b = call.In(1).Strings();
  const std::array<Ints, 2> strides = {BroadcastStrides(call.ShapeOf(0), shape),
                                       BroadcastStrides(call.ShapeOf(1), shape)};
  int64_t bytes = 0;  // Watched while they grow: a broadcast can multiply long strings.
  Strings joined;
  Walk(shape, strides, [&](const std::array<int64_t, 2>& at) {
    bytes += static_cast<int64_t>(a[at[0]].size() + b[at[1]].size() + sizeof(std::string));
    if (bytes <= TextBytesMax(call)) {
      joined.push_back(std::string(a[at[0]]) + std::string(b[at[1]]));
    }
  });
  if (bytes <= TextBytesMax(call)) return GiveStrings(call, 0, shape, joined);
  return Err(StatusCode::kResourceExhausted, "output 0: its strings have {} bytes, the limit is {}",
             bytes, TextBytesMax(call));
}

constexpr std::string_view kSpaces = " \t\n\v\f\r";

// Returns the parts between runs of white space, at most `most` + 1: the last one is the rest.
std::vector<std::string_view> SplitAtSpaces(std::string_view text, int64_t most) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t begin = text.find_first_not_of(kSpaces);
    if (begin == text.npos) return parts;
    text.remove_prefix(begin);
    const size_t end = text.find_first_of(kSpaces);
    if (end == text.npos || static_cast<int64_t>(parts.size()) == most) {
      parts.push_back(text.substr(0, text.find_last_not_of(kSpaces) + 1));
      return parts;
    }
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
}

std::vector<std::string_view> SplitAt(std::string_view text, const std::string& delimiter,
                                      int64_t most) {
  if (delimiter.empty()) return SplitAtSpaces(text, most);
  std::vector<std::string_view> parts;
  size_t at = text.find(delimiter);
  while (at != text.npos && static_cast<int64_t>(parts.size()) != most) {
    parts.push_back(text.substr(0, at));
    text.remove_prefix(at + delimiter.size());
    at = text.find(delimiter);
  }
  parts.push_back(text);
  return parts;
}

// Results: the parts of each string, filled up with empty ones; how many there are.
Status RunStringSplit(OperatorCall& call) {
  AG_TRY(CheckStrings(call, 1, 1));
  const std::string delimiter = call.String("delimiter", "");
  const int64_t most = call.Int("maxsplit", -1);
  std::vector<std::vector<std::string_view>> split;
  Ints counts;
  for (const std::string_view text : call.In(0).Strings()) {
    split.push_back(SplitAt(text, delimiter, most));
    counts.push_back(static_cast<int64_t>(split.back().size()));
  }
  const int64_t width = counts.empty() ? 0 : *std::ranges::max_element(counts);
  Shape shape = call.ShapeOf(0);
  call.Give(1, Tensor::FromInts(shape, counts));
  shape.push_back(width);
  const TensorType type{DType::kInt64, shape};  // As large as the offsets of the result.
  AG_TRY(ag::CheckType(type), "output 0");
  if (type.Bytes() > TextBytesMax(call)) {
    return Err(StatusCode::kResourceExhausted, "output 0: {} strings of up to {} parts",
               split.size(), width);
  }
  std::vector<std::string_view> parts;
  for (auto& line : split) {
    line.resize(static_cast<size_t>(width));
    parts.insert(parts.end(), line.begin(), line.end());
  }
  call.Give(0, Tensor::FromStrings(shape, parts));
  return OkStatus();
}

// RE2 takes time linear in the text, and its own limit on memory for the pattern.
Status RunRegexFullMatch(OperatorCall& call) {
  AG_TRY(CheckStrings(call, 1, 1));
  const std::string pattern = call.String("pattern", "");
  const RE2 regex(pattern, RE2::Quiet);
  if (!regex.ok()) {
    return Err(StatusCode::kInvalidArgument, "pattern {}: {}", Quoted(pattern), regex.error());
  }
  AG_LET(bool* out, call.Make<bool>(0, call.ShapeOf(0)));
  for (const std::string_view text : call.In(0).Strings()) {
    *out++ = RE2::FullMatch({text.data(), text.size()}, regex);
  }
  return OkStatus();
}

Strings NumeralsOf(const Tensor& tensor) {
  Strings numerals;
  const auto count = tensor.type().NumElements();
  for (int64_t i = 0; i < count; ++i) {
    if (tensor.type().dtype == DType::kInt64) {
      numerals.push_back(fmt::format("{}", tensor.As<int64_t>()[i]));
      continue;
    }
    if (tensor.type().dtype == DType::kUInt64) {
      numerals.push_back(fmt::format("{}", tensor.As<uint64_t>()[i]));
      continue;
    }
    const double value = tensor.At(i);
    if (std::isnan(value)) {
      numerals.emplace_back("NaN");
    } else if (std::isinf(value)) {
      numerals.emplace_back(value > 0 ? "INF" : "-INF");
    } else if (tensor.type().dtype == DType::kFloat64) {
      numerals.push_back(fmt::format("{}", value));
    } else {
      numerals.push_back(fmt::format("{}", static_cast<float>(value)));
    }
  }
  return numerals;
}

// Puts the number that a string writes into element `i`. 64-bit integers are read as such.
Status ReadNumeral(std::string_view text, int64_t i, Tensor& to) {
  const absl::string_view given(text.data(), text.size());
  const DType dtype = to.type().dtype;
  double value = 0;
  if (dtype == DType::kInt64 && absl::SimpleAtoi(given, &to.Mutable<int64_t>()[i])) {
    return OkStatus();
  }
  if (dtype == DType::kUInt64 && absl::SimpleAtoi(given, &to.Mutable<uint64_t>()[i])) {
    return OkStatus();
  }
  if (dtype == DType::kFloat32) {
    float single = 0;
    if (!absl::SimpleAtof(given, &single)) {
      return Err(StatusCode::kInvalidArgument, "string {} is no number", Quoted(text));
    }
    value = single;
  } else if (!absl::SimpleAtod(given, &value)) {
    return Err(StatusCode::kInvalidArgument, "string {} is no number", Quoted(text));
  }
  to.Put(i, value);
  return OkStatus();
}

// One n-gram of the pool and where it counts.
struct Ngrams {
  std::map<std::vector<int64_t>, std::vector<int64_t>>
      places;  // Words, and the indices of weights.
  Ints to;     // By index: the result's column.
  std::vector<float> weights;
  int64_t low = 1, high = 1, skips = 0;
  std::string mode;
};

// Reads the pool's n-grams of `size` words from [begin, end).
Status ReadPool(const Ints& words, int64_t begin, int64_t end, int64_t size, int64_t* index,
                Ngrams& ngrams) {
  const auto count = static_cast<int64_t>(words.size());
  if (begin < 0 || end < begin || end > count || (end - begin) % size != 0) {
    return Err(StatusCode::kInvalidArgument, "ngram_counts: {} to {} are no {}-grams of {} words",
               begin, end, size, count);
  }
  for (int64_t at = begin; at < end; at += size, ++*index) {
    if (size < ngrams.low || size > ngrams.high) continue;
    ngrams.places[{words.begin() + at, words.begin() + at + size}].push_back(*index);
  }
  return OkStatus();
}

StatusOr<Ngrams> ReadNgrams(OperatorCall& call, const Ints& words) {
  Ngrams ngrams{.low = call.Int("min_gram_length", 1),
                .high = call.Int("max_gram_length", 1),
                .skips = call.Int("max_skip_count", 0),
                .mode = call.String("mode", "")};
  ngrams.to = call.IntList("ngram_indexes").value_or(Ints());
  const Ints counts = call.IntList("ngram_counts").value_or(Ints());
  ngrams.weights = call.FloatList("weights").value_or(std::vector<float>(ngrams.to.size(), 1));
  if (ngrams.mode != "TF" && ngrams.mode != "IDF" && ngrams.mode != "TFIDF") {
    return Err(StatusCode::kInvalidArgument, "mode {} is not known", Quoted(ngrams.mode));
  }
  const bool fits = ngrams.low >= 1 && ngrams.high >= ngrams.low && ngrams.skips >= 0 &&
                    ngrams.weights.size() == ngrams.to.size() && !ngrams.to.empty() &&
                    *std::ranges::min_element(ngrams.to) >= 0 &&
                    *std::ranges::max_element(ngrams.to) < std::numeric_limits<int64_t>::max();
  if (!fits) return Err(StatusCode::kInvalidArgument, "the lengths, indexes or weights do not fit");
  int64_t index = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    const int64_t end = i + 1 < counts.size() ? counts[i + 1] : static_cast<int64_t>(words.size());
    AG_TRY(ReadPool(words, counts[i], end, static_cast<int64_t>(i) + 1, &index, ngrams));
  }
  if (index == static_cast<int64_t>(ngrams.to.size())) return ngrams;
  return Err(StatusCode::kInvalidArgument, "the pool has {} n-grams, ngram_indexes {}", index,
             ngrams.to.size());
}

// Counts the n-grams of one row, by index. A skip leaves out the same number of words each time.
void CountNgrams(std::span<const int64_t> row, const Ngrams& ngrams, std::vector<float>& counts) {
  const auto size = static_cast<int64_t>(row.size());
  for (int64_t n = ngrams.low; n <= std::min(ngrams.high, size); ++n) {
    for (int64_t step = 1; step - 1 <= ngrams.skips && (n - 1) * step < size; ++step) {
      if (n == 1 && step > 1) break;  // The same words again.
      for (int64_t begin = 0; begin + (n - 1) * step < size; ++begin) {
        std::vector<int64_t> words;
        for (int64_t w = 0; w < n; ++w) words.push_back(row[begin + w * step]);
        const auto found = ngrams.places.find(words);
        if (found == ngrams.places.end()) continue;
        for (const int64_t index : found->second) ++counts[index];
      }
    }
  }
}

// Returns the words of the operand and of the pool as numbers; strings become theirs.
StatusOr<std::pair<Ints, Ints>> WordsOf(OperatorCall& call) {
  const auto texts = call.StringList("pool_strings");
  const auto numbers = call.IntList("pool_int64s");
  const bool of_strings = call.TypeOf(0) == DType::kString;
  if (of_strings != texts.has_value() || of_strings == numbers.has_value()) {
    return Err(StatusCode::kInvalidArgument, "the pool is not of the operand's type {}",
               DTypeName(call.TypeOf(0)));
  }
  if (!of_strings) {
    AG_LET(Ints own, call.IntsAt(0));
    return std::pair(std::move(own), *numbers);
  }
  std::map<std::string_view, int64_t> ids;
  const auto id_of = [&](std::string_view word) {
    return ids.emplace(word, static_cast<int64_t>(ids.size())).first->second;
  };
  std::pair<Ints, Ints> words;
  for (const std::string_view word : call.In(0).Strings()) words.first.push_back(id_of(word));
  for (const std::string& word : *texts) words.second.push_back(id_of(word));
  return words;
}

// Operand: [C] or [N,C]; result: [columns] or [N,columns].
Status RunTfIdfVectorizer(OperatorCall& call) {
  AG_TRY(call.CheckInputs(1, 1));
  if (call.Rank(0) != 1 && call.Rank(0) != 2) {
    return Err(StatusCode::kInvalidArgument, "expected [C] or [N,C], got {}",
               call.Type(0).ToString());
  }
  AG_LET(const auto words, WordsOf(call));
  AG_LET(const Ngrams ngrams, ReadNgrams(call, words.second));
  Shape shape = call.ShapeOf(0);
  const int64_t width = shape.back(), columns = *std::ranges::max_element(ngrams.to) + 1;
  const int64_t rows = shape.size() == 1 ? 1 : shape[0];
  shape.back() = columns;
  AG_LET(float* out, call.Make<float>(0, shape));
  for (int64_t r = 0; r < rows; ++r, out += columns) {
    std::vector<float> counts(ngrams.to.size());
    CountNgrams(std::span(words.first).subspan(r * width, width), ngrams, counts);
    for (size_t i = 0; i < counts.size(); ++i) {
      const float count = ngrams.mode == "IDF" ? std::min(counts[i], 1.0F) : counts[i];
      out[ngrams.to[i]] += ngrams.mode == "TF" ? count : count * ngrams.weights[i];
    }
  }
  return OkStatus();
}

}  // namespace

Status CastStrings(OperatorCall& call, DType to) {
  if (to == call.TypeOf(0)) {
    call.Give(0, call.In(0));
    return OkStatus();
  }
  if (to == DType::kString) {
    return GiveStrings(call, 0, call.ShapeOf(0), NumeralsOf(call.In(0)));
  }
  AG_TRY(call.MakeBytes(0, {to, call.ShapeOf(0)}).status());
  int64_t i = 0;
  for (const std::string_view text : call.In(0).Strings()) {
    AG_TRY(ReadNumeral(text, i++, call.results()[0]));
  }
  return OkStatus();
}

std::span<const OperatorRow> TextOperators() {
  static constexpr auto kShapes = ResultSizes::kFromShapes;
  static constexpr OperatorRow kRows[] = {
      {"StringNormalizer", RunStringNormalizer, ResultSizes::kFromValues, true},
      {"StringConcat", RunStringConcat, kShapes, true},
      {"StringSplit", RunStringSplit, ResultSizes::kFromValues, true},
      {"RegexFullMatch", RunRegexFullMatch, kShapes, true},
      {"TfIdfVectorizer", RunTfIdfVectorizer, kShapes, true},
  };
  return kRows;
}

}  // namespace ag::onnx_operators

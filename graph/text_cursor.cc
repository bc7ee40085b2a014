#include "graph/text_cursor.h"

#include <algorithm>
#include <charconv>

namespace ag {
namespace {

bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

int HexDigit(char c) {
  if (IsDigit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace

void TextCursor::SkipBlanks() {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == ' ' || c == '\t' || c == '\r' || (c == '\n' && depth_ > 0)) {
      ++at_;
    } else if (c == '#' || text_.substr(at_, 2) == "//") {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else {
      return;
    }
  }
}

bool TextCursor::AtEnd() {
  SkipBlanks();
  return at_ >= text_.size();
}

bool TextCursor::AtLineEnd() { return AtEnd() || text_[at_] == '\n'; }

char TextCursor::Peek() { return AtEnd() ? '\0' : text_[at_]; }

bool TextCursor::Take(std::string_view token) {
  SkipBlanks();
  if (text_.substr(at_, token.size()) != token) return false;
  at_ += token.size();
  return true;
}

Status TextCursor::Expect(std::string_view token) {
  if (Take(token)) return OkStatus();
  const std::string got = AtLineEnd() ? "the line's end" : fmt::format("'{}'", text_[at_]);
  return Fail(fmt::format("expected '{}', got {}", token, got));
}

std::string_view TextCursor::Word() {
  SkipBlanks();
  const size_t begin = at_;
  if (at_ >= text_.size() || !IsLetter(text_[at_])) return {};
  while (at_ < text_.size() && (IsLetter(text_[at_]) || IsDigit(text_[at_]) || text_[at_] == '.')) {
    ++at_;
  }
  return text_.substr(begin, at_ - begin);
}

bool TextCursor::AtAttribute() {
  SkipBlanks();
  const size_t begin = at_;
  const bool found = !Word().empty() && Take("=");
  at_ = begin;
  return found;
}

std::string_view TextCursor::NumberWord() {
  SkipBlanks();
  const size_t begin = at_;
  while (at_ < text_.size() && (IsLetter(text_[at_]) || IsDigit(text_[at_]) || text_[at_] == '.' ||
                                text_[at_] == '-' || text_[at_] == '+')) {
    ++at_;
  }
  return text_.substr(begin, at_ - begin);
}

StatusOr<char> TextCursor::Escape() {
  if (Take("n")) return '\n';
  if (Take("\"")) return '"';
  if (Take("\\")) return '\\';
  if (Take("x") && at_ + 2 <= text_.size()) {
    const int high = HexDigit(text_[at_]), low = HexDigit(text_[at_ + 1]);
    at_ += 2;
    if (high >= 0 && low >= 0) return static_cast<char>(high * 16 + low);
  }
  return Fail("unknown escape; there are \\n, \\\", \\\\ and \\x00 to \\xff");
}

StatusOr<std::string> TextCursor::Quoted() {
  AG_TRY(Expect("\""));
  std::string result;
  while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\n') {
    const char c = text_[at_++];
    if (c == '\\') {
      AG_LET(const char escaped, Escape());
      result += escaped;
    } else {
      result += c;
    }
  }
  AG_TRY(Expect("\""));
  return result;
}

StatusOr<int64_t> TextCursor::Int() {
  SkipBlanks();
  const size_t begin = at_;
  const std::string_view word = NumberWord();
  int64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error == std::errc() && end == word.data() + word.size()) return value;
  return Fail(begin, fmt::format("expected an integer, got '{}'", word));
}

StatusOr<double> TextCursor::Double() {
  SkipBlanks();
  const size_t begin = at_;
  const std::string_view word = NumberWord();
  if (word == "true") return 1.0;
  if (word == "false") return 0.0;
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error == std::errc() && end == word.data() + word.size()) return value;
  return Fail(begin, fmt::format("expected a number, got '{}'", word));
}

Status TextCursor::Fail(size_t at, std::string_view what) const {
  const std::string_view before = text_.substr(0, at);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const size_t line_begin =
      before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
  return Err(StatusCode::kInvalidArgument, "line {}:{}: {}", line, at - line_begin + 1, what);
}

std::string Quote(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      result += fmt::format("\\x{:02x}", byte);
    } else {
      result += c;
    }
  }
  return result + '"';
}

}  // namespace ag

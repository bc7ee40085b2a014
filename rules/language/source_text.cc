#include "rules/language/source_text.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <system_error>

namespace ag {
namespace {

bool IsNameStart(char c) { return std::islower(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool IsNameRest(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

std::string Blank(std::string_view text) {
  std::string out(text);
  bool in_comment = false;
  for (size_t i = 0; i < out.size(); ++i) {
    if (out[i] == '\n') {
      in_comment = false;
    } else if (in_comment || out[i] == '#') {
      in_comment = true;
      out[i] = ' ';
    } else if (out[i] == '\\' && i + 1 < out.size() && out[i + 1] == '\n') {
      out[i] = ' ';
      out[++i] = ' ';
    } else if (out[i] == '\t' || out[i] == '\r') {
      out[i] = ' ';
    }
  }
  return out;
}

}  // namespace

SourceText::SourceText(std::string_view text, std::string_view file)
    : text_(text), blanked_(Blank(text)), file_(file) {}

RulePlace SourceText::PlaceOf(size_t offset) const {
  offset = std::min(offset, text_.size());
  const size_t before = offset == 0 ? std::string::npos : text_.rfind('\n', offset - 1);
  const size_t begin = before == std::string::npos ? 0 : before + 1;
  const size_t end = std::min(text_.find_first_of("\r\n", offset), text_.size());
  const auto lines =
      std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(begin), '\n');
  return {.line = static_cast<int>(lines) + 1,
          .column = static_cast<int>(offset - begin) + 1,
          .text = text_.substr(begin, end - begin)};
}

Status SourceText::Error(size_t offset, std::string_view what) const {
  return ErrorAt(file_, PlaceOf(offset), what);
}

std::string_view Cursor::Rest() {
  const std::string_view text = source_.blanked();
  while (at_ < end_ && text[at_] == ' ') ++at_;
  return text.substr(at_, end_ - at_);
}

size_t Cursor::offset() {
  Rest();
  return at_;
}

bool Cursor::AtEnd() { return Rest().empty(); }

bool Cursor::Follows(std::string_view token) { return Rest().substr(0, token.size()) == token; }

bool Cursor::Accept(std::string_view token) {
  if (!Follows(token)) return false;
  at_ += token.size();
  return true;
}

Status Cursor::Expect(std::string_view token) {
  if (Accept(token)) return OkStatus();
  return Error(fmt::format("expected '{}'", token));
}

std::optional<std::string> Cursor::Identifier() {
  const std::string_view rest = Rest();
  if (rest.empty() || !IsNameStart(rest[0])) return std::nullopt;
  size_t n = 1;
  while (n < rest.size() && IsNameRest(rest[n])) ++n;
  at_ += n;
  return std::string(rest.substr(0, n));
}

std::optional<std::string> Cursor::KebabName() {
  const std::string_view rest = Rest();
  size_t n = 0;
  while (n < rest.size() &&
         (std::isdigit(static_cast<unsigned char>(rest[n])) != 0 ||
          std::islower(static_cast<unsigned char>(rest[n])) != 0 || rest[n] == '-')) {
    ++n;
  }
  if (n == 0 || !IsNameStart(rest[0])) return std::nullopt;
  at_ += n;
  return std::string(rest.substr(0, n));
}

std::optional<Cursor::Number> Cursor::AcceptNumber() {
  const std::string_view rest = Rest();
  if (rest.empty() || std::isdigit(static_cast<unsigned char>(rest[0])) == 0) return std::nullopt;
  Number number;
  const char* const end = rest.data() + rest.size();
  const auto as_float = std::from_chars(rest.data(), end, number.value);
  const auto as_integer = std::from_chars(rest.data(), end, number.integer);
  // "1..." is the integer 1 and a spread.
  const size_t digits = static_cast<size_t>(as_integer.ptr - rest.data());
  const bool spread_follows = rest.substr(digits, 3) == "...";
  const bool too_large = as_float.ec != std::errc() ||
                         (as_integer.ec != std::errc() && as_integer.ptr == as_float.ptr);
  if (too_large) return std::nullopt;
  number.is_integer = spread_follows || as_integer.ptr == as_float.ptr;
  at_ += number.is_integer ? digits : static_cast<size_t>(as_float.ptr - rest.data());
  return number;
}

std::optional<std::string> Cursor::QuotedString() {
  const std::string_view rest = Rest();
  if (rest.empty() || rest[0] != '"') return std::nullopt;
  const size_t close = rest.find('"', 1);
  if (close == std::string_view::npos) return std::nullopt;
  at_ += close + 1;
  return std::string(rest.substr(1, close - 1));
}

}  // namespace ag

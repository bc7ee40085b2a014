// A place in the text form: skips blanks and comments, takes tokens, says line and column in
// errors. Private to the text form.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace ag {

class TextCursor {
 public:
  explicit TextCursor(std::string_view text) : text_(text) {}

  // Skips blanks and comments; line ends too while inside brackets.
  void SkipBlanks();
  bool AtEnd();               // Of the text.
  bool AtLineEnd();           // Or of the text.
  void NextLine() { ++at_; }  // REQUIRES: AtLineEnd and not AtEnd.

  // The next character after blanks; '\0' at the end.
  char Peek();
  bool Take(std::string_view token);  // Takes `token` if it stands next.
  Status Expect(std::string_view token);

  // [A-Za-z_][A-Za-z0-9_.]*; empty when none stands next.
  std::string_view Word();
  // True when a word and "=" stand next.
  bool AtAttribute();
  // Characters of numbers and of their names (inf, nan, true, digits of digests).
  std::string_view NumberWord();
  StatusOr<std::string> Quoted();
  StatusOr<int64_t> Int();
  StatusOr<double> Double();

  void Open() { ++depth_; }  // Inside brackets, line ends are blanks.
  void Close() { --depth_; }

  size_t at() const { return at_; }
  void MoveTo(size_t at) { at_ = at; }
  // An error at `at`: "line L:C: ...".
  Status Fail(size_t at, std::string_view what) const;
  Status Fail(std::string_view what) const { return Fail(at_, what); }

 private:
  StatusOr<char> Escape();

  std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
};

// "text" with quotes, escapes for what is not printable.
std::string Quote(std::string_view text);

}  // namespace ag

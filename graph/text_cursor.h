// A position in the text form: skips blanks and comments, takes tokens, and gives line and column
// in errors. Private to the text form. One thread at a time.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace ag {

class TextCursor {
 public:
  explicit TextCursor(std::string_view text) : text_(text) {}

  // Skips blanks and comments; inside brackets also line ends.
  void SkipBlanks();
  bool AtEnd();               // At the end of the text.
  bool AtLineEnd();           // At the end of a line or of the text.
  void NextLine() { ++at_; }  // REQUIRES: AtLineEnd and not AtEnd.

  // Returns the next character after blanks; '\0' at the end.
  char Peek();
  bool Take(std::string_view token);  // Takes `token` if it is next.
  Status Expect(std::string_view token);

  // Takes and returns [A-Za-z_][A-Za-z0-9_.]*; empty when none is next.
  std::string_view Word();
  // Returns true when a word and "=" are next.
  bool AtAttribute();
  // Takes characters of numbers and of their names (inf, nan, true, digits of digests).
  std::string_view NumberWord();
  StatusOr<std::string> Quoted();
  StatusOr<int64_t> Int();
  StatusOr<double> Double();

  void Open() { ++depth_; }  // Inside brackets, line ends are blanks.
  void Close() { --depth_; }

  size_t at() const { return at_; }
  void MoveTo(size_t at) { at_ = at; }
  // Returns an error at `at`: "line L:C: ...".
  Status Fail(size_t at, std::string_view what) const;
  Status Fail(std::string_view what) const { return Fail(at_, what); }

 private:
  StatusOr<char> Escape();

  std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
};

// Returns the text in quotes, with escapes for characters that are not printable.
std::string Quote(std::string_view text);

}  // namespace ag

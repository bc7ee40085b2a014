// The text of one rules file, read character by character, and errors that point into it.
// SourceText is immutable; a Cursor belongs to one thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "rules/language/rule_set.h"

namespace ag {

class SourceText {
 public:
  SourceText(std::string_view text, std::string_view file);

  // Returns kInvalidArgument "file:line:column: what", the line, and a caret under the column.
  Status Error(size_t offset, std::string_view what) const;
  RulePlace PlaceOf(size_t offset) const;
  int LineOf(size_t offset) const { return PlaceOf(offset).line; }
  const std::string& file() const { return file_; }

  // Returns the text with blanks for comments and continued line ends ("\" at the end), at the same
  // offsets.
  std::string_view blanked() const { return blanked_; }

 private:
  std::string text_;
  std::string blanked_;
  std::string file_;
};

// Reads one logical line of a SourceText. Each Accept skips blanks first, and moves only on
// success.
class Cursor {
 public:
  Cursor(const SourceText& source, size_t begin, size_t end)
      : source_(source), at_(begin), end_(end) {}

  size_t offset();  // The offset of the next character after blanks.
  bool AtEnd();
  bool Accept(std::string_view token);
  bool Follows(std::string_view token);
  Status Expect(std::string_view token);

  std::optional<std::string> Identifier();  // [a-z_][a-zA-Z0-9_]*
  std::optional<std::string> KebabName();   // [a-z][a-z0-9-]*
  // An integer, or a float when it has a point or an exponent. nullopt also for a number that is
  // too large.
  struct Number {
    bool is_integer = true;
    int64_t integer = 0;
    double value = 0;
  };
  std::optional<Number> AcceptNumber();
  std::optional<std::string> QuotedString();

  Status Error(std::string_view what) { return source_.Error(offset(), what); }
  Status ErrorAt(size_t offset, std::string_view what) { return source_.Error(offset, what); }

  // Deeper enters one level of nesting and returns an error beyond 100 levels, which protects the
  // stack of recursive code. Shallower leaves the level.
  Status Deeper() { return ++depth_ <= 100 ? OkStatus() : Error("nested deeper than 100 levels"); }
  void Shallower() { --depth_; }

  struct Mark {
    size_t at;
  };
  Mark Save() const { return {at_}; }
  void Restore(Mark mark) { at_ = mark.at; }

 private:
  std::string_view Rest();
  const SourceText& source_;
  size_t at_;
  size_t end_;
  int depth_ = 0;
};

}  // namespace ag

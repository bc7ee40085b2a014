// Source text, line by line, indented by its open blocks. One thread at a time.
#pragma once

#include <string>

#include "base/text.h"

namespace ag::cuda {

class Text {
 public:
  // Line appends one line; Open appends "... {" and indents the following lines until Close.
  template <class... Args>
  void Line(fmt::format_string<Args...> format, Args&&... args) {
    Append(fmt::format(format, std::forward<Args>(args)...));
  }
  template <class... Args>
  void Open(fmt::format_string<Args...> format, Args&&... args) {
    Append(fmt::format(format, std::forward<Args>(args)...) + " {");
    ++depth_;
  }
  void Close(std::string_view after = "") {
    --depth_;
    Append("}" + std::string(after));
  }
  // Appends the lines of another Text at the current indentation.
  void Insert(const Text& other);

  const std::string& str() const { return lines_; }

 private:
  void Append(const std::string& line) { lines_.append(2 * depth_, ' ').append(line).append("\n"); }

  size_t depth_ = 0;
  std::string lines_;
};

}  // namespace ag::cuda

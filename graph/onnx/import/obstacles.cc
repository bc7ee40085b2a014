#include "graph/onnx/import/obstacles.h"

#include <algorithm>

namespace ag {
namespace {

// Returns the text without what stands in quotes: names, which differ between nodes.
std::string WithoutNames(std::string_view text) {
  std::string result;
  bool is_name = false;
  for (const char c : text) {
    if (c == '"') is_name = !is_name;
    if (!is_name) result += c;
  }
  return result;
}

}  // namespace

void Obstacles::Add(const std::string& noun, const Status& status,
                    std::span<const std::string> names) {
  Block(names);
  if (status.code() != StatusCode::kInvalidArgument &&
      status.code() != StatusCode::kUnimplemented) {
    fatal_.Update(status);
    return;
  }
  // "node 3 (Foo): what" and "node 5 (Foo): what" are one kind: of operator Foo.
  const size_t bracket = noun.rfind('(');
  const std::string message = Message(status);
  const std::string what =
      noun.substr(bracket == noun.npos ? noun.size() : bracket) +
      WithoutNames(message.starts_with(noun) ? message.substr(noun.size()) : message);
  const auto known = std::ranges::find(kinds_, what, &Kind::what);
  if (known != kinds_.end()) {
    ++known->more;
  } else {
    kinds_.push_back({status, what});
  }
}

Status Obstacles::All() const {
  if (!fatal_.ok() || kinds_.empty()) return fatal_;
  std::string text;
  for (size_t i = 0; i < kinds_.size(); ++i) {
    if (kinds_.size() > 1) text += fmt::format("{}({}) ", i == 0 ? "" : "; ", i + 1);
    text += Message(kinds_[i].status);
    if (kinds_[i].more > 0) text += fmt::format(" (and {} more like it)", kinds_[i].more);
  }
  const Status& first = kinds_[0].status;
  if (kinds_.size() == 1 && kinds_[0].more == 0) return first;
  if (kinds_.size() == 1) return Status(first.code(), text);
  return Err(first.code(), "{} obstacles{}: {}", kinds_.size(), Ends() ? " or more" : "", text);
}

}  // namespace ag

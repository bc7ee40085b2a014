// The attributes of a node: a small map from name to value, sorted by name so that equal maps have
// equal canonical bytes. graph/ops.def lists the attributes of each operator. A built node holds
// all of them; defaults are filled in. Plain data.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace ag {

using Ints = std::vector<int64_t>;
using AttributeValue = std::variant<int64_t, double, Ints, std::string>;

class Attributes {
 public:
  Attributes() = default;
  Attributes(std::initializer_list<std::pair<std::string, AttributeValue>> items);

  void Set(std::string_view name, AttributeValue value);
  const AttributeValue* Find(std::string_view name) const;  // Null when absent.

  // REQUIRES: the attribute is present with that type. Built nodes fulfil this.
  int64_t Int(std::string_view name) const;
  double Float(std::string_view name) const;
  const Ints& IntList(std::string_view name) const;
  const std::string& String(std::string_view name) const;

  const std::vector<std::pair<std::string, AttributeValue>>& items() const { return items_; }
  // Equal when the canonical bytes are equal: floats compare by their bits, and all NaNs are the
  // same.
  bool operator==(const Attributes& other) const;

 private:
  std::vector<std::pair<std::string, AttributeValue>> items_;
};

}  // namespace ag

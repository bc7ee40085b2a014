#include "graph/attributes.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace ag {
namespace {

auto FindSlot(auto& items, std::string_view name) {
  return std::lower_bound(items.begin(), items.end(), name,
                          [](const auto& item, std::string_view n) { return item.first < n; });
}

bool SameValue(const AttributeValue& a, const AttributeValue& b) {
  if (a.index() != b.index()) return false;
  const double* x = std::get_if<double>(&a);
  if (x == nullptr) return a == b;
  const double y = std::get<double>(b);
  if (std::isnan(*x) || std::isnan(y)) return std::isnan(*x) && std::isnan(y);
  return std::bit_cast<uint64_t>(*x) == std::bit_cast<uint64_t>(y);
}

template <class T>
const T& Required(const Attributes& attributes, std::string_view name) {
  const AttributeValue* value = attributes.Find(name);
  AG_CHECK(value != nullptr);
  const T* typed = std::get_if<T>(value);
  AG_CHECK(typed != nullptr);
  return *typed;
}

}  // namespace

Attributes::Attributes(std::initializer_list<std::pair<std::string, AttributeValue>> items) {
  for (const auto& [name, value] : items) Set(name, value);
}

void Attributes::Set(std::string_view name, AttributeValue value) {
  const auto slot = FindSlot(items_, name);
  if (slot != items_.end() && slot->first == name) {
    slot->second = std::move(value);
  } else {
    items_.emplace(slot, std::string(name), std::move(value));
  }
}

const AttributeValue* Attributes::Find(std::string_view name) const {
  const auto slot = FindSlot(items_, name);
  return slot != items_.end() && slot->first == name ? &slot->second : nullptr;
}

int64_t Attributes::Int(std::string_view name) const { return Required<int64_t>(*this, name); }

double Attributes::Float(std::string_view name) const { return Required<double>(*this, name); }

const Ints& Attributes::IntList(std::string_view name) const { return Required<Ints>(*this, name); }

const std::string& Attributes::String(std::string_view name) const {
  return Required<std::string>(*this, name);
}

bool Attributes::operator==(const Attributes& other) const {
  return std::equal(items_.begin(), items_.end(), other.items_.begin(), other.items_.end(),
                    [](const auto& a, const auto& b) {
                      return a.first == b.first && SameValue(a.second, b.second);
                    });
}

}  // namespace ag

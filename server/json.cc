#include "server/json.h"

#include <cmath>

#include "base/text.h"

namespace ag {
namespace {

std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      quoted += fmt::format("\\u{:04x}", static_cast<int>(c));
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

}  // namespace

void JsonWriter::Begin(std::string_view key) {
  if (!empty_.empty()) {
    text_ += empty_.back() ? "\n" : ",\n";
    empty_.back() = false;
    text_.append(2 * empty_.size(), ' ');
  }
  if (!key.empty()) text_ += Quoted(key) + ": ";
}

void JsonWriter::End(char bracket) {
  const bool empty = empty_.back();
  empty_.pop_back();
  if (!empty) {
    text_ += '\n';
    text_.append(2 * empty_.size(), ' ');
  }
  text_ += bracket;
}

void JsonWriter::BeginObject(std::string_view key) {
  Begin(key);
  text_ += '{';
  empty_.push_back(true);
}

void JsonWriter::BeginList(std::string_view key) {
  Begin(key);
  text_ += '[';
  empty_.push_back(true);
}

void JsonWriter::EndObject() { End('}'); }
void JsonWriter::EndList() { End(']'); }

void JsonWriter::String(std::string_view key, std::string_view value) {
  Begin(key);
  text_ += Quoted(value);
}

void JsonWriter::Int(std::string_view key, int64_t value) {
  Begin(key);
  text_ += fmt::format("{}", value);
}

void JsonWriter::Double(std::string_view key, double value) {
  Begin(key);
  text_ += std::isfinite(value) ? FormatDouble(value) : "null";
}

void JsonWriter::Bool(std::string_view key, bool value) {
  Begin(key);
  text_ += value ? "true" : "false";
}

}  // namespace ag

// A writer of JSON: members stand in the order of the calls, with the same bytes on every machine.
// For reports only; nothing in the coordinator reads JSON. One thread at a time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ag {

class JsonWriter {
 public:
  // Inside an object every value has a key; inside a list the key is "".
  void BeginObject(std::string_view key = {});
  void EndObject();
  void BeginList(std::string_view key = {});
  void EndList();
  void String(std::string_view key, std::string_view value);
  void Int(std::string_view key, int64_t value);
  void Double(std::string_view key, double value);  // Writes null when not finite.
  void Bool(std::string_view key, bool value);

  std::string Take() { return std::move(text_) + "\n"; }

 private:
  void Begin(std::string_view key);
  void End(char bracket);
  std::string text_;
  std::vector<bool> empty_;  // One per open object or list.
};

}  // namespace ag

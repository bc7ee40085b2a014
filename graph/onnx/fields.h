// The wire format of protobuf, field by field: what lets weights stay where they are in a mapped
// model and be copied once into an exported one. No generated code.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace ag {

// Field numbers of onnx.proto that are walked by hand.
inline constexpr uint32_t kModelGraph = 7;
inline constexpr uint32_t kGraphNode = 1, kGraphInitializer = 5;
inline constexpr uint32_t kTensorRawData = 9;

struct WireField {
  uint32_t number = 0;
  bool is_bytes = false;     // Length-delimited: a string, a message, a packed list.
  std::string_view whole;    // Tag and value.
  std::string_view payload;  // The bytes of a length-delimited field.
};

// Calls `visit` for each field of a message. kInvalidArgument: no protobuf, or cut short; the
// message says at which byte. Stops at the first error of `visit`.
Status ForEachField(std::string_view message, const std::function<Status(const WireField&)>& visit);

void AppendVarint(uint64_t value, std::string& out);
// Tag and length of a length-delimited field; its bytes come next.
void AppendLengthTag(uint32_t number, uint64_t size, std::string& out);

}  // namespace ag

// The wire format of protobuf, field by field and without generated code. It lets weights stay in a
// mapped model on import, and copies them once on export. Pure functions.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"

namespace ag {

// Field numbers of onnx.proto that this code reads or writes directly.
inline constexpr uint32_t kModelGraph = 7, kModelFunction = 25;
inline constexpr uint32_t kNodeAttribute = 5, kFunctionNode = 7, kFunctionAttribute = 11,
                          kAttributeName = 1, kAttributeTensor = 5, kAttributeGraph = 6,
                          kAttributeTensors = 10, kAttributeGraphs = 11, kAttributeSparse = 22,
                          kAttributeSparses = 23;
inline constexpr uint32_t kGraphNode = 1, kGraphInitializer = 5, kGraphSparseInitializer = 15;
inline constexpr uint32_t kTensorStringData = 6, kTensorRawData = 9, kTensorExternalData = 13,
                          kTensorDataLocation = 14;
// doc_string and metadata_props. The linked library does not know the latter.
inline constexpr uint32_t kNodeNotes[] = {6, 9}, kGraphNotes[] = {10, 16};

struct WireField {
  uint32_t number = 0;
  bool is_bytes = false;     // Length-delimited: a string, a message, a packed list.
  std::string_view whole;    // Tag and value.
  std::string_view payload;  // The bytes of a length-delimited field.
};

// Calls `visit` for each field of a message and stops at its first error. kInvalidArgument: not a
// protobuf, or truncated; the message gives the byte.
Status ForEachField(std::string_view message, const std::function<Status(const WireField&)>& visit);

// Returns those fields of a message whose numbers are listed, or all others, as they are.
StatusOr<std::string> FieldsOf(std::string_view message, std::span<const uint32_t> numbers);
StatusOr<std::string> FieldsBut(std::string_view message, std::span<const uint32_t> numbers);

void AppendVarint(uint64_t value, std::string& out);
// Appends the tag and the length of a length-delimited field; its bytes follow.
void AppendLengthTag(uint32_t number, uint64_t size, std::string& out);

}  // namespace ag

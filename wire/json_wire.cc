#include "wire/json_wire.h"

#include <google/protobuf/message.h>
#include <google/protobuf/util/json_util.h>

namespace ag {

std::string ToJson(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = true;
  std::string text;
  // Fails only for messages with a google.protobuf.Any of an unknown type.
  AG_CHECK(google::protobuf::util::MessageToJsonString(message, &text, options).ok());
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

Status FromJson(const std::string& json, google::protobuf::Message* message) {
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  const auto parsed = google::protobuf::util::JsonStringToMessage(json, message, options);
  if (parsed.ok()) return OkStatus();
  return Err(StatusCode::kDataLoss, "not a {} as JSON: {}", message->GetTypeName(),
             parsed.message().ToString());
}

}  // namespace ag

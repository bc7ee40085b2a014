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
  return text;
}

}  // namespace ag

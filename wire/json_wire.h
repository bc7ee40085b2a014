// The JSON of a message, as reports and `--json` show it: names of fields as in the proto, every
// field that has no presence, enums by name, 64-bit integers as strings. Thread-safe.
#pragma once

#include <string>

#include "base/status.h"

namespace google::protobuf {
class Message;
}  // namespace google::protobuf

namespace ag {

// Returns the message as indented JSON.
std::string ToJson(const google::protobuf::Message& message);

// Reads such JSON and skips members that the message does not have. kDataLoss: it is none.
Status FromJson(const std::string& json, google::protobuf::Message* message);

}  // namespace ag

#include <google/protobuf/io/coded_stream.h>

#include "autograph/v1/taso.pb.h"
#include "lab/taso/format.h"

namespace ag {
namespace {

constexpr size_t kBytesMax = size_t{64} << 20;
constexpr uint32_t kRuleTag = (1u << 3) | 2u;  // Field 1, length-delimited.

// Returns the number of the first unknown field in the message or below it; 0: there is none.
int UnknownField(const google::protobuf::Message& message) {
  const auto* reflection = message.GetReflection();
  const auto& unknown = reflection->GetUnknownFields(message);
  if (unknown.field_count() > 0) return unknown.field(0).number();
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  reflection->ListFields(message, &fields);
  for (const auto* field : fields) {
    if (!field->is_repeated() || field->message_type() == nullptr) continue;
    for (int i = 0; i < reflection->FieldSize(message, field); ++i) {
      const int below = UnknownField(reflection->GetRepeatedMessage(message, field, i));
      if (below != 0) return below;
    }
  }
  return 0;
}

StatusOr<std::vector<TasoOperator>> ReadSide(
    const google::protobuf::RepeatedPtrField<autograph::v1::TasoOperator>& operators,
    std::string_view side) {
  std::vector<TasoOperator> read;
  for (const auto& from : operators) {
    TasoOperator op{.type = static_cast<TasoOpType>(from.type())};
    if (!from.has_type()) {
      return Err(StatusCode::kInvalidArgument, "{} operator {} has no type", side, read.size());
    }
    for (const auto& input : from.input()) op.inputs.push_back({input.op(), input.output()});
    for (const auto& parameter : from.parameter()) {
      const auto key = static_cast<TasoKey>(parameter.key());
      if (parameter.has_key() && parameter.has_value() &&
          op.parameters.emplace(key, parameter.value()).second) {
        continue;
      }
      return Err(StatusCode::kInvalidArgument, "{} operator {} ({}): parameter {} {}", side,
                 read.size(), TasoOpName(op.type), parameter.key(),
                 parameter.has_value() ? "stands twice" : "has no value");
    }
    read.push_back(std::move(op));
  }
  return read;
}

StatusOr<TasoRule> ReadRule(std::string_view bytes) {
  autograph::v1::TasoRule from;
  if (!from.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return Err(StatusCode::kInvalidArgument, "damaged: its {} bytes are no rule", bytes.size());
  }
  if (const int field = UnknownField(from)) {
    return Err(StatusCode::kInvalidArgument, "field {} is not of this format", field);
  }
  TasoRule rule;
  AG_LET(rule.source, ReadSide(from.source(), "source"));
  AG_LET(rule.target, ReadSide(from.target(), "target"));
  for (const auto& mapping : from.mapping()) {
    rule.mappings.push_back({{mapping.source_op(), mapping.source_output()},
                             {mapping.target_op(), mapping.target_output()}});
  }
  AG_TRY(CheckTasoRule(rule));
  return rule;
}

}  // namespace

StatusOr<std::vector<TasoRule>> ReadTasoFile(std::string_view bytes) {
  if (bytes.empty() || bytes.size() > kBytesMax) {
    return Err(StatusCode::kInvalidArgument, "no TASO rule file: it has {} bytes", bytes.size());
  }
  const int size = static_cast<int>(bytes.size());
  google::protobuf::io::CodedInputStream in(reinterpret_cast<const uint8_t*>(bytes.data()), size);
  std::vector<TasoRule> rules;
  while (in.CurrentPosition() < size) {
    const int at = in.CurrentPosition();
    const uint32_t tag = in.ReadTag();
    if (tag != kRuleTag) {
      return Err(StatusCode::kInvalidArgument,
                 "byte {}: expected a rule (field 1, length-delimited), found field {} of wire "
                 "type {}: no TASO rule file",
                 at, tag >> 3, tag & 7);
    }
    uint32_t length = 0;
    const bool has_length = in.ReadVarint32(&length);
    const int begin = in.CurrentPosition();
    if (!has_length || length > static_cast<uint32_t>(size - begin)) {
      return Err(StatusCode::kInvalidArgument, "byte {}: rule {} is cut off: {} bytes are left", at,
                 rules.size(), size - begin);
    }
    AG_LET(TasoRule rule, [&]() -> StatusOr<TasoRule> {
      auto read = ReadRule(bytes.substr(static_cast<size_t>(begin), length));
      if (!read.ok())
        return Within(read.status(), fmt::format("byte {}: rule {}", at, rules.size()));
      return read;
    }());
    rule.name = std::to_string(rules.size());
    rules.push_back(std::move(rule));
    in.Skip(static_cast<int>(length));
  }
  return rules;
}

}  // namespace ag

#include "graph/onnx/plan_metadata.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/text.h"
#include "graph/onnx/fields.h"

namespace ag {
namespace {

// The fields of ModelProto.metadata_props and StringStringEntryProto.
constexpr uint32_t kMetadataField = 14;
constexpr uint32_t kKeyField = 1;
constexpr uint32_t kValueField = 2;

// Returns the key of a StringStringEntryProto. As in every protobuf reader, the last one counts.
std::string_view KeyOf(std::string_view entry) {
  std::string_view key;
  const Status read = ForEachField(entry, [&](const WireField& field) {
    if (field.number == kKeyField && field.is_bytes) key = field.payload;
    return OkStatus();
  });
  return read.ok() ? key : std::string_view();
}

void AppendBytes(uint32_t number, std::string_view bytes, std::string& out) {
  AppendLengthTag(number, bytes.size(), out);
  out.append(bytes);
}

std::string FullKey(std::string_view key) { return std::string(kPlanPrefix) + std::string(key); }

}  // namespace

std::string SizesText(const std::map<std::string, Shape>& shapes) {
  std::string text;
  for (const auto& [name, shape] : shapes) {
    text += fmt::format("{}{}={}", text.empty() ? "" : "\n", name, fmt::join(shape, "x"));
  }
  return text;
}

std::map<std::string, Shape> SizesFromText(std::string_view text) {
  std::map<std::string, Shape> shapes;
  for (const std::string_view line : Split(text, '\n')) {
    const auto sizes = ParseNamedSizes(line);
    if (!sizes.ok() || std::ranges::count(sizes->second, 0) > 0) continue;
    shapes[sizes->first] = Shape(sizes->second.begin(), sizes->second.end());
  }
  return shapes;
}

std::string PlanEntry(std::string_view key, std::string_view plan_bytes) {
  std::string entry, whole;
  AppendBytes(kKeyField, FullKey(key), entry);
  AppendBytes(kValueField, Base64(plan_bytes), entry);
  AppendBytes(kMetadataField, entry, whole);
  return whole;
}

Status AppendPlans(std::string_view model, std::span<const KeyedPlan> plans, const ByteSink& sink) {
  const auto is_replaced = [&](std::string_view key) {
    return std::ranges::any_of(plans,
                               [&](const KeyedPlan& plan) { return FullKey(plan.first) == key; });
  };
  size_t kept_from = 0;
  AG_TRY(ForEachField(model, [&](const WireField& field) -> Status {
    if (field.number != kMetadataField || !is_replaced(KeyOf(field.payload))) return OkStatus();
    const auto begin = static_cast<size_t>(field.whole.data() - model.data());
    if (begin > kept_from) AG_TRY(sink(model.substr(kept_from, begin - kept_from)));
    kept_from = begin + field.whole.size();
    return OkStatus();
  }));
  if (model.size() > kept_from) AG_TRY(sink(model.substr(kept_from)));
  for (const auto& [key, bytes] : plans) {
    if (!bytes.empty()) AG_TRY(sink(PlanEntry(key, bytes)));
  }
  return OkStatus();
}

}  // namespace ag

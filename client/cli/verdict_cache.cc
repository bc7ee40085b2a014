#include "client/cli/verdict_cache.h"

#include <nlohmann/json.hpp>

#include "base/digest.h"
#include "base/file.h"
#include "base/private_dir.h"
#include "base/text.h"

namespace ag {
namespace {

using Json = nlohmann::ordered_json;
using Counts = std::vector<std::pair<std::string, int>>;

std::string KeyOf(const Rule& rule, const VerifyOptions& options) {
  return Sha256(fmt::format("verdict {} {} {} {}\n{}", kVerifierVersion, options.instances_min,
                            options.seed, options.class_samples_max, rule.text))
      .Hex();
}

Json ToJson(const Counts& counts) {
  Json json = Json::object();
  for (const auto& [name, count] : counts) json[name] = count;
  return json;
}

Counts ToCounts(const Json& json) {
  Counts counts;
  for (const auto& [name, count] : json.items()) counts.emplace_back(name, count.get<int>());
  return counts;
}

VerifyReport ToReport(const Json& json) {
  return {.rule = json.at("rule"),
          .proved = json.at("proved"),
          .instances = json.at("instances"),
          .classes = ToCounts(json.at("classes")),
          .ruled_out = ToCounts(json.at("ruled_out")),
          .arithmetic = json.at("arithmetic"),
          .counter_example = json.at("counter_example"),
          .ill_typed = json.at("ill_typed"),
          .float_error_max = json.at("float_error_max"),
          .constant_error_max = json.at("constant_error_max")};
}

}  // namespace

VerdictCache::VerdictCache(const std::string& data_dir)
    : folder_(data_dir), path_(data_dir + "/verdicts.jsonl"), known_(Read(path_)) {}

VerdictCache::Lines VerdictCache::Read(const std::string& path) {
  Lines lines;
  const StatusOr<std::string> text = ReadFile(path);
  if (!text.ok()) return lines;
  for (const std::string_view line : Split(*text, '\n')) {
    const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object() || !json.contains("key") || !json["key"].is_string()) continue;
    lines.emplace(json["key"], line);
  }
  return lines;
}

std::optional<VerifyReport> VerdictCache::Find(const Rule& rule,
                                               const VerifyOptions& options) const {
  const auto line = known_.find(KeyOf(rule, options));
  if (line == known_.end()) return std::nullopt;
  try {
    return ToReport(Json::parse(line->second));
  } catch (const Json::exception&) {  // A missing or wrong field is a miss.
    return std::nullopt;
  }
}

void VerdictCache::Add(const Rule& rule, const VerifyOptions& options, const VerifyReport& report) {
  const std::string key = KeyOf(rule, options);
  const Json json = {{"key", key},
                     {"rule", report.rule},
                     {"proved", report.proved},
                     {"instances", report.instances},
                     {"classes", ToJson(report.classes)},
                     {"ruled_out", ToJson(report.ruled_out)},
                     {"arithmetic", report.arithmetic},
                     {"counter_example", report.counter_example},
                     {"ill_typed", report.ill_typed},
                     {"float_error_max", report.float_error_max},
                     {"constant_error_max", report.constant_error_max}};
  added_[key] = json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Status VerdictCache::Save() const {
  if (added_.empty()) return OkStatus();
  Lines lines = Read(path_);
  for (const auto& [key, line] : added_) lines[key] = line;
  std::string text;
  for (const auto& [key, line] : lines) text += line + "\n";
  AG_TRY(MakePrivateDir(folder_));
  return WriteFileAtomically(path_, text);
}

}  // namespace ag

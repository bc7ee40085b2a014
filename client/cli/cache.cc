#include <fstream>
#include <nlohmann/json.hpp>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/file.h"
#include "client/cli/verbs.h"

namespace ag {
namespace {

namespace v1 = autograph::v1;
using Json = nlohmann::ordered_json;

// The export file: this line, then one base64 CacheRecord message a line (docs/cli.md).
constexpr char kExportHeader[] = "autograph-measurements 1";

Json RecordJson(const v1::CacheRecord& record) {
  return {{"key", record.key()},
          {"summary", record.summary()},
          {"environment", record.environment()},
          {"median_ns", record.median_ns()},
          {"low_ns", record.low_ns()},
          {"high_ns", record.high_ns()},
          {"samples", record.samples()},
          {"kernel", record.kernel()},
          {"simulated", record.simulated()},
          {"measured", FormatUnixSeconds(record.measured_unix_seconds())}};
}

}  // namespace

int RunCacheStats(Context& context, const CacheFlags&) {
  const StatusOr<Client*> client = context.Connect("");
  if (!client.ok()) return Fail(client.status());
  const auto stats = (*client)->GetCacheStats();
  if (!stats.ok()) return Fail(stats.status());
  Json json = {{"measurements", stats->measurements()},
               {"failures", stats->failures()},
               {"models", stats->models()},
               {"hits", stats->hits()},
               {"misses", stats->misses()},
               {"bytes", stats->bytes()}};
  json["environments"] = Json::array();
  for (const v1::EnvironmentCount& environment : stats->environments()) {
    json["environments"].push_back(
        {{"environment", environment.environment()}, {"measurements", environment.measurements()}});
  }
  if (context.flags().json) {
    context.Print(json.dump(2));
    return kExitOk;
  }
  context.Print(fmt::format("{} measurements, {} remembered failures, {} whole models, {} KiB",
                            stats->measurements(), stats->failures(), stats->models(),
                            stats->bytes() >> 10));
  context.Print(fmt::format("{} hits, {} misses", stats->hits(), stats->misses()));
  for (const v1::EnvironmentCount& environment : stats->environments()) {
    context.Print(
        fmt::format("  {:>6}  {}", environment.measurements(), environment.environment()));
  }
  return kExitOk;
}

int RunCacheList(Context& context, const CacheFlags& flags) {
  const StatusOr<Client*> client = context.Connect("");
  if (!client.ok()) return Fail(client.status());
  v1::ListMeasurementsRequest request;
  request.set_page_size(flags.count);
  const auto response = (*client)->ListMeasurements(request);
  if (!response.ok()) return Fail(response.status());
  Json list = Json::array();
  for (const v1::CacheRecord& record : response->records()) {
    list.push_back(RecordJson(record));
    if (context.flags().json) continue;
    context.Print(fmt::format("{:>12.1f} us  {:<32} {}", record.median_ns() / 1e3, record.kernel(),
                              record.summary()));
  }
  if (context.flags().json) context.Print(list.dump(2));
  return kExitOk;
}

int RunCacheExport(Context& context, const CacheFlags& flags) {
  const StatusOr<Client*> client = context.Connect("");
  if (!client.ok()) return Fail(client.status());
  std::string text = std::string(kExportHeader) + "\n";
  int64_t count = 0;
  Status status = (*client)->ExportCache(flags.environment, [&](const v1::CacheRecord& record) {
    text += Base64(record.SerializeAsString()) + "\n";
    ++count;
    return OkStatus();
  });
  if (status.ok()) status = WriteFileAtomically(flags.file, text);
  if (!status.ok()) return Fail(status);
  context.Print(context.flags().json
                    ? Json{{"exported", count}}.dump()
                    : fmt::format("{} measurements written to {}", count, flags.file));
  return kExitOk;
}

int RunCacheImport(Context& context, const CacheFlags& flags) {
  std::ifstream file(flags.file);
  if (!file) return Fail(Err(StatusCode::kNotFound, "{}: cannot be read", flags.file));
  std::string line;
  if (!std::getline(file, line) || line != kExportHeader) {
    return Fail(
        Err(StatusCode::kInvalidArgument, "{}: not a file that cache export wrote", flags.file));
  }
  // Everything is parsed before anything is sent: a bad line imports nothing.
  std::vector<v1::CacheRecord> records;
  for (int number = 2; std::getline(file, line); ++number) {
    const StatusOr<std::string> bytes = FromBase64(line);
    if (!bytes.ok() || !records.emplace_back().ParseFromString(*bytes)) {
      return Fail(Err(StatusCode::kInvalidArgument, "{}: line {} is not a measurement", flags.file,
                      number));
    }
  }
  const StatusOr<Client*> client = context.Connect("");
  if (!client.ok()) return Fail(client.status());
  size_t next = 0;
  const auto response = (*client)->ImportCache([&](v1::CacheRecord* record) {
    if (next == records.size()) return false;
    *record = records[next++];
    return true;
  });
  if (!response.ok()) return Fail(response.status());
  context.Print(
      context.flags().json
          ? Json{{"added", response->added()}, {"known", response->known()}}.dump()
          : fmt::format("{} added, {} known before", response->added(), response->known()));
  return kExitOk;
}

}  // namespace ag

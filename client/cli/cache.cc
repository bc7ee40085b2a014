#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/file.h"
#include "client/cli/verbs.h"
#include "device/open_device.h"
#include "plan/recording.h"

namespace ag {
namespace {

namespace v1 = autograph::v1;
using Json = nlohmann::ordered_json;

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

StatusOr<RecordedGroup> ToGroup(const v1::CacheRecord& record) {
  RecordedGroup group;
  StatusOr<GroupProblem> problem = DecodeGroupProblem(record.problem());
  if (!problem.ok()) return Within(problem.status(), record.summary());
  group.problem = *std::move(problem);
  group.environment = record.environment();
  group.measured_unix_seconds = record.measured_unix_seconds();
  Measurement& m = group.measurement;
  m.latency = {record.median_ns(), record.low_ns(), record.high_ns()};
  m.samples = record.samples();
  m.discarded = record.discarded();
  m.canary_ns = record.canary_ns();
  m.kernel = record.kernel();
  for (const v1::KernelTime& other : record.alternatives()) {
    m.alternatives.emplace_back(other.kernel(), other.median_ns());
  }
  m.simulated = record.simulated();
  return group;
}

v1::CacheRecord ToRecord(const RecordedGroup& group) {
  v1::CacheRecord record;
  record.set_problem(EncodeGroupProblem(group.problem));
  record.set_key(GroupKey(record.problem(), group.environment).Hex());
  record.set_summary(Summary(group.problem));
  record.set_environment(group.environment);
  record.set_measured_unix_seconds(group.measured_unix_seconds);
  const Measurement& m = group.measurement;
  record.set_median_ns(m.latency.median_ns);
  record.set_low_ns(m.latency.low_ns);
  record.set_high_ns(m.latency.high_ns);
  record.set_samples(m.samples);
  record.set_discarded(m.discarded);
  record.set_canary_ns(m.canary_ns);
  record.set_kernel(m.kernel);
  for (const auto& [kernel, ns] : m.alternatives) {
    v1::KernelTime* time = record.add_alternatives();
    time->set_kernel(kernel);
    time->set_median_ns(ns);
  }
  record.set_simulated(m.simulated);
  return record;
}

// What the store remembers: of the flags' device with its spec, of their environment, or all.
StatusOr<Recording> Collect(Client& client, const CacheFlags& flags) {
  Recording recording;
  Environment environment = flags.environment;
  if (!flags.device.empty()) {
    AG_LET(const std::unique_ptr<Device> device, OpenDevice(flags.device));
    recording.spec = device->spec();
    if (environment.empty()) environment = device->environment();
  }
  AG_TRY(client.ExportCache(environment, [&](const v1::CacheRecord& record) {
    AG_LET(RecordedGroup group, ToGroup(record));
    recording.groups.push_back(std::move(group));
    return OkStatus();
  }));
  if (recording.groups.empty() && !environment.empty()) {
    return Err(StatusCode::kNotFound, "nothing is remembered of the environment {}", environment);
  }
  return recording;
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
  const StatusOr<Recording> recording = Collect(**client, flags);
  Status status = recording.status();
  if (status.ok()) status = WriteFileAtomically(flags.file, FormatRecording(*recording));
  if (!status.ok()) return Fail(status);
  const size_t count = recording->groups.size();
  context.Print(context.flags().json
                    ? Json{{"exported", count}}.dump()
                    : fmt::format("{} measurements written to {}", count, flags.file));
  return kExitOk;
}

int RunCacheImport(Context& context, const CacheFlags& flags) {
  const StatusOr<std::string> text = ReadFile(flags.file);
  if (!text.ok()) return Fail(text.status());
  // Everything is parsed before anything is sent: a bad line imports nothing.
  const StatusOr<Recording> recording = ParseRecording(*text);
  if (!recording.ok()) return Fail(Within(recording.status(), flags.file));
  const StatusOr<Client*> client = context.Connect("");
  if (!client.ok()) return Fail(client.status());
  size_t next = 0;
  const auto response = (*client)->ImportCache([&](v1::CacheRecord* record) {
    if (next == recording->groups.size()) return false;
    *record = ToRecord(recording->groups[next++]);
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

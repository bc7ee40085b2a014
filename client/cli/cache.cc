#include <nlohmann/json.hpp>

#include "base/file.h"
#include "client/cli/counter_examples.h"
#include "client/cli/job_text.h"
#include "client/cli/verbs.h"
#include "device/open_device.h"
#include "plan/format/recording.h"
#include "wire/json_wire.h"
#include "wire/measurement_wire.h"

namespace ag {
namespace {

namespace v1 = autograph::v1;
using Json = nlohmann::ordered_json;

Json RecordJson(v1::CacheRecord record) {
  record.clear_problem();  // Bytes that nobody reads.
  return Json::parse(ToJson(record));
}

// Adds the record of a group or of a pair.
Status AddRecord(const v1::CacheRecord& record, Recording* recording) {
  const auto fill = [&](auto recorded, auto problem) -> StatusOr<decltype(recorded)> {
    if (!problem.ok()) return Within(problem.status(), record.summary());
    recorded.problem = *std::move(problem);
    recorded.environment = record.environment();
    recorded.measured_unix_seconds = static_cast<int64_t>(record.measured_unix_seconds());
    recorded.measurement = FromProto(record.measurement());
    return recorded;
  };
  if (IsPairProblem(record.problem())) {
    AG_LET(RecordedPair pair, fill(RecordedPair(), DecodePairProblem(record.problem())));
    recording->pairs.push_back(std::move(pair));
    return OkStatus();
  }
  AG_LET(RecordedGroup group, fill(RecordedGroup(), DecodeGroupProblem(record.problem())));
  recording->groups.push_back(std::move(group));
  return OkStatus();
}

// Returns the record. `recorded` is a RecordedGroup or a RecordedPair; `bytes` are its problem's.
template <class Recorded>
v1::CacheRecord ToRecord(const Recorded& recorded, const std::string& bytes) {
  v1::CacheRecord record;
  record.set_problem(bytes);
  record.set_key(GroupKey(bytes, recorded.environment).Hex());
  record.set_summary(Summary(recorded.problem));
  record.set_environment(recorded.environment);
  record.set_measured_unix_seconds(static_cast<double>(recorded.measured_unix_seconds));
  ToProto(recorded.measurement, record.mutable_measurement());
  return record;
}

// Returns the records of groups, then those of pairs.
std::vector<v1::CacheRecord> ToRecords(const Recording& recording) {
  std::vector<v1::CacheRecord> records;
  for (const RecordedGroup& group : recording.groups) {
    records.push_back(ToRecord(group, EncodeGroupProblem(group.problem)));
  }
  for (const RecordedPair& pair : recording.pairs) {
    records.push_back(ToRecord(pair, EncodePairProblem(pair.problem)));
  }
  return records;
}

// The number under which `cache forget --import` finds what was added.
std::string NumberText(const v1::ImportCacheResponse& response) {
  return response.import_id() == 0 ? "" : fmt::format("; import {}", response.import_id());
}

// Returns the stored measurements: those of the flags' device with its spec, those of the flags'
// environment, or all.
StatusOr<Recording> Collect(Client& client, const CacheFlags& flags) {
  Recording recording;
  Environment environment = flags.environment;
  if (!flags.device.empty()) {
    AG_LET(const std::unique_ptr<Device> device, OpenDevice(flags.device));
    recording.spec = device->spec();
    if (environment.empty()) environment = device->environment();
  }
  AG_TRY(client.ExportCache(
      environment, [&](const v1::CacheRecord& record) { return AddRecord(record, &recording); }));
  if (recording.groups.empty() && !environment.empty()) {
    return Err(StatusCode::kNotFound, "nothing is remembered of the environment {}", environment);
  }
  return recording;
}

v1::ListGraphsRequest GraphsRequest(const CacheFlags& flags, const std::string& model) {
  v1::ListGraphsRequest request;
  request.set_page_size(flags.count);
  request.set_model_digest(model);
  request.set_device(flags.device);
  request.set_environment(flags.environment);
  request.set_key(flags.key);
  return request;
}

std::string GraphLine(const v1::CachedGraph& graph) {
  const v1::Result& result = graph.result();
  return fmt::format("{:.12}  {}  model {:.12}  {:<10} {}  {}", graph.key(),
                     FormatUnixSeconds(static_cast<int64_t>(graph.made_unix_seconds())),
                     graph.model_digest(), graph.device(), VerdictText(result),
                     graph.environment());
}

// Returns the newest graph that fits the flags, whole. All that fit must be for one environment.
StatusOr<v1::CachedGraph> FindGraph(Client& client, const CacheFlags& flags, const Digest& model) {
  constexpr int kPageMax = 1000;
  v1::ListGraphsRequest request = GraphsRequest(flags, model.Hex());
  request.set_page_size(kPageMax);
  AG_LET(const auto found, client.ListGraphs(request));
  if (found.graphs().empty()) {
    return Err(StatusCode::kNotFound, "no graph of model {} is remembered{}{}", model.Short(),
               flags.device.empty() ? "" : " for " + flags.device,
               flags.key.empty() ? "" : " with the key " + flags.key);
  }
  for (const v1::CachedGraph& graph : found.graphs()) {
    const v1::CachedGraph& newest = found.graphs(0);
    if (graph.device() == newest.device() && graph.environment() == newest.environment()) continue;
    return Err(StatusCode::kInvalidArgument,
               "model {} has graphs for {} ({}) and for {} ({}): say which with --device or "
               "--environment",
               model.Short(), newest.device(), newest.environment(), graph.device(),
               graph.environment());
  }
  request.set_key(found.graphs(0).key());
  AG_LET(const auto whole, client.ListGraphs(request));
  if (whole.graphs().empty()) {
    return Err(StatusCode::kNotFound, "the graph {} has just gone", request.key());
  }
  return whole.graphs(0);
}

// Prints what the record's key depends on, who measured it and when.
Status Explain(Context& context, const v1::CacheRecord& record) {
  Recording recording;
  AG_TRY(AddRecord(record, &recording));
  context.Print(TableRow("key", record.key() + ", SHA-256 of the group and the environment"));
  context.Print(TableRow("group", record.summary()));
  context.Print(TableRow("environment", record.environment()));
  std::string from = record.worker().empty() ? "" : " by " + record.worker();
  if (record.import_id() != 0) from += fmt::format(", import {}", record.import_id());
  const auto seconds = static_cast<int64_t>(record.measured_unix_seconds());
  context.Print(TableRow("measured", FormatUnixSeconds(seconds) + from));
  // The text of a pair has a meaning beside its groups only.
  if (!recording.groups.empty()) context.Print(FormatRecording(recording));
  return OkStatus();
}

// The rules of a result in the order of first application: "split x2, join".
std::string RulesText(const v1::CachedRegionResult& result) {
  std::vector<std::pair<std::string, int>> rules;
  for (const v1::CachedRegionStep& step : result.steps()) {
    const auto it = std::ranges::find(rules, step.rule(), &std::pair<std::string, int>::first);
    if (it == rules.end()) {
      rules.emplace_back(step.rule(), 1);
    } else {
      ++it->second;
    }
  }
  std::string text;
  for (const auto& [rule, count] : rules) {
    text += (text.empty() ? "" : ", ") + rule + (count > 1 ? fmt::format(" x{}", count) : "");
  }
  return text;
}

std::string RegionLine(const v1::CachedRegion& region) {
  const std::string best =
      region.results().empty()
          ? "nothing better"
          : fmt::format("best {:.1f} us: {}", region.results(0).estimate_ns() / 1e3,
                        RulesText(region.results(0)));
  return fmt::format("{:.12} {:>4} operators {:>4} copies in {:>3} models {:>10.1f} us  {}",
                     region.key(), region.operators(), region.copies(), region.models(),
                     region.estimate_ns() / 1e3, best);
}

// Prints the best-K list, its steps one by one, and what it depends on.
Status Explain(Context& context, const v1::CachedRegion& region) {
  const auto seconds = static_cast<int64_t>(region.made_unix_seconds());
  context.Print(TableRow("key", region.key()));
  context.Print(
      TableRow("region", fmt::format("{} operators, {} copies in {} models", region.operators(),
                                     region.copies(), region.models())));
  context.Print(TableRow("searched", FormatUnixSeconds(seconds)));
  context.Print(TableRow("as it is", fmt::format("{:.1f} us", region.estimate_ns() / 1e3)));
  for (int i = 0; i < region.results_size(); ++i) {
    const v1::CachedRegionResult& result = region.results(i);
    context.Print(TableRow(fmt::format("result {}", i + 1).c_str(),
                           fmt::format("{:.1f} us", result.estimate_ns() / 1e3)));
    for (const v1::CachedRegionStep& step : result.steps()) {
      context.Print(
          TableRow("", fmt::format("{} gains {:.1f} us", step.rule(), step.gain_ns() / 1e3)));
    }
  }
  if (region.results().empty()) context.Print(TableRow("results", "a search found nothing better"));
  context.Print(region.depends_on());
  return OkStatus();
}

// Prints a list: as one JSON array, or each item by `print`; `none` where it is empty.
Status PrintList(Context& context, const auto& items, const char* none, const auto& to_json,
                 const auto& print) {
  Json list = Json::array();
  for (const auto& item : items) {
    if (context.flags().json) {
      list.push_back(to_json(item));
    } else {
      AG_TRY(print(item));
    }
  }
  if (context.flags().json) context.Print(list.dump(2));
  if (items.empty()) context.Note(none);
  return OkStatus();
}

Json ParsedJson(const google::protobuf::Message& message) { return Json::parse(ToJson(message)); }

}  // namespace

StatusOr<int> RunCacheRegions(Context& context, const CacheFlags& flags) {
  AG_LET(Client* const client, context.Connect(""));
  v1::ListRegionsRequest request;
  request.set_page_size(flags.count);
  request.set_environment(flags.environment);
  request.set_key(flags.key);
  AG_LET(const auto response, client->ListRegions(request));
  const auto print = [&](const v1::CachedRegion& region) {
    if (!flags.key.empty()) return Explain(context, region);
    context.Print(RegionLine(region));
    return OkStatus();
  };
  AG_TRY(PrintList(context, response.regions(), "no region is remembered", ParsedJson, print));
  return kExitOk;
}

StatusOr<int> RunCacheGraphs(Context& context, const CacheFlags& flags) {
  std::string model;
  if (!flags.model.empty()) {
    AG_LET(const Digest digest, DigestOfModel(flags.model));
    model = digest.Hex();
  }
  AG_LET(Client* const client, context.Connect(""));
  AG_LET(const auto response, client->ListGraphs(GraphsRequest(flags, model)));
  const auto print = [&](const v1::CachedGraph& graph) {
    context.Print(GraphLine(graph));
    if (!graph.depends_on().empty()) context.Print(graph.depends_on());
    return OkStatus();
  };
  AG_TRY(PrintList(context, response.graphs(), "no graph is remembered", ParsedJson, print));
  return kExitOk;
}

StatusOr<int> RunCacheGet(Context& context, const CacheFlags& flags) {
  for (const std::string& path : {flags.output, flags.report}) {
    if (!path.empty()) AG_TRY(CheckWritable(path));
  }
  AG_LET(const Digest model, DigestOfModel(flags.model));
  AG_LET(Client* const client, context.Connect(""));
  AG_LET(const v1::CachedGraph graph, FindGraph(*client, flags, model));
  v1::Job job;  // What shows and writes results takes jobs.
  job.set_state(v1::Job::SUCCEEDED);
  *job.mutable_result() = graph.result();
  AG_TRY(TakeResult(*client, job, flags.output, flags.report));
  if (context.flags().json) {
    context.Print(ToJson(graph));
    return kExitOk;
  }
  context.Print(GraphLine(graph));
  context.Print(TableRow("written", WrittenText(job, flags.output)) +
                CounterExampleRows(job, flags.output));
  return kExitOk;
}

StatusOr<int> RunCacheStats(Context& context, const CacheFlags&) {
  AG_LET(Client* const client, context.Connect(""));
  AG_LET(const auto stats, client->GetCacheStats());
  if (context.flags().json) {
    context.Print(ToJson(stats));
    return kExitOk;
  }
  context.Print(
      fmt::format("{} measurements, {} remembered failures, {} regions, {} whole models, {} KiB",
                  stats.measurements(), stats.failures(), stats.regions(), stats.models(),
                  stats.bytes() >> 10));
  context.Print(fmt::format("{} hits, {} misses; {} whole answers given", stats.hits(),
                            stats.misses(), stats.answers()));
  for (const v1::EnvironmentCount& environment : stats.environments()) {
    context.Print(
        fmt::format("  {:>6}  {}", environment.measurements(), environment.environment()));
  }
  return kExitOk;
}

StatusOr<int> RunCacheList(Context& context, const CacheFlags& flags) {
  AG_LET(Client* const client, context.Connect(""));
  v1::ListMeasurementsRequest request;
  request.set_page_size(flags.count);
  request.set_environment(flags.environment);
  request.set_key(flags.key);
  request.set_group(flags.group);
  AG_LET(const auto response, client->ListMeasurements(request));
  const auto print = [&](const v1::CacheRecord& record) {
    if (!flags.key.empty()) return Explain(context, record);
    context.Print(fmt::format("{:.12} {:>12.1f} us  {:<32} {}", record.key(),
                              record.measurement().latency().median_ns() / 1e3,
                              record.measurement().kernel(), record.summary()));
    return OkStatus();
  };
  AG_TRY(PrintList(context, response.records(), "no measurement is remembered", RecordJson, print));
  return kExitOk;
}

StatusOr<int> RunCacheExport(Context& context, const CacheFlags& flags) {
  AG_TRY(CheckWritable(flags.file));
  AG_LET(Client* const client, context.Connect(""));
  AG_LET(const Recording recording, Collect(*client, flags));
  AG_TRY(WriteFileAtomically(flags.file, FormatRecording(recording)));
  const size_t count = recording.groups.size() + recording.pairs.size();
  context.Print(context.flags().json
                    ? Json{{"exported", count}}.dump()
                    : fmt::format("{} measurements written to {}", count, flags.file));
  return kExitOk;
}

StatusOr<int> RunCacheForget(Context& context, const CacheFlags& flags) {
  v1::ForgetCacheRequest request;
  request.set_environment(flags.environment);
  request.set_worker(flags.worker);
  request.set_import_id(flags.import);
  request.set_kernel(flags.kernel);
  request.set_all(flags.all);
  if (request.ByteSizeLong() == 0) {
    return context.FailUsage(Err(StatusCode::kInvalidArgument,
                                 "cache forget needs --environment, --worker, --import or "
                                 "--kernel, or --all"));
  }
  AG_LET(Client* const client, context.Connect(""));
  AG_LET(const auto response, client->ForgetCache(request));
  context.Print(context.flags().json
                    ? ToJson(response)
                    : fmt::format("{} measurements, {} whole answers and {} regions forgotten",
                                  response.measurements(), response.models(), response.regions()));
  return kExitOk;
}

StatusOr<int> RunCacheImport(Context& context, const CacheFlags& flags) {
  AG_LET(const auto text, ReadFile(flags.file));
  // Parses everything before sending anything, so that a bad line imports nothing.
  const StatusOr<Recording> recording = ParseRecording(text);
  AG_TRY(recording, "{}", flags.file);
  AG_LET(Client* const client, context.Connect(""));
  const std::vector<v1::CacheRecord> records = ToRecords(*recording);
  size_t next = 0;
  const auto response = client->ImportCache([&](v1::CacheRecord* record) {
    if (next == records.size()) return false;
    *record = records[next++];
    return true;
  });
  if (!response.ok()) return response.status();
  context.Print(context.flags().json ? ToJson(*response)
                                     : fmt::format("{} added, {} known before{}", response->added(),
                                                   response->known(), NumberText(*response)));
  return kExitOk;
}

}  // namespace ag

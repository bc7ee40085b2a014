// `autograph plan show`: the plan of a model file as it would run here, or the plan of a job's
// output, with the kernels that each group was timed with.
#include <map>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/text.h"
#include "client/cli/local_model.h"
#include "client/cli/verbs.h"
#include "plan/group_problem.h"

namespace ag {
namespace {

namespace v1 = autograph::v1;
using Json = nlohmann::ordered_json;

struct KernelTime {
  std::string kernel;
  double median_ms = 0;
  int busy_cores = 0;  // Of the fastest kernel, when known.
};

// Kernels by group, from fast to slow.
using KernelTimes = std::map<int, std::vector<KernelTime>>;

// Returns FormatPlan's text with each group's kernels below its line: "    onednn:nchw 0.412 ms
// chosen".
std::string WithKernels(const std::string& text, const KernelTimes& times) {
  std::string shown;
  for (const std::string_view line : Split(text, '\n')) {
    shown += std::string(line) + "\n";
    if (!line.starts_with("  ") || line.find(": ") == std::string_view::npos) continue;
    const StatusOr<int64_t> group = ParseInt(Trim(line.substr(0, line.find(':'))));
    const auto found = times.find(group.ok() ? static_cast<int>(*group) : -1);
    if (found == times.end()) continue;
    const std::vector<KernelTime>& kernels = found->second;
    for (size_t i = 0; i < kernels.size(); ++i) {
      const std::string how =
          i == 0 ? "fastest"
                 : fmt::format("{:.2f}x as long", kernels[i].median_ms / kernels[0].median_ms);
      const int busy = kernels[i].busy_cores;
      shown +=
          fmt::format("       {:<28} {:>9.4f} ms  {}{}\n", kernels[i].kernel, kernels[i].median_ms,
                      how, busy > 0 ? fmt::format(", busy cores: {}", busy) : "");
    }
  }
  while (shown.ends_with("\n")) shown.pop_back();
  return shown;
}

Json KernelsJson(const KernelTimes& times) {
  Json list = Json::array();
  for (const auto& [group, kernels] : times) {
    Json alternatives = Json::array();
    for (size_t i = 1; i < kernels.size(); ++i) {
      alternatives.push_back({{"kernel", kernels[i].kernel}, {"median_ms", kernels[i].median_ms}});
    }
    list.push_back({{"group", group},
                    {"kernel", kernels[0].kernel},
                    {"median_ms", kernels[0].median_ms},
                    {"busy_cores", kernels[0].busy_cores},
                    {"alternatives", alternatives}});
  }
  return list;
}

void SortBySpeed(KernelTimes* times) {
  for (auto& [group, kernels] : *times) {
    std::ranges::stable_sort(kernels, {}, &KernelTime::median_ms);
  }
}

// Returns the groups of `plan` by the key of their measurement; several may share one.
std::multimap<std::string, int> GroupsByKey(const Graph& graph, const Plan& plan,
                                            const Environment& environment) {
  std::multimap<std::string, int> groups;
  for (size_t g = 0; g < plan.groups.size(); ++g) {
    if (plan.groups[g].pattern == kViewPattern) continue;
    const GroupProblem problem = ExtractGroup(graph, plan.groups[g], plan.policy);
    groups.emplace(GroupKey(EncodeGroupProblem(problem), environment).Hex(), static_cast<int>(g));
  }
  return groups;
}

// Returns the stored measurements of the plan's groups, from the server or the data folder.
StatusOr<KernelTimes> RememberedKernels(Context& context, Session& session) {
  const bool embedded = context.flags().server.empty();
  // Showing a plan does not create a store.
  if (embedded && !FileExists(context.flags().data_dir)) return KernelTimes();
  const Environment environment = session.device().environment();
  const auto groups = GroupsByKey(session.graph(), session.plan(), environment);
  AG_LET(Client* const client, context.Connect(""));
  KernelTimes times;
  AG_TRY(client->ExportCache(environment, [&](const v1::CacheRecord& record) {
    const auto [begin, end] = groups.equal_range(record.key());
    for (auto it = begin; it != end; ++it) {
      std::vector<KernelTime>& kernels = times[it->second];
      const v1::Measurement& m = record.measurement();
      kernels = {{m.kernel(), m.latency().median_ns() / 1e6, m.busy_cores()}};
      for (const v1::KernelTime& other : m.alternatives()) {
        kernels.push_back({other.kernel(), other.median_ns() / 1e6});
      }
    }
    return OkStatus();
  }));
  SortBySpeed(&times);
  return times;
}

int ShowModel(Context& context, const ModelFlags& flags) {
  const auto session = LoadSession(flags, PlanChoice::kCarried);
  if (!session.ok()) return context.Fail(session.status());
  for (const std::string& warning : (*session)->warnings()) context.Note("warning: " + warning);
  StatusOr<KernelTimes> times = RememberedKernels(context, **session);
  if (!times.ok()) {  // Show the plan without them.
    context.Note("warning: no kernels' times: " + Message(times.status()));
    times = KernelTimes();
  }
  const Plan& plan = (*session)->plan();
  const std::string text = FormatPlan((*session)->graph(), plan);
  if (context.flags().json) {
    context.Print(Json{
        {"carried", (*session)->uses_carried_plan()},
        {"environment", plan.environment},
        {"precision", plan.policy.precision},
        {"cold_cache", plan.policy.cold_cache},
        {"groups", plan.groups.size()},
        {"streams", plan.streams.size()},
        {"arena_bytes", plan.arena_bytes},
        {"kernels", KernelsJson(*times)},
        {"text",
         text}}.dump(2));
    return kExitOk;
  }
  context.Note((*session)->uses_carried_plan()
                   ? "the plan in the model:"
                   : "the model carries no plan; as the input would run:");
  context.Print(WithKernels(text, *times));
  if (times->empty()) context.Note("none of its groups was measured here (optimize does)");
  return kExitOk;
}

// Fetches a job's report (docs/report.md). A later version may leave out or change its members.
StatusOr<Json> FetchReport(Context& context, const std::string& name, v1::Job* job) {
  AG_LET(Client* const client, context.Connect(""));
  AG_LET(*job, client->GetJob(name));
  if (!job->has_result()) {
    return Err(StatusCode::kFailedPrecondition, "{} has no result, so it has no plan", name);
  }
  AG_LET(const Digest digest, ParseDigest(job->result().report_digest()));
  AG_LET(const std::string bytes, client->DownloadBytes(digest));
  Json report = Json::parse(bytes, nullptr, /*allow_exceptions=*/false);
  if (report.is_object()) return report;
  return Err(StatusCode::kDataLoss, "the report of {} is no JSON object", name);
}

KernelTimes KernelsOfReport(const Json& report) {
  KernelTimes times;
  for (const Json& entry : report.value("output_kernels", Json::array())) {
    std::vector<KernelTime>& kernels = times[entry.value("group", -1)];
    kernels = {
        {entry.value("kernel", ""), entry.value("median_ms", 0.0), entry.value("busy_cores", 0)}};
    for (const Json& other : entry.value("alternatives", Json::array())) {
      kernels.push_back({other.value("kernel", ""), other.value("median_ms", 0.0)});
    }
  }
  SortBySpeed(&times);
  return times;
}

int ShowJob(Context& context, const std::string& name) {
  v1::Job job;
  const StatusOr<Json> report = FetchReport(context, name, &job);
  if (!report.ok()) return context.Fail(report.status());
  const KernelTimes times = KernelsOfReport(*report);
  std::vector<std::string> lines;
  for (const Json& line : report->value("output_plan", Json::array())) {
    if (line.is_string()) lines.push_back(line.get<std::string>());
  }
  const std::string text = Join(lines, "\n");
  if (context.flags().json) {
    context.Print(Json{
        {"job", job.name()},
        {"environment", job.result().environment()},
        {"simulated", job.result().simulated()},
        {"groups", job.result().groups()},
        {"streams", job.result().streams()},
        {"kernels", KernelsJson(times)},
        {"text",
         text}}.dump(2));
    return kExitOk;
  }
  context.Note(fmt::format("{} of {}, on {}:", job.name(), job.request().model_name(),
                           job.result().environment()));
  context.Print(WithKernels(text, times));
  if (!report->contains("output_kernels")) {
    context.Note("the report was written before kernels' times were part of it");
  }
  return kExitOk;
}

}  // namespace

int RunPlanShow(Context& context, const PlanShowFlags& flags) {
  const std::string& name = flags.model.model;
  // A file of that name comes first, as for the other verbs.
  if (name.starts_with("jobs/") && !FileExists(name)) return ShowJob(context, name);
  return ShowModel(context, flags.model);
}

}  // namespace ag

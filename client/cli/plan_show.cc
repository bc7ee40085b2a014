// `autograph plan show`: the plan of a model file as it would run here, or the plan of a job's
// output, with the kernels that each group was timed with.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/text.h"
#include "client/cli/local_model.h"
#include "client/cli/verbs.h"
#include "plan/format/plan_format.h"
#include "plan/fusion/group_problem.h"
#include "plan/segments.h"
#include "wire/json_wire.h"

namespace ag {
namespace {

namespace v1 = autograph::v1;
using Json = nlohmann::ordered_json;

// Measurements by group.
using GroupTimes = std::map<int, v1::Measurement>;

// Returns FormatPlan's text with each group's kernels below its line: "    onednn:nchw 0.412 ms
// chosen".
std::string WithKernels(const std::string& text, const GroupTimes& times) {
  std::string shown;
  for (const std::string_view line : Split(text, '\n')) {
    shown += std::string(line) + "\n";
    if (!line.starts_with("  ") || line.find(": ") == std::string_view::npos) continue;
    const StatusOr<int64_t> group = ParseInt(Trim(line.substr(0, line.find(':'))));
    const auto found = times.find(group.ok() ? static_cast<int>(*group) : -1);
    if (found == times.end()) continue;
    const v1::Measurement& m = found->second;
    std::vector<std::pair<double, std::string>> kernels = {{m.latency().median_ns(), m.kernel()}};
    for (const v1::KernelTime& other : m.alternatives()) {
      kernels.emplace_back(other.median_ns(), other.kernel());
    }
    std::ranges::stable_sort(kernels, {}, [](auto& kernel) { return kernel.first; });
    for (size_t i = 0; i < kernels.size(); ++i) {
      const auto& [ns, kernel] = kernels[i];
      const std::string how =
          i == 0 ? "fastest" : fmt::format("{:.2f}x as long", ns / kernels[0].first);
      const bool show_active = kernel == m.kernel() && m.active_cores() > 0;
      shown += fmt::format("       {:<28} {:>9.4f} ms  {}{}\n", kernel, ns / 1e6, how,
                           show_active ? fmt::format(", active cores: {}", m.active_cores()) : "");
    }
  }
  while (shown.ends_with("\n")) shown.pop_back();
  return shown;
}

Json KernelsJson(const GroupTimes& times) {
  Json list = Json::array();
  for (const auto& [group, measurement] : times) {
    v1::GroupKernels kernels;
    kernels.set_group(group);
    *kernels.mutable_measurement() = measurement;
    list.push_back(Json::parse(ToJson(kernels)));
  }
  return list;
}

// Returns the groups of `plan`, numbered through its segments, by the key of their measurement;
// several may share one.
std::multimap<std::string, int> GroupsByKey(const Graph& graph, const Plan& plan,
                                            const Environment& environment) {
  std::multimap<std::string, int> groups;
  const std::vector<Graph> graphs = GraphsIn(graph, plan);
  const std::vector<const Plan*> plans = PlansIn(plan);
  int number = 0;
  for (size_t s = 0; s < graphs.size(); ++s) {
    for (const Group& group : plans[s]->groups) {
      const int g = number++;
      if (group.pattern == kViewPattern) continue;
      const GroupProblem problem = ExtractGroup(graphs[s], group, plan.policy);
      groups.emplace(GroupKey(EncodeGroupProblem(problem), environment).Hex(), g);
    }
  }
  return groups;
}

Json SegmentsJson(const Plan& plan) {
  Json list = Json::array();
  for (const Segment& segment : plan.segments) {
    list.push_back({{"operators", segment.nodes.size()},
                    {"instances", segment.instances},
                    {"groups", segment.plan.groups.size()},
                    {"arena_bytes", segment.plan.arena_bytes}});
  }
  return list;
}

// Returns the stored measurements of the plan's groups, from the server or the data folder.
StatusOr<GroupTimes> RememberedKernels(Context& context, Session& session) {
  const bool embedded = context.flags().server.empty();
  // Showing a plan does not create a store.
  if (embedded && !FileExists(context.flags().data_dir)) return GroupTimes();
  const Environment environment = session.device().environment();
  const auto groups = GroupsByKey(session.graph(), session.plan(), environment);
  AG_LET(Client* const client, context.Connect(""));
  GroupTimes times;
  AG_TRY(client->ExportCache(environment, [&](const v1::CacheRecord& record) {
    const auto [begin, end] = groups.equal_range(record.key());
    for (auto it = begin; it != end; ++it) times[it->second] = record.measurement();
    return OkStatus();
  }));
  return times;
}

StatusOr<int> ShowModel(Context& context, const ModelFlags& flags) {
  AG_LET(const auto session, LoadSession(flags, PlanChoice::kCarried));
  for (const std::string& warning : session->warnings()) context.Note("warning: " + warning);
  StatusOr<GroupTimes> times = RememberedKernels(context, *session);
  if (!times.ok()) {  // Show the plan without them.
    context.Note("warning: no kernels' times: " + Message(times.status()));
    times = GroupTimes();
  }
  const Plan& plan = session->plan();
  const std::string text = FormatPlan(session->graph(), plan);
  if (context.flags().json) {
    const PlanSizes sizes = SizesOf(plan);
    context.Print(Json{
        {"carried", session->uses_carried_plan()},
        {"environment", plan.environment},
        {"precision", plan.policy.precision},
        {"cold_cache", plan.policy.cold_cache},
        {"groups", sizes.groups},
        {"streams", sizes.streams},
        {"instances", sizes.instances},
        {"beside", sizes.beside},
        {"segments", SegmentsJson(plan)},
        {"arena_bytes", sizes.arena_bytes},
        {"kernels", KernelsJson(*times)},
        {"text",
         text}}.dump(2));
    return kExitOk;
  }
  context.Note(session->uses_carried_plan() ? "the plan in the model:"
                                            : "the model carries no plan; as the input would run:");
  context.Print(WithKernels(text, *times));
  if (times->empty()) context.Note("none of its groups was measured here (optimize does)");
  return kExitOk;
}

// Fetches a job's report (docs/report.md).
StatusOr<v1::Report> FetchReport(Context& context, const std::string& name, v1::Job* job) {
  AG_LET(Client* const client, context.Connect(""));
  AG_LET(*job, client->GetJob(name));
  if (!job->has_result()) {
    return Err(StatusCode::kFailedPrecondition, "{} has no result, so it has no plan", name);
  }
  AG_LET(const Digest digest, ParseDigest(job->result().report_digest()));
  AG_LET(const std::string bytes, client->DownloadBytes(digest));
  v1::Report report;
  AG_TRY(FromJson(bytes, &report), "the report of {}", name);
  return report;
}

StatusOr<int> ShowJob(Context& context, const std::string& name) {
  v1::Job job;
  AG_LET(const v1::Report report, FetchReport(context, name, &job));
  GroupTimes times;
  for (const v1::GroupKernels& kernels : report.output_kernels()) {
    times[kernels.group()] = kernels.measurement();
  }
  const std::string text = Join(report.output_plan(), "\n");
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
  return kExitOk;
}

}  // namespace

StatusOr<int> RunPlanShow(Context& context, const PlanShowFlags& flags) {
  const std::string& name = flags.model.model;
  // A file of that name comes first, as for the other verbs.
  if (name.starts_with("jobs/") && !FileExists(name)) return ShowJob(context, name);
  return ShowModel(context, flags.model);
}

}  // namespace ag

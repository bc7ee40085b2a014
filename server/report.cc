#include "server/report.h"

#include "base/text.h"
#include "server/json.h"

namespace ag {
namespace {

void Write(JsonWriter& json, std::string_view key, const Latency& latency) {
  json.BeginObject(key);
  json.Double("median_ms", latency.median_ns / 1e6);
  json.Double("low_ms", latency.low_ns / 1e6);
  json.Double("high_ms", latency.high_ns / 1e6);
  json.EndObject();
}

void Write(JsonWriter& json, std::string_view key, const std::optional<Ratio>& ratio) {
  if (!ratio) return;
  json.BeginObject(key);
  json.Double("median", ratio->median);
  json.Double("low", ratio->low);
  json.Double("high", ratio->high);
  json.EndObject();
}

void Write(JsonWriter& json, std::string_view key, const std::vector<RewriteTotal>& totals) {
  json.BeginList(key);
  for (const RewriteTotal& total : totals) {
    json.BeginObject();
    json.String("rule", total.rule);
    json.Int("count", total.count);
    json.Double("estimated_gain_ms", total.gain_ns / 1e6);
    json.EndObject();
  }
  json.EndList();
}

void WriteRequest(JsonWriter& json, const JobRequest& r) {
  json.BeginObject("request");
  json.String("model_digest", r.model.Hex());
  json.String("model_name", r.model_name);
  json.String("device", r.device);
  json.BeginList("shapes");
  for (const BoundShape& shape : r.shapes) {
    json.String("", fmt::format("{}={}", shape.input, Join(shape.dims, "x")));
  }
  json.EndList();
  json.String("policy", r.policy.Text());
  json.String("target", r.target);
  json.Bool("keep_bytes", r.keep_bytes);
  json.String("onnxruntime", r.onnxruntime);
  json.Int("rounds", r.rounds);
  json.Int("expansions", r.expansions);
  json.Int("graphs", r.graphs);
  json.Int("candidates", r.candidates);
  json.Double("time_seconds", r.time_seconds);
  json.Double("alpha", r.alpha);
  json.Double("beta", r.beta);
  json.Int("streams_max", r.streams_max);
  json.Int("seed", static_cast<int64_t>(r.seed));
  json.BeginList("disabled_rules");
  for (const std::string& rule : r.disabled_rules) json.String("", rule);
  json.EndList();
  json.EndObject();
}

void WriteTimes(JsonWriter& json, const JobResult& r) {
  json.BeginObject("times");
  json.Bool("simulated", r.simulated);
  json.String("baseline", r.baseline);
  json.String("output_runtime", r.output_runtime);
  Write(json, "input", r.input_latency);
  Write(json, "output", r.output_latency);
  Write(json, "eager", r.eager_latency);
  json.Double("speedup", r.speedup.median);
  json.Double("speedup_low", r.speedup.low);
  json.Double("speedup_high", r.speedup.high);
  Write(json, "over_onnxruntime", r.over_onnxruntime);
  Write(json, "over_untuned", r.over_untuned);
  Write(json, "over_tuned_input", r.over_tuned_input);
  Write(json, "fresh_session", r.fresh_session);
  json.Double("estimate_ms", r.estimate_ns / 1e6);
  json.EndObject();
}

void WriteErrors(JsonWriter& json, const JobResult& r) {
  json.BeginList("equivalence");
  for (const OutputError& error : r.errors) {
    json.BeginObject();
    json.String("output", error.name);
    json.Double("max_abs", error.max_abs);
    json.Double("max_rel", error.max_rel);
    json.Double("max_elementwise", error.max_elementwise);
    json.Bool("nonfinite_differs", error.nonfinite_differs);
    json.EndObject();
  }
  json.EndList();
}

void WriteSearch(JsonWriter& json, const ReportFacts& facts) {
  const JobResult& r = *facts.result;
  json.BeginObject("search");
  json.String("state", r.search);
  json.String("stop_reason", r.stop_reason);
  json.Int("rounds", r.rounds);
  json.Int("expansions", r.expansions);
  json.Int("graphs", r.graphs);
  json.Int("candidates", r.candidates);
  json.Int("groups_failed", r.groups_failed);
  json.Int("pairs", facts.pairs);
  json.Double("overlap", facts.overlap);
  json.Int("cache_hits", r.cache.hits);
  json.Int("cache_misses", r.cache.misses);
  json.Double("seconds", r.seconds);
  json.EndObject();
}

void Write(JsonWriter& json, std::string_view key, const ModelFacts& facts) {
  json.BeginObject(key);
  json.Int("file_bytes", facts.file_bytes);
  json.Int("parameters", facts.parameters);
  json.BeginObject("operators");
  for (const auto& [op_type, count] : facts.operators) json.Int(op_type, count);
  json.EndObject();
  json.EndObject();
}

void WritePortable(JsonWriter& json, const JobResult& r) {
  json.BeginList("portable");
  for (const PortableStep& step : r.portable) {
    json.BeginObject();
    json.String("rule", step.rule);
    json.Int("wanted", step.wanted);
    json.Int("applied", step.applied);
    json.Bool("kept", step.kept);
    json.String("reason", step.reason);
    Write(json, "ratio", step.ratio);
    json.EndObject();
  }
  json.EndList();
}

void WritePlan(JsonWriter& json, std::string_view key, const std::string& plan) {
  json.BeginList(key);
  for (const std::string_view line : Split(plan, '\n')) {
    if (!line.empty()) json.String("", line);
  }
  json.EndList();
}

void WriteKernels(JsonWriter& json, const std::vector<GroupKernels>& groups) {
  json.BeginList("output_kernels");
  for (const GroupKernels& group : groups) {
    json.BeginObject();
    json.Int("group", group.group);
    json.String("kernel", group.measurement.kernel);
    json.Double("median_ms", group.measurement.latency.median_ns / 1e6);
    json.Int("busy_cores", group.measurement.busy_cores);
    json.BeginList("alternatives");
    for (const auto& [kernel, median_ns] : group.measurement.alternatives) {
      json.BeginObject();
      json.String("kernel", kernel);
      json.Double("median_ms", median_ns / 1e6);
      json.EndObject();
    }
    json.EndList();
    json.EndObject();
  }
  json.EndList();
}

}  // namespace

std::string WriteReport(const ReportFacts& facts) {
  const JobResult& r = *facts.result;
  JsonWriter json;
  json.BeginObject();
  json.Int("report_version", kReportVersion);
  json.String("verdict", r.verdict);
  WriteRequest(json, *facts.request);
  json.String("environment", r.environment);
  json.String("rules_digest", facts.rules_digest);
  WriteTimes(json, r);
  WriteErrors(json, r);
  Write(json, "rewrites", r.rewrites);
  Write(json, "clean_up", r.clean_up);
  Write(json, "input_file", r.input_facts);
  Write(json, "output_file", r.output_facts);
  json.BeginObject("graph");
  json.Int("nodes_in", facts.nodes_in);
  json.Int("nodes_out", facts.nodes_out);
  json.Int("groups", r.groups);
  json.Int("streams", r.streams);
  json.EndObject();
  WriteSearch(json, facts);
  WritePortable(json, r);
  json.String("output", r.output_kind);
  json.String("output_digest", r.output.Hex());
  json.BeginList("warnings");
  for (const std::string& warning : r.warnings) json.String("", warning);
  json.EndList();
  WritePlan(json, "input_plan", facts.input_plan);
  WritePlan(json, "output_plan", facts.output_plan);
  WriteKernels(json, facts.output_kernels);
  json.EndObject();
  return json.Take();
}

}  // namespace ag

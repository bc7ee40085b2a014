#include "server/job_wire.h"

#include <absl/strings/ascii.h>

#include <algorithm>
#include <cmath>

#include "autograph/v1/optimizer.pb.h"
#include "search/search.h"
#include "wire/measurement_wire.h"

namespace ag {

namespace v1 = autograph::v1;

namespace {

constexpr size_t kNameBytesMax = 1000;

Status CheckCount(std::string_view field, int64_t value, int64_t max) {
  if (value >= 0 && value <= max) return OkStatus();
  return Err(StatusCode::kInvalidArgument, "{}: {} is not in 0..{}", field, value, max);
}

Status CheckReal(std::string_view field, double value, double max) {
  if (std::isfinite(value) && value >= 0 && value <= max) return OkStatus();
  return Err(StatusCode::kInvalidArgument, "{}: {} is not in 0..{}", field, value, max);
}

Status CheckRanges(const v1::OptimizeRequest& p) {
  AG_TRY(
      CheckCount("request_id length", static_cast<int64_t>(p.request_id().size()), kNameBytesMax));
  AG_TRY(
      CheckCount("model_name length", static_cast<int64_t>(p.model_name().size()), kNameBytesMax));
  AG_TRY(CheckCount("budget.rounds", p.budget().rounds(), 1'000'000));
  AG_TRY(CheckCount("budget.expansions", p.budget().expansions(), 100'000'000));
  AG_TRY(CheckCount("budget.graphs", p.budget().graphs(), 1'000'000'000));
  AG_TRY(CheckCount("budget.candidates", p.budget().candidates(), 200));
  AG_TRY(CheckReal("budget.time_seconds", p.budget().time_seconds(), 7 * 86400));
  AG_TRY(CheckReal("alpha", p.alpha(), 100));
  AG_TRY(CheckReal("beta", p.beta(), 100));
  if (p.beta() != 0 && p.beta() < 1) {
    return Err(StatusCode::kInvalidArgument, "beta: {} is below 1", p.beta());
  }
  AG_TRY(CheckCount("streams_max", p.streams_max(), 1024));
  return CheckReal("policy.tolerance", p.policy().tolerance(), 1);
}

Status ReadPolicy(const v1::Policy& proto, Policy* policy) {
  if (!proto.precision().empty()) policy->precision = proto.precision();
  policy->tolerance =
      proto.tolerance() > 0 ? proto.tolerance() : DefaultTolerance(policy->precision);
  policy->cold_cache = proto.cold_cache();
  policy->nonfinite_strict = proto.nonfinite_strict();
  // The device decides which of these it supports, once the job has one.
  for (const char* known : {"fp32", "tf32", "fp16", "bf16"}) {
    if (policy->precision == known) return OkStatus();
  }
  return Err(StatusCode::kInvalidArgument,
             "policy.precision: '{}' is none of fp32, tf32, fp16, bf16", policy->precision);
}

Status ReadShapes(const v1::OptimizeRequest& p, JobRequest* request) {
  for (const v1::BoundShape& shape : p.shapes()) {
    for (const int64_t dim : shape.dims()) {
      if (dim >= 0) continue;
      return Err(StatusCode::kInvalidArgument, "shapes: {}: a size of {}", shape.input(), dim);
    }
    request->shapes.push_back({shape.input(), {shape.dims().begin(), shape.dims().end()}});
  }
  auto& shapes = request->shapes;
  std::sort(shapes.begin(), shapes.end(), [](auto& a, auto& b) { return a.input < b.input; });
  for (size_t i = 1; i < shapes.size(); ++i) {
    if (shapes[i].input != shapes[i - 1].input) continue;
    return Err(StatusCode::kInvalidArgument, "shapes: {} is bound twice", shapes[i].input);
  }
  return OkStatus();
}

Status CheckWord(std::string_view field, const std::string& value,
                 std::initializer_list<const char*> known) {
  for (const char* word : known) {
    if (value == word) return OkStatus();
  }
  return Err(StatusCode::kInvalidArgument, "{}: '{}' is none of {}", field, value,
             fmt::join(known, ", "));
}

Status ReadTarget(const v1::OptimizeRequest& p, JobRequest* request) {
  if (!p.target().empty()) request->target = p.target();
  if (!p.onnxruntime().empty()) request->onnxruntime = p.onnxruntime();
  request->keep_bytes = p.keep_bytes();
  AG_TRY(CheckWord("target", request->target, {"device", "portable"}));
  AG_TRY(CheckWord("onnxruntime", request->onnxruntime, {"auto", "require", "off"}));
  if (request->target != "portable") return OkStatus();
  if (request->keep_bytes) {
    return Err(StatusCode::kInvalidArgument,
               "keep_bytes and target portable exclude each other: a portable output is rewritten "
               "or the input's own bytes");
  }
  if (request->onnxruntime == "off") {
    return Err(StatusCode::kInvalidArgument,
               "target portable measures in ONNX Runtime: onnxruntime may not be off");
  }
  return OkStatus();
}

// Returns the value with this name, or 0.
template <class Enum>
Enum EnumOf(bool (*parse)(google::protobuf::ConstStringParam, Enum*), std::string_view name) {
  Enum value{};
  parse(std::string(name), &value);
  return value;
}

template <class T>
T Or(T value, T otherwise) {
  return value == 0 ? otherwise : value;
}

}  // namespace

StatusOr<JobRequest> FromProto(const v1::OptimizeRequest& p) {
  AG_TRY(CheckRanges(p));
  JobRequest r;
  auto model = ParseDigest(p.model_digest());
  AG_TRY(model.status(), "model_digest");
  r.model = *model;
  r.request_id = p.request_id();
  r.model_name = p.model_name();
  r.device = p.device();
  AG_TRY(ReadShapes(p, &r));
  AG_TRY(ReadPolicy(p.policy(), &r.policy));
  const SearchOptions defaults;
  r.rounds = Or(p.budget().rounds(), defaults.limits.rounds_max);
  r.expansions = Or(p.budget().expansions(), defaults.limits.expansions_max);
  r.graphs = Or(p.budget().graphs(), defaults.limits.graphs_max);
  r.candidates = Or(p.budget().candidates(), defaults.limits.candidates_max);
  r.time_seconds =
      Or(p.budget().time_seconds(), static_cast<double>(defaults.limits.time_max.count()) / 1e9);
  r.alpha = Or(p.alpha(), defaults.alpha);
  r.beta = Or(p.beta(), defaults.beta);
  r.streams_max = p.streams_max();
  r.seed = Or(p.seed(), uint64_t{1});
  r.disabled_rules.assign(p.disabled_rules().begin(), p.disabled_rules().end());
  std::sort(r.disabled_rules.begin(), r.disabled_rules.end());
  r.skip_model_cache = p.skip_model_cache();
  r.skip_group_cache = p.skip_group_cache();
  r.only_cached = p.only_cached();
  AG_TRY(ReadTarget(p, &r));
  if (r.only_cached && r.skip_model_cache) {
    return Err(StatusCode::kInvalidArgument, "only_cached and skip_model_cache exclude each other");
  }
  return r;
}

namespace {

using ag::FromProto, ag::ToProto;  // Those of measured values.

void ToProto(const JobRequest& r, v1::OptimizeRequest* p) {
  p->set_request_id(r.request_id);
  p->set_model_digest(r.model.Hex());
  p->set_model_name(r.model_name);
  p->set_device(r.device);
  for (const BoundShape& shape : r.shapes) {
    v1::BoundShape* bound = p->add_shapes();
    bound->set_input(shape.input);
    bound->mutable_dims()->Assign(shape.dims.begin(), shape.dims.end());
  }
  p->mutable_policy()->set_precision(r.policy.precision);
  p->mutable_policy()->set_tolerance(r.policy.tolerance);
  p->mutable_policy()->set_cold_cache(r.policy.cold_cache);
  p->mutable_policy()->set_nonfinite_strict(r.policy.nonfinite_strict);
  p->mutable_budget()->set_rounds(r.rounds);
  p->mutable_budget()->set_expansions(r.expansions);
  p->mutable_budget()->set_graphs(r.graphs);
  p->mutable_budget()->set_candidates(r.candidates);
  p->mutable_budget()->set_time_seconds(r.time_seconds);
  p->set_alpha(r.alpha);
  p->set_beta(r.beta);
  p->set_streams_max(r.streams_max);
  p->set_seed(r.seed);
  for (const std::string& rule : r.disabled_rules) p->add_disabled_rules(rule);
  p->set_skip_model_cache(r.skip_model_cache);
  p->set_skip_group_cache(r.skip_group_cache);
  p->set_only_cached(r.only_cached);
  p->set_target(r.target);
  p->set_keep_bytes(r.keep_bytes);
  p->set_onnxruntime(r.onnxruntime);
}

void ToProto(const std::vector<RewriteTotal>& totals,
             google::protobuf::RepeatedPtrField<v1::RewriteCount>* p) {
  for (const RewriteTotal& total : totals) {
    v1::RewriteCount* count = p->Add();
    count->set_rule(total.rule);
    count->set_count(total.count);
    count->set_gain_ns(total.gain_ns);
  }
}

void ToProto(const ModelFacts& facts, v1::ModelFacts* p) {
  p->set_file_bytes(facts.file_bytes);
  p->set_parameters(facts.parameters);
  for (const auto& [op_type, count] : facts.operators) {
    v1::OperatorCount* row = p->add_operators();
    row->set_op_type(op_type);
    row->set_count(count);
  }
}

ModelFacts FromProto(const v1::ModelFacts& p) {
  ModelFacts facts{p.file_bytes(), p.parameters(), {}};
  for (const v1::OperatorCount& row : p.operators()) facts.operators[row.op_type()] = row.count();
  return facts;
}

void ToProto(const PortableStep& step, v1::PortableStep* p) {
  p->set_rule(step.rule);
  p->set_wanted(step.wanted);
  p->set_applied(step.applied);
  p->set_kept(step.kept);
  p->set_reason(step.reason);
  if (step.ratio) ToProto(*step.ratio, p->mutable_ratio());
}

PortableStep FromProto(const v1::PortableStep& p) {
  PortableStep step{p.rule(), p.wanted(), p.applied(), p.kept(), p.reason(), std::nullopt};
  if (p.has_ratio()) step.ratio = FromProto(p.ratio());
  return step;
}

void ToProto(const JobResult& r, v1::Result* p) {
  p->set_verdict(EnumOf(v1::Result::Verdict_Parse, r.verdict));
  p->set_device(r.device);
  p->set_environment(r.environment);
  ToProto(r.input_latency, p->mutable_input_latency());
  ToProto(r.output_latency, p->mutable_output_latency());
  ToProto(r.eager_latency, p->mutable_eager_latency());
  p->set_speedup(r.speedup.median);
  p->set_speedup_low(r.speedup.low);
  p->set_speedup_high(r.speedup.high);
  for (const OutputError& error : r.errors) ToProto(error, p->add_errors());
  ToProto(r.rewrites, p->mutable_rewrites());
  ToProto(r.clean_up, p->mutable_clean_up());
  p->set_groups(r.groups);
  p->set_streams(r.streams);
  p->set_stop_reason(EnumOf(v1::Result::StopReason_Parse, absl::AsciiStrToUpper(r.stop_reason)));
  p->set_seconds(r.seconds);
  p->mutable_cache()->set_hits(r.cache.hits);
  p->mutable_cache()->set_misses(r.cache.misses);
  p->mutable_cache()->set_model_hit(r.cache.model_hit);
  p->set_output_digest(r.output.Hex());
  p->set_output_bytes(r.output_bytes);
  p->set_report_digest(r.report.IsZero() ? "" : r.report.Hex());
  p->set_simulated(r.simulated);
  p->set_rounds(r.rounds);
  p->set_expansions(r.expansions);
  p->set_graphs(r.graphs);
  p->set_candidates(r.candidates);
  p->set_groups_failed(r.groups_failed);
  for (const std::string& warning : r.warnings) p->add_warnings(warning);
  p->set_estimate_ns(r.estimate_ns);
  p->set_onnxruntime(r.onnxruntime);
  ToProto(r.input_facts, p->mutable_input_facts());
  ToProto(r.output_facts, p->mutable_output_facts());
  p->set_search(EnumOf(v1::Result::SearchState_Parse, r.search));
  p->set_output(EnumOf(v1::Result::Output_Parse, r.output_kind));
  p->set_baseline(r.baseline);
  p->set_output_runtime(r.output_runtime);
  if (r.over_onnxruntime) ToProto(*r.over_onnxruntime, p->mutable_over_onnxruntime());
  if (r.over_untuned) ToProto(*r.over_untuned, p->mutable_over_untuned());
  if (r.over_tuned_input) ToProto(*r.over_tuned_input, p->mutable_over_tuned_input());
  if (r.fresh_session) ToProto(*r.fresh_session, p->mutable_fresh_session());
  for (const PortableStep& step : r.portable) ToProto(step, p->add_portable());
}

void ToProto(const JobProgress& progress, v1::Progress* p) {
  p->set_stage(progress.stage);
  p->set_round(progress.round);
  p->set_graphs(progress.graphs);
  p->set_candidates(progress.candidates);
  p->set_best_speedup(progress.best_speedup);
  p->set_groups_measured(progress.groups_measured);
  p->set_cache_hits(progress.cache_hits);
  p->set_fraction(progress.fraction);
  p->set_waits_for(progress.waits_for);
  p->set_elapsed_seconds(progress.elapsed_seconds);
}

}  // namespace

void ToProto(const Job& job, v1::Job* p) {
  p->set_name(job.name());
  p->set_state(static_cast<v1::Job::State>(job.state));
  ToProto(job.progress, p->mutable_progress());
  if (job.result.has_value()) ToProto(*job.result, p->mutable_result());
  if (!job.error.ok()) {
    p->mutable_error()->set_code(static_cast<int>(job.error.code()));
    p->mutable_error()->set_message(Message(job.error));
  }
  ToProto(job.request, p->mutable_request());
  p->set_created_unix_seconds(static_cast<double>(job.created_unix_seconds));
  p->set_finished_unix_seconds(static_cast<double>(job.finished_unix_seconds));
  p->set_version(job.version);
  p->set_resumed(job.resumed);
}

std::vector<RewriteTotal> FromProto(const google::protobuf::RepeatedPtrField<v1::RewriteCount>& p) {
  std::vector<RewriteTotal> totals;
  for (const v1::RewriteCount& c : p) totals.push_back({c.rule(), c.count(), c.gain_ns()});
  return totals;
}

std::string EncodeJobRequest(const JobRequest& request) {
  v1::OptimizeRequest proto;
  ToProto(request, &proto);
  return proto.SerializeAsString();
}

StatusOr<JobRequest> DecodeJobRequest(std::string_view bytes) {
  v1::OptimizeRequest proto;
  if (!proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return Err(StatusCode::kDataLoss, "stored request does not parse");
  }
  return FromProto(proto);
}

std::string EncodeJobResult(const JobResult& result) {
  v1::Result proto;
  ToProto(result, &proto);
  return proto.SerializeAsString();
}

StatusOr<JobResult> DecodeJobResult(std::string_view bytes) {
  v1::Result p;
  if (!p.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return Err(StatusCode::kDataLoss, "stored result does not parse");
  }
  JobResult r;
  r.verdict = v1::Result::Verdict_Name(p.verdict());
  r.device = p.device();
  r.environment = p.environment();
  r.input_latency = FromProto(p.input_latency());
  r.output_latency = FromProto(p.output_latency());
  r.eager_latency = FromProto(p.eager_latency());
  r.speedup = {p.speedup(), p.speedup_low(), p.speedup_high()};
  for (const v1::OutputError& error : p.errors()) r.errors.push_back(FromProto(error));
  r.rewrites = FromProto(p.rewrites());
  r.clean_up = FromProto(p.clean_up());
  r.groups = p.groups();
  r.streams = p.streams();
  r.stop_reason = absl::AsciiStrToLower(v1::Result::StopReason_Name(p.stop_reason()));
  r.seconds = p.seconds();
  r.cache = {p.cache().hits(), p.cache().misses(), p.cache().model_hit()};
  AG_LET(r.output, ParseDigest(p.output_digest()));
  r.output_bytes = p.output_bytes();
  if (!p.report_digest().empty()) {
    AG_LET(r.report, ParseDigest(p.report_digest()));
  }
  r.simulated = p.simulated();
  r.rounds = p.rounds();
  r.expansions = p.expansions();
  r.graphs = p.graphs();
  r.candidates = p.candidates();
  r.groups_failed = p.groups_failed();
  r.warnings.assign(p.warnings().begin(), p.warnings().end());
  r.estimate_ns = p.estimate_ns();
  r.input_facts = FromProto(p.input_facts());
  r.output_facts = FromProto(p.output_facts());
  r.onnxruntime = p.onnxruntime();
  r.search = v1::Result::SearchState_Name(p.search());
  r.output_kind = v1::Result::Output_Name(p.output());
  r.baseline = p.baseline();
  r.output_runtime = p.output_runtime();
  if (p.has_over_onnxruntime()) r.over_onnxruntime = FromProto(p.over_onnxruntime());
  if (p.has_over_untuned()) r.over_untuned = FromProto(p.over_untuned());
  if (p.has_over_tuned_input()) r.over_tuned_input = FromProto(p.over_tuned_input());
  if (p.has_fresh_session()) r.fresh_session = FromProto(p.fresh_session());
  for (const v1::PortableStep& step : p.portable()) r.portable.push_back(FromProto(step));
  return r;
}

}  // namespace ag

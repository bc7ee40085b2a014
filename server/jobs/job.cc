#include "server/jobs/job.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/printable.h"
#include "base/reason.h"
#include "base/text.h"
#include "base/trace.h"
#include "search/search.h"
#include "wire/json_wire.h"

namespace ag {
namespace {

constexpr size_t kNameBytesMax = 1000;
// The paper measures 20 graphs per round, and ends when none is accepted.
constexpr int kPaperCandidatesMax = 20;
constexpr int kPaperRoundsMax = 1'000'000;

Status CheckCount(std::string_view field, int64_t value, int64_t max) {
  if (value >= 0 && value <= max) return OkStatus();
  return Err(StatusCode::kInvalidArgument, "{}: {} is not in 0..{}", field, value, max);
}

Status CheckReal(std::string_view field, double value, double max) {
  if (std::isfinite(value) && value >= 0 && value <= max) return OkStatus();
  return Err(StatusCode::kInvalidArgument, "{}: {} is not in 0..{}", field, value, max);
}

// Names stand in lists and logs: a control character would make another line there, or change the
// terminal.
Status CheckName(std::string_view field, const std::string& name) {
  if (name.size() > kNameBytesMax) {
    return CheckCount(fmt::format("{} length", field), static_cast<int64_t>(name.size()),
                      kNameBytesMax);
  }
  return CheckPrintable(field, name);
}

Status CheckRanges(const v1::OptimizeRequest& p) {
  AG_TRY(CheckName("request_id", p.request_id()));
  AG_TRY(
      CheckCount("model_name length", static_cast<int64_t>(p.model_name().size()), kNameBytesMax));
  AG_TRY(CheckName("client", p.client()));
  AG_TRY(CheckName("device", p.device()));
  AG_TRY(CheckCount("budget.rounds", p.budget().rounds(), 1'000'000));
  AG_TRY(CheckCount("budget.expansions", p.budget().expansions(), 100'000'000));
  AG_TRY(CheckCount("budget.graphs", p.budget().graphs(), 1'000'000'000));
  AG_TRY(CheckCount("budget.cell_graphs", p.budget().cell_graphs(), 1'000'000'000));
  AG_TRY(CheckCount("budget.stale_graphs", p.budget().stale_graphs(), 1'000'000'000));
  AG_TRY(CheckCount("budget.candidates", p.budget().candidates(), 200));
  AG_TRY(CheckReal("budget.time_seconds", p.budget().time_seconds(), 7 * 86400));
  AG_TRY(CheckReal("alpha", p.alpha(), 100));
  AG_TRY(CheckReal("beta", p.beta(), 100));
  if (p.beta() != 0 && p.beta() < 1) {
    return Err(StatusCode::kInvalidArgument, "beta: {} is below 1", p.beta());
  }
  AG_TRY(CheckCount("streams_max", p.streams_max(), 1024));
  AG_TRY(CheckCount("piece_nodes", p.piece_nodes(), 1'000'000));
  AG_TRY(CheckCount("region_nodes", p.region_nodes(), 1'000'000));
  return CheckReal("policy.tolerance", p.policy().tolerance(), 1);
}

Status AcceptPolicy(v1::Policy* policy) {
  if (policy->precision().empty()) policy->set_precision(Policy().precision);
  // The device decides which of these it supports, once the job has one.
  for (const char* known : {"fp32", "tf32", "fp16", "bf16"}) {
    if (policy->precision() == known) return OkStatus();
  }
  return Err(StatusCode::kInvalidArgument,
             "policy.precision: '{}' is none of fp32, tf32, fp16, bf16", policy->precision());
}

using BoundList = google::protobuf::RepeatedPtrField<v1::BoundShape>;

// What the sandbox lets through has fewer inputs and sizes.
constexpr int kShapesMax = 1000, kDimsMax = 64, kRulesMax = 1000, kPriorityMax = 100;

Status AcceptShapes(const std::string& where, BoundList& shapes) {
  AG_TRY(CheckCount(where + ": number of inputs", shapes.size(), kShapesMax));
  for (const v1::BoundShape& shape : shapes) {
    const auto name_bytes = static_cast<int64_t>(shape.input().size());
    AG_TRY(CheckCount(where + ": length of a name", name_bytes, kNameBytesMax));
    AG_TRY(CheckCount(where + ": number of sizes", shape.dims_size(), kDimsMax));
    for (const int64_t dim : shape.dims()) {
      if (dim >= 0) continue;
      return Err(StatusCode::kInvalidArgument, "{}: {}: a size of {}", where, shape.input(), dim);
    }
  }
  std::sort(shapes.begin(), shapes.end(), [](auto& a, auto& b) { return a.input() < b.input(); });
  for (int i = 1; i < shapes.size(); ++i) {
    if (shapes[i].input() != shapes[i - 1].input()) continue;
    return Err(StatusCode::kInvalidArgument, "{}: {} is bound twice", where, shapes[i].input());
  }
  return OkStatus();
}

Status AcceptShapeSets(v1::OptimizeRequest* r) {
  constexpr int kSetsMax = 16;
  if (r->shape_sets_size() > kSetsMax) {
    return Err(StatusCode::kInvalidArgument, "shape_sets: {} sets, at most {}",
               r->shape_sets_size(), kSetsMax);
  }
  for (int i = 0; i < r->shape_sets_size(); ++i) {
    BoundList& set = *r->mutable_shape_sets(i)->mutable_shapes();
    if (set.empty()) return Err(StatusCode::kInvalidArgument, "shape set {}: is empty", i + 1);
    AG_TRY(AcceptShapes(fmt::format("shape set {}", i + 1), set));
  }
  if (r->shape_sets_size() > 0 && IsPortable(*r)) {
    return Err(StatusCode::kInvalidArgument,
               "shape_sets: an output of target portable has no plans; leave one of both out");
  }
  return OkStatus();
}

Status CheckInputSets(const v1::OptimizeRequest& r) {
  constexpr int kSetsMax = 64;
  if (r.inputs_size() > kSetsMax) {
    return Err(StatusCode::kInvalidArgument, "inputs: {} sets, at most {}", r.inputs_size(),
               kSetsMax);
  }
  std::set<std::string> names;
  for (const v1::InputSet& set : r.inputs()) {
    if (set.name().empty()) return Err(StatusCode::kInvalidArgument, "inputs: a set has no name");
    AG_TRY(CheckName("inputs", set.name()));
    AG_TRY(ParseDigest(set.digest()).status(), "inputs {}", set.name());
    if (names.insert(set.name()).second) continue;
    return Err(StatusCode::kInvalidArgument, "inputs: two sets are called {}", set.name());
  }
  return OkStatus();
}

template <class T>
T Or(T value, T otherwise) {
  return value == 0 ? otherwise : value;
}

bool IsPaper(const v1::OptimizeRequest& request) {
  return request.search() == v1::OptimizeRequest::PAPER ||
         request.search() == v1::OptimizeRequest::PAPER_WITHOUT_DP;
}

// Fills in the parameters of the search that its method decides.
Status AcceptSearch(v1::OptimizeRequest* r) {
  using Request = v1::OptimizeRequest;
  if (r->search() == Request::SEARCH_UNSPECIFIED) r->set_search(Request::OURS);
  if (!Request::Search_IsValid(r->search())) {
    return Err(StatusCode::kInvalidArgument, "search: {} is none", static_cast<int>(r->search()));
  }
  const bool is_paper = IsPaper(*r);
  if (!is_paper && (r->piece_nodes() > 0 || r->region_nodes() > 0)) {
    return Err(StatusCode::kInvalidArgument, "{}: only the paper's search has pieces and regions",
               r->piece_nodes() > 0 ? "piece_nodes" : "region_nodes");
  }
  if (r->search() != Request::OURS && r->budget().cell_graphs() > 0) {
    return Err(StatusCode::kInvalidArgument, "budget.cell_graphs: only our search has cells");
  }
  if (is_paper && r->budget().stale_graphs() > 0) {
    return Err(StatusCode::kInvalidArgument,
               "budget.stale_graphs: the paper searches each region to its end");
  }
  const SearchOptions defaults;
  v1::SearchBudget& budget = *r->mutable_budget();
  budget.set_rounds(Or(budget.rounds(), is_paper ? kPaperRoundsMax : defaults.limits.rounds_max));
  budget.set_candidates(
      Or(budget.candidates(), is_paper ? kPaperCandidatesMax : defaults.limits.candidates_max));
  if (!budget.has_cell_graphs()) {
    const bool is_ours = r->search() == Request::OURS;
    budget.set_cell_graphs(is_ours ? defaults.limits.cell_graphs_max : 0);
  }
  if (!budget.has_stale_graphs()) {
    budget.set_stale_graphs(is_paper ? 0 : defaults.limits.stale_graphs_max);
  }
  if (!is_paper) return OkStatus();
  r->set_piece_nodes(Or(r->piece_nodes(), defaults.partition.piece_nodes_max));
  r->set_region_nodes(Or(r->region_nodes(), defaults.partition.region_nodes_max));
  return OkStatus();
}

Status AcceptTarget(v1::OptimizeRequest* r) {
  using Request = v1::OptimizeRequest;
  if (r->target() == Request::TARGET_UNSPECIFIED) r->set_target(Request::DEVICE);
  if (r->onnxruntime() == Request::ONNX_RUNTIME_UNSPECIFIED) r->set_onnxruntime(Request::AUTO);
  if (!Request::Target_IsValid(r->target())) {
    return Err(StatusCode::kInvalidArgument, "target: {} is none", static_cast<int>(r->target()));
  }
  if (!Request::OnnxRuntime_IsValid(r->onnxruntime())) {
    return Err(StatusCode::kInvalidArgument, "onnxruntime: {} is none",
               static_cast<int>(r->onnxruntime()));
  }
  if (!IsPortable(*r)) return OkStatus();
  if (r->keep_bytes()) {
    return Err(StatusCode::kInvalidArgument,
               "keep_bytes and target portable exclude each other: a portable output is rewritten "
               "or the input's own bytes");
  }
  if (r->onnxruntime() == Request::OFF) {
    return Err(StatusCode::kInvalidArgument,
               "target portable measures in ONNX Runtime: onnxruntime may not be off");
  }
  return OkStatus();
}

Status AcceptObjective(v1::OptimizeRequest* r) {
  using Request = v1::OptimizeRequest;
  AG_TRY(CheckCount("batch", r->batch(), 1'000'000));
  if (r->objective() == Request::OBJECTIVE_UNSPECIFIED) r->set_objective(Request::LATENCY);
  if (!Request::Objective_IsValid(r->objective())) {
    return Err(StatusCode::kInvalidArgument, "objective: {} is none",
               static_cast<int>(r->objective()));
  }
  if (r->objective() == Request::THROUGHPUT && r->batch() == 1) {
    return Err(StatusCode::kInvalidArgument,
               "objective throughput: a batch of 1 has none but its latency");
  }
  return OkStatus();
}

}  // namespace

StatusOr<v1::OptimizeRequest> AcceptedRequest(v1::OptimizeRequest r) {
  AG_TRY(CheckRanges(r));
  AG_TRY(ParseDigest(r.model_digest()).status(), "model_digest");
  AG_TRY(AcceptShapes("shapes", *r.mutable_shapes()));
  AG_TRY(AcceptShapeSets(&r));
  AG_TRY(CheckInputSets(r));
  if (r.priority() < -kPriorityMax || r.priority() > kPriorityMax) {
    return Err(StatusCode::kInvalidArgument, "priority {}: expected -{} to {}", r.priority(),
               kPriorityMax, kPriorityMax);
  }
  AG_TRY(AcceptPolicy(r.mutable_policy()));
  AG_TRY(AcceptSearch(&r));
  const SearchOptions defaults;
  v1::SearchBudget& budget = *r.mutable_budget();
  budget.set_expansions(Or(budget.expansions(), defaults.limits.expansions_max));
  budget.set_graphs(Or(budget.graphs(), defaults.limits.graphs_max));
  budget.set_time_seconds(
      Or(budget.time_seconds(), static_cast<double>(defaults.limits.time_max.count()) / 1e9));
  // A file may have any name.
  if (!IsPrintable(r.model_name())) r.set_model_name(OneLine(r.model_name()));
  r.set_alpha(Or(r.alpha(), defaults.alpha));
  r.set_beta(Or(r.beta(), defaults.beta));
  r.set_seed(Or(r.seed(), uint64_t{1}));
  AG_TRY(CheckCount("disabled_rules: number", r.disabled_rules_size(), kRulesMax));
  std::sort(r.mutable_disabled_rules()->begin(), r.mutable_disabled_rules()->end());
  AG_TRY(AcceptTarget(&r));
  AG_TRY(AcceptObjective(&r));
  if (r.only_cached() && r.skip_model_cache()) {
    return Err(StatusCode::kInvalidArgument, "only_cached and skip_model_cache exclude each other");
  }
  return r;
}

Digest ModelOf(const v1::OptimizeRequest& request) {
  const StatusOr<Digest> digest = ParseDigest(request.model_digest());
  AG_CHECK(digest.ok());  // AcceptedRequest has read it.
  return *digest;
}

Policy PolicyOf(const v1::OptimizeRequest& request) {
  const v1::Policy& p = request.policy();
  return {.precision = p.precision(),
          .tolerance = p.tolerance(),
          .cold_cache = p.cold_cache(),
          .nonfinite_strict = p.nonfinite_strict()};
}

std::string AnswerText(v1::OptimizeRequest request) {
  request.clear_request_id();
  request.clear_model_name();
  request.clear_client();
  request.clear_skip_model_cache();
  request.clear_skip_group_cache();
  request.clear_only_cached();
  request.clear_validate_only();
  request.clear_priority();
  request.clear_traceparent();
  return ToJson(request);
}

std::string TraceIdOf(const v1::OptimizeRequest& request) {
  return ParseTrace(request.traceparent()).trace_id;
}

Digest BodyDigest(v1::OptimizeRequest request) {
  request.clear_request_id();
  request.clear_client();
  request.clear_priority();
  request.clear_traceparent();
  return Sha256(ToJson(request));
}

std::string Job::name() const { return fmt::format("jobs/{}", id); }

StatusOr<int64_t> ParseJobName(std::string_view name) {
  constexpr std::string_view kPrefix = "jobs/";
  if (name.starts_with(kPrefix)) {
    const auto id = ParseInt(name.substr(kPrefix.size()));
    if (id.ok() && *id > 0) return *id;
  }
  return Because(Reason::kJobMissing, Err(StatusCode::kNotFound, "no job {}", name));
}

namespace {

void ToProto(const Status& error, v1::Error* p) {
  p->set_code(static_cast<int>(error.code()));
  p->set_message(Message(error));
  p->set_reason(ReasonOf(error));
}

}  // namespace

void ToProto(const Job& job, v1::Job* p) {
  if (job.id != 0) p->set_name(job.name());
  p->set_state(job.state);
  *p->mutable_progress() = job.progress;
  if (job.result.has_value()) *p->mutable_result() = *job.result;
  if (!job.error.ok()) ToProto(job.error, p->mutable_error());
  *p->mutable_request() = job.request;
  p->set_created_unix_seconds(static_cast<double>(job.created_unix_seconds));
  p->set_finished_unix_seconds(static_cast<double>(job.finished_unix_seconds));
  p->set_version(job.version);
  p->set_resumed(job.resumed);
  p->set_waiters(job.waiters);
  p->set_device_seconds(job.device_seconds);
  if (job.best_so_far.has_value()) *p->mutable_best_so_far() = *job.best_so_far;
  if (!job.best_error.ok()) ToProto(job.best_error, p->mutable_best_error());
  p->set_best_version(job.best_version);
}

void ClearLists(v1::Result* result) {
  result->clear_errors();
  result->clear_rewrites();
  result->clear_clean_up();
  result->clear_warnings();
  result->clear_portable();
  result->clear_kept_open();
  result->clear_shape_sets();
  result->clear_compared_inputs();
  result->clear_wrong_rewrites();
  result->clear_search_log();
  result->clear_input_facts();
  result->clear_output_facts();
}

void ToSummary(const Job& job, v1::Job* p) {
  constexpr size_t kErrorBytesMax = 300;
  ToProto(job, p);
  v1::OptimizeRequest& request = *p->mutable_request();
  request.clear_shapes();
  request.clear_shape_sets();
  request.clear_disabled_rules();
  if (p->has_error() && p->error().message().size() > kErrorBytesMax) {
    p->mutable_error()->mutable_message()->resize(kErrorBytesMax);
  }
  request.clear_inputs();
  if (p->has_result()) ClearLists(p->mutable_result());
  p->clear_best_so_far();
}

StatusOr<std::string> OnnxRuntimeFor(const v1::OptimizeRequest& request, const DeviceOffer& offer) {
  if (request.onnxruntime() == v1::OptimizeRequest::OFF) return std::string();
  const bool portable = IsPortable(request);
  const bool required = portable || request.onnxruntime() == v1::OptimizeRequest::REQUIRE;
  if (!portable && !offer.device.starts_with("cpu")) {
    if (!required) return std::string();
    return Err(StatusCode::kInvalidArgument,
               "ONNX Runtime runs on this machine's cores: beside {} its times say nothing",
               offer.device);
  }
  if (!required || !offer.onnxruntime.empty()) return offer.onnxruntime;
  return Because(Reason::kNoOnnxRuntime,
                 Err(StatusCode::kUnavailable,
                     "there is no ONNX Runtime beside {}: install it for the worker's Python (pip "
                     "install onnxruntime) or name a Python that has it in AUTOGRAPH_PYTHON",
                     offer.device));
}

}  // namespace ag

#include "server/pipeline/pipeline.h"

#include <algorithm>

#include "base/blobs.h"
#include "base/file.h"
#include "base/log.h"
#include "base/measuring_lock.h"
#include "base/text.h"
#include "base/thread.h"
#include "graph/onnx/imported_model.h"
#include "graph/onnx/model_facts.h"
#include "graph/onnx/operators/operators.h"
#include "graph/passes/clean_up.h"
#include "graph/passes/cut_opaque.h"
#include "plan/format/plan_format.h"
#include "plan/format/recording.h"
#include "plan/segments.h"
#include "plan/spec/node_layouts.h"
#include "rules/match/rewrite.h"
#include "rules/match/rule_clean_up.h"
#include "server/pipeline/batch.h"
#include "server/pipeline/budget.h"
#include "server/pipeline/other_sizes.h"
#include "server/pipeline/pool_measurer.h"
#include "server/pipeline/publish.h"
#include "server/pipeline/rewrite_gains.h"
#include "server/pipeline/search_report.h"
#include "server/pipeline/stored_regions.h"
#include "wire/json_wire.h"
#include "wire/measurement_wire.h"

namespace ag {

namespace {

SearchMethod MethodOf(v1::OptimizeRequest::Search search) {
  switch (search) {
    case v1::OptimizeRequest::PAPER:
      return SearchMethod::kPaper;
    case v1::OptimizeRequest::PAPER_WITHOUT_DP:
      return SearchMethod::kPaperWithoutDp;
    case v1::OptimizeRequest::NO_REWRITES:
      return SearchMethod::kNoRewrites;
    default:
      return SearchMethod::kOurs;
  }
}

SearchLimits LimitsOf(const v1::SearchBudget& budget) {
  SearchLimits limits;
  limits.rounds_max = budget.rounds();
  limits.expansions_max = budget.expansions();
  limits.graphs_max = budget.graphs();
  limits.stale_graphs_max = budget.stale_graphs();
  limits.cell_graphs_max = budget.cell_graphs();
  limits.candidates_max = budget.candidates();
  limits.instance_sizes_max = kInstanceSizesMax;
  return limits;
}

// Beyond these, threads that make graphs wait for memory.
constexpr int kSearchThreadsMax = 8;

// The time that the reference kernels take for an operation on two cores: 0.08 ns with AVX-512 on
// an AMD EPYC, 0.24 on a Xeon whose host was busy (nasnet_a, 47.6 GFLOP).
constexpr double kReferenceNsPerFlop = 0.25;

// The part of the budget that comparing an answer may take for data that is not always compared.
constexpr double kOptionalShare = 0.05, kOptionalSecondsMax = 2;

// How long comparing an answer with the model takes about, most of it in the reference kernels.
Nanos CheckTakes(const Graph& graph) {
  return Nanos(static_cast<int64_t>(FlopsOf(graph) * kReferenceNsPerFlop));
}

// Returns the operators of these nodes, each with how often it is there: "com.x.Rotate x2, Loop".
std::string OperatorsText(const Graph& graph, const std::vector<NodeId>& nodes) {
  constexpr size_t kNamedMax = 8;
  std::map<std::string, int> counts;
  for (const NodeId id : nodes) ++counts[OperatorName(graph.node(id))];
  std::vector<std::string> names;
  for (const auto& [name, count] : counts) {
    if (names.size() < kNamedMax) {
      names.push_back(count == 1 ? Quoted(name) : fmt::format("{} x{}", Quoted(name), count));
    }
  }
  if (counts.size() > names.size()) {
    names.push_back(fmt::format("{} more", counts.size() - names.size()));
  }
  return Join(names, ", ");
}

}  // namespace

// What is known before the first stage.
struct Pipeline::Setting {
  const Job& job;
  const JobControl& control;
  Nanos began;
  Policy policy;
  DeviceOffer offer;
  DeviceSpec spec;
  RuleSet rules;
};

struct Pipeline::Imported {
  ImportOptions options;
  ImportedModel model;
  IsCut is_cut;    // The opaque nodes that the device cannot run.
  Graph runnable;  // Without them.
  Graph input;     // Cleaned up.
  std::vector<CleanUpStep> clean_up;
  std::vector<AtOtherSizes> sets;  // The request's shape sets.
  std::vector<GivenInputs> given;  // The request's sets of inputs.
};

// The graph and the plan that our runtime runs.
struct Pipeline::Output {
  const Graph& graph;
  const Plan& plan;
};

// An opaque node is cut out where the device runs none or no kernel computes its operator.
IsCut Pipeline::CutFor(const DeviceSpec& spec) {
  const bool runs = FindHomePatterns(spec)[static_cast<size_t>(OpKind::kOpaque)] != nullptr;
  return [runs](const Node& node) { return !runs || !KeptOperator::Of(node).ok(); };
}

Pipeline::Pipeline(WorkRunner& workers, GroupCache& cache, std::shared_ptr<BlobDir> blobs,
                   const RuleSet& rules, Clock& clock, PipelineOptions options)
    : workers_(workers),
      cache_(cache),
      blobs_(std::move(blobs)),
      rules_(rules),
      clock_(clock),
      options_(std::move(options)) {}

StatusOr<Pipeline::Setting> Pipeline::Prepare(const Job& job, DeviceOffer offer,
                                              const JobControl& control) {
  const Nanos began = clock_.Now();
  AG_LET(offer.onnxruntime, OnnxRuntimeFor(job.request, offer));
  AG_LET(DeviceSpec spec, ParseDeviceSpec(offer.device_spec));
  const Policy policy = PolicyOf(job.request);
  AG_TRY(CheckMeasures(spec, policy), "policy");
  const auto& disabled = job.request.disabled_rules();
  return Setting{job,
                 control,
                 began,
                 policy,
                 std::move(offer),
                 std::move(spec),
                 rules_.Without({disabled.begin(), disabled.end()}, policy.nonfinite_strict)};
}

StatusOr<JobOutcome> Pipeline::Run(const Job& job, const DeviceOffer& offer,
                                   const JobControl& control) {
  AG_LET(Setting setting, Prepare(job, offer, control));
  Budget budget(clock_.Now(),
                Nanos(static_cast<int64_t>(job.request.budget().time_seconds() * 1e9)));
  bool confirming = false;  // Also the best so far.
  SearchTurn turn(MeasuringLockPath(),
                  {[&](pid_t holder) { control.on_wait(MeasuringLockText(holder)); },
                   // A cancelled job's best result is confirmed to the end.
                   [&] { return confirming ? control.stopping() : control.cancelled(); }});
  AG_TRY(control.enter(v1::Job::IMPORTING));
  AG_TRY(turn.Enter());
  AG_LET(const Imported imported, Import(setting));
  if (!imported.model.chosen_sizes.empty()) {
    v1::Progress progress;
    progress.set_best_speedup(1);
    progress.set_chosen_sizes(imported.model.chosen_sizes);
    control.on_progress(progress);
  }
  double& tolerance = setting.policy.tolerance;
  if (tolerance == 0) {
    tolerance = DefaultTolerance(CoarsestPrecision(setting.policy.precision, imported.model.graph));
  }
  budget.Imported(clock_.Now(), CheckTakes(imported.runnable));
  AG_TRY(control.enter(v1::Job::SEARCHING));
  PoolMeasurer::Options measuring = Measuring(setting, turn);
  const auto own =
      std::ranges::find(imported.given, std::optional<size_t>(), &GivenInputs::shape_set);
  if (own != imported.given.end()) measuring.inputs = own->digest.Hex();
  PoolMeasurer measurer(workers_, cache_, clock_, std::move(measuring));
  const auto publish_best = [&](const SearchResult& best) {
    confirming = true;
    auto outcome = PublishBest(setting, imported, best, budget, measurer);
    confirming = false;
    return outcome;
  };
  auto searched = Search(setting, imported, budget, turn, measurer, publish_best);
  turn.Leave();
  AG_LET(const SearchResult found, std::move(searched));
  if (control.stopping()) return Err(StatusCode::kCancelled, "the server stops");
  // A cancelled job keeps the best that its progress told of, whatever its final comparison could
  // make sure of: over what the user runs today it may gain all the same.
  if (control.cancelled() && found.best_speedup <= 1) {
    return Err(StatusCode::kCancelled, "cancelled");
  }
  AG_TRY(control.enter(v1::Job::CONFIRMING));
  confirming = true;
  AG_TRY(turn.Enter(), "confirming");
  auto confirmed = Confirm(setting, imported, found, budget.check_begin(), measurer);
  turn.Leave();
  AG_TRY(confirmed, "confirming");
  return Conclude(setting, imported, found, *confirmed, measurer);
}

// Imports the model at the sizes of the user's own inputs, where there are some. When that fails,
// the model's own sizes tell what is wrong with the inputs.
StatusOr<ImportedModel> Pipeline::ImportAtInputs(const v1::OptimizeRequest& asked,
                                                 const ImportOptions& options) {
  const std::string path = blobs_->PathOf(ModelOf(asked));
  AG_LET(const auto shapes, ShapesOfInputs(asked, *blobs_));
  ImportOptions at = options;
  at.shapes.insert(shapes.begin(), shapes.end());
  auto model = ImportInSandbox(path, at, *blobs_, options_.sandbox);
  if (model.ok() || shapes.empty()) return model;
  auto without = ImportInSandbox(path, options, *blobs_, options_.sandbox);
  if (!without.ok()) return without;
  AG_TRY(PlaceInputs(asked, {ShapesText(OpenShapes(*without)), InputsOf(without->graph)}, {},
                     *without, *blobs_));
  return Within(model.status(), "at the sizes of the inputs given");
}

StatusOr<std::vector<GivenInputs>> Pipeline::PlaceGiven(const v1::OptimizeRequest& asked,
                                                        const Imported& imported) {
  const ImportedModel& model = imported.model;
  std::vector<SizedInputs> sets;
  for (const AtOtherSizes& set : imported.sets) {
    sets.push_back({ShapesText(set.shapes), InputsOf(set.runnable)});
  }
  return PlaceInputs(asked, {ShapesText(OpenShapes(model)), InputsOf(model.graph)}, sets, model,
                     *blobs_);
}

StatusOr<Pipeline::Imported> Pipeline::Import(const Setting& setting) {
  const v1::OptimizeRequest& asked = setting.job.request;
  Imported imported;
  for (const v1::BoundShape& shape : asked.shapes()) {
    imported.options.shapes[shape.input()] = Shape(shape.dims().begin(), shape.dims().end());
  }
  imported.options.limits = options_.limits;
  AG_LET(imported.model, ImportAtInputs(asked, imported.options));
  AG_LET(const ShapesByInput at_batch, ShapesAtBatch(asked, imported.model));
  if (!at_batch.empty()) {
    imported.options.shapes.insert(at_batch.begin(), at_batch.end());
    AG_LET(imported.model, ImportAtInputs(asked, imported.options));
  }
  // Other runtimes, and the import of what is exported, get the sizes that this import took.
  for (const auto& [name, shape] : OpenShapes(imported.model)) {
    imported.options.shapes[name] = shape;
  }
  AG_LET(imported.sets, ImportShapeSets(asked, imported.model, imported.options, options_.sandbox,
                                        setting.rules, *blobs_));
  AG_LET(imported.given, PlaceGiven(asked, imported));
  for (const GivenInputs& given : imported.given) AG_TRY(blobs_->Adopt(given.digest));
  if (const std::string& node = imported.model.origin.dynamic.no_kernel;
      !node.empty() && !imported.sets.empty()) {
    return Err(StatusCode::kUnimplemented,
               "shape sets: {} has no kernel here, so the output has no plans", node);
  }
  imported.is_cut = CutFor(setting.spec);
  AG_LET(OpaqueCut cut, CutOpaque(imported.model.graph, imported.is_cut));
  imported.runnable = cut.nodes.empty() ? imported.model.graph : cut.graph;
  if (!cut.nodes.empty()) {
    const std::string operators = OperatorsText(imported.model.graph, cut.nodes);
    if (!imported.sets.empty()) {
      return Err(StatusCode::kUnimplemented,
                 "shape sets: {}: no kernel on {}, so the output has no plans", operators,
                 setting.offer.device);
    }
    imported.model.warnings.push_back(fmt::format(
        "{}: no kernel on {}: kept as {}, nothing moves across {}; only ONNX Runtime can "
        "time the whole model",
        operators, setting.offer.device, cut.nodes.size() == 1 ? "it is" : "they are",
        cut.nodes.size() == 1 ? "it" : "them"));
  }
  AG_LET(imported.input, CleanUp(imported.runnable, setting.rules, &imported.clean_up));
  AG_TRY(CheckObjective(asked, imported.input));
  return imported;
}

PoolMeasurer::Options Pipeline::Measuring(const Setting& setting, SearchTurn& turn) const {
  PoolMeasurer::Options measuring;
  measuring.device = setting.offer.device;
  measuring.environment = setting.offer.environment;
  measuring.policy = setting.policy;
  measuring.seed = setting.job.request.seed();
  measuring.skip_group_cache = setting.job.request.skip_group_cache();
  measuring.cancelled = setting.control.cancelled;
  measuring.stopping = setting.control.stopping;
  measuring.turn = &turn;
  measuring.on_wait = setting.control.on_wait;
  measuring.group_seconds_max = std::chrono::duration<double>(options_.hang_time_max).count();
  measuring.plan_seconds_max = 2 * measuring.group_seconds_max;
  measuring.check_seconds_max = 10 * measuring.group_seconds_max;
  return measuring;
}

StatusOr<SearchResult> Pipeline::Search(const Setting& setting, const Imported& imported,
                                        const Budget& budget, SearchTurn& turn,
                                        PoolMeasurer& measurer, const BestPublisher& publish_best) {
  const v1::OptimizeRequest& asked = setting.job.request;
  SearchRequest request;
  request.input = imported.input;
  request.rules = &setting.rules;
  request.spec = setting.spec;
  request.environment = setting.offer.environment;
  request.policy = setting.policy;
  request.threads = options_.search_threads > 0 ? options_.search_threads
                                                : std::min(UsableCores(), kSearchThreadsMax);
  request.options.method = MethodOf(asked.search());
  request.options.partition = {asked.piece_nodes(), asked.region_nodes()};
  request.options.alpha = asked.alpha();
  request.options.beta = asked.beta();
  request.options.streams_max = asked.streams_max();
  request.options.limits = LimitsOf(asked.budget());
  request.options.limits.time_max = std::max(budget.search_end() - clock_.Now(), Nanos{0});
  request.options.limits.comparison_max = budget.comparison_end() - budget.search_end();
  request.on_progress = [&](const SearchProgress& p) {
    v1::Progress progress;
    progress.set_stage(p.stage);
    progress.set_round(p.round);
    progress.set_graphs(p.graphs);
    progress.set_candidates(p.candidates);
    progress.set_best_speedup(p.best_speedup);
    progress.set_groups_measured(measurer.misses());
    progress.set_cache_hits(measurer.hits());
    progress.set_fraction(static_cast<double>(p.round) / std::max(1, asked.budget().rounds()));
    setting.control.on_progress(progress);
  };
  request.cancelled = [&] {
    // A turn that cannot be renewed ends the search: it must not run beside a measurement.
    return setting.control.cancelled() || !turn.Yield(clock_).ok();
  };
  int best_given = 0;
  if (setting.control.best_asked) {
    request.wants_best = [&] { return setting.control.best_asked() > best_given; };
  }
  request.on_best = [&](const SearchResult& best) {
    const StatusOr<JobOutcome> outcome = publish_best(best);
    best_given = setting.control.best_asked();
    setting.control.on_best(outcome);
  };
  StoredRegions regions(cache_, {.skip = asked.skip_group_cache() || asked.skip_model_cache()});
  AG_LET(SearchResult found, FindPlan(request, measurer, clock_, &regions));
  const auto is_over = [&] {
    return request.cancelled() || clock_.Now() >= budget.comparison_end();
  };
  const GainRequest gains{imported.input, setting.rules, setting.spec, setting.offer.environment,
                          setting.policy, is_over};
  DropUndoneRewrites(gains, &found);
  if (IsPortable(setting.job.request)) return found;  // Its file has no plan of ours.
  measurer.EndBy(budget.comparison_end());
  if (const Status measured = MeasureGains(gains, measurer, &found); !measured.ok()) {
    LogInfo("gains of rewrites are estimates: {}", Message(measured));
  }
  return found;
}

// Half of the time left is for it. The search goes on with the same measurer.
StatusOr<JobOutcome> Pipeline::PublishBest(const Setting& setting, const Imported& imported,
                                           const SearchResult& found, const Budget& budget,
                                           PoolMeasurer& measurer) {
  const Nanos now = clock_.Now(), left = budget.check_begin() - now;
  const auto confirmed = Confirm(setting, imported, found, now + left / 2, measurer);
  measurer.set_cancelled(setting.control.cancelled);
  AG_TRY(confirmed, "the best so far");
  return Conclude(setting, imported, found, *confirmed, measurer);
}

OutputSetting Pipeline::ToOutput(const Setting& setting, const Imported& imported,
                                 const SearchResult& found) const {
  const v1::OptimizeRequest& asked = setting.job.request;
  OutputSetting output;
  output.model = &imported.model;
  output.model_digest = ModelOf(asked);
  output.is_cut = imported.is_cut;
  output.runnable = imported.runnable;
  output.input = imported.input;
  output.unfused_plan = found.unfused_plan;
  output.spec = setting.spec;
  output.environment = setting.offer.environment;
  output.policy = setting.policy;
  output.import = imported.options;
  output.sandbox = options_.sandbox;
  output.child = options_.child;
  output.blob_root = options_.blob_root;
  output.sets = imported.sets;
  output.given = imported.given;
  output.optional_seconds =
      std::min(kOptionalShare * asked.budget().time_seconds(), kOptionalSecondsMax);
  output.seed = asked.seed();
  return output;
}

namespace {

// What files are timed on.
Status StoreTimedInputs(OutputSetting* setting, BlobDir& blobs) {
  AG_LET(setting->timed_inputs,
         InputsToTime(setting->model->graph, setting->given, std::nullopt, setting->seed, blobs));
  for (size_t i = 0; i < setting->sets.size(); ++i) {
    AtOtherSizes& set = setting->sets[i];
    AG_LET(set.timed_inputs, InputsToTime(set.runnable, setting->given, i, setting->seed, blobs));
  }
  return OkStatus();
}

// The part of the budget that one comparison of files may sample for.
constexpr double kCompareShare = 0.1;
constexpr double kCompareSecondsMin = 2, kCompareSecondsMax = 10;

}  // namespace

StatusOr<Published> Pipeline::Confirm(const Setting& setting, const Imported& imported,
                                      const SearchResult& found, Nanos until,
                                      PoolMeasurer& measurer) {
  const v1::OptimizeRequest& asked = setting.job.request;
  AG_TRY(blobs_->Adopt(ModelOf(asked)));  // Workers time the file itself.
  // From here on a cancelled job is confirmed to the end: its best result is to be kept.
  measurer.set_cancelled(setting.control.stopping);
  PublishRequest request;
  request.setting = ToOutput(setting, imported, found);
  AG_TRY(StoreTimedInputs(&request.setting, *blobs_), "inputs");
  request.found = &found;
  request.rules = &setting.rules;
  request.job = &asked;
  request.onnxruntime = setting.offer.onnxruntime;
  const std::chrono::duration<double> left = until - clock_.Now();
  request.seconds =
      std::clamp(std::min(kCompareShare * asked.budget().time_seconds(), left.count() / 3),
                 kCompareSecondsMin, kCompareSecondsMax);
  measurer.EndBy(until);
  request.time_left = [&] { return setting.control.cancelled() ? Nanos{0} : until - clock_.Now(); };
  request.stopping = setting.control.stopping;
  request.is_final = found.stop_reason != StopReason::kGoesOn;
  request.on_stage = [&](const std::string& stage) {
    v1::Progress progress;
    progress.set_stage(stage);
    progress.set_graphs(found.graphs + found.cell_graphs);
    progress.set_candidates(found.candidates);
    progress.set_best_speedup(found.best_speedup);
    progress.set_groups_measured(measurer.misses());
    progress.set_cache_hits(measurer.hits());
    setting.control.on_progress(progress);
  };
  return ChooseOutput(request, measurer, *blobs_);
}

namespace {

void TakeBaseline(const BaselineResult& baseline, v1::Result* result) {
  const auto put = [](const std::optional<Ratio>& ratio, auto mutable_field) {
    if (ratio.has_value()) ToProto(*ratio, mutable_field());
  };
  result->set_verdict(baseline.verdict);
  if (baseline.verdict == v1::Result::NOT_MEASURED) return;
  result->set_baseline(baseline.baseline);
  result->set_output_runtime(baseline.output_runtime);
  result->set_output_in_onnxruntime(baseline.output_in_onnxruntime);
  ToProto(baseline.input_latency, result->mutable_input_latency());
  ToProto(baseline.output_latency, result->mutable_output_latency());
  result->set_speedup(baseline.speedup.median);
  result->set_speedup_low(baseline.speedup.low);
  result->set_speedup_high(baseline.speedup.high);
  put(baseline.over_onnxruntime, [&] { return result->mutable_over_onnxruntime(); });
  put(baseline.over_untuned, [&] { return result->mutable_over_untuned(); });
  put(baseline.fresh_session, [&] { return result->mutable_fresh_session(); });
}

void TakeOutput(const Published& output, const Digest& model, v1::Result* result) {
  const OutputFile& file = output.file;
  const bool is_input = file.digest.IsZero();
  result->set_output_digest((is_input ? model : file.digest).Hex());
  result->set_output(is_input         ? v1::Result::INPUT
                     : file.rewritten ? v1::Result::REWRITTEN
                                      : v1::Result::PLAN_ADDED);
  result->set_carries_plan(file.carries_plan);
  TakeBaseline(output.baseline, result);
  std::optional<Ratio> over_tuned_input = output.over_tuned_input;
  if (result->output() == v1::Result::PLAN_ADDED) over_tuned_input = Ratio{1, 1, 1};  // It is that.
  if (over_tuned_input) ToProto(*over_tuned_input, result->mutable_over_tuned_input());
  for (const OutputError& error : file.errors) ToProto(error, result->add_errors());
  result->mutable_kept_open()->Assign(file.kept_open.begin(), file.kept_open.end());
  result->set_estimate_ns(output.estimate_ns);
  result->mutable_shape_sets()->Assign(output.sets.begin(), output.sets.end());
  result->mutable_portable()->Assign(output.portable.begin(), output.portable.end());
  for (const ComparedInputs& compared : file.compared) {
    ToProto(compared, result->add_compared_inputs());
  }
  result->mutable_wrong_rewrites()->Assign(output.wrong.begin(), output.wrong.end());
  for (const AppliedRewrite& rewrite : output.rewrites) ToProto(rewrite, result->add_rewrites());
}

// The file cannot be used as the one that came.
std::string WarningOfFixedSizes(const ImportedModel& model) {
  std::vector<std::string> open;
  for (const auto& [place, symbol] : model.origin.dim_names) {
    open.push_back(symbol.empty() ? place : fmt::format("{} ({})", place, symbol));
  }
  return fmt::format("sizes that the input leaves open are fixed in the output: {}",
                     fmt::join(open, ", "));
}

// A device that answers from a recording estimates what is not in it, and says so by the kernel.
std::string WarningOfEstimates(const Plan& plan) {
  int estimated = 0, timed = 0;
  for (const Plan* const own : PlansIn(plan)) {
    for (const Group& group : own->groups) {
      estimated += group.kernel == kEstimatedKernel ? 1 : 0;
      timed += group.pattern != kViewPattern ? 1 : 0;
    }
  }
  if (estimated == 0) return "";
  return fmt::format(
      "{} of the output's {} groups are not in the device's recording: their times are "
      "estimates by its spec and what was recorded",
      estimated, timed);
}

void TakePlan(const Plan& plan, v1::Result* result) {
  const PlanSizes sizes = SizesOf(plan);
  result->set_groups(sizes.groups);
  result->set_streams(sizes.streams);
  result->set_instances(sizes.instances);
  result->set_beside(sizes.beside);
  for (const Segment& segment : plan.segments) {
    v1::PlanSegment* shown = result->add_segments();
    shown->set_operators(static_cast<int>(segment.nodes.size()));
    shown->set_instances(segment.instances);
    shown->set_groups(static_cast<int>(segment.plan.groups.size()));
    shown->set_arena_bytes(segment.plan.arena_bytes);
  }
}

Status CountFile(BlobDir& blobs, const std::string& digest, v1::ModelFacts* facts) {
  AG_LET(const Digest parsed, ParseDigest(digest));
  AG_LET(const std::shared_ptr<const MappedFile> file, blobs.Get(parsed));
  AG_LET(const ModelFacts counted, CountModel(file->bytes()));
  facts->set_file_bytes(counted.file_bytes);
  facts->set_parameters(counted.parameters);
  for (const auto& [op_type, count] : counted.operators) {
    v1::OperatorCount* row = facts->add_operators();
    row->set_op_type(op_type);
    row->set_count(count);
  }
  return OkStatus();
}

void AddLines(const std::string& text, google::protobuf::RepeatedPtrField<std::string>* lines) {
  for (const std::string_view line : Split(text, '\n')) {
    if (!line.empty()) lines->Add(std::string(line));
  }
}

}  // namespace

std::vector<std::string> Pipeline::Warnings(const Imported& imported, const SearchResult& found,
                                            const Published& published, const Plan& plan,
                                            const PoolMeasurer& measurer) {
  std::vector<std::string> warnings;
  const auto add = [&](const std::vector<std::string>& more) {
    warnings.insert(warnings.end(), more.begin(), more.end());
  };
  if (published.file.rewritten && published.file.kept_open.empty() &&
      !imported.model.origin.dim_names.empty()) {
    warnings.push_back(WarningOfFixedSizes(imported.model));
  }
  add(imported.model.warnings);
  add(found.warnings);
  for (const std::string& note : published.baseline.notes) {
    warnings.push_back("not timed: " + note);
  }
  add(published.warnings);
  warnings.push_back(WarningOfEstimates(plan));
  warnings.push_back(measurer.foreign_load().Warning());
  std::erase(warnings, "");
  return warnings;
}

v1::Report Pipeline::ReportOf(const Setting& setting, const Imported& imported,
                              const SearchResult& found, const Output& output,
                              PoolMeasurer& measurer) {
  v1::Report report;
  report.set_report_version(kReportVersion);
  *report.mutable_request() = setting.job.request;
  report.mutable_request()->clear_traceparent();  // Equal jobs have equal reports.
  report.set_rules_digest(setting.rules.digest().Hex());
  report.set_nodes_in(imported.input.size());
  report.set_nodes_out(output.graph.size());
  report.set_pairs(found.pairs_measured);
  report.set_overlap(found.overlap);
  AddLines(FormatPlan(imported.input, found.input_plan), report.mutable_input_plan());
  AddLines(FormatPlan(output.graph, output.plan), report.mutable_output_plan());
  const std::vector<const Plan*> plans = PlansIn(output.plan);
  const std::vector<Graph> graphs = GraphsIn(output.graph, output.plan);
  int first = 0;  // Groups are numbered through all segments.
  for (size_t s = 0; s < graphs.size(); first += static_cast<int>(plans[s++]->groups.size())) {
    for (size_t g = 0; g < plans[s]->groups.size(); ++g) {
      const Group& group = plans[s]->groups[g];
      if (group.pattern == kViewPattern) continue;
      const auto measured = measurer.Remembered(ExtractGroup(graphs[s], group, setting.policy));
      if (!measured.has_value()) continue;
      v1::GroupKernels* kernels = report.add_output_kernels();
      kernels->set_group(first + static_cast<int>(g));
      ToProto(*measured, kernels->mutable_measurement());
    }
  }
  return report;
}

StatusOr<JobOutcome> Pipeline::Conclude(const Setting& setting, const Imported& imported,
                                        const SearchResult& found, const Published& published,
                                        PoolMeasurer& measurer) {
  const OutputFile& file = published.file;
  const Output output =
      file.carries_plan ? Output{file.graph, file.plan} : Output{imported.input, found.input_plan};
  JobOutcome outcome;
  outcome.winner_refused = published.winner_refused;
  outcome.busy = measurer.foreign_load().busy();
  v1::Result& result = outcome.result;
  result.set_device(setting.offer.device);
  result.set_environment(setting.offer.environment);
  result.set_simulated(setting.offer.simulated);
  result.set_tolerance(setting.policy.tolerance);
  result.set_onnxruntime(setting.offer.onnxruntime);
  TakeSearchFigures(found, &result);
  TakeOutput(published, ModelOf(setting.job.request), &result);
  for (const CleanUpStep& step : imported.clean_up) {
    if (!file.rewritten) break;
    const auto is_it = [&](const v1::WrongRewrite& wrong) { return wrong.rule() == step.rule; };
    if (std::ranges::any_of(published.wrong, is_it)) continue;  // It was left out.
    v1::RewriteCount* rewrite = result.add_clean_up();
    rewrite->set_rule(step.rule);
    rewrite->set_count(step.count);
  }
  if (!imported.model.origin.dim_names.empty()) {
    result.set_measured_at(ShapesText(imported.options.shapes));
  }
  const auto warnings = Warnings(imported, found, published, output.plan, measurer);
  result.mutable_warnings()->Assign(warnings.begin(), warnings.end());
  TakePlan(output.plan, &result);
  TakeThroughput(imported.input, &result);
  result.mutable_cache()->set_hits(measurer.hits());
  result.mutable_cache()->set_misses(measurer.misses());
  result.set_seconds(std::chrono::duration<double>(clock_.Now() - setting.began).count());
  AG_TRY(CountFile(*blobs_, setting.job.request.model_digest(), result.mutable_input_facts()));
  AG_TRY(CountFile(*blobs_, result.output_digest(), result.mutable_output_facts()));
  result.set_output_bytes(result.output_facts().file_bytes());
  v1::Report report = ReportOf(setting, imported, found, output, measurer);
  *report.mutable_result() = result;
  AG_LET(const Digest stored, blobs_->Put(ToJson(report) + "\n"));
  result.set_report_digest(stored.Hex());
  return outcome;
}

}  // namespace ag

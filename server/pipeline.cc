#include "server/pipeline.h"

#include <filesystem>

#include "base/file.h"
#include "base/log.h"
#include "base/measuring_lock.h"
#include "graph/clean_up.h"
#include "plan/recording.h"
#include "rules/rewrite.h"
#include "server/budget.h"
#include "server/hand_out.h"
#include "server/pool_measurer.h"
#include "server/report.h"

namespace ag {

namespace {

// A folder that goes when the stage ends. TempDir would make one on another file system.
struct WorkDir {
  explicit WorkDir(std::string p) : path(std::move(p)) {}
  WorkDir(const WorkDir&) = delete;
  ~WorkDir() {
    std::error_code error;  // What is left goes at the next start.
    std::filesystem::remove_all(path, error);
  }
  const std::string path;
};

// The time that the reference kernels take for an operation on two cores, with a reserve of two.
constexpr double kReferenceNsPerFlop = 0.15;

// How long comparing an answer with the model takes about, most of it in the reference kernels.
Nanos CheckTakes(const Graph& graph) {
  return Nanos(static_cast<int64_t>(FlopsOf(graph) * kReferenceNsPerFlop));
}

}  // namespace

// What one run knows; the stages fill it in from top to bottom.
struct Pipeline::Stages {
  const Job& job;
  const JobControl& control;
  Pipeline& house;
  Nanos began{0};
  Budget budget{Nanos{0}, Nanos{0}};
  DeviceOffer offer;
  DeviceSpec spec;
  RuleSet rules;
  bool confirming = false;
  SearchTurn turn{MeasuringLockPath(),
                  {[this](pid_t holder) { control.on_wait(MeasuringLockText(holder)); },
                   // A cancelled job's best result is confirmed to the end.
                   [this] { return confirming ? control.stopping() : control.cancelled(); }}};
  ImportOptions import;
  ImportedModel model;
  Graph runnable;
  Graph input;
  std::unique_ptr<PoolMeasurer> measurer;
  SearchResult found;
  JobResult result;
  HandedOut output;

  Status Import();
  Status Search();
  Status Confirm();
  Status CountFiles();
  Status Report();
  std::vector<GroupKernels> OutputKernels() const;
  void CountEstimatedGroups();
  void TakeSearchFigures();
  OutputSetting ToOutput(const std::string& work_dir) const;
  void TakeOutput();
  void WarnOfFixedSizes();
  const Graph& OutputGraph() const { return output.file.carries_plan ? output.file.graph : input; }
  const Plan& OutputPlan() const {
    return output.file.carries_plan ? output.file.plan : found.input_plan;
  }
};

Pipeline::Pipeline(Dispatcher& dispatcher, CacheDb& cache, std::shared_ptr<BlobDir> blobs,
                   const RuleSet& rules, Clock& clock, PipelineOptions options)
    : dispatcher_(dispatcher),
      cache_(cache),
      blobs_(std::move(blobs)),
      rules_(rules),
      clock_(clock),
      options_(std::move(options)) {}

// A resumed job may stand here before its worker has come back.
StatusOr<DeviceOffer> Pipeline::WaitForOffer(const std::string& device, const JobControl& control) {
  const Nanos begin = clock_.Now();
  while (true) {
    auto offer = dispatcher_.FindOffer(device);
    if (offer.status().code() != StatusCode::kUnavailable) return offer;
    control.on_wait(fmt::format("a worker of device {}", device));
    if (control.cancelled()) return Err(StatusCode::kCancelled, "cancelled");
    if (clock_.Now() - begin > options_.offer_wait_max) return offer;
    clock_.SleepFor(std::chrono::milliseconds(50));
  }
}

StatusOr<JobResult> Pipeline::Run(const Job& job, const JobControl& control) {
  Stages stages{.job = job, .control = control, .house = *this};
  stages.began = clock_.Now();
  AG_LET(stages.offer, WaitForOffer(job.request.device, control));
  AG_LET(stages.offer.onnxruntime, OnnxRuntimeFor(job.request, stages.offer));
  stages.budget = Budget(clock_.Now(), Nanos(static_cast<int64_t>(job.request.time_seconds * 1e9)));
  AG_LET(stages.spec, ParseDeviceSpec(stages.offer.device_spec));
  AG_TRY(CheckMeasures(stages.spec, job.request.policy), "policy");
  AG_TRY(control.enter(JobState::kImporting));
  AG_TRY(stages.Import());
  AG_TRY(control.enter(JobState::kSearching));
  AG_TRY(stages.Search());
  stages.TakeSearchFigures();
  const bool faster = stages.found.timing.verdict == Verdict::kFaster;
  if (!faster && control.cancelled()) return Err(StatusCode::kCancelled, "cancelled");
  AG_TRY(control.enter(JobState::kConfirming));
  AG_TRY(stages.Confirm(), "confirming");
  AG_TRY(stages.Report());
  return stages.result;
}

Status Pipeline::Stages::Import() {
  for (const BoundShape& shape : job.request.shapes) {
    import.shapes[shape.input] = Shape(shape.dims.begin(), shape.dims.end());
  }
  import.limits = house.options_.limits;
  AG_TRY(turn.Enter());
  AG_LET(model, ImportInJail(house.blobs_->PathOf(job.request.model), import, *house.blobs_,
                             house.options_.jail));
  result.warnings = model.warnings;
  AG_LET(OpaqueCut cut, CutOpaque(model.graph));
  runnable = cut.opaque_nodes > 0 ? cut.graph : model.graph;
  if (cut.opaque_nodes > 0) {
    result.warnings.push_back(
        fmt::format("{} operators are opaque: kept as they are, nothing moves across them, and the "
                    "times are of what is left",
                    cut.opaque_nodes));
  }
  rules = house.rules_.Without(job.request.disabled_rules, job.request.policy.nonfinite_strict);
  std::vector<CleanUpStep> steps;
  AG_LET(input, CleanUp(runnable, rules, &steps));
  for (const CleanUpStep& step : steps) result.clean_up.push_back({step.rule, step.count, 0});
  budget.Imported(house.clock_.Now(), CheckTakes(runnable));
  return OkStatus();
}

Status Pipeline::Stages::Search() {
  const JobRequest& asked = job.request;
  PoolMeasurer::Options measuring;
  measuring.device = offer.device;
  measuring.environment = offer.environment;
  measuring.policy = asked.policy;
  measuring.seed = asked.seed;
  measuring.skip_group_cache = asked.skip_group_cache;
  measuring.cancelled = control.cancelled;
  measuring.stopping = control.stopping;
  measuring.turn = &turn;
  measuring.on_wait = control.on_wait;
  measuring.group_seconds_max = std::chrono::duration<double>(house.options_.hang_time_max).count();
  measuring.plan_seconds_max = 2 * measuring.group_seconds_max;
  measuring.check_seconds_max = 10 * measuring.group_seconds_max;
  measurer =
      std::make_unique<PoolMeasurer>(house.dispatcher_, house.cache_, house.clock_, measuring);
  SearchRequest request;
  request.input = input;
  request.rules = &rules;
  request.spec = spec;
  request.environment = offer.environment;
  request.policy = asked.policy;
  request.options.alpha = asked.alpha;
  request.options.beta = asked.beta;
  request.options.streams_max = asked.streams_max;
  SearchLimits& limits = request.options.limits;
  limits.rounds_max = asked.rounds;
  limits.expansions_max = asked.expansions;
  limits.graphs_max = asked.graphs;
  limits.candidates_max = asked.candidates;
  limits.time_max = std::max(budget.search_end() - house.clock_.Now(), Nanos{0});
  limits.finals_max = budget.finals_end() - budget.search_end();
  request.on_progress = [this](const SearchProgress& p) {
    control.on_progress({p.stage, p.round, p.graphs, p.candidates, p.best_speedup,
                         measurer->misses(), measurer->hits(),
                         static_cast<double>(p.round) / std::max(1, job.request.rounds)});
  };
  request.cancelled = [this] {
    // A turn that cannot be renewed ends the search: it must not run beside a measurement.
    return control.cancelled() || !turn.Yield(house.clock_).ok();
  };
  auto searched = FindPlan(request, *measurer, house.clock_);
  turn.Leave();
  AG_TRY(searched.status());
  found = *std::move(searched);
  return control.stopping() ? Err(StatusCode::kCancelled, "the server stops") : OkStatus();
}

void Pipeline::Stages::TakeSearchFigures() {
  result.device = offer.device;
  result.environment = offer.environment;
  result.simulated = offer.simulated;
  result.onnxruntime = offer.onnxruntime;
  result.search = SearchStateName(SearchStateOf(found.stop_reason, found.rounds));
  result.eager_latency = found.eager_timing.latency;
  result.stop_reason = found.stop_reason;
  result.rounds = found.rounds;
  result.expansions = found.expansions;
  result.graphs = found.graphs;
  result.candidates = found.candidates;
  result.groups_failed = found.groups_failed;
  result.warnings.insert(result.warnings.end(), found.warnings.begin(), found.warnings.end());
}

OutputSetting Pipeline::Stages::ToOutput(const std::string& work_dir) const {
  OutputSetting setting;
  setting.model = &model;
  setting.model_digest = job.request.model;
  setting.runnable = runnable;
  setting.input = input;
  setting.eager_plan = found.eager_plan;
  setting.spec = spec;
  setting.environment = offer.environment;
  setting.policy = job.request.policy;
  setting.import = import;
  setting.jail = house.options_.jail;
  setting.child = house.options_.child;
  setting.blob_root = house.options_.blob_root;
  setting.work_dir = work_dir;
  std::string shapes;
  for (const BoundShape& shape : job.request.shapes) {
    shapes += fmt::format("{}={};", shape.input, fmt::join(shape.dims, "x"));
  }
  setting.plan_key =
      Sha256(offer.environment + "\n" + shapes + "\n" + job.request.policy.Text()).Short();
  setting.seed = job.request.seed;
  return setting;
}

// The part of the budget that one comparison of files may sample for.
constexpr double kCompareShare = 0.1;
constexpr double kCompareSecondsMin = 2, kCompareSecondsMax = 10;

Status Pipeline::Stages::Confirm() {
  const WorkDir work_dir(fmt::format("{}/{}", house.options_.work_dir, job.id));
  AG_TRY(MakeDirs(work_dir.path));
  AG_TRY(house.blobs_->Adopt(job.request.model));  // Workers time the file itself.
  // From here on a cancelled job is confirmed to the end: its best result is to be kept.
  measurer->set_cancelled(control.stopping);
  confirming = true;
  HandOutRequest request;
  request.setting = ToOutput(work_dir.path);
  request.found = &found;
  request.rules = &rules;
  request.job = &job.request;
  request.onnxruntime = offer.onnxruntime;
  const std::chrono::duration<double> left = budget.check_begin() - house.clock_.Now();
  request.seconds = std::clamp(std::min(kCompareShare * job.request.time_seconds, left.count() / 3),
                               kCompareSecondsMin, kCompareSecondsMax);
  measurer->EndBy(budget.check_begin());
  request.time_left = [this] {
    return control.cancelled() ? Nanos{0} : budget.check_begin() - house.clock_.Now();
  };
  request.stopping = control.stopping;
  AG_TRY(turn.Enter());
  auto chosen = ChooseOutput(request, *measurer, *house.blobs_);
  turn.Leave();
  AG_LET(output, std::move(chosen));
  TakeOutput();
  return OkStatus();
}

void Pipeline::Stages::TakeOutput() {
  const OutputFile& file = output.file;
  const bool is_input = file.digest.IsZero();
  result.output = is_input ? job.request.model : file.digest;
  result.output_kind = is_input ? "INPUT" : file.rewritten ? "REWRITTEN" : "PLAN_ADDED";
  const BaselineResult& baseline = output.baseline;
  result.verdict = baseline.verdict;
  result.baseline = baseline.baseline;
  result.output_runtime = baseline.output_runtime;
  result.input_latency = baseline.input_latency;
  result.output_latency = baseline.output_latency;
  result.speedup = baseline.speedup;
  result.over_onnxruntime = baseline.over_onnxruntime;
  result.over_untuned = baseline.over_untuned;
  result.over_tuned_input = output.over_tuned_input;
  if (result.output_kind == "PLAN_ADDED") result.over_tuned_input = Ratio{1, 1, 1};  // It is that.
  result.fresh_session = baseline.fresh_session;
  result.errors = file.errors;
  result.estimate_ns = output.estimate_ns;
  result.portable = output.portable;
  for (const AppliedRewrite& r : output.rewrites) {
    result.rewrites.push_back({r.rule, r.count, r.gain_ns});
  }
  if (file.rewritten) WarnOfFixedSizes();
  if (!file.rewritten) result.clean_up.clear();
  for (const std::string& note : baseline.notes) result.warnings.push_back("not timed: " + note);
  result.warnings.insert(result.warnings.end(), output.warnings.begin(), output.warnings.end());
}

// First of all warnings: the file cannot be used as the one that came.
void Pipeline::Stages::WarnOfFixedSizes() {
  if (model.origin.dim_names.empty()) return;
  std::vector<std::string> open;
  for (const auto& [place, symbol] : model.origin.dim_names) {
    open.push_back(symbol.empty() ? place : fmt::format("{} ({})", place, symbol));
  }
  result.warnings.insert(result.warnings.begin(),
                         fmt::format("sizes that the input leaves open are fixed in the output: {}",
                                     fmt::join(open, ", ")));
}

std::vector<GroupKernels> Pipeline::Stages::OutputKernels() const {
  std::vector<GroupKernels> kernels;
  for (size_t g = 0; g < OutputPlan().groups.size(); ++g) {
    const Group& group = OutputPlan().groups[g];
    if (group.pattern == kViewPattern) continue;
    const auto measured =
        measurer->Remembered(ExtractGroup(OutputGraph(), group, job.request.policy));
    if (measured.has_value()) kernels.push_back({static_cast<int>(g), *measured});
  }
  return kernels;
}

// A device that answers from a recording estimates what is not in it, and says so by the kernel.
void Pipeline::Stages::CountEstimatedGroups() {
  int estimated = 0, timed = 0;
  for (const Group& group : OutputPlan().groups) {
    estimated += group.kernel == kEstimatedKernel ? 1 : 0;
    timed += group.pattern != kViewPattern ? 1 : 0;
  }
  if (estimated == 0) return;
  result.warnings.push_back(
      fmt::format("{} of the output's {} groups are not in the device's recording: their times are "
                  "estimates by its spec and what was recorded",
                  estimated, timed));
}

Status Pipeline::Stages::CountFiles() {
  using Counted = std::pair<const Digest*, ModelFacts*>;
  for (const auto& [digest, facts] : {Counted{&job.request.model, &result.input_facts},
                                      Counted{&result.output, &result.output_facts}}) {
    AG_LET(const std::shared_ptr<const MappedFile> file, house.blobs_->Get(*digest));
    AG_LET(*facts, CountModel(file->bytes()));
  }
  result.output_bytes = result.output_facts.file_bytes;
  return OkStatus();
}

Status Pipeline::Stages::Report() {
  CountEstimatedGroups();
  result.busy = measurer->foreign_load().busy();
  if (result.busy) result.warnings.push_back(measurer->foreign_load().Warning());
  result.groups = static_cast<int>(OutputPlan().groups.size());
  result.streams = static_cast<int>(OutputPlan().streams.size());
  result.cache = {measurer->hits(), measurer->misses(), false};
  result.seconds = static_cast<double>((house.clock_.Now() - began).count()) / 1e9;
  AG_TRY(CountFiles());
  ReportFacts facts;
  facts.request = &job.request;
  facts.result = &result;
  facts.input_plan = FormatPlan(input, found.input_plan);
  facts.output_plan = FormatPlan(OutputGraph(), OutputPlan());
  facts.output_kernels = OutputKernels();
  facts.pairs = found.pairs_measured;
  facts.overlap = found.overlap;
  facts.rules_digest = rules.digest().Hex();
  facts.nodes_in = input.size();
  facts.nodes_out = OutputGraph().size();
  AG_LET(result.report, house.blobs_->Put(WriteReport(facts)));
  return OkStatus();
}

}  // namespace ag

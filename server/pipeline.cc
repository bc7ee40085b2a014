#include "server/pipeline.h"

#include <filesystem>

#include "base/file.h"
#include "base/log.h"
#include "base/measuring_lock.h"
#include "graph/clean_up.h"
#include "plan/recording.h"
#include "rules/rewrite.h"
#include "server/confirm.h"
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

}  // namespace

// What one run knows; the stages fill it in from top to bottom.
struct Pipeline::Stages {
  const Job& job;
  const JobControl& control;
  Pipeline& house;
  Nanos began{0};
  DeviceOffer offer;
  DeviceSpec spec;
  RuleSet rules;
  SearchTurn turn{MeasuringLockPath()};
  ImportOptions import;
  ImportedModel model;
  Graph runnable;
  Graph input;
  std::unique_ptr<PoolMeasurer> measurer;
  SearchResult found;
  JobResult result;
  Graph output_graph;
  Plan output_plan;

  Status Import();
  Status Search();
  Status ConfirmWinner();
  Status Report();
  std::vector<GroupKernels> OutputKernels() const;
  void CountEstimatedGroups();
  void TakeSearchFigures();
  ConfirmRequest ToConfirm(const std::string& work_dir) const;
  void HandOut(const FoundPlan& plan, const Confirmed& confirmed);
  void HandOutInput(const std::string& verdict);
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
    if (control.cancelled()) return Err(StatusCode::kCancelled, "cancelled");
    if (clock_.Now() - begin > options_.offer_wait_max) return offer;
    clock_.SleepFor(std::chrono::milliseconds(50));
  }
}

StatusOr<JobResult> Pipeline::Run(const Job& job, const JobControl& control) {
  Stages stages{.job = job, .control = control, .house = *this};
  stages.began = clock_.Now();
  AG_LET(stages.offer, WaitForOffer(job.request.device, control));
  AG_LET(stages.spec, ParseDeviceSpec(stages.offer.device_spec));
  AG_TRY(CheckMeasures(stages.spec, job.request.policy), "policy");
  AG_TRY(control.enter(JobState::kImporting));
  AG_TRY(stages.Import());
  AG_TRY(control.enter(JobState::kSearching));
  AG_TRY(stages.Search());
  stages.TakeSearchFigures();
  const bool faster = stages.found.timing.verdict == Verdict::kFaster;
  if (!faster && control.cancelled()) return Err(StatusCode::kCancelled, "cancelled");
  if (faster) {
    AG_TRY(control.enter(JobState::kConfirming));
    AG_TRY(stages.ConfirmWinner(), "confirming");
  } else {
    stages.HandOutInput(std::string(VerdictName(stages.found.timing.verdict)));
  }
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
  request.options.seed = asked.seed;
  SearchLimits& limits = request.options.limits;
  limits.rounds_max = asked.rounds;
  limits.expansions_max = asked.expansions;
  limits.graphs_max = asked.graphs;
  limits.candidates_max = asked.candidates;
  limits.time_max = Nanos(static_cast<int64_t>(asked.time_seconds * 1e9));
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
  result.input_latency = found.input_timing.latency;
  result.eager_latency = found.eager_timing.latency;
  result.stop_reason = found.stop_reason;
  result.rounds = found.rounds;
  result.expansions = found.expansions;
  result.graphs = found.graphs;
  result.candidates = found.candidates;
  result.groups_failed = found.groups_failed;
  result.warnings.insert(result.warnings.end(), found.warnings.begin(), found.warnings.end());
}

// The output is the input's own bytes; what was tried is told, what was gained is nothing.
void Pipeline::Stages::HandOutInput(const std::string& verdict) {
  result.verdict = verdict;
  result.output = job.request.model;
  result.output_latency = result.input_latency;
  result.estimate_ns = found.input_estimate_ns;
  result.speedup = result.speedup_low = result.speedup_high = 1;
  output_graph = input;
  output_plan = found.input_plan;
}

// The winner, or the best of the runners-up that is not refused, or the input.
Status Pipeline::Stages::ConfirmWinner() {
  const WorkDir work_dir(fmt::format("{}/{}", house.options_.work_dir, job.id));
  AG_TRY(MakeDirs(work_dir.path));
  // From here on a cancelled job is confirmed to the end: its best result is to be kept.
  measurer->set_cancelled(control.stopping);
  ConfirmRequest request = ToConfirm(work_dir.path);
  std::vector<const FoundPlan*> plans = {&found};
  for (const FoundPlan& runner_up : found.runners_up) plans.push_back(&runner_up);
  std::string verdict;
  for (const FoundPlan* plan : plans) {
    request.found = plan;
    AG_TRY(turn.Enter());
    auto confirming = Confirm(request, *measurer, *house.blobs_);
    turn.Leave();
    AG_LET(const Confirmed confirmed, std::move(confirming));
    result.warnings.insert(result.warnings.end(), confirmed.warnings.begin(),
                           confirmed.warnings.end());
    if (confirmed.refusal.empty()) {
      HandOut(*plan, confirmed);
      return OkStatus();
    }
    const std::string_view which = plan == &found ? "the winner" : "a runner-up";
    LogWarn("{}: {} is not handed out: {}", job.name(), which, confirmed.refusal);
    result.warnings.push_back(fmt::format("{} is not handed out: {}", which, confirmed.refusal));
    const bool timed = confirmed.verdict != Verdict::kFaster;
    if (verdict.empty()) verdict = VerdictName(timed ? confirmed.verdict : Verdict::kSame);
  }
  HandOutInput(verdict);
  return OkStatus();
}

ConfirmRequest Pipeline::Stages::ToConfirm(const std::string& work_dir) const {
  ConfirmRequest request;
  request.model = &model;
  request.runnable = runnable;
  request.input = input;
  request.input_plan = found.input_plan;
  request.eager_plan = found.eager_plan;
  request.spec = spec;
  request.policy = job.request.policy;
  request.import = import;
  request.jail = house.options_.jail;
  request.child = house.options_.child;
  request.blob_root = house.options_.blob_root;
  request.work_dir = work_dir;
  std::string shapes;
  for (const BoundShape& shape : job.request.shapes) {
    shapes += fmt::format("{}={};", shape.input, fmt::join(shape.dims, "x"));
  }
  request.plan_key =
      Sha256(offer.environment + "\n" + shapes + "\n" + job.request.policy.Text()).Short();
  request.seed = job.request.seed;
  return request;
}

void Pipeline::Stages::HandOut(const FoundPlan& plan, const Confirmed& confirmed) {
  result.verdict = std::string(VerdictName(Verdict::kFaster));
  result.output = confirmed.output;
  result.input_latency = confirmed.input_timing.latency;
  result.output_latency = confirmed.timing.latency;
  result.speedup = confirmed.timing.speedup;
  result.speedup_low = confirmed.timing.speedup_low;
  result.speedup_high = confirmed.timing.speedup_high;
  result.errors = confirmed.errors;
  result.estimate_ns = plan.estimate_ns;
  for (const AppliedRewrite& r : plan.rewrites) {
    result.rewrites.push_back({r.rule, r.count, r.gain_ns});
  }
  output_graph = confirmed.graph;
  output_plan = confirmed.plan;
}

std::vector<GroupKernels> Pipeline::Stages::OutputKernels() const {
  std::vector<GroupKernels> kernels;
  for (size_t g = 0; g < output_plan.groups.size(); ++g) {
    const Group& group = output_plan.groups[g];
    if (group.pattern == kViewPattern) continue;
    const auto measured =
        measurer->Remembered(ExtractGroup(output_graph, group, job.request.policy));
    if (measured.has_value()) kernels.push_back({static_cast<int>(g), *measured});
  }
  return kernels;
}

// A device that answers from a recording estimates what is not in it, and says so by the kernel.
void Pipeline::Stages::CountEstimatedGroups() {
  int estimated = 0, timed = 0;
  for (const Group& group : output_plan.groups) {
    estimated += group.kernel == kEstimatedKernel ? 1 : 0;
    timed += group.pattern != kViewPattern ? 1 : 0;
  }
  if (estimated == 0) return;
  result.warnings.push_back(
      fmt::format("{} of the output's {} groups are not in the device's recording: their times are "
                  "estimates by its spec and what was recorded",
                  estimated, timed));
}

Status Pipeline::Stages::Report() {
  CountEstimatedGroups();
  result.groups = static_cast<int>(output_plan.groups.size());
  result.streams = static_cast<int>(output_plan.streams.size());
  result.cache = {measurer->hits(), measurer->misses(), false};
  result.seconds = static_cast<double>((house.clock_.Now() - began).count()) / 1e9;
  AG_LET(const std::shared_ptr<const MappedFile> output, house.blobs_->Get(result.output));
  result.output_bytes = static_cast<int64_t>(output->bytes().size());
  ReportFacts facts;
  facts.request = &job.request;
  facts.result = &result;
  facts.input_plan = FormatPlan(input, found.input_plan);
  facts.output_plan = FormatPlan(output_graph, output_plan);
  facts.output_kernels = OutputKernels();
  facts.pairs = found.pairs_measured;
  facts.overlap = found.overlap;
  facts.rules_digest = rules.digest().Hex();
  facts.nodes_in = input.size();
  facts.nodes_out = output_graph.size();
  AG_LET(result.report, house.blobs_->Put(WriteReport(facts)));
  return OkStatus();
}

}  // namespace ag

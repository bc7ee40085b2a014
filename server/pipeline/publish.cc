#include "server/pipeline/publish.h"

#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "base/blobs.h"
#include "base/log.h"
#include "server/pipeline/other_sizes.h"
#include "server/pipeline/portable.h"
#include "server/pipeline/rules_of_nodes.h"
#include "server/pipeline/wrong_rewrites.h"
#include "wire/measurement_wire.h"

namespace ag {
namespace {

constexpr const char* kWithoutWrong = " without wrong rewrites";

class Chooser {
 public:
  Chooser(const PublishRequest& request, PoolMeasurer& measurer, BlobDir& blobs)
      : request_(request),
        setting_(request.setting),
        found_(*request.found),
        measurer_(measurer),
        blobs_(blobs),
        files_(std::make_unique<OutputFiles>(setting_, measurer, blobs)),
        wrong_({&setting_, request.rules, [this] { return TimeLeft(); }}, blobs),
        runs_here_(!setting_.has_opaque()) {}

  StatusOr<Published> Run();

 private:
  // A file with what is known of it when it is tried.
  struct Trial {
    OutputFile file;
    std::string what;
    std::vector<AppliedRewrite> rewrites;
    double estimate_ns = 0;
    bool is_winner = false;       // Of the search.
    bool must_be_faster = false;  // There is a file already that is not.
  };

  // A plan of the search, or what is left of one without wrong rewrites.
  struct ToTry {
    const FoundPlan* searched = nullptr;
    FoundPlan plan;
    std::string what;  // "the winner"
  };

  Status ChooseForDevice();
  Status TryRewritten();
  StatusOr<bool> TryPlan(const ToTry& to_try);
  StatusOr<bool> TryOpen(const ToTry& to_try);
  StatusOr<bool> TryFixed(const ToTry& to_try);
  StatusOr<bool> IsWrongFound(const FoundPlan& plan);
  StatusOr<bool> Remake(ToTry* to_try);
  Status FollowCleanUp();
  FoundPlan TunedInput() const;
  Status TryTunedInput();
  StatusOr<bool> Try(Trial trial);
  StatusOr<Refusal> WhyNot(const Trial& trial, Published* tried);
  StatusOr<Refusal> WhyNotBesideTunedInput(const OutputFile& file, Published* tried);
  Status TakeInput();
  Status TryPortable();
  StatusOr<PortableResult> FindPortable();
  const NodeRules& InputRules();  // Of setting_.input.
  NodeRules RulesOf(const FoundPlan& plan) {
    return RulesOfPlan(InputRules(), setting_.input, plan, wrong_.rules());
  }
  FilePair Pair(const Digest& before, const Digest& after) const;
  BaselineRequest ToCompare(const Digest& output, const OutputFile* file) const;
  StatusOr<BaselineResult> Compare(const Digest& output, const OutputFile* file);
  StatusOr<BaselineResult> CompareOnce(const Digest& output, const OutputFile* file);
  Status MeasureSet(size_t i);
  void Refuse(const std::string& what, const std::string& why);
  void SayStage(const std::string& stage) const {
    if (request_.on_stage) request_.on_stage(stage);
  }
  Nanos TimeLeft() const { return request_.time_left ? request_.time_left() : Nanos::max(); }
  bool IsTimeOver() const { return TimeLeft() <= Nanos{0}; }
  bool IsTimeForAnotherSet() const { return !IsTimeOver() && TimeLeft() >= set_takes_; }

  const PublishRequest& request_;
  OutputSetting setting_;
  const SearchResult& found_;
  PoolMeasurer& measurer_;
  BlobDir& blobs_;
  std::unique_ptr<OutputFiles> files_;
  WrongRewrites wrong_;
  const bool runs_here_;
  std::optional<NodeRules> input_rules_;  // What InputRules returns.
  std::optional<Plan> new_input_plan_;    // Once a rule of the clean-up was left out.
  std::set<Digest> tried_;                // Graphs of plans.
  std::optional<OutputFile> wrong_file_;  // The last one tried, if an output differs.
  Published chosen_;
  bool has_chosen_ = false;
  Nanos set_takes_{0};                     // The time of the last comparison with the baseline.
  std::optional<BaselineResult> refused_;  // Of the last file that was tried: none was taken yet.
};

// The best plan of the unrewritten input, which may use several streams.
FoundPlan Chooser::TunedInput() const {
  const Graph& input = setting_.input;
  if (new_input_plan_) return {{input, *new_input_plan_}, {}, {}, found_.input_timing, 0};
  if (found_.graph.digest() == input.digest()) return found_;
  for (const FoundPlan& runner_up : found_.runners_up) {
    if (runner_up.graph.digest() == input.digest()) return runner_up;
  }
  return {{input, found_.input_plan}, {}, {}, found_.input_timing, found_.input_estimate_ns};
}

StatusOr<Published> Chooser::Run() {
  const bool portable = IsPortable(*request_.job);
  if (!portable && runs_here_) AG_TRY(ChooseForDevice());
  if (!has_chosen_) AG_TRY(TakeInput());
  const bool is_faster = chosen_.baseline.verdict == v1::Result::FASTER;
  const bool may_fix = setting_.sets.empty();  // What is exported for ONNX Runtime has fixed sizes.
  const bool may_search = portable || (request_.is_final && !is_faster);
  if (may_search && may_fix && !request_.onnxruntime.empty() && !IsTimeOver()) {
    measurer_.set_cancelled(
        [this] { return IsTimeOver(); });  // What is there may be published as it is.
    const Status tried = TryPortable();
    measurer_.set_cancelled(request_.stopping);
    if (tried.code() != StatusCode::kCancelled) AG_TRY(tried);
  }
  for (size_t i = 0; i < setting_.sets.size(); ++i) AG_TRY(MeasureSet(i));
  chosen_.wrong = wrong_.found();
  return std::move(chosen_);
}

Status Chooser::ChooseForDevice() {
  AG_TRY(TryRewritten());
  if (!has_chosen_ && !request_.job->keep_bytes()) AG_TRY(TryTunedInput());
  return OkStatus();
}

void Chooser::Refuse(const std::string& what, const std::string& why) {
  LogWarn("{} is not published: {}", what, why);
  chosen_.warnings.push_back(fmt::format("{} is not published: {}", what, why));
}

const NodeRules& Chooser::InputRules() {
  if (!input_rules_) input_rules_ = RulesOfCleanUp(setting_.runnable, wrong_.rules());
  return *input_rules_;
}

Status Chooser::TryRewritten() {
  std::vector<const FoundPlan*> plans = {&found_};
  for (const FoundPlan& runner_up : found_.runners_up) plans.push_back(&runner_up);
  const Digest input = request_.setting.input.digest();
  for (const FoundPlan* plan : plans) {
    const bool is_input = plan->graph.digest() == input;  // The tuned input comes next.
    if (has_chosen_ || is_input || (plan != &found_ && IsTimeOver())) break;
    ToTry to_try{plan, *plan, plan == &found_ ? "the winner" : "a runner-up"};
    bool is_new = true;
    if (wrong_.IsOld(*plan)) {
      AG_LET(is_new, Remake(&to_try));
    }
    while (is_new && !has_chosen_) {
      AG_LET(const bool is_wrong, TryPlan(to_try));
      if (!is_wrong || IsTimeOver()) break;
      AG_LET(is_new, Remake(&to_try));
    }
  }
  return OkStatus();
}

// Tries the plan's files; true when none was taken and a wrong rewrite of it was found.
StatusOr<bool> Chooser::TryPlan(const ToTry& to_try) {
  tried_.insert(to_try.plan.graph.digest());
  AG_LET(const bool is_open, TryOpen(to_try));
  if (is_open) return false;
  AG_LET(const bool is_wrong, IsWrongFound(to_try.plan));
  if (is_wrong) return true;
  if (!setting_.sets.empty()) return false;  // A file with fixed sizes has no use for further sets.
  AG_LET(const bool is_taken, TryFixed(to_try));
  if (is_taken) return false;
  return IsWrongFound(to_try.plan);
}

StatusOr<bool> Chooser::TryFixed(const ToTry& to_try) {
  const FoundPlan& plan = to_try.plan;
  AG_LET(OutputFile file, files_->Rewritten(plan.graph, &plan.plan, RulesOf(plan).rules()));
  return Try(
      {std::move(file), to_try.what, plan.rewrites, plan.estimate_ns, to_try.searched == &found_});
}

// Looks for the rewrite at fault when the last file differed from the model.
StatusOr<bool> Chooser::IsWrongFound(const FoundPlan& plan) {
  if (!wrong_file_) return false;
  const OutputFile file = *std::exchange(wrong_file_, std::nullopt);
  AG_LET(const bool is_found, wrong_.Find(plan, file, *files_));
  for (std::string& warning : wrong_.TakeWarnings()) {
    chosen_.warnings.push_back(std::move(warning));
  }
  if (is_found && wrong_.clean_up_changed()) AG_TRY(FollowCleanUp());
  return is_found;
}

// The setting has another cleaned-up input: what was made of the old one is made anew.
Status Chooser::FollowCleanUp() {
  files_ = std::make_unique<OutputFiles>(setting_, measurer_, blobs_);
  input_rules_.reset();
  StatusOr<Plan> plan = files_->PlanAnew(setting_.input, found_.input_plan);
  if (!plan.ok() && IsRefusal(plan.status())) plan = UnfusedPlan(setting_, setting_.input);
  AG_LET(new_input_plan_, std::move(plan));
  return OkStatus();
}

// Leaves out of a plan what was found wrong; false when nothing is left of it that was not tried.
StatusOr<bool> Chooser::Remake(ToTry* to_try) {
  AG_LET(std::optional<FoundPlan> remade, wrong_.Remade(*to_try->searched, *files_));
  for (std::string& warning : wrong_.TakeWarnings()) {
    chosen_.warnings.push_back(std::move(warning));
  }
  if (!remade || tried_.contains(remade->graph.digest())) return false;
  to_try->plan = *std::move(remade);
  if (!to_try->what.ends_with(kWithoutWrong)) to_try->what += kWithoutWrong;
  return true;
}

// Tries the plan's graph with the sizes open that the model leaves open; true when it was taken.
StatusOr<bool> Chooser::TryOpen(const ToTry& to_try) {
  if (setting_.model->origin.dim_names.empty()) return false;
  const FoundPlan& plan = to_try.plan;
  AG_LET(OutputFile file, files_->RewrittenOpen(plan, wrong_.rules()));
  std::vector<AppliedRewrite> rewrites = file.rewrites;
  const auto count = [](const std::vector<AppliedRewrite>& list) {
    return std::accumulate(list.begin(), list.end(), 0,
                           [](int sum, const AppliedRewrite& r) { return sum + r.count; });
  };
  const double estimate_ns = count(rewrites) == count(plan.rewrites) ? plan.estimate_ns : 0;
  return Try({std::move(file), to_try.what + " with open sizes", std::move(rewrites), estimate_ns});
}

Status Chooser::TryTunedInput() {
  while (true) {
    const FoundPlan tuned = TunedInput();
    AG_LET(OutputFile file, files_->InputWithPlan(tuned.plan));
    AG_LET(const bool is_taken,
           Try({std::move(file), "the input with its plan", {}, tuned.estimate_ns}));
    if (is_taken || IsTimeOver()) return OkStatus();
    AG_LET(const bool is_wrong, IsWrongFound(tuned));
    if (!is_wrong) return OkStatus();
  }
}

// Compares what is published with the input at one of the shape sets.
Status Chooser::MeasureSet(size_t i) {
  const ShapesByInput& shapes = setting_.sets[i].shapes;
  SayStage("timing at " + ShapesText(shapes));
  v1::ShapeSetResult result;
  result.set_shapes(ShapesText(shapes));
  const OutputFile& file = chosen_.file;
  if (i < file.at_sets.size()) {
    result.set_groups(SizesOf(file.at_sets[i].plan).groups);
    result.set_streams(SizesOf(file.at_sets[i].plan).streams);
  }
  BaselineResult at{.is_time_over = !IsTimeForAnotherSet()};
  if (!at.is_time_over) {
    BaselineRequest compared =
        ToCompare(file.digest.IsZero() ? setting_.model_digest : file.digest, &file);
    compared.shapes = BoundShapesOf(shapes);
    compared.inputs = setting_.sets[i].timed_inputs;
    AG_LET(at, CompareWithBaseline(compared, measurer_));
  }
  if (at.is_time_over) {
    chosen_.warnings.push_back("not timed, the time was over: " + result.shapes());
  }
  result.set_verdict(at.verdict);
  result.set_baseline(at.baseline);
  result.set_output_runtime(at.output_runtime);
  if (at.verdict != v1::Result::NOT_MEASURED) {
    ToProto(at.input_latency, result.mutable_input_latency());
    ToProto(at.output_latency, result.mutable_output_latency());
    ToProto(at.speedup, result.mutable_speedup());
  }
  chosen_.sets.push_back(std::move(result));
  return OkStatus();
}

BaselineRequest Chooser::ToCompare(const Digest& output, const OutputFile* file) const {
  BaselineRequest compared;
  compared.input = setting_.model_digest;
  compared.output = output;
  compared.rewritten = file != nullptr && file->rewritten;
  compared.carries_plan = file != nullptr && file->carries_plan;
  compared.runs_here = runs_here_ && !IsPortable(*request_.job);
  compared.onnxruntime = request_.onnxruntime;
  compared.shapes = setting_.bound_shapes();
  compared.inputs = setting_.timed_inputs;
  compared.seconds = request_.seconds;
  compared.time_left = request_.time_left;
  return compared;
}

StatusOr<BaselineResult> Chooser::CompareOnce(const Digest& output, const OutputFile* file) {
  const BaselineRequest compared = ToCompare(output, file);
  const Nanos before = TimeLeft();
  auto result = CompareWithBaseline(compared, measurer_);
  set_takes_ = before - TimeLeft();
  return result;
}

StatusOr<BaselineResult> Chooser::Compare(const Digest& output, const OutputFile* file) {
  AG_LET(BaselineResult result, CompareOnce(output, file));
  // One process may have got memory that is slower: both are started anew, once.
  if (!AgreesWithFreshSession(result) && IsTimeForAnotherSet()) {
    AG_LET(BaselineResult again, CompareOnce(output, file));
    if (!again.is_time_over) result = std::move(again);
  }
  const bool is_unmeasured = result.verdict == v1::Result::NOT_MEASURED && !result.is_time_over;
  if (is_unmeasured && request_.onnxruntime.empty()) {
    const bool is_off = request_.job->onnxruntime() == v1::OptimizeRequest::OFF;
    result.notes.push_back(is_off ? "ONNX Runtime: the request leaves it out"
                                  : "ONNX Runtime: there is none beside the worker");
  }
  return result;
}

std::string RatioText(const Ratio& ratio) {
  return fmt::format("{:.3f}x ({:.3f} to {:.3f})", ratio.median, ratio.low, ratio.high);
}

std::string UnsteadyText(const BaselineResult& result) {
  return "another fresh session takes another time: " + RatioText(*result.fresh_session);
}

// Takes the candidate unless something speaks against it; true when it was taken.
StatusOr<bool> Chooser::Try(Trial trial) {
  Published tried;
  Refusal refusal = trial.file.refusal;
  if (!refusal) {
    SayStage("timing " + trial.what);
    AG_LET(refusal, WhyNot(trial, &tried));
  }
  if (!refusal) {
    SayStage("comparing results of " + trial.what);
    AG_TRY(files_->Check(&trial.file));
    refusal = trial.file.refusal;
  }
  if (refusal) {
    Refuse(trial.what, refusal.text);
    chosen_.winner_refused |= trial.is_winner;
    if (refusal.kind == Refusal::Kind::kDiffers) wrong_file_ = std::move(trial.file);
    return false;
  }
  tried.warnings.insert(tried.warnings.begin(), chosen_.warnings.begin(), chosen_.warnings.end());
  tried.warnings.insert(tried.warnings.end(), trial.file.warnings.begin(),
                        trial.file.warnings.end());
  tried.winner_refused = chosen_.winner_refused;
  tried.portable = std::move(chosen_.portable);
  tried.file = std::move(trial.file);
  tried.rewrites = std::move(trial.rewrites);
  tried.estimate_ns = trial.estimate_ns;
  chosen_ = std::move(tried);
  has_chosen_ = true;
  return true;
}

// Fills in `tried` with what was measured of the candidate's file.
StatusOr<Refusal> Chooser::WhyNot(const Trial& trial, Published* tried) {
  AG_LET(tried->baseline, Compare(trial.file.digest, &trial.file));
  const BaselineResult& baseline = tried->baseline;
  refused_ = baseline;
  if (baseline.is_time_over) {
    return Refusal{Refusal::Kind::kNotRun,
                   fmt::format("it is not timed: {}", fmt::join(baseline.notes, "; "))};
  }
  if (trial.file.carries_plan && !baseline.fresh_session) {
    return Refusal{Refusal::Kind::kNotRun,
                   fmt::format("it does not run: {}", fmt::join(baseline.notes, "; "))};
  }
  if (trial.must_be_faster && baseline.verdict != v1::Result::FASTER) {
    return Refusal{Refusal::Kind::kNoGain, "timed as a whole it is " + RatioText(baseline.speedup)};
  }
  // What ONNX Runtime runs is not our session's to judge.
  if (baseline.output_in_onnxruntime) return Refusal();
  if (!AgreesWithFreshSession(baseline)) {
    return Refusal{Refusal::Kind::kUnsteady, UnsteadyText(baseline)};
  }
  if (baseline.over_untuned && baseline.over_untuned->high < 1) {
    return Refusal{Refusal::Kind::kNoGain, "it is slower than an untuned session on the input: " +
                                               RatioText(*baseline.over_untuned)};
  }
  if (!trial.file.rewritten || !trial.file.carries_plan) return Refusal();
  return WhyNotBesideTunedInput(trial.file, tried);
}

StatusOr<Refusal> Chooser::WhyNotBesideTunedInput(const OutputFile& file, Published* tried) {
  const StatusOr<std::string> plan = files_->PlanOfInput(TunedInput().plan);
  if (!plan.ok()) return IsRefusal(plan.status()) ? StatusOr<Refusal>(Refusal()) : plan.status();
  FilePair pair = Pair(setting_.model_digest, file.digest);
  pair.plan_before = *plan;
  const StatusOr<Ratio> ratio = IsTimeForAnotherSet()
                                    ? CompareFiles(pair, measurer_)
                                    : Err(StatusCode::kDeadlineExceeded, "no time for another set");
  if (ratio.status().code() == StatusCode::kCancelled) return ratio.status();
  if (ratio.status().code() == StatusCode::kDeadlineExceeded) {
    tried->warnings.push_back(
        "the time was over before the file was timed beside the input with the best plan for it: "
        "it was faster than that in the search's own process only");
  }
  if (!ratio.ok()) return Refusal();
  tried->over_tuned_input = *ratio;
  if (ratio->median >= 1) return Refusal();
  return Refusal{Refusal::Kind::kNoGain,
                 "the input with its own plan is as fast: " + RatioText(*ratio)};
}

Status Chooser::TakeInput() {
  std::optional<BaselineResult> timed;
  if (!refused_ || !IsTimeOver()) {
    SayStage("timing the input");
    AG_LET(timed, Compare(setting_.model_digest, nullptr));
  }
  const bool was_time = timed && !timed->is_time_over;
  chosen_.baseline = was_time || !refused_ ? *std::move(timed) : UnchangedInput(*refused_);
  if (!AgreesWithFreshSession(chosen_.baseline)) {
    chosen_.warnings.push_back("the input's own bytes: " + UnsteadyText(chosen_.baseline));
  }
  has_chosen_ = true;
  return OkStatus();
}

FilePair Chooser::Pair(const Digest& before, const Digest& after) const {
  return {.before = before,
          .after = after,
          .shapes = setting_.bound_shapes(),
          .seconds = request_.seconds,
          .inputs = setting_.timed_inputs};
}

StatusOr<PortableResult> Chooser::FindPortable() {
  PortableRequest portable;
  portable.model = setting_.runnable;
  portable.input = setting_.input;
  portable.rules = &wrong_.rules();
  for (const AppliedRewrite& rewrite : found_.rewrites) {
    if (portable.rules->Find(rewrite.rule) == nullptr) continue;  // It was found wrong.
    portable.trail.push_back({rewrite.rule, rewrite.count});
  }
  if (!found_.rewrites.empty() && !wrong_.IsOld(found_)) portable.winner = found_.graph;
  portable.stop = [this] { return IsTimeOver(); };
  std::map<Digest, Digest> files;  // Of graphs that were exported.
  std::map<Digest, NodeRules> made_by = {{setting_.input.digest(), InputRules()}};
  portable.try_graph = [&](const Graph* before, const Graph& candidate,
                           const std::string& step) -> StatusOr<Ratio> {
    NodeRules rules = made_by.at((before == nullptr ? setting_.input : *before).digest());
    if (step == kWinnerStep) rules = RulesOf(found_);
    if (step != kWinnerStep && step != kCleanUpStep) rules.Next(candidate, step);
    made_by.insert_or_assign(candidate.digest(), rules);
    AG_LET(const OutputFile file, files_->Rewritten(candidate, nullptr, rules.rules()));
    if (file.refusal) {
      LogWarn("portable: not exported: {}", file.refusal.text);
      return Ratio{0, 0, 0};
    }
    files[candidate.digest()] = file.digest;
    FilePair pair =
        Pair(before == nullptr ? setting_.model_digest : files[before->digest()], file.digest);
    pair.in_onnxruntime = true;
    return CompareFiles(pair, measurer_);
  };
  return KeepWhatHelps(portable);
}

// Looks for what makes ONNX Runtime faster, and takes it when the file as a whole is FASTER.
Status Chooser::TryPortable() {
  SayStage("looking for what ONNX Runtime gains by");
  StatusOr<PortableResult> found = FindPortable();
  const bool asked = IsPortable(*request_.job);
  if (found.status().code() == StatusCode::kInvalidArgument && !asked) {  // It refuses the model.
    chosen_.warnings.push_back(Message(found.status()));
    return OkStatus();
  }
  AG_TRY(found);
  chosen_.portable = found->steps;
  if (!found->best || IsTimeOver()) return OkStatus();
  std::optional<Plan> plan;
  if (runs_here_ && !asked) {
    AG_LET(plan, files_->PlanAnew(*found->best, found_.input_plan));
  }
  AG_LET(OutputFile file, files_->Rewritten(*found->best, plan ? &*plan : nullptr, {}));
  Trial trial{std::move(file), "what ONNX Runtime gains by", {}, 0};
  trial.must_be_faster = true;
  for (const v1::PortableStep& step : found->steps) {
    if (!step.kept() || step.rule() == kCleanUpStep) continue;
    if (step.rule() == kWinnerStep) {
      for (const AppliedRewrite& rewrite : found_.rewrites) {  // Gains are of the winner's plan.
        trial.rewrites.push_back({rewrite.rule, rewrite.count, rewrite.gain_ns});
      }
    } else {
      trial.rewrites.push_back({step.rule(), step.applied(), 0});
    }
  }
  return Try(std::move(trial)).status();
}

}  // namespace

StatusOr<Published> ChooseOutput(const PublishRequest& request, PoolMeasurer& measurer,
                                 BlobDir& blobs) {
  return Chooser(request, measurer, blobs).Run();
}

}  // namespace ag

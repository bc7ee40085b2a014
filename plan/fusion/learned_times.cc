#include "plan/fusion/learned_times.h"

#include <algorithm>
#include <array>
#include <utility>

namespace ag {
namespace {

// The share by which medians of one group differ from minute to minute on a quiet machine (2 cores,
// AMD EPYC).
constexpr double kNoise = 0.05;

// Returns the keys of a problem's ratios, the most special first. A single ratio is enough: it is
// far nearer to the truth than the roofline.
std::array<std::string, 3> RatioKeys(const GroupProblem& problem) {
  std::string layouts = problem.pattern;
  for (const Layout layout : problem.input_layouts) layouts += fmt::format(" {}", int(layout));
  layouts += " >";
  for (const Layout layout : problem.output_layouts) layouts += fmt::format(" {}", int(layout));
  return {layouts, problem.pattern, ""};
}

double MedianOf(const std::vector<double>& sorted) {
  const size_t n = sorted.size();
  return n % 2 == 1 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

// Returns the measurement's status; a measurement that cannot be true is a failure.
Status CheckAnswer(const StatusOr<Measurement>& measurement, int cores) {
  AG_TRY(measurement);
  AG_TRY(CheckMeasurement(*measurement));
  if (measurement->active_cores <= cores) return OkStatus();
  return Err(StatusCode::kInternal, "measurement: expected 0 to {} active cores, got {}", cores,
             measurement->active_cores);
}

bool NeedsNoTime(const GroupProblem& problem) { return problem.pattern == kViewPattern; }

}  // namespace

GroupTime GroupTimeOf(const Measurement& measurement) {
  const Latency& latency = measurement.latency;
  GroupTime time{.ns = latency.median_ns,
                 .state = TimeState::kMeasured,
                 .kernel = measurement.kernel,
                 .active_cores = measurement.active_cores};
  if (!measurement.simulated) {
    time.noise_ns = std::max(kNoise * latency.median_ns, (latency.high_ns - latency.low_ns) / 2);
  }
  return time;
}

LearnedTimes::LearnedTimes(const DeviceSpec& spec, GroupMeasurer measure, LearningOptions options)
    : spec_(spec), measure_(std::move(measure)), options_(std::move(options)) {}

LearnedTimes::LearnedTimes(const LearnedTimes& known, GroupMeasurer measure,
                           LearningOptions options)
    : spec_(known.spec_),
      measure_(std::move(measure)),
      options_{.stop = std::move(options.stop), .at_once = options.at_once},
      is_copy_(true) {
  const MutexLock lock(known.mutex_);
  const MutexLock own(mutex_);
  AG_CHECK(known.wanted_.empty());
  known_ = known.known_;
  stored_ = known.stored_;
  version_ = known.version_;
  ratios_ = known.ratios_;
  asked_ = asked_before_ = known.asked_;
  stage_max_ = int64_t{asked_} + options.groups_max;
  measured_ = known.measured_;
  failed_ = known.failed_;
}

void LearnedTimes::TakeFrom(const LearnedTimes& copy) {
  const MutexLock own(mutex_);  // First what was copied, as where the copy was made.
  const MutexLock lock(copy.mutex_);
  for (const auto& [group, measurement] : copy.answers_) {
    if (!known_.contains(group.bytes)) Learn(group, measurement);
  }
  asked_ += copy.asked_ - copy.asked_before_;
  stopped_ = stopped_ || copy.stopped_;
  // Times that stay for good, so the order does not matter.
  for (const auto& [key, stored] : copy.stored_) {
    if (stored.time.state != TimeState::kEstimated) stored_.try_emplace(key, stored);
  }
}

LearnedTimes::Basis LearnedTimes::BasisOf(const GroupProblem& problem) const {
  return {EncodeGroupProblem(problem), EstimateGroup(problem, spec_), RatioKeys(problem)};
}

// Returns the measured time, or the estimate by the ratios that are known now.
GroupTime LearnedTimes::TimeBy(const Basis& basis) const {
  const auto known = known_.find(basis.bytes);
  GroupTime time = known == known_.end() ? GroupTime() : known->second.time;
  if (time.measured()) return time;
  time.ns = basis.roofline.ns;
  time.active_cores = basis.roofline.active_cores;
  for (const std::string& key : basis.ratio_keys) {
    const auto it = ratios_.find(key);
    if (it == ratios_.end()) continue;
    time.ns *= MedianOf(it->second);
    break;
  }
  return time;
}

GroupTime LearnedTimes::Time(const GroupProblem& problem) {
  if (NeedsNoTime(problem)) return {.state = TimeState::kMeasured};
  if (options_.at_once && Want(problem)) MeasureWanted();
  const Basis basis = BasisOf(problem);
  const MutexLock lock(mutex_);
  return TimeBy(basis);
}

// Returns the stored time, an estimate by what is known now; null: there is none.
const GroupTime* LearnedTimes::Recall(const LocalKey& key) {
  const auto it = stored_.find(key);
  if (it == stored_.end()) return nullptr;
  Stored& stored = it->second;
  if (stored.time.state == TimeState::kEstimated && stored.version != version_) {
    stored.time = TimeBy(*stored.basis);
    stored.version = version_;
  }
  return &stored.time;
}

BriefTime LearnedTimes::BriefTimeOf(const LocalKey& key, MakeProblem make) {
  {
    const MutexLock lock(mutex_);
    if (const GroupTime* time = Recall(key)) return BriefTime::Of(*time);
  }
  return BriefTime::Of(TimeOf(key, make));
}

GroupTime LearnedTimes::TimeOf(const LocalKey& key, MakeProblem make) {
  {
    const MutexLock lock(mutex_);
    if (const GroupTime* time = Recall(key)) return *time;
  }
  const GroupProblem problem = make();
  if (NeedsNoTime(problem) || options_.at_once) return Time(problem);  // Time may measure.
  auto basis = std::make_shared<const Basis>(BasisOf(problem));
  const MutexLock lock(mutex_);
  const GroupTime time = TimeBy(*basis);
  stored_.insert_or_assign(key, Stored{time, version_, std::move(basis)});
  return time;
}

std::optional<Measurement> LearnedTimes::MeasurementOf(const GroupProblem& problem) const {
  const std::string bytes = EncodeGroupProblem(problem);
  const MutexLock lock(mutex_);
  const auto it = known_.find(bytes);
  return it == known_.end() ? std::nullopt : it->second.measurement;
}

void LearnedTimes::Prefer(const GroupProblem& problem, std::string kernel) {
  const std::string bytes = EncodeGroupProblem(problem);
  const MutexLock lock(mutex_);
  const auto it = known_.find(bytes);
  if (it == known_.end() || !it->second.time.measured()) return;
  it->second.time.kernel = std::move(kernel);
  stored_.clear();  // Their keys do not tell which of them belong to this group.
}

bool LearnedTimes::Want(const GroupProblem& problem) {
  if (NeedsNoTime(problem)) return false;
  std::string bytes = EncodeGroupProblem(problem);
  const MutexLock lock(mutex_);
  const bool is_new = known_.try_emplace(bytes).second;
  if (is_new) wanted_.push_back({std::move(bytes), problem});
  return is_new;
}

std::vector<LearnedTimes::Wanted> LearnedTimes::TakeBatch(int count_max) {
  const bool stop = options_.stop && options_.stop();
  const MutexLock lock(mutex_);
  stopped_ = stopped_ || stop;
  const int left = stopped_ ? 0 : Left();
  const int count = std::min({left, count_max, kGroupBatchMax, static_cast<int>(wanted_.size())});
  std::vector<Wanted> batch(std::make_move_iterator(wanted_.begin()),
                            std::make_move_iterator(wanted_.begin() + count));
  wanted_.erase(wanted_.begin(), wanted_.begin() + count);
  asked_ += count;
  return batch;
}

void LearnedTimes::Record(Wanted wanted, const StatusOr<Measurement>& measurement) {
  const MutexLock lock(mutex_);
  if (measurement.status().code() == StatusCode::kCancelled) {  // Says nothing about the group.
    ++version_;
    known_.erase(wanted.bytes);
    --asked_;
    stopped_ = true;
    return;
  }
  Learn(wanted, measurement);
  if (is_copy_) answers_.push_back({std::move(wanted), measurement});
}

void LearnedTimes::Learn(const Wanted& wanted, const StatusOr<Measurement>& measurement) {
  ++version_;
  const Status status = CheckAnswer(measurement, spec_.cores);
  Known& known = known_[wanted.bytes];
  if (!status.ok()) {
    known.time = {.state = TimeState::kFailed, .failure = status};
    ++failed_;
    return;
  }
  known = {GroupTimeOf(*measurement), *measurement};
  ++measured_;
  const double roofline = RooflineNs(wanted.problem, spec_);
  if (!(roofline > 0)) return;
  const double ratio = known.time.ns / roofline;
  for (const std::string& key : RatioKeys(wanted.problem)) {
    std::vector<double>& ratios = ratios_[key];
    ratios.insert(std::ranges::upper_bound(ratios, ratio), ratio);
  }
}

void LearnedTimes::MeasureWanted(int count_max) {
  while (true) {
    std::vector<Wanted> batch = TakeBatch(count_max);
    if (batch.empty()) break;
    count_max -= static_cast<int>(batch.size());
    std::vector<GroupProblem> problems;
    problems.reserve(batch.size());
    for (const Wanted& wanted : batch) problems.push_back(wanted.problem);
    const auto results = measure_(problems);
    AG_CHECK(results.size() == batch.size());
    for (size_t i = 0; i < batch.size(); ++i) Record(std::move(batch[i]), results[i]);
  }
  const MutexLock lock(mutex_);
  for (const Wanted& wanted : wanted_) known_.erase(wanted.bytes);
  wanted_.clear();
}

void LearnedTimes::BeginStage(int groups_max) {
  const bool stop = options_.stop && options_.stop();
  const MutexLock lock(mutex_);
  stopped_ = stop;
  stage_max_ = int64_t{asked_} + groups_max;
}

int LearnedTimes::Left() const {
  const int64_t max = std::min<int64_t>(options_.groups_max, stage_max_);
  return static_cast<int>(std::max<int64_t>(max - asked_, 0));
}

int64_t LearnedTimes::version() const {
  const MutexLock lock(mutex_);
  return version_;
}

bool LearnedTimes::Exhausted() const {
  const MutexLock lock(mutex_);
  return stopped_ || Left() == 0;
}

bool LearnedTimes::Stopped() const {
  const MutexLock lock(mutex_);
  return stopped_;
}

int LearnedTimes::LeftToAsk() const {
  const MutexLock lock(mutex_);
  return Left();
}

int LearnedTimes::asked() const {
  const MutexLock lock(mutex_);
  return asked_;
}

int LearnedTimes::measured() const {
  const MutexLock lock(mutex_);
  return measured_;
}

int LearnedTimes::failed() const {
  const MutexLock lock(mutex_);
  return failed_;
}

}  // namespace ag

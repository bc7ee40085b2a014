#include "search/group_times_cache.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace ag {
namespace {

// Returns the keys of a problem's ratios, the most special first. A single ratio is enough: it is
// far nearer to the truth than the roofline.
std::array<std::string, 3> RatioKeys(const GroupProblem& problem) {
  std::string layouts = problem.pattern;
  for (const Layout layout : problem.input_layouts) layouts += fmt::format(" {}", int(layout));
  layouts += " >";
  for (const Layout layout : problem.output_layouts) layouts += fmt::format(" {}", int(layout));
  return {layouts, problem.pattern, ""};
}

double Median(const std::vector<double>& sorted) {
  const size_t n = sorted.size();
  return n % 2 == 1 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

// Returns the measurement's status. A time that is zero, negative or NaN is a failure, and so are
// more busy cores than the device has.
Status CheckMeasurement(const StatusOr<Measurement>& measurement, int cores) {
  AG_TRY(measurement);
  const double ns = measurement->latency.median_ns;
  if (!std::isfinite(ns) || ns <= 0) {
    return Err(StatusCode::kInternal, "group measurement: expected a time above 0 ns, got {}", ns);
  }
  if (measurement->busy_cores >= 0 && measurement->busy_cores <= cores) return OkStatus();
  return Err(StatusCode::kInternal, "group measurement: expected 0 to {} busy cores, got {}", cores,
             measurement->busy_cores);
}

bool NeedsNoTime(const GroupProblem& problem) { return problem.pattern == kViewPattern; }

}  // namespace

GroupTimesCache::GroupTimesCache(const DeviceSpec& spec, Measurer& measurer, Options options)
    : spec_(spec), measurer_(measurer), options_(std::move(options)) {}

double GroupTimesCache::EstimateNs(const GroupProblem& problem) const {
  const double roofline = RooflineNs(problem, spec_);
  for (const std::string& key : RatioKeys(problem)) {
    const auto it = ratios_.find(key);
    if (it != ratios_.end()) return roofline * Median(it->second);
  }
  return roofline;
}

GroupTime GroupTimesCache::TimeOf(const Known* known, const GroupProblem& problem) const {
  if (known == nullptr || known->state == State::kUnknown) return {.ns = EstimateNs(problem)};
  return known->time;
}

GroupTime GroupTimesCache::Time(const GroupProblem& problem) { return Find(problem).time; }

std::optional<GroupTime> GroupTimesCache::Recall(const LocalKey& key) {
  const MutexLock lock(mutex_);
  const auto it = remembered_.find(key);
  if (it == remembered_.end()) return std::nullopt;
  const auto& [time, version] = it->second;
  const bool is_final = time.measured || time.ns == kFailedGroupNs;
  if (!is_final && version != version_) return std::nullopt;
  return time;
}

void GroupTimesCache::Remember(const LocalKey& key, const GroupTime& time) {
  const MutexLock lock(mutex_);
  remembered_.insert_or_assign(key, Remembered{time, version_});
}

GroupTimesCache::Known GroupTimesCache::Find(const GroupProblem& problem) const {
  if (NeedsNoTime(problem)) return {.state = State::kMeasured, .time = {.ns = 0, .measured = true}};
  const std::string bytes = EncodeGroupProblem(problem);
  const MutexLock lock(mutex_);
  const auto it = known_.find(bytes);
  Known known = it == known_.end() ? Known{} : it->second;
  known.time = TimeOf(&known, problem);
  return known;
}

void GroupTimesCache::Prefer(const GroupProblem& problem, std::string kernel) {
  const std::string bytes = EncodeGroupProblem(problem);
  const MutexLock lock(mutex_);
  const auto it = known_.find(bytes);
  if (it == known_.end() || it->second.state != State::kMeasured) return;
  it->second.time.kernel = std::move(kernel);
  remembered_.clear();  // Their keys do not tell which of them belong to this group.
}

void GroupTimesCache::Want(const GroupProblem& problem) {
  if (NeedsNoTime(problem)) return;
  std::string bytes = EncodeGroupProblem(problem);
  const MutexLock lock(mutex_);
  const bool is_new = known_.try_emplace(bytes).second;
  if (is_new) wanted_.push_back({std::move(bytes), problem});
}

std::vector<GroupTimesCache::Wanted> GroupTimesCache::TakeBatch(int count_max) {
  const bool stop = options_.stop && options_.stop();
  const MutexLock lock(mutex_);
  stopped_ = stopped_ || stop;
  const int left = stopped_ ? 0 : LeftToAsk();
  const int count = std::min({left, count_max, kGroupBatchMax, static_cast<int>(wanted_.size())});
  std::vector<Wanted> batch(std::make_move_iterator(wanted_.begin()),
                            std::make_move_iterator(wanted_.begin() + count));
  wanted_.erase(wanted_.begin(), wanted_.begin() + count);
  asked_ += count;
  return batch;
}

void GroupTimesCache::Record(const Wanted& wanted, const StatusOr<Measurement>& measurement) {
  const Status status = CheckMeasurement(measurement, spec_.cores);
  const MutexLock lock(mutex_);
  ++version_;
  if (status.code() == StatusCode::kCancelled) {  // Says nothing about the group.
    known_.erase(wanted.bytes);
    --asked_;
    stopped_ = true;
    return;
  }
  Known& known = known_[wanted.bytes];
  if (!status.ok()) {
    known = {.state = State::kFailed, .time = {.ns = kFailedGroupNs}, .failure = status};
    ++failed_;
    return;
  }
  const double ns = measurement->latency.median_ns;
  known = {.state = State::kMeasured, .time = GroupTimeOf(*measurement)};
  ++measured_;
  const double roofline = RooflineNs(wanted.problem, spec_);
  if (!(roofline > 0)) return;
  for (const std::string& key : RatioKeys(wanted.problem)) {
    std::vector<double>& ratios = ratios_[key];
    ratios.insert(std::ranges::upper_bound(ratios, ns / roofline), ns / roofline);
  }
}

void GroupTimesCache::MeasureWanted(int count_max) {
  while (true) {
    const std::vector<Wanted> batch = TakeBatch(count_max);
    if (batch.empty()) break;
    count_max -= static_cast<int>(batch.size());
    std::vector<GroupProblem> problems;
    problems.reserve(batch.size());
    for (const Wanted& wanted : batch) problems.push_back(wanted.problem);
    const auto results = measurer_.MeasureGroups(problems);
    AG_CHECK(results.size() == batch.size());
    for (size_t i = 0; i < batch.size(); ++i) Record(batch[i], results[i]);
  }
  const MutexLock lock(mutex_);
  for (const Wanted& wanted : wanted_) known_.erase(wanted.bytes);
  wanted_.clear();
}

void GroupTimesCache::BeginStage(int groups_max) {
  const bool stop = options_.stop && options_.stop();
  const MutexLock lock(mutex_);
  stopped_ = stop;
  stage_max_ = int64_t{asked_} + groups_max;
}

int GroupTimesCache::LeftToAsk() const {
  const int64_t max = std::min<int64_t>(options_.groups_max, stage_max_);
  return static_cast<int>(std::max<int64_t>(max - asked_, 0));
}

bool GroupTimesCache::Exhausted() const {
  const MutexLock lock(mutex_);
  return stopped_ || LeftToAsk() == 0;
}

int GroupTimesCache::asked() const {
  const MutexLock lock(mutex_);
  return asked_;
}

int GroupTimesCache::measured() const {
  const MutexLock lock(mutex_);
  return measured_;
}

int GroupTimesCache::failed() const {
  const MutexLock lock(mutex_);
  return failed_;
}

GroupTime WantingTimes::Time(const GroupProblem& problem) {
  const GroupTimesCache::Known known = cache_.Find(problem);
  if (known.state == GroupTimesCache::State::kUnknown) cache_.Want(problem);
  return known.time;
}

}  // namespace ag

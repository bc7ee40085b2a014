#include "server/pipeline/pool_measurer.h"

#include <algorithm>
#include <map>

#include "base/log.h"
#include "plan/fusion/learned_times.h"
#include "plan/interval.h"
#include "wire/candidate_wire.h"
#include "wire/measurement_wire.h"

namespace ag {
namespace {

// True for failures that say something of the group and not of the worker or the hour.
bool WorthRemembering(const Delivery& delivery) {
  if (delivery.quarantined) return true;
  switch (delivery.result.status.code()) {
    case StatusCode::kUnimplemented:
    case StatusCode::kInvalidArgument:
    case StatusCode::kDataLoss:
    case StatusCode::kResourceExhausted:
      return true;
    default:
      return false;
  }
}

// True when most of it was measured beside others.
bool IsDisturbed(const Measurement& measurement) {
  return 2 * measurement.disturbed > measurement.samples;
}

constexpr size_t kBatch = kGroupBatchMax;

// Enough for a median that one disturbed block does not move.
constexpr int kRankingBlocks = 5;

v1::WorkItem ItemOf(double time_max_seconds) {
  v1::WorkItem item;
  item.set_time_max_seconds(time_max_seconds);
  return item;
}

}  // namespace

PoolMeasurer::PoolMeasurer(WorkRunner& runner, GroupCache& cache, Clock& clock, Options options)
    : runner_(runner), cache_(cache), clock_(clock), options_(std::move(options)) {}

std::optional<StatusOr<Measurement>> PoolMeasurer::Fresh(const std::string& bytes) const {
  const auto found = fresh_.find(bytes);
  if (found == fresh_.end()) return std::nullopt;
  return found->second;
}

std::optional<CacheRow> PoolMeasurer::Recall(const std::string& bytes, const Digest& key) {
  if (options_.skip_group_cache) return std::nullopt;
  std::optional<CacheRow> row = cache_.Find(key, bytes, options_.environment);
  // A pair's kernels are part of its problem: who asks for it has them. A failure names none.
  if (row.has_value() && (!row->status.ok() || IsPairProblem(bytes))) row->is_checked = true;
  return row;
}

std::optional<Measurement> PoolMeasurer::Remembered(const GroupProblem& problem) {
  const std::string bytes = EncodeGroupProblem(problem);
  if (const auto fresh = Fresh(bytes); fresh.has_value()) {
    return fresh->ok() ? std::optional<Measurement>(**fresh) : std::nullopt;
  }
  const auto row = Recall(bytes, GroupKey(bytes, options_.environment));
  if (!row.has_value() || !row->status.ok() || !row->is_checked) return std::nullopt;
  return row->measurement;
}

std::vector<PoolMeasurer::Asked> PoolMeasurer::CheckKernels(const std::vector<Recalled>& rows,
                                                            std::vector<Recalled>* recalled) {
  std::vector<bool> has(rows.size(), false);
  for (size_t begin = 0; begin < rows.size(); begin += kBatch) {
    const size_t end = std::min(rows.size(), begin + kBatch);
    v1::WorkItem item = ItemOf(options_.group_seconds_max);
    for (size_t i = begin; i < end; ++i) {
      v1::GroupKernelNames* group = item.mutable_kernel_check()->add_groups();
      group->set_problem(rows[i].asked.bytes);
      group->add_kernels(rows[i].measurement.kernel);
      for (const auto& [kernel, ns] : rows[i].measurement.alternatives) group->add_kernels(kernel);
    }
    const auto keep = [&](const Delivery& delivery) {
      const size_t i = begin + static_cast<size_t>(delivery.entry);
      has[i] = delivery.result.status.ok();
      if (!has[i]) LogInfo("cache: a miss: {}", Message(delivery.result.status));
    };
    const Status ran = RunItem(std::move(item), keep, options_.cancelled, {until_, kGroupGrace});
    if (!ran.ok() && ran.code() != StatusCode::kCancelled) LogWarn("kernels: {}", Message(ran));
  }
  std::vector<Asked> misses;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!has[i]) {
      misses.push_back(rows[i].asked);
      continue;
    }
    recalled->push_back(rows[i]);
    if (const Status set = cache_.SetChecked(rows[i].key); !set.ok()) {
      LogWarn("cache: {}", Message(set));
    }
  }
  return misses;
}

std::vector<StatusOr<Measurement>> PoolMeasurer::MeasureGroups(
    const std::vector<GroupProblem>& problems) {
  std::vector<Asked> all;
  for (const GroupProblem& problem : problems) {
    all.push_back({EncodeGroupProblem(problem), Summary(problem)});
  }
  return Measure(all);
}

std::vector<StatusOr<Measurement>> PoolMeasurer::MeasurePairs(
    const std::vector<PairProblem>& pairs) {
  std::vector<Asked> all;
  for (const PairProblem& pair : pairs) all.push_back({EncodePairProblem(pair), Summary(pair)});
  return Measure(all);
}

bool PoolMeasurer::TakeRecalled(const Recalled& row, double canary_ns) {
  Measurement measurement = row.measurement;
  const bool has_canaries = !measurement.simulated && canary_ns > 0 && measurement.canary_ns > 0;
  const double moved = has_canaries ? canary_ns / measurement.canary_ns : 1;
  const auto scale = [moved](double& ns) { ns *= moved; };
  scale(measurement.latency.median_ns);
  scale(measurement.latency.low_ns);
  scale(measurement.latency.high_ns);
  scale(measurement.canary_ns);
  for (auto& [kernel, ns] : measurement.alternatives) scale(ns);
  fresh_.insert_or_assign(row.asked.bytes, std::move(measurement));
  return std::max(moved, 1 / moved) <= 1 + kCanaryMovedMax;
}

void PoolMeasurer::MeasureMissing(const std::vector<Asked>& missing) {
  for (size_t begin = 0; begin < missing.size(); begin += kBatch) {
    const size_t end = std::min(missing.size(), begin + kBatch);
    MeasureBatch({missing.begin() + static_cast<ptrdiff_t>(begin),
                  missing.begin() + static_cast<ptrdiff_t>(end)});
  }
}

// What is missing is measured first: it tells the canary of now. What is measured again keeps its
// scaled time when there is no time left for it.
std::vector<StatusOr<Measurement>> PoolMeasurer::Measure(const std::vector<Asked>& all) {
  std::vector<Digest> hit_keys;
  std::vector<Asked> missing, moved;
  std::vector<Recalled> recalled, unchecked;
  std::map<std::string_view, std::optional<StatusOr<Measurement>>> distinct;
  for (const Asked& asked : all) {
    const auto [entry, is_new] = distinct.try_emplace(asked.bytes);
    if (!is_new) continue;
    entry->second = Fresh(asked.bytes);
    if (entry->second.has_value()) continue;  // This job has it; the cache was asked before.
    const Digest key = GroupKey(asked.bytes, options_.environment);
    const auto row = Recall(asked.bytes, key);
    if (!row.has_value()) {
      missing.push_back(asked);
    } else if (row->status.ok()) {
      (row->is_checked ? recalled : unchecked).push_back({asked, key, row->measurement});
    } else {
      entry->second = row->status;
      hit_keys.push_back(key);
    }
  }
  for (Asked& miss : CheckKernels(unchecked, &recalled)) missing.push_back(std::move(miss));
  MeasureMissing(missing);
  const double canary_ns = canaries_.empty() ? 0 : Median(canaries_);
  for (const Recalled& row : recalled) {
    if (TakeRecalled(row, canary_ns)) {
      hit_keys.push_back(row.key);
    } else {
      moved.push_back(row.asked);
    }
  }
  if (!moved.empty()) LogInfo("cache: the canary has moved: {} groups again", moved.size());
  MeasureMissing(moved);
  const size_t misses = missing.size() + moved.size();
  hits_ += static_cast<int>(hit_keys.size());
  misses_ += static_cast<int>(misses);
  const Status counted =
      cache_.Count(static_cast<int64_t>(hit_keys.size()), static_cast<int64_t>(misses), hit_keys);
  if (!counted.ok()) LogWarn("cache counters: {}", Message(counted));
  std::vector<StatusOr<Measurement>> results;
  for (const Asked& asked : all) {
    if (const auto& known = distinct[asked.bytes]; known.has_value()) {
      results.push_back(*known);
    } else if (const auto measured = fresh_.find(asked.bytes); measured != fresh_.end()) {
      results.push_back(measured->second);
    } else {
      results.push_back(Err(StatusCode::kCancelled, "not measured: cancelled"));
    }
  }
  return results;
}

void PoolMeasurer::MeasureBatch(const std::vector<Asked>& batch) {
  if (options_.cancelled && options_.cancelled()) return;
  if (clock_.Now() >= until_) return;
  v1::WorkItem item = ItemOf(options_.group_seconds_max);
  item.mutable_groups()->set_policy(options_.policy.Text());
  for (const Asked& asked : batch) item.mutable_groups()->add_problems(asked.bytes);
  const auto keep = [&](const Delivery& delivery) {
    Keep(batch[static_cast<size_t>(delivery.entry)], delivery);
  };
  const Status ran = RunItem(std::move(item), keep, options_.cancelled, {until_, kGroupGrace});
  if (!ran.ok() && ran.code() != StatusCode::kCancelled) LogWarn("group batch: {}", Message(ran));
}

// Stores what is worth it; the caller acknowledges after this.
void PoolMeasurer::Keep(const Asked& asked, const Delivery& delivery) {
  Status status = delivery.result.status;
  if (status.code() == StatusCode::kCancelled) return;  // Its time was up: not measured.
  if (status.ok()) status = CheckMeasurement(delivery.result.measurement);
  if (!status.ok()) ++failed_;
  foreign_load_.groups += status.ok() ? 1 : 0;
  foreign_load_.groups_disturbed += status.ok() && IsDisturbed(delivery.result.measurement) ? 1 : 0;
  const double canary_ns = status.ok() ? delivery.result.measurement.canary_ns : 0;
  if (canary_ns > 0) canaries_.push_back(canary_ns);
  fresh_.insert_or_assign(asked.bytes, status.ok()
                                           ? StatusOr<Measurement>(delivery.result.measurement)
                                           : StatusOr<Measurement>(status));
  if (!status.ok() && !WorthRemembering(delivery)) return;
  CacheRow row;
  row.problem = asked.bytes;
  row.environment = options_.environment;
  row.status = status;
  if (status.ok()) row.measurement = delivery.result.measurement;
  row.summary = asked.summary;
  row.worker = delivery.worker_id;
  row.measured_unix_seconds = clock_.UnixSeconds();
  if (const Status put = cache_.Put(row); !put.ok()) {
    LogWarn("cache: not remembered: {}: {}", asked.summary, Message(put));
  }
}

// `until` is for the worker; one that is not done `grace` later is stopped, unless that is max().
Status PoolMeasurer::RunItem(v1::WorkItem work,
                             const std::function<void(const Delivery&)>& on_result,
                             const std::function<bool()>& stop, const Limit& limit) {
  Nanos end = Nanos::max();
  if (limit.until != Nanos::max()) {
    const std::chrono::duration<double> left = limit.until - clock_.Now();
    work.set_end_within_seconds(std::max(left.count(), 1e-3));
    if (limit.grace != Nanos::max()) end = std::max(limit.until, clock_.Now()) + limit.grace;
  }
  const auto is_over = [&] { return (stop && stop()) || clock_.Now() > end; };
  if (options_.turn != nullptr) options_.turn->Leave();
  const Status ran = runner_.Run(
      {options_.device, options_.environment, std::make_shared<const v1::WorkItem>(std::move(work)),
       limit.outputs, options_.on_wait},
      on_result, is_over);
  if (options_.turn == nullptr) return ran;
  // A cancelled job does not wait for its turn: what is left of it needs no core.
  const Status entered = options_.turn->Enter();
  return entered.ok() || entered.code() == StatusCode::kCancelled ? ran : entered;
}

StatusOr<std::vector<PlanTiming>> PoolMeasurer::MeasurePlans(
    const std::vector<Candidate>& candidates, Effort effort) {
  v1::WorkItem item = ItemOf(options_.plan_seconds_max);
  v1::PlanSet& set = *item.mutable_plans();
  if (effort == Effort::kRanking) set.set_blocks_max(kRankingBlocks);
  set.set_policy(options_.policy.Text());
  set.set_seed(options_.seed);
  set.set_inputs(options_.inputs);
  for (const Candidate& candidate : candidates) ToProto(candidate, set.add_candidates());
  std::vector<PlanTiming> timings(candidates.size());
  for (PlanTiming& timing : timings) timing.status = Err(StatusCode::kInternal, "not timed");
  const auto keep = [&](const Delivery& delivery) {
    PlanTiming& timing = timings[static_cast<size_t>(delivery.entry)];
    timing = delivery.result.timing;
    timing.status = delivery.result.status;
    if (!timing.status.ok() && timing.status.code() != StatusCode::kCancelled) ++failed_;
    if (!timing.status.ok() || delivery.entry == 0) return;  // The input's are its rivals' blocks.
    foreign_load_.blocks += timing.blocks;
    foreign_load_.blocks_disturbed += timing.disturbed;
  };
  AG_TRY(RunItem(std::move(item), keep,
                 effort == Effort::kVerdict ? options_.stopping : options_.cancelled,
                 {until_, kPlansGrace}));
  if (!timings.empty()) AG_TRY(timings[0].status, "the input");
  return timings;
}

std::string PoolMeasurer::ForeignLoadSeen::Warning() const {
  if (!busy()) return "";
  return fmt::format(
      "others used the processors while {} of {} groups and {} of {} blocks of plans and files "
      "were measured: times are less sure than on a quiet machine",
      groups_disturbed, groups, blocks_disturbed, blocks);
}

StatusOr<std::vector<KernelChoice>> PoolMeasurer::RefinePlan(const Candidate& candidate) {
  const std::vector<KernelChoice> rivals =
      CloseRivals(candidate.graph, candidate.plan,
                  [this](const GroupProblem& problem) { return Remembered(problem); });
  std::vector<KernelChoice> faster;
  if (rivals.empty()) return faster;
  v1::WorkItem item = ItemOf(options_.plan_seconds_max);
  ToProto(candidate, item.mutable_refine()->mutable_candidate());
  for (const KernelChoice& rival : rivals) ToProto(rival, item.mutable_refine()->add_rivals());
  Status refined = Err(StatusCode::kInternal, "not refined");
  const auto keep = [&](const Delivery& delivery) {
    refined = delivery.result.status;
    faster = delivery.result.kernels;
  };
  AG_TRY(RunItem(std::move(item), keep, options_.cancelled, {until_, kPlansGrace}));
  AG_TRY(refined);
  // A worker may choose among what it was asked; nothing else gets into a plan.
  std::erase_if(faster, [&](const KernelChoice& choice) {
    return std::ranges::find(rivals, choice) == rivals.end();
  });
  return faster;
}

StatusOr<std::vector<OutputError>> PoolMeasurer::Check(v1::Check check,
                                                       const std::vector<std::string>& outputs,
                                                       std::vector<ComparedInputs>* compared) {
  v1::WorkItem item = ItemOf(options_.check_seconds_max);
  check.set_tolerance(options_.policy.tolerance);
  *item.mutable_check() = std::move(check);
  StatusOr<std::vector<OutputError>> errors = Err(StatusCode::kInternal, "not checked");
  const auto keep = [&](const Delivery& delivery) {
    if (delivery.result.status.ok()) {
      errors = delivery.result.errors;
      if (compared == nullptr) return;
      const std::vector<ComparedInputs>& these = delivery.result.compared;
      compared->insert(compared->end(), these.begin(), these.end());
    } else {
      errors = delivery.result.status;
    }
  };
  AG_TRY(RunItem(std::move(item), keep, options_.cancelled, {.outputs = outputs}));
  return errors;
}

StatusOr<std::optional<v1::ShownValues>> PoolMeasurer::Show(v1::Check check,
                                                            const std::vector<std::string>& outputs,
                                                            int64_t bytes_max) {
  v1::WorkItem item = ItemOf(options_.check_seconds_max);
  check.set_tolerance(options_.policy.tolerance);
  *item.mutable_show()->mutable_check() = std::move(check);
  item.mutable_show()->set_bytes_max(bytes_max);
  StatusOr<std::optional<v1::ShownValues>> shown = Err(StatusCode::kInternal, "not shown");
  const auto keep = [&](const Delivery& delivery) {
    if (delivery.result.status.ok()) {
      shown = delivery.result.shown;
    } else {
      shown = delivery.result.status;
    }
  };
  AG_TRY(RunItem(std::move(item), keep, options_.cancelled, {.outputs = outputs}));
  return shown;
}

StatusOr<EntryResult> PoolMeasurer::RunFiles(v1::FileSet set, const Limit& limit) {
  v1::WorkItem item = ItemOf(options_.plan_seconds_max);
  set.set_policy(options_.policy.Text());
  *item.mutable_files() = std::move(set);
  StatusOr<EntryResult> entry = Err(StatusCode::kInternal, "not run");
  const auto keep = [&](const Delivery& delivery) {
    if (delivery.result.status.ok()) {
      entry = delivery.result;
    } else {
      entry = delivery.result.status;
    }
  };
  AG_TRY(RunItem(std::move(item), keep, options_.cancelled, limit));
  return entry;
}

StatusOr<FileTimes> PoolMeasurer::TimeFiles(v1::FileSet set) {
  const auto files = static_cast<size_t>(set.files_size());
  // The worker ends by itself: without an answer there would be no reason to report.
  Limit limit{.until = until_, .grace = Nanos::max()};
  if (until_ != Nanos::max()) limit.until = std::max(until_, clock_.Now() + kFilesLeast);
  AG_LET(const EntryResult entry, RunFiles(std::move(set), limit));
  AG_TRY(CheckFileTimes(entry.file_times, files));
  foreign_load_.blocks += static_cast<int>(entry.file_times.blocks.size());
  foreign_load_.blocks_disturbed += entry.file_times.disturbed;
  return entry.file_times;
}

StatusOr<std::vector<OutputError>> PoolMeasurer::CompareFiles(
    v1::FileSet set, const std::vector<std::string>& outputs) {
  AG_LET(const EntryResult entry, RunFiles(std::move(set), {.outputs = outputs}));
  return entry.errors;
}

}  // namespace ag

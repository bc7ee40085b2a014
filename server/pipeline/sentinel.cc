#include "server/pipeline/sentinel.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/log.h"
#include "plan/fusion/group_problem.h"
#include "plan/fusion/pair_problem.h"
#include "server/pipeline/pool_measurer.h"

namespace ag {
namespace {

constexpr auto kLookPause = std::chrono::milliseconds(200);

// Knows nothing, and keeps what is put into it.
class MeasuredNow : public GroupCache {
 public:
  std::optional<CacheRow> Find(const Digest&, std::string_view, const Environment&) override {
    return std::nullopt;
  }
  Status Put(const CacheRow& row) override {
    rows.insert_or_assign(row.problem, row);
    return OkStatus();
  }
  Status Count(int64_t, int64_t, const std::vector<Digest>&) override { return OkStatus(); }
  Status SetChecked(const Digest&) override { return OkStatus(); }
  std::optional<RegionRow> FindRegion(const std::string&, int64_t) override { return std::nullopt; }
  Status PutRegion(const RegionRow&) override { return OkStatus(); }

  std::map<std::string, CacheRow> rows;  // By problem.
};

bool IsUndisturbed(const CacheRow& row) {
  return row.status.ok() && 2 * row.measurement.disturbed <= row.measurement.samples;
}

}  // namespace

bool HasDrifted(const Measurement& stored, const Measurement& now, double drift) {
  const bool have_canaries = stored.canary_ns > 0 && now.canary_ns > 0;
  const double scale = have_canaries ? stored.canary_ns / now.canary_ns : 1;
  return now.latency.low_ns * scale > stored.latency.high_ns * drift ||
         now.latency.high_ns * scale * drift < stored.latency.low_ns;
}

Sentinel::Sentinel(Parts parts, const SentinelOptions& options)
    : parts_(std::move(parts)), options_(options), random_(std::random_device{}()) {}

Sentinel::~Sentinel() { Stop(); }

void Sentinel::Start() {
  if (options_.pause <= Nanos{0}) return;
  thread_ = std::thread([this] {
    while (!stopping_) {
      Tick();
      std::this_thread::sleep_for(kLookPause);
    }
  });
}

void Sentinel::Stop() {
  stopping_ = true;
  if (thread_.joinable()) thread_.join();
}

bool Sentinel::IsOver() const { return stopping_ || parts_.has_jobs(); }

void Sentinel::Tick() {
  const Nanos now = parts_.clock.Now();
  if (IsOver()) {
    idle_since_.reset();
    return;
  }
  if (!idle_since_.has_value()) idle_since_ = now;
  if (now - *idle_since_ < options_.idle) return;
  for (const DeviceOffer& offer : parts_.offers()) {
    const auto [next, is_new] = next_.try_emplace(offer.environment, now + options_.pause);
    if (is_new || now < next->second) continue;
    TakeSample(offer);
    next->second = parts_.clock.Now() + options_.pause;
    if (IsOver()) return;
  }
}

// Returns rows at random places among those of the environment, each once.
std::vector<CacheRow> Sentinel::Choose(const Environment& environment) {
  std::vector<CacheRow> chosen;
  const auto newest = parts_.cache.List({.environment = environment, .rows_max = 1});
  if (!newest.ok() || newest->empty()) return chosen;
  std::uniform_int_distribution<int64_t> place(1, newest->front().row);
  std::set<int64_t> seen;
  for (int i = 0; i < options_.sample; ++i) {
    auto row = parts_.cache.List(
        {.environment = environment, .before_row = place(random_) + 1, .rows_max = 1});
    if (!row.ok() || row->empty() || !seen.insert(row->front().row).second) continue;
    chosen.push_back(std::move(row->front().record));
  }
  return chosen;
}

// Returns what could be measured, undisturbed, by problem.
std::map<std::string, CacheRow> Sentinel::MeasureAgain(const DeviceOffer& offer,
                                                       const std::vector<CacheRow>& rows) {
  std::vector<GroupProblem> groups;
  std::vector<PairProblem> pairs;
  for (const CacheRow& row : rows) {
    if (IsPairProblem(row.problem)) {
      if (auto pair = DecodePairProblem(row.problem); pair.ok()) pairs.push_back(*std::move(pair));
    } else if (auto group = DecodeGroupProblem(row.problem); group.ok()) {
      groups.push_back(*std::move(group));
    }
  }
  MeasuredNow now;
  PoolMeasurer::Options options{.device = offer.device, .environment = offer.environment};
  options.cancelled = [this] { return IsOver(); };
  PoolMeasurer measurer(parts_.runner, now, parts_.clock, std::move(options));
  measurer.MeasureGroups(groups);
  measurer.MeasurePairs(pairs);
  std::erase_if(now.rows, [](const auto& row) { return !IsUndisturbed(row.second); });
  return std::move(now.rows);
}

void Sentinel::TakeSample(const DeviceOffer& offer) {
  const std::vector<CacheRow> chosen = Choose(offer.environment);
  if (chosen.empty()) return;
  std::vector<CacheRow> measured, suspected, drifted;
  const auto first = MeasureAgain(offer, chosen);
  for (const CacheRow& row : chosen) {
    const auto now = first.find(row.problem);
    if (now == first.end()) continue;
    measured.push_back(row);
    if (HasDrifted(row.measurement, now->second.measurement, options_.drift)) {
      suspected.push_back(row);
    } else {
      ++counts_.held;
    }
  }
  if (suspected.empty()) return;
  const auto second = MeasureAgain(offer, suspected);
  for (const CacheRow& row : suspected) {
    const auto now = second.find(row.problem);
    if (now == second.end()) continue;
    if (HasDrifted(row.measurement, now->second.measurement, options_.drift)) {
      drifted.push_back(row);
    } else {
      ++counts_.held;
    }
  }
  if (!drifted.empty()) Replace(measured, drifted, second);
}

void Sentinel::Replace(const std::vector<CacheRow>& measured, const std::vector<CacheRow>& drifted,
                       const std::map<std::string, CacheRow>& now) {
  using Origin = std::pair<std::string, int64_t>;  // The worker and the import.
  std::map<Origin, int> of_measured, of_drifted;
  for (const CacheRow& row : measured) ++of_measured[{row.worker, row.import}];
  for (const CacheRow& row : drifted) ++of_drifted[{row.worker, row.import}];
  const Environment& environment = drifted.front().environment;
  for (const auto& [origin, count] : of_drifted) {
    const auto& [worker, import] = origin;
    if (count < options_.drifted_min || 2 * count <= of_measured[origin]) continue;
    if (worker.empty() && import == 0) continue;
    const auto gone = parts_.cache.Forget(
        {.environment = environment, .worker = worker, .import = import, .kernel = {}});
    const std::string from = import == 0 ? "worker " + worker : fmt::format("import {}", import);
    if (!gone.ok()) {
      LogWarn("sentinel: {}: not forgotten: {}", from, Message(gone.status()));
      continue;
    }
    LogWarn(
        "sentinel: {} of {} times from {} do not hold any more: forgot {} measurements, {} "
        "answers, and regions",
        count, of_measured[origin], from, gone->measurements, gone->models);
  }
  for (const CacheRow& row : drifted) {
    const CacheRow& fresh = now.at(row.problem);
    if (const Status put = parts_.cache.Put(fresh); !put.ok()) {
      LogWarn("sentinel: {}", Message(put));
      continue;
    }
    ++counts_.drifted;
    LogWarn("sentinel: {}: {:.0f} ns were remembered, {:.0f} ns are measured now", row.summary,
            row.measurement.latency.median_ns, fresh.measurement.latency.median_ns);
  }
}

}  // namespace ag

#include "server/store/testing/memory_jobs.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/mutex.h"

namespace ag {

struct MemoryTables {
  Mutex mutex;
  uint64_t epoch AG_GUARDED_BY(mutex) = 0;
  int64_t last_job AG_GUARDED_BY(mutex) = 0;
  std::map<int64_t, JobRow> jobs AG_GUARDED_BY(mutex);
  std::map<std::string, JobsStore::RequestId> request_ids AG_GUARDED_BY(mutex);
  std::map<std::pair<std::string, int64_t>, double> device_use AG_GUARDED_BY(mutex);
  std::set<std::pair<std::string, std::string>> blobs AG_GUARDED_BY(mutex);  // Digest, tenant.
};

std::shared_ptr<MemoryTables> MakeMemoryTables() { return std::make_shared<MemoryTables>(); }

namespace {

Status NoFiles() { return Err(StatusCode::kUnimplemented, "a store in memory has no files"); }

class MemoryJobs final : public JobsStore {
 public:
  explicit MemoryJobs(std::shared_ptr<MemoryTables> tables)
      : t_(*tables), kept_(std::move(tables)) {}

  Status SaveCopy(const std::string&) override { return NoFiles(); }
  StatusOr<uint64_t> OpenEpoch() override {
    MutexLock lock(t_.mutex);
    return ++t_.epoch;
  }

  StatusOr<int64_t> Insert(const JobRow& row, const std::string& request_id,
                           const std::string& body_digest) override {
    MutexLock lock(t_.mutex);
    AG_TRY(Name(request_id, body_digest, t_.last_job + 1));
    const int64_t id = ++t_.last_job;
    t_.jobs[id] = row;
    t_.jobs[id].id = id;
    return id;
  }
  Status UpdateAll(std::span<const JobRow> rows) override {
    MutexLock lock(t_.mutex);
    for (const JobRow& row : rows) {
      if (!t_.jobs.contains(row.id)) return NoJob(row.id);
    }
    for (const JobRow& row : rows) {
      JobRow& now = t_.jobs.at(row.id);
      const JobRow before = std::exchange(now, row);
      now.request = before.request;
      now.created_unix_seconds = before.created_unix_seconds;
      now.client = before.client;
      now.tenant = before.tenant;
      now.dedupe_key = before.dedupe_key;
    }
    return OkStatus();
  }
  StatusOr<JobRow> Get(int64_t id) override {
    MutexLock lock(t_.mutex);
    const auto found = t_.jobs.find(id);
    if (found == t_.jobs.end()) return NoJob(id);
    return found->second;
  }
  StatusOr<std::vector<JobRow>> List(const ListOptions& o) override {
    std::vector<JobRow> rows = Select([&](const JobRow& row) {
      return (o.state.empty() || row.state == o.state) &&
             (o.before_id == 0 || row.id < o.before_id) &&
             (!o.tenant.has_value() || row.tenant == *o.tenant) &&
             row.created_unix_seconds >= o.created_since &&
             (o.device.empty() || row.device == o.device);
    });
    std::ranges::reverse(rows);
    return First(std::move(rows), o.rows_max);
  }
  StatusOr<std::vector<JobRow>> Unfinished() override {
    return Select([](const JobRow& row) { return !row.terminal; });
  }
  StatusOr<std::optional<JobRow>> FindUnfinished(const std::string& dedupe_key) override {
    const std::vector<JobRow> rows =
        Select([&](const JobRow& row) { return !row.terminal && row.dedupe_key == dedupe_key; });
    return rows.empty() ? std::optional<JobRow>() : rows.back();
  }
  StatusOr<std::vector<StateCount>> CountByState() override {
    std::map<std::string, int64_t> counts;
    for (const JobRow& row : Select([](const JobRow&) { return true; })) ++counts[row.state];
    std::vector<StateCount> sorted;
    for (const auto& [state, jobs] : counts) sorted.push_back({state, jobs});
    return sorted;
  }

  StatusOr<std::optional<RequestId>> FindRequestId(const std::string& request_id) override {
    MutexLock lock(t_.mutex);
    const auto found = t_.request_ids.find(request_id);
    return found == t_.request_ids.end() ? std::optional<RequestId>() : found->second;
  }
  Status Join(int64_t job, const std::string& request_id, const std::string& body_digest) override {
    MutexLock lock(t_.mutex);
    if (!t_.jobs.contains(job)) return NoJob(job);
    AG_TRY(Name(request_id, body_digest, job));
    ++t_.jobs[job].waiters;
    return OkStatus();
  }
  Status Leave(int64_t job, const std::string& request_id) override {
    MutexLock lock(t_.mutex);
    if (!t_.jobs.contains(job)) return NoJob(job);
    --t_.jobs[job].waiters;
    if (!request_id.empty()) t_.request_ids[request_id].left = true;
    return OkStatus();
  }
  StatusOr<std::vector<JobRow>> Ended(int64_t after, int rows_max) override {
    return First(Select([&](const JobRow& row) { return row.terminal && row.id > after; }),
                 rows_max);
  }
  Status Remove(const std::vector<int64_t>& ids) override {
    MutexLock lock(t_.mutex);
    for (const int64_t id : ids) {
      const auto found = t_.jobs.find(id);
      if (found == t_.jobs.end() || !found->second.terminal) continue;
      t_.jobs.erase(found);
      std::erase_if(t_.request_ids, [id](const auto& name) { return name.second.job == id; });
    }
    return OkStatus();
  }

  Status AddDeviceUse(const HourOfUse& use, int64_t oldest) override {
    MutexLock lock(t_.mutex);
    std::erase_if(t_.device_use, [&](const auto& row) { return row.first.second < oldest; });
    t_.device_use[{use.tenant, use.hour}] += use.seconds;
    return OkStatus();
  }
  StatusOr<std::vector<HourOfUse>> DeviceUseSince(int64_t hour) override {
    MutexLock lock(t_.mutex);
    std::vector<HourOfUse> rows;
    for (const auto& [key, seconds] : t_.device_use) {
      if (key.second >= hour) rows.push_back({key.first, key.second, seconds});
    }
    return rows;
  }
  Status OwnBlob(const std::string& tenant, const std::string& digest) override {
    MutexLock lock(t_.mutex);
    t_.blobs.insert({digest, tenant});
    return OkStatus();
  }
  StatusOr<bool> OwnsBlob(const std::string& tenant, const std::string& digest) override {
    MutexLock lock(t_.mutex);
    return t_.blobs.contains({digest, tenant});
  }
  Status DisownBlob(const std::string& digest, const std::string& tenant) override {
    MutexLock lock(t_.mutex);
    std::erase_if(t_.blobs, [&](const auto& row) {
      return row.first == digest && (tenant.empty() || row.second == tenant);
    });
    return OkStatus();
  }
  StatusOr<bool> IsBlobOwned(const std::string& digest) override {
    MutexLock lock(t_.mutex);
    return std::ranges::any_of(t_.blobs, [&](const auto& row) { return row.first == digest; });
  }

 private:
  template <class Fits>
  std::vector<JobRow> Select(const Fits& fits) {  // Oldest first.
    MutexLock lock(t_.mutex);
    std::vector<JobRow> rows;
    for (const auto& [id, row] : t_.jobs) {
      if (fits(row)) rows.push_back(row);
    }
    return rows;
  }
  static std::vector<JobRow> First(std::vector<JobRow> rows, int rows_max) {
    rows.resize(std::min(rows.size(), static_cast<size_t>(rows_max)));
    return rows;
  }
  Status Name(const std::string& request_id, const std::string& body_digest, int64_t job)
      AG_REQUIRES(t_.mutex) {
    if (request_id.empty()) return OkStatus();
    const auto [place, is_new] = t_.request_ids.insert({request_id, {job, body_digest, false}});
    if (is_new) return OkStatus();
    return RequestIdIsTaken(request_id, place->second.job);
  }

  MemoryTables& t_;
  const std::shared_ptr<MemoryTables> kept_;
};

}  // namespace

std::unique_ptr<JobsStore> OpenMemoryJobs(std::shared_ptr<MemoryTables> tables) {
  return std::make_unique<MemoryJobs>(std::move(tables));
}

}  // namespace ag

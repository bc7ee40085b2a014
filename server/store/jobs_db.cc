#include "server/store/jobs_db.h"

#include "base/mutex.h"
#include "server/store/schemas.h"
#include "server/store/sqlite.h"

namespace ag {
namespace {

constexpr char kColumns[] =
    "id, state, terminal, device, request, result, error_code, error_message, "
    "created_unix_seconds, finished_unix_seconds, version, resumed, cancel, dedupe_key, crashes, "
    "client, waiters, tenant, device_seconds, error_reason";

JobRow ReadRow(const Statement& s) {
  return {.id = s.Int(0),
          .state = s.Text(1),
          .terminal = s.Int(2) != 0,
          .device = s.Text(3),
          .request = s.Text(4),
          .result = s.Text(5),
          .error_code = static_cast<int>(s.Int(6)),
          .error_message = s.Text(7),
          .error_reason = s.Text(19),
          .created_unix_seconds = s.Int(8),
          .finished_unix_seconds = s.Int(9),
          .version = static_cast<uint64_t>(s.Int(10)),
          .resumed = static_cast<int>(s.Int(11)),
          .crashes = static_cast<int>(s.Int(14)),
          .cancel = s.Int(12) != 0,
          .dedupe_key = s.Text(13),
          .client = s.Text(15),
          .waiters = static_cast<int>(s.Int(16)),
          .tenant = s.Text(17),
          .device_seconds = s.Double(18)};
}

StatusOr<std::vector<JobRow>> ReadRows(Statement& statement) {
  std::vector<JobRow> rows;
  while (true) {
    AG_LET(const bool row, statement.Step());
    if (!row) return rows;
    rows.push_back(ReadRow(statement));
  }
}

class JobsDb final : public JobsStore {
 public:
  JobsDb(Database db, Clock& clock) : db_(std::move(db)), clock_(clock) {}

  Status SaveCopy(const std::string& folder) override;
  StatusOr<uint64_t> OpenEpoch() override;
  StatusOr<int64_t> Insert(const JobRow& row, const std::string& request_id,
                           const std::string& body_digest) override;
  Status UpdateAll(std::span<const JobRow> rows) override;
  StatusOr<JobRow> Get(int64_t id) override;
  StatusOr<std::vector<JobRow>> List(const ListOptions& options) override;
  StatusOr<std::vector<JobRow>> Unfinished() override;
  StatusOr<std::optional<JobRow>> FindUnfinished(const std::string& dedupe_key) override;
  StatusOr<std::vector<StateCount>> CountByState() override;
  StatusOr<std::optional<RequestId>> FindRequestId(const std::string& request_id) override;
  Status Join(int64_t job, const std::string& request_id, const std::string& body_digest) override;
  Status Leave(int64_t job, const std::string& request_id) override;
  StatusOr<std::vector<JobRow>> Ended(int64_t after, int rows_max) override;
  Status Remove(const std::vector<int64_t>& ids) override;
  Status AddDeviceUse(const HourOfUse& use, int64_t oldest) override;
  StatusOr<std::vector<HourOfUse>> DeviceUseSince(int64_t hour) override;
  Status OwnBlob(const std::string& tenant, const std::string& digest) override;
  StatusOr<bool> OwnsBlob(const std::string& tenant, const std::string& digest) override;
  Status DisownBlob(const std::string& digest, const std::string& tenant) override;
  StatusOr<bool> IsBlobOwned(const std::string& digest) override;

 private:
  Status UpdateOne(const JobRow& row) AG_REQUIRES(mutex_);
  Status InsertRequestId(const std::string& request_id, const std::string& body_digest, int64_t job)
      AG_REQUIRES(mutex_);

  Mutex mutex_;
  Database db_ AG_GUARDED_BY(mutex_);
  Clock& clock_;
};

Status JobsDb::SaveCopy(const std::string& folder) {
  MutexLock lock(mutex_);
  return CopyInto(db_, fmt::format("{}/{}", folder, kJobsFile));
}

StatusOr<uint64_t> JobsDb::OpenEpoch() {
  MutexLock lock(mutex_);
  AG_LET(Statement insert, db_.Prepare("INSERT INTO epochs(opened_unix_seconds) VALUES(?)"));
  AG_TRY(insert.Bind(1, clock_.UnixSeconds()).Run());
  return static_cast<uint64_t>(db_.last_insert_id());
}

Status JobsDb::InsertRequestId(const std::string& request_id, const std::string& body_digest,
                               int64_t job) {
  if (request_id.empty()) return OkStatus();
  AG_LET(Statement select, db_.Prepare("SELECT job FROM request_ids WHERE request_id = ?"));
  AG_LET(const bool is_known, select.Bind(1, request_id).Step());
  if (is_known) return RequestIdIsTaken(request_id, select.Int(0));
  AG_LET(Statement insert, db_.Prepare("INSERT INTO request_ids(request_id, body_digest, job) "
                                       "VALUES(?, ?, ?)"));
  return insert.Bind(1, request_id).Bind(2, body_digest).Bind(3, job).Run();
}

StatusOr<int64_t> JobsDb::Insert(const JobRow& row, const std::string& request_id,
                                 const std::string& body_digest) {
  MutexLock lock(mutex_);
  AG_LET(Transaction transaction, Transaction::Begin(db_));
  AG_LET(
      Statement insert,
      db_.Prepare("INSERT INTO jobs(state, terminal, device, request, result, error_code, "
                  "error_message, created_unix_seconds, finished_unix_seconds, version, resumed, "
                  "cancel, dedupe_key, client, waiters, tenant, error_reason, crashes, "
                  "device_seconds) "
                  "VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"));
  insert.Bind(1, row.state).Bind(2, int64_t{row.terminal}).Bind(3, row.device);
  insert.BindBytes(4, row.request).BindBytes(5, row.result).Bind(6, int64_t{row.error_code});
  insert.Bind(7, row.error_message).Bind(8, row.created_unix_seconds);
  insert.Bind(9, row.finished_unix_seconds).Bind(10, static_cast<int64_t>(row.version));
  insert.Bind(11, int64_t{row.resumed}).Bind(12, int64_t{row.cancel}).Bind(13, row.dedupe_key);
  insert.Bind(14, row.client).Bind(15, int64_t{row.waiters}).Bind(16, row.tenant);
  insert.Bind(17, row.error_reason).Bind(18, int64_t{row.crashes}).Bind(19, row.device_seconds);
  AG_TRY(insert.Run());
  const int64_t id = db_.last_insert_id();
  AG_TRY(InsertRequestId(request_id, body_digest, id));
  AG_TRY(transaction.Commit());
  return id;
}

Status JobsDb::UpdateAll(std::span<const JobRow> rows) {
  MutexLock lock(mutex_);
  AG_LET(Transaction transaction, Transaction::Begin(db_));
  for (const JobRow& row : rows) AG_TRY(UpdateOne(row));
  return transaction.Commit();
}

Status JobsDb::UpdateOne(const JobRow& row) {
  AG_LET(Statement update,
         db_.Prepare(
             "UPDATE jobs SET state = ?, terminal = ?, device = ?, result = ?, error_code = ?, "
             "error_message = ?, finished_unix_seconds = ?, version = ?, resumed = ?, crashes = ?, "
             "cancel = ?, waiters = ?, device_seconds = ?, error_reason = ? WHERE id = ?"));
  update.Bind(1, row.state).Bind(2, int64_t{row.terminal}).Bind(3, row.device);
  update.BindBytes(4, row.result).Bind(5, int64_t{row.error_code}).Bind(6, row.error_message);
  update.Bind(7, row.finished_unix_seconds).Bind(8, static_cast<int64_t>(row.version));
  update.Bind(9, int64_t{row.resumed}).Bind(10, int64_t{row.crashes});
  update.Bind(11, int64_t{row.cancel}).Bind(12, int64_t{row.waiters});
  update.Bind(13, row.device_seconds).Bind(14, row.error_reason).Bind(15, row.id);
  AG_TRY(update.Run());
  if (db_.changes() != 1) return NoJob(row.id);
  return OkStatus();
}

StatusOr<JobRow> JobsDb::Get(int64_t id) {
  MutexLock lock(mutex_);
  AG_LET(Statement select, db_.Prepare(fmt::format("SELECT {} FROM jobs WHERE id = ?", kColumns)));
  AG_LET(const bool row, select.Bind(1, id).Step());
  if (!row) return NoJob(id);
  return ReadRow(select);
}

StatusOr<std::vector<JobRow>> JobsDb::List(const ListOptions& options) {
  MutexLock lock(mutex_);
  // A condition of its own, so that SQLite takes the tenant's index.
  AG_LET(Statement select,
         db_.Prepare(fmt::format("SELECT {} FROM jobs WHERE (?1 = '' OR state = ?1) AND "
                                 "(?2 = 0 OR id < ?2) AND created_unix_seconds >= ?5 "
                                 "AND (?6 = '' OR device = ?6){} "
                                 "ORDER BY id DESC LIMIT ?3",
                                 kColumns, options.tenant ? " AND tenant = ?4" : "")));
  select.Bind(1, options.state).Bind(2, options.before_id).Bind(3, int64_t{options.rows_max});
  select.Bind(5, options.created_since).Bind(6, options.device);
  if (options.tenant.has_value()) select.Bind(4, *options.tenant);
  return ReadRows(select);
}

StatusOr<std::vector<JobRow>> JobsDb::Unfinished() {
  MutexLock lock(mutex_);
  AG_LET(Statement select,
         db_.Prepare(fmt::format("SELECT {} FROM jobs WHERE terminal = 0 ORDER BY id", kColumns)));
  return ReadRows(select);
}

StatusOr<std::optional<JobRow>> JobsDb::FindUnfinished(const std::string& dedupe_key) {
  MutexLock lock(mutex_);
  AG_LET(Statement select,
         db_.Prepare(fmt::format("SELECT {} FROM jobs WHERE dedupe_key = ? AND terminal = 0 "
                                 "ORDER BY id DESC LIMIT 1",
                                 kColumns)));
  AG_LET(const bool row, select.Bind(1, dedupe_key).Step());
  if (!row) return std::optional<JobRow>();
  return std::optional<JobRow>(ReadRow(select));
}

StatusOr<std::vector<JobsDb::StateCount>> JobsDb::CountByState() {
  MutexLock lock(mutex_);
  AG_LET(Statement select,
         db_.Prepare("SELECT state, count(*) FROM jobs GROUP BY state ORDER BY state"));
  std::vector<StateCount> counts;
  while (true) {
    AG_LET(const bool row, select.Step());
    if (!row) return counts;
    counts.push_back({select.Text(0), select.Int(1)});
  }
}

StatusOr<std::optional<JobsDb::RequestId>> JobsDb::FindRequestId(const std::string& request_id) {
  MutexLock lock(mutex_);
  AG_LET(Statement select,
         db_.Prepare("SELECT job, body_digest, has_left FROM request_ids WHERE request_id = ?"));
  AG_LET(const bool row, select.Bind(1, request_id).Step());
  if (!row) return std::optional<RequestId>();
  return std::optional<RequestId>(RequestId{select.Int(0), select.Text(1), select.Int(2) != 0});
}

Status JobsDb::Join(int64_t job, const std::string& request_id, const std::string& body_digest) {
  MutexLock lock(mutex_);
  AG_LET(Transaction transaction, Transaction::Begin(db_));
  AG_LET(Statement add, db_.Prepare("UPDATE jobs SET waiters = waiters + 1 WHERE id = ?"));
  AG_TRY(add.Bind(1, job).Run());
  if (db_.changes() != 1) return NoJob(job);
  AG_TRY(InsertRequestId(request_id, body_digest, job));
  return transaction.Commit();
}

Status JobsDb::AddDeviceUse(const HourOfUse& use, int64_t oldest) {
  MutexLock lock(mutex_);
  AG_LET(Transaction transaction, Transaction::Begin(db_));
  AG_LET(Statement forget, db_.Prepare("DELETE FROM device_use WHERE hour < ?"));
  AG_TRY(forget.Bind(1, oldest).Run());
  AG_LET(Statement add,
         db_.Prepare("INSERT INTO device_use(tenant, hour, seconds) VALUES(?, ?, ?) ON "
                     "CONFLICT DO UPDATE SET seconds = seconds + excluded.seconds"));
  AG_TRY(add.Bind(1, use.tenant).Bind(2, use.hour).Bind(3, use.seconds).Run());
  return transaction.Commit();
}

StatusOr<std::vector<JobsDb::HourOfUse>> JobsDb::DeviceUseSince(int64_t hour) {
  MutexLock lock(mutex_);
  AG_LET(Statement select,
         db_.Prepare("SELECT tenant, hour, seconds FROM device_use WHERE hour >= ?"));
  select.Bind(1, hour);
  std::vector<HourOfUse> rows;
  while (true) {
    AG_LET(const bool row, select.Step());
    if (!row) return rows;
    rows.push_back({select.Text(0), select.Int(1), select.Double(2)});
  }
}

Status JobsDb::OwnBlob(const std::string& tenant, const std::string& digest) {
  AG_LET(const bool is_known, OwnsBlob(tenant, digest));
  if (is_known) return OkStatus();  // Without a write, which would sync.
  MutexLock lock(mutex_);
  AG_LET(Statement insert,
         db_.Prepare("INSERT OR IGNORE INTO blob_tenants(digest, tenant) VALUES(?, ?)"));
  return insert.Bind(1, digest).Bind(2, tenant).Run();
}

StatusOr<bool> JobsDb::OwnsBlob(const std::string& tenant, const std::string& digest) {
  MutexLock lock(mutex_);
  AG_LET(Statement select,
         db_.Prepare("SELECT 1 FROM blob_tenants WHERE digest = ? AND tenant = ?"));
  return select.Bind(1, digest).Bind(2, tenant).Step();
}

Status JobsDb::DisownBlob(const std::string& digest, const std::string& tenant) {
  AG_LET(const bool is_owned, IsBlobOwned(digest));
  if (!is_owned) return OkStatus();  // Without a write, which would sync.
  MutexLock lock(mutex_);
  AG_LET(Statement remove,
         db_.Prepare("DELETE FROM blob_tenants WHERE digest = ?1 AND (?2 = '' OR tenant = ?2)"));
  return remove.Bind(1, digest).Bind(2, tenant).Run();
}

StatusOr<bool> JobsDb::IsBlobOwned(const std::string& digest) {
  MutexLock lock(mutex_);
  AG_LET(Statement select, db_.Prepare("SELECT 1 FROM blob_tenants WHERE digest = ?"));
  return select.Bind(1, digest).Step();
}

StatusOr<std::vector<JobRow>> JobsDb::Ended(int64_t after, int rows_max) {
  MutexLock lock(mutex_);
  AG_LET(Statement select,
         db_.Prepare(fmt::format("SELECT {} FROM jobs WHERE terminal = 1 AND id > ? ORDER BY id "
                                 "LIMIT ?",
                                 kColumns)));
  return ReadRows(select.Bind(1, after).Bind(2, int64_t{rows_max}));
}

Status JobsDb::Remove(const std::vector<int64_t>& ids) {
  if (ids.empty()) return OkStatus();
  MutexLock lock(mutex_);
  AG_LET(Transaction transaction, Transaction::Begin(db_));
  AG_LET(Statement names,
         db_.Prepare("DELETE FROM request_ids WHERE job = ?1 AND EXISTS (SELECT 1 FROM jobs "
                     "WHERE id = ?1 AND terminal = 1)"));
  AG_LET(Statement jobs, db_.Prepare("DELETE FROM jobs WHERE id = ? AND terminal = 1"));
  for (const int64_t id : ids) {
    AG_TRY(names.Bind(1, id).Run());
    AG_TRY(jobs.Bind(1, id).Run());
  }
  return transaction.Commit();
}

Status JobsDb::Leave(int64_t job, const std::string& request_id) {
  MutexLock lock(mutex_);
  AG_LET(Transaction transaction, Transaction::Begin(db_));
  AG_LET(Statement take, db_.Prepare("UPDATE jobs SET waiters = waiters - 1 WHERE id = ?"));
  AG_TRY(take.Bind(1, job).Run());
  if (db_.changes() != 1) return NoJob(job);
  AG_LET(Statement note, db_.Prepare("UPDATE request_ids SET has_left = 1 WHERE request_id = ?"));
  AG_TRY(note.Bind(1, request_id).Run());
  return transaction.Commit();
}

}  // namespace

StatusOr<std::unique_ptr<JobsStore>> OpenJobsDb(const std::string& path, Clock& clock,
                                                WriteObserver on_write) {
  auto opened = Database::Open(path, {.synchronous_full = true, .on_write = std::move(on_write)});
  if (opened.status().code() == StatusCode::kDataLoss) {
    return Err(
        StatusCode::kDataLoss,
        "the jobs file is corrupt and jobs are never dropped silently: {}; restore {} from a "
        "backup, or move it away to begin without jobs",
        Message(opened.status()), path);
  }
  AG_TRY(opened.status(), "jobs file");
  const Status migrated = Migrate(*opened, JobsSchema(), clock.UnixSeconds());
  if (migrated.code() == StatusCode::kUnimplemented) {
    return Err(StatusCode::kFailedPrecondition, "jobs file: {}; move it away to begin without jobs",
               Message(migrated));
  }
  AG_TRY(migrated, "jobs file");
  return std::make_unique<JobsDb>(*std::move(opened), clock);
}

}  // namespace ag

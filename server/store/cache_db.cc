#include "server/store/cache_db.h"

#include <atomic>
#include <limits>
#include <set>

#include "base/file.h"
#include "base/file_ops.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/text.h"
#include "plan/fusion/group_problem.h"
#include "server/store/cache_rows.h"
#include "server/store/cache_snapshot.h"
#include "server/store/schemas.h"

namespace ag {
namespace {

constexpr Nanos kSnapshotDelay{1'000'000'000};  // Writes come in bursts.
constexpr int kSnapshotPause = 49;  // Times the last snapshot's duration: 1 / (1 + 49) is 2 %.

StatusOr<Database> OpenAndMigrate(const CacheDbOptions& options, Clock& clock) {
  AG_LET(Database db,
         Database::Open(options.path, {.synchronous_full = false, .on_write = options.on_write}));
  AG_TRY(Migrate(db, CacheSchema(), clock.UnixSeconds()));
  return db;
}

// Renames the file and its companions to the first free <path>.<why>-N. The file goes last, so that
// what a crash interrupted is done again: a companion without a file is no database.
Status SetAside(const std::string& path, std::string_view why) {
  int number = 1;
  while (FileExists(fmt::format("{}.{}-{}", path, why, number))) ++number;
  for (const char* suffix : {"-wal", "-shm", ""}) {
    const std::string from = path + suffix;
    if (!FileExists(from)) continue;
    const int error = file_ops::Rename(from, fmt::format("{}.{}-{}{}", path, why, number, suffix));
    if (error != 0) return FromErrno(error, from);
  }
  LogWarn("cache file {} set aside as {}.{}-{}", path, path, why, number);
  return OkStatus();
}

// Turns an error into a miss, with a warning.
template <class T>
std::optional<T> MissIfBroken(StatusOr<std::optional<T>> found) {
  if (found.ok()) return *std::move(found);
  LogWarn("cache: taken as a miss: {}", Message(found.status()));
  return std::nullopt;
}

// What the subject says is in key_text as well.
std::string AnswerChecksum(const ModelAnswer& answer) {
  return Sha256(answer.key_text + "\n" + answer.result + "\n" + answer.output.Hex()).Hex();
}

constexpr char kAnswerColumns[] =
    "key_text, result, output, checksum, model, device, environment, tenant";

// Reads the answer of a row that begins with these columns.
StatusOr<ModelAnswer> ReadAnswer(const Statement& row) {
  AG_LET(const Digest output, ParseDigest(row.Text(2)));
  ModelAnswer answer = {
      row.Text(0), row.Text(1), output, {row.Text(4), row.Text(5), row.Text(6), row.Text(7)}};
  if (row.Text(3) == AnswerChecksum(answer)) return answer;
  return Err(StatusCode::kDataLoss, "answer {}: the checksum is wrong", output.Short());
}

// The place of an answer in a list: when it was made, and its key.
struct AnswerPlace {
  int64_t made = std::numeric_limits<int64_t>::max();
  std::string key;
};

StatusOr<AnswerPlace> ParsePlace(const std::string& text) {
  if (text.empty()) return AnswerPlace();
  const size_t dot = text.find('.');
  const auto made = ParseInt(text.substr(0, dot));
  if (dot == std::string::npos || !made.ok()) {
    return Err(StatusCode::kInvalidArgument, "page_token: {} is none of ours", text);
  }
  return AnswerPlace{*made, text.substr(dot + 1)};
}

class CacheDb final : public CacheStore {
 public:
  CacheDb(Database db, const CacheDbOptions& options, bool was_corrupt, Clock& clock);

  std::optional<CacheRow> Find(const Digest& key, std::string_view problem,
                               const Environment& environment) override;
  Status Put(const CacheRow& row) override;
  Status Count(int64_t hits, int64_t misses, const std::vector<Digest>& keys) override;
  Status SetChecked(const Digest& key) override;
  std::optional<RegionRow> FindRegion(const std::string& depends_on, int64_t copies) override;
  Status PutRegion(const RegionRow& row) override;
  StatusOr<std::vector<ListedRegion>> ListRegions(const RegionFilter& filter) override;
  StatusOr<std::vector<Listed>> List(const ListOptions& options) override;
  StatusOr<Imported> Import(const std::vector<CacheRow>& rows, const std::string& client) override;
  StatusOr<Forgotten> Forget(const Filter& filter) override;
  std::optional<ModelAnswer> FindModel(const std::string& key_text) override;
  Status PutModel(const ModelAnswer& answer) override;
  uint64_t answers_revision() const override { return answers_revision_; }
  StatusOr<std::vector<ListedAnswer>> ListModels(const AnswerFilter& filter) override;
  Status CountAnswers(int64_t given) override;
  Status ForEachAnswer(const std::function<void(const StoredAnswer& answer)>& visit) override;
  Status ForgetModels(const std::vector<std::string>& keys) override;
  Status SaveCopy(const std::string& folder) override;
  StatusOr<CacheStats> Stats() override;
  const CacheBase& base() const override { return base_; }
  bool was_corrupt() const override { return was_corrupt_; }
  bool SnapshotIsDue() override;
  Status WriteSnapshot() override;

 private:
  void SnapshotLacks() AG_REQUIRES(mutex_) {
    if (!lacks_since_.has_value()) lacks_since_ = clock_.Now();
  }

  Mutex mutex_;
  Database db_ AG_GUARDED_BY(mutex_);
  Clock& clock_;
  const int64_t failure_expiry_seconds_;
  const int64_t regions_max_;
  const std::string snapshot_;
  const std::string cache_namespace_;
  const bool was_corrupt_;
  CacheBase base_;

  // When the snapshot began to lack something, and when the next one may be written.
  std::optional<Nanos> lacks_since_ AG_GUARDED_BY(mutex_);
  Nanos next_snapshot_ AG_GUARDED_BY(mutex_){0};

  std::atomic<uint64_t> answers_revision_ = 1;
};

CacheDb::CacheDb(Database db, const CacheDbOptions& options, bool was_corrupt, Clock& clock)
    : db_(std::move(db)),
      clock_(clock),
      failure_expiry_seconds_(
          std::chrono::duration_cast<std::chrono::seconds>(options.failure_expiry).count()),
      regions_max_(options.regions_max),
      snapshot_(options.snapshot),
      cache_namespace_(options.cache_namespace),
      was_corrupt_(was_corrupt) {
  MutexLock lock(mutex_);
  if (!snapshot_.empty() && !IsSnapshotOf(snapshot_, db_)) SnapshotLacks();
  if (!options.base.empty()) base_ = OpenBase(db_, options.base);
}

std::optional<CacheRow> CacheDb::Find(const Digest& key, std::string_view problem,
                                      const Environment& environment) {
  MutexLock lock(mutex_);
  const auto find = [&]() AG_REQUIRES(mutex_) -> StatusOr<std::optional<CacheRow>> {
    AG_LET(Statement select, db_.Prepare(fmt::format("SELECT {} FROM measurements WHERE key = ?",
                                                     kMeasurementColumns)));
    AG_LET(const bool found, select.Bind(1, StoredKey(key, cache_namespace_)).Step());
    if (!found) return std::optional<CacheRow>();
    AG_LET(CacheRow row, ReadCacheRow(select));
    if (row.problem != problem || row.environment != environment) return std::optional<CacheRow>();
    const int64_t age = clock_.UnixSeconds() - row.measured_unix_seconds;
    if (!row.status.ok() && age >= failure_expiry_seconds_) return std::optional<CacheRow>();
    return std::optional<CacheRow>(std::move(row));
  };
  return MissIfBroken(find());
}

Status CacheDb::Put(const CacheRow& row) {
  if (row.status.ok()) AG_TRY(CheckMeasurement(row.measurement));
  MutexLock lock(mutex_);
  SnapshotLacks();
  return WriteRow(db_, GroupKey(row.problem, row.environment), row, cache_namespace_);
}

Status CacheDb::Count(int64_t hits, int64_t misses, const std::vector<Digest>& keys) {
  MutexLock lock(mutex_);
  AG_LET(Transaction transaction, Transaction::Begin(db_));
  AG_LET(Statement counter,
         db_.Prepare("UPDATE main.counters SET value = value + ? WHERE name = ?"));
  AG_TRY(counter.Bind(1, hits).Bind(2, "hits").Run());
  AG_TRY(counter.Bind(1, misses).Bind(2, "misses").Run());
  AG_LET(Statement hit, db_.Prepare("UPDATE main.measurements SET hits = hits + 1 WHERE key = ?"));
  for (const Digest& key : keys) {
    AG_TRY(hit.Bind(1, StoredKey(key, cache_namespace_)).Run());
  }
  return transaction.Commit();
}

StatusOr<std::vector<CacheDb::Listed>> CacheDb::List(const ListOptions& options) {
  std::string key = options.key;
  if (!key.empty() && !cache_namespace_.empty()) {
    const auto whole = ParseDigest(key);
    AG_TRY(whole.status(), "key (a namespace of the cache wants the whole one)");
    key = StoredKey(*whole, cache_namespace_);
  }
  MutexLock lock(mutex_);
  AG_LET(Statement select,
         db_.Prepare(fmt::format(
             "SELECT {} FROM measurements WHERE code = 0 AND (?1 = '' OR environment = ?1) AND "
             "(?2 = 0 OR row < ?2) AND namespace = ?3 AND (?4 = '' OR (key >= ?4 AND key < ?4 || "
             "'g')) AND (?5 = '' OR instr(summary, ?5) > 0) ORDER BY row DESC",
             kMeasurementColumns)));
  select.Bind(1, options.environment).Bind(2, options.before_row);
  select.Bind(3, cache_namespace_).Bind(4, key).Bind(5, options.group);
  std::vector<Listed> rows;
  while (true) {
    if (static_cast<int>(rows.size()) == options.rows_max) return rows;
    AG_LET(const bool more, select.Step());
    if (!more) return rows;
    auto row = ReadCacheRow(select);
    if (!row.ok()) {
      LogWarn("cache: left out: {}", Message(row.status()));
      continue;
    }
    rows.push_back({select.Int(0), *std::move(row)});
  }
}

StatusOr<CacheDb::Imported> CacheDb::Import(const std::vector<CacheRow>& rows,
                                            const std::string& client) {
  MutexLock lock(mutex_);
  AG_LET(Transaction transaction, Transaction::Begin(db_));
  AG_LET(Statement begun, db_.Prepare("INSERT INTO main.imports(made_unix_seconds, client, "
                                      "added) VALUES(?, ?, 0)"));
  AG_TRY(begun.Bind(1, clock_.UnixSeconds()).Bind(2, client).Run());
  const int64_t import = db_.last_insert_id();
  AG_LET(Statement known, db_.Prepare("SELECT 1 FROM measurements WHERE key = ?"));
  Imported imported;
  for (size_t i = 0; i < rows.size(); ++i) {
    AG_TRY(CheckMeasurement(rows[i].measurement), "record {}", i);
    known.Reset();
    const Digest key = GroupKey(rows[i].problem, rows[i].environment);
    AG_LET(const bool found, known.Bind(1, StoredKey(key, cache_namespace_)).Step());
    found ? ++imported.known : ++imported.added;
    if (found) continue;
    CacheRow row = rows[i];
    row.import = import;
    row.is_checked = false;
    AG_TRY(WriteRow(db_, key, row, cache_namespace_));
  }
  known.Reset();
  if (imported.added == 0) return imported;  // The transaction is undone: nothing came by it.
  imported.import = import;
  AG_LET(Statement ended, db_.Prepare("UPDATE main.imports SET added = ? WHERE import = ?"));
  AG_TRY(ended.Bind(1, imported.added).Bind(2, import).Run());
  AG_TRY(transaction.Commit());
  SnapshotLacks();
  return imported;
}

Status CacheDb::SetChecked(const Digest& key) {
  MutexLock lock(mutex_);
  AG_LET(Statement update,
         db_.Prepare("UPDATE main.measurements SET is_checked = 1 WHERE key = ?"));
  return update.Bind(1, StoredKey(key, cache_namespace_)).Run();
}

std::optional<RegionRow> CacheDb::FindRegion(const std::string& depends_on, int64_t copies) {
  MutexLock lock(mutex_);
  const auto find = [&]() AG_REQUIRES(mutex_) -> StatusOr<std::optional<RegionRow>> {
    const std::string key = StoredKey(Sha256(depends_on), cache_namespace_);
    AG_LET(Statement select,
           db_.Prepare(fmt::format("SELECT {} FROM regions WHERE key = ?", kRegionColumns)));
    AG_LET(const bool found, select.Bind(1, key).Step());
    if (!found) return std::optional<RegionRow>();
    AG_LET(RegionRow row, ReadRegion(select));
    if (row.depends_on != depends_on) return std::optional<RegionRow>();
    select.Reset();
    AG_LET(Statement count, db_.Prepare("UPDATE main.regions SET copies = copies + ?, models = "
                                        "models + 1, used_unix_seconds = ? WHERE key = ?"));
    // A count that cannot be written costs no hit.
    const Status counted = count.Bind(1, copies).Bind(2, clock_.UnixSeconds()).Bind(3, key).Run();
    if (!counted.ok()) LogWarn("cache: {}", Message(counted));
    return std::optional<RegionRow>(std::move(row));
  };
  return MissIfBroken(find());
}

Status CacheDb::PutRegion(const RegionRow& row) {
  MutexLock lock(mutex_);
  SnapshotLacks();
  AG_LET(Transaction transaction, Transaction::Begin(db_));
  AG_TRY(WriteRegion(db_, row, clock_.UnixSeconds(), cache_namespace_));
  AG_LET(const int64_t rows, db_.ReadInt("SELECT count(*) FROM main.regions"));
  if (rows > regions_max_) {
    AG_LET(Statement remove,
           db_.Prepare("DELETE FROM main.regions WHERE row IN (SELECT row FROM main.regions ORDER "
                       "BY used_unix_seconds, row LIMIT ?)"));
    AG_TRY(remove.Bind(1, rows - regions_max_).Run());
  }
  return transaction.Commit();
}

StatusOr<std::vector<CacheDb::ListedRegion>> CacheDb::ListRegions(const RegionFilter& filter) {
  MutexLock lock(mutex_);
  AG_LET(Statement select,
         db_.Prepare(fmt::format("SELECT {} FROM regions WHERE namespace = ?1 AND (?2 = '' OR "
                                 "environment = ?2) AND (?3 = '' OR (key >= ?3 AND key < ?3 || "
                                 "'g')) AND (?4 = 0 OR row < ?4) ORDER BY row DESC",
                                 kRegionColumns)));
  select.Bind(1, cache_namespace_).Bind(2, filter.environment);
  select.Bind(3, filter.key).Bind(4, filter.before_row);
  std::vector<ListedRegion> rows;
  while (static_cast<int>(rows.size()) < filter.rows_max) {
    AG_LET(const bool more, select.Step());
    if (!more) break;
    StatusOr<RegionRow> row = ReadRegion(select);
    if (!row.ok()) {
      LogWarn("cache: left out: {}", Message(row.status()));
      continue;
    }
    rows.push_back({select.Int(0), select.Text(1), *std::move(row)});
  }
  return rows;
}

// The numbers and environments of the rows that fit.
struct Fitting {
  std::vector<int64_t> rows;
  std::set<Environment> environments;
};

// A row that does not read fits `all` only.
StatusOr<Fitting> FindFitting(Database& db, const CacheDb::Filter& filter,
                              const std::string& cache_namespace) {
  AG_LET(Statement select,
         db.Prepare(fmt::format("SELECT {} FROM main.measurements WHERE namespace = ?",
                                kMeasurementColumns)));
  select.Bind(1, cache_namespace);
  Fitting fitting;
  while (true) {
    AG_LET(const bool more, select.Step());
    if (!more) return fitting;
    const auto row = ReadCacheRow(select);
    const bool fits =
        filter.all ||
        (row.ok() && (filter.environment.empty() || row->environment == filter.environment) &&
         (filter.worker.empty() || row->worker == filter.worker) &&
         (filter.import == 0 || row->import == filter.import) &&
         (filter.kernel.empty() || row->measurement.kernel == filter.kernel));
    if (!fits) continue;
    fitting.rows.push_back(select.Int(0));
    fitting.environments.insert(select.Text(2));
  }
}

// Deletes the rows of `table` of these environments.
StatusOr<int64_t> ForgetOf(std::string_view table, Database& db,
                           const std::set<Environment>& environments, bool all,
                           const std::string& cache_namespace) {
  AG_LET(Statement remove,
         db.Prepare(fmt::format("DELETE FROM main.{} WHERE namespace = ?1 AND (?2 = '' OR "
                                "environment = ?2)",
                                table)));
  int64_t removed = 0;
  for (const Environment& environment : all ? std::set<Environment>{""} : environments) {
    AG_TRY(remove.Bind(1, cache_namespace).Bind(2, environment).Run());
    removed += db.changes();
  }
  return removed;
}

StatusOr<CacheDb::Forgotten> CacheDb::Forget(const Filter& filter) {
  const bool is_set = filter.all || !filter.environment.empty() || !filter.worker.empty() ||
                      filter.import != 0 || !filter.kernel.empty();
  if (!is_set) {
    return Err(StatusCode::kInvalidArgument,
               "name an environment, a worker, an import or a kernel, or all");
  }
  MutexLock lock(mutex_);
  ++answers_revision_;
  AG_LET(Transaction transaction, Transaction::Begin(db_));
  AG_LET(Fitting fitting, FindFitting(db_, filter, cache_namespace_));
  AG_LET(Statement remove, db_.Prepare("DELETE FROM main.measurements WHERE row = ?"));
  for (const int64_t row : fitting.rows) AG_TRY(remove.Bind(1, row).Run());
  Forgotten forgotten;
  forgotten.measurements = static_cast<int64_t>(fitting.rows.size());
  if (!filter.environment.empty()) fitting.environments.insert(filter.environment);
  const auto forget = [&](std::string_view table) AG_REQUIRES(mutex_) {
    return ForgetOf(table, db_, fitting.environments, filter.all, cache_namespace_);
  };
  AG_LET(forgotten.models, forget("model_answers"));
  AG_LET(forgotten.regions, forget("regions"));
  AG_TRY(transaction.Commit());
  SnapshotLacks();
  return forgotten;
}

std::optional<ModelAnswer> CacheDb::FindModel(const std::string& key_text) {
  MutexLock lock(mutex_);
  const auto find = [&]() AG_REQUIRES(mutex_) -> StatusOr<std::optional<ModelAnswer>> {
    AG_LET(Statement select,
           db_.Prepare(fmt::format("SELECT {} FROM model_answers WHERE key = ?", kAnswerColumns)));
    AG_LET(const bool found, select.Bind(1, StoredKey(Sha256(key_text), cache_namespace_)).Step());
    if (!found || select.Text(0) != key_text) return std::optional<ModelAnswer>();
    AG_LET(ModelAnswer answer, ReadAnswer(select));
    return std::optional<ModelAnswer>(std::move(answer));
  };
  return MissIfBroken(find());
}

Status CacheDb::PutModel(const ModelAnswer& answer) {
  MutexLock lock(mutex_);
  ++answers_revision_;
  AG_LET(Statement insert,
         db_.Prepare("INSERT OR REPLACE INTO main.model_answers(key, key_text, result, output, "
                     "made_unix_seconds, checksum, namespace, model, device, environment, "
                     "tenant) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"));
  insert.Bind(1, StoredKey(Sha256(answer.key_text), cache_namespace_))
      .BindBytes(2, answer.key_text);
  insert.BindBytes(3, answer.result).Bind(4, answer.output.Hex());
  SnapshotLacks();
  insert.Bind(5, clock_.UnixSeconds()).Bind(6, AnswerChecksum(answer));
  insert.Bind(7, cache_namespace_).Bind(8, answer.of.model).Bind(9, answer.of.device);
  return insert.Bind(10, answer.of.environment).Bind(11, answer.of.tenant).Run();
}

StatusOr<std::vector<CacheDb::ListedAnswer>> CacheDb::ListModels(const AnswerFilter& filter) {
  AG_LET(const AnswerPlace before, ParsePlace(filter.before));
  MutexLock lock(mutex_);
  AG_LET(Statement select,
         db_.Prepare(fmt::format(
             "SELECT {}, key, made_unix_seconds FROM model_answers WHERE namespace = ?1 AND "
             "(?2 = '' OR (key >= ?2 AND key < ?2 || 'g')) AND (?3 = '' OR model = ?3) AND (?4 = "
             "'' OR device = ?4) AND "
             "(?5 = '' OR environment = ?5) AND (?6 OR tenant = ?7) AND "
             "(made_unix_seconds, key) < (?8, ?9) ORDER BY made_unix_seconds DESC, key DESC",
             kAnswerColumns)));
  select.Bind(1, cache_namespace_).Bind(2, filter.key).Bind(3, filter.model);
  select.Bind(4, filter.device).Bind(5, filter.environment);
  select.Bind(6, int64_t{!filter.tenant.has_value()}).Bind(7, filter.tenant.value_or(""));
  select.Bind(8, before.made).Bind(9, before.key);
  std::vector<ListedAnswer> rows;
  while (static_cast<int>(rows.size()) < filter.rows_max) {
    AG_LET(const bool more, select.Step());
    if (!more) break;
    StatusOr<ModelAnswer> answer = ReadAnswer(select);
    if (!answer.ok()) {
      LogWarn("cache: left out: {}", Message(answer.status()));
      continue;
    }
    const std::string key = select.Text(8);
    const int64_t made = select.Int(9);
    rows.push_back({key, fmt::format("{}.{}", made, key), made, *std::move(answer)});
  }
  return rows;
}

Status CacheDb::CountAnswers(int64_t given) {
  MutexLock lock(mutex_);
  AG_LET(Statement add,
         db_.Prepare("UPDATE main.counters SET value = value + ? WHERE name = 'answers'"));
  return add.Bind(1, given).Run();
}

Status CacheDb::ForEachAnswer(const std::function<void(const StoredAnswer& answer)>& visit) {
  MutexLock lock(mutex_);
  AG_LET(Statement select,
         db_.Prepare("SELECT key, model, device, environment, tenant, result FROM "
                     "main.model_answers"));
  while (true) {
    AG_LET(const bool row, select.Step());
    if (!row) return OkStatus();
    visit({select.Text(0),
           {select.Text(1), select.Text(2), select.Text(3), select.Text(4)},
           select.Text(5)});
  }
}

Status CacheDb::ForgetModels(const std::vector<std::string>& keys) {
  if (keys.empty()) return OkStatus();
  MutexLock lock(mutex_);
  ++answers_revision_;
  AG_LET(Transaction transaction, Transaction::Begin(db_));
  AG_LET(Statement remove, db_.Prepare("DELETE FROM main.model_answers WHERE key = ?"));
  for (const std::string& key : keys) AG_TRY(remove.Bind(1, key).Run());
  AG_TRY(transaction.Commit());
  SnapshotLacks();
  return OkStatus();
}

Status CacheDb::SaveCopy(const std::string& folder) {
  MutexLock lock(mutex_);
  return CopyInto(db_, fmt::format("{}/{}", folder, kCacheFile));
}

StatusOr<CacheStats> CacheDb::Stats() {
  MutexLock lock(mutex_);
  const auto count = [&](const char* sql) AG_REQUIRES(mutex_) -> StatusOr<int64_t> {
    AG_LET(Statement select, db_.Prepare(sql));
    AG_TRY(select.Bind(1, cache_namespace_).Step().status());
    return select.Int(0);
  };
  CacheStats stats;
  AG_LET(stats.measurements,
         count("SELECT count(*) FROM measurements WHERE code = 0 AND namespace = ?"));
  AG_LET(stats.failures,
         count("SELECT count(*) FROM measurements WHERE code <> 0 AND namespace = ?"));
  AG_LET(stats.models, count("SELECT count(*) FROM model_answers WHERE namespace = ?"));
  AG_LET(stats.regions, count("SELECT count(*) FROM regions WHERE namespace = ?"));
  AG_LET(stats.hits, db_.ReadInt("SELECT value FROM counters WHERE name = 'hits'"));
  AG_LET(stats.misses, db_.ReadInt("SELECT value FROM counters WHERE name = 'misses'"));
  AG_LET(stats.answers, db_.ReadInt("SELECT value FROM counters WHERE name = 'answers'"));
  AG_LET(const int64_t pages, db_.ReadInt("PRAGMA page_count"));
  AG_LET(const int64_t page_bytes, db_.ReadInt("PRAGMA page_size"));
  stats.bytes = pages * page_bytes;
  AG_LET(Statement select,
         db_.Prepare("SELECT environment, count(*) FROM measurements WHERE code = 0 AND "
                     "namespace = ? GROUP BY environment ORDER BY environment"));
  select.Bind(1, cache_namespace_);
  while (true) {
    AG_LET(const bool row, select.Step());
    if (!row) return stats;
    stats.environments.emplace_back(select.Text(0), select.Int(1));
  }
}

bool CacheDb::SnapshotIsDue() {
  MutexLock lock(mutex_);
  if (snapshot_.empty() || !lacks_since_.has_value()) return false;
  const Nanos now = clock_.Now();
  return now >= next_snapshot_ && now - *lacks_since_ >= kSnapshotDelay;
}

Status CacheDb::WriteSnapshot() {
  MutexLock lock(mutex_);
  lacks_since_.reset();
  const Nanos began = clock_.Now();
  const Status written = SaveSnapshot(db_, snapshot_);
  const Nanos now = clock_.Now();
  next_snapshot_ = now + kSnapshotPause * (now - began);
  return Within(written, "cache snapshot");
}

}  // namespace

StatusOr<std::unique_ptr<CacheStore>> OpenCacheDb(const CacheDbOptions& options, Clock& clock) {
  auto db = OpenAndMigrate(options, clock);
  const bool corrupt = db.status().code() == StatusCode::kDataLoss;
  if (corrupt || db.status().code() == StatusCode::kUnimplemented) {
    LogWarn("cache file cannot be read: {}", Message(db.status()));
    AG_TRY(SetAside(options.path, corrupt ? "corrupt" : "old"), "cache file");
    db = OpenAndMigrate(options, clock);
  }
  AG_TRY(db.status(), "cache file");
  return std::make_unique<CacheDb>(*std::move(db), options, corrupt, clock);
}

}  // namespace ag

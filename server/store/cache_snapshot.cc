#include "server/store/cache_snapshot.h"

#include "base/file.h"
#include "base/file_ops.h"
#include "server/store/schemas.h"

namespace ag {
namespace {

// A text that is equal for a cache and its snapshot and changes when a row is added or
// deleted. Ignores hits.
constexpr char kStamp[] = R"sql(
  SELECT (SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'measurements') || ' ' ||
         (SELECT count(*) FROM measurements) || ' ' ||
         (SELECT count(*) || ' ' || coalesce(max(made_unix_seconds), 0) FROM regions) || ' ' ||
         count(*) || ' ' || coalesce(max(made_unix_seconds), 0) FROM model_answers
)sql";

constexpr char kViews[] = R"sql(
  CREATE TEMP VIEW measurements AS SELECT * FROM main.measurements UNION ALL
    SELECT * FROM base.measurements AS below
    WHERE NOT EXISTS (SELECT 1 FROM main.measurements AS own WHERE own.key = below.key);
  CREATE TEMP VIEW model_answers AS SELECT * FROM main.model_answers UNION ALL
    SELECT * FROM base.model_answers AS below
    WHERE NOT EXISTS (SELECT 1 FROM main.model_answers AS own WHERE own.key = below.key);
  CREATE TEMP VIEW regions AS SELECT * FROM main.regions UNION ALL
    SELECT * FROM base.regions AS below
    WHERE NOT EXISTS (SELECT 1 FROM main.regions AS own WHERE own.key = below.key);
  INSERT INTO main.sqlite_sequence SELECT name, seq FROM base.sqlite_sequence AS below
    WHERE NOT EXISTS (SELECT 1 FROM main.sqlite_sequence AS own WHERE own.name = below.name);
  UPDATE main.counters SET value = value +
    (SELECT value FROM base.counters AS below WHERE below.name = counters.name);
)sql";

StatusOr<std::string> StampOf(const std::string& path) {
  AG_LET(Database db, Database::OpenImmutable(path));
  return db.ReadText(kStamp);
}

Status Check(Database& db, const std::string& path) {
  AG_LET(const std::string check, db.ReadText("PRAGMA base.quick_check(1)"));
  if (check != "ok") return Err(StatusCode::kDataLoss, "{}: {}", path, check);
  AG_LET(const int64_t version, db.ReadInt("PRAGMA base.user_version"));
  const int64_t ours = CacheSchema().newest();
  if (version == ours) return OkStatus();
  return Err(StatusCode::kFailedPrecondition, "{}: schema version {}, expected {}", path, version,
             ours);
}

StatusOr<int64_t> Mount(Database& db, const std::string& path) {
  AG_TRY(Check(db, path));
  AG_LET(const int64_t measurements,
         db.ReadInt("SELECT count(*) FROM base.measurements WHERE code = 0"));
  AG_LET(Transaction transaction, Transaction::Begin(db));
  AG_TRY(db.Execute(kViews));
  AG_TRY(transaction.Commit());
  return measurements;
}

}  // namespace

Status SaveSnapshot(Database& db, const std::string& path) {
  const std::string unfinished = path + ".new";
  const std::string journal = unfinished + "-journal";
  file_ops::Remove(unfinished);  // Of a killed process.
  file_ops::Remove(journal);
  const Status copied = CopyInto(db, unfinished);
  file_ops::Remove(journal);  // SQLite goes on where it cannot remove it.
  const int error = copied.ok() ? file_ops::Rename(unfinished, path) : 0;
  if (!copied.ok() || error != 0) file_ops::Remove(unfinished);
  AG_TRY(copied);
  return error == 0 ? OkStatus() : FromErrno(error, "rename to " + path);
}

bool IsSnapshotOf(const std::string& path, Database& db) {
  if (!FileExists(path)) return false;
  const StatusOr<std::string> theirs = StampOf(path), ours = db.ReadText(kStamp);
  return theirs.ok() && ours.ok() && *theirs == *ours;
}

CacheBase OpenBase(Database& db, const std::string& path) {
  if (!FileExists(path)) return {Err(StatusCode::kNotFound, "{}: no such file", path), 0};
  const auto attach = [&]() -> Status {
    AG_LET(Statement statement, db.Prepare("ATTACH ? AS base"));
    return statement.Bind(1, ImmutableUri(path)).Run();
  };
  if (const Status attached = attach(); !attached.ok()) return {attached, 0};
  const StatusOr<int64_t> measurements = Mount(db, path);
  if (measurements.ok()) return {OkStatus(), *measurements};
  db.Execute("DETACH base").IgnoreError();  // Our own file is unchanged.
  return {measurements.status(), 0};
}

}  // namespace ag

#include "server/store/cache_rows.h"

#include "base/bytes.h"
#include "plan/fusion/group_problem.h"
#include "wire/measurement_wire.h"

namespace ag {

const Schema& CacheSchema() {
  static const Schema schema = {.oldest = 3,
                                .create = R"sql(
    CREATE TABLE measurements(
      row INTEGER PRIMARY KEY AUTOINCREMENT,
      key TEXT NOT NULL UNIQUE,
      problem BLOB NOT NULL,
      environment TEXT NOT NULL,
      code INTEGER NOT NULL,
      reason TEXT NOT NULL,
      measurement BLOB NOT NULL,
      measured_unix_seconds INTEGER NOT NULL,
      summary TEXT NOT NULL,
      hits INTEGER NOT NULL,
      seal TEXT NOT NULL);
    CREATE INDEX measurements_environment ON measurements(environment, row);
    CREATE TABLE model_answers(
      key TEXT PRIMARY KEY,
      key_text BLOB NOT NULL,
      result BLOB NOT NULL,
      output TEXT NOT NULL,
      made_unix_seconds INTEGER NOT NULL,
      seal TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE counters(name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
    INSERT INTO counters VALUES('hits', 0), ('misses', 0);
  )sql",
                                .steps = {R"sql(
    ALTER TABLE measurements RENAME COLUMN seal TO checksum;
    ALTER TABLE model_answers RENAME COLUMN seal TO checksum;
  )sql",
                                          R"sql(
    ALTER TABLE measurements ADD COLUMN worker TEXT NOT NULL DEFAULT '';
    ALTER TABLE measurements ADD COLUMN import INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE measurements ADD COLUMN is_checked INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE measurements ADD COLUMN namespace TEXT NOT NULL DEFAULT '';
    ALTER TABLE model_answers ADD COLUMN namespace TEXT NOT NULL DEFAULT '';
    CREATE TABLE imports(
      import INTEGER PRIMARY KEY AUTOINCREMENT,
      made_unix_seconds INTEGER NOT NULL,
      client TEXT NOT NULL,
      added INTEGER NOT NULL);
  )sql",
                                          R"sql(
    ALTER TABLE model_answers ADD COLUMN model TEXT NOT NULL DEFAULT '';
    ALTER TABLE model_answers ADD COLUMN device TEXT NOT NULL DEFAULT '';
    ALTER TABLE model_answers ADD COLUMN environment TEXT NOT NULL DEFAULT '';
    ALTER TABLE model_answers ADD COLUMN tenant TEXT NOT NULL DEFAULT '';
    CREATE INDEX model_answers_model ON model_answers(model, made_unix_seconds);
    INSERT INTO counters VALUES('answers', 0);
    CREATE TEMP TABLE parts AS SELECT key,
      substr(CAST(key_text AS TEXT), 1, instr(CAST(key_text AS TEXT), '}environment=')) AS request,
      substr(CAST(key_text AS TEXT), instr(CAST(key_text AS TEXT), '}environment=') + 13) AS rest
      FROM model_answers WHERE instr(CAST(key_text AS TEXT), '}environment=') > 0;
    UPDATE model_answers SET
      model = coalesce(json_extract(parts.request, '$.model_digest'), ''),
      device = coalesce(json_extract(parts.request, '$.device'), ''),
      environment = substr(parts.rest, 1, instr(parts.rest || char(10), char(10)) - 1),
      tenant = CASE WHEN instr(parts.rest, char(10) || 'tenant=') = 0 THEN '' ELSE
        rtrim(substr(parts.rest, instr(parts.rest, char(10) || 'tenant=') + 8), char(10)) END
      FROM parts WHERE parts.key = model_answers.key AND json_valid(parts.request);
    DROP TABLE parts;
  )sql"}};
  return schema;
}

namespace {

// Returns a digest over all that the row says but its hits and whether it is checked, so that a
// flipped bit is found. `measurement` is the column's bytes. Where a row comes from counts only
// when it says so: rows of version 4 do not.
std::string Checksum(const CacheRow& row, std::string_view measurement,
                     const std::string& cache_namespace) {
  ByteWriter writer;
  writer.String(row.problem);
  writer.String(row.environment);
  writer.I64(static_cast<int64_t>(row.status.code()));
  writer.String(Message(row.status));
  writer.String(measurement);
  writer.I64(row.measured_unix_seconds);
  writer.String(row.summary);
  if (!row.worker.empty() || row.import != 0 || !cache_namespace.empty()) {
    writer.String(row.worker);
    writer.I64(row.import);
    writer.String(cache_namespace);
  }
  return Sha256(writer.bytes()).Hex();
}

}  // namespace

std::string StoredKey(const Digest& key, const std::string& cache_namespace) {
  if (cache_namespace.empty()) return key.Hex();
  ByteWriter writer;
  writer.String(cache_namespace);
  writer.String(key.Hex());
  return Sha256(writer.bytes()).Hex();
}

Status WriteRow(Database& db, const Digest& key, const CacheRow& row,
                const std::string& cache_namespace) {
  AG_LET(Statement insert,
         db.Prepare("INSERT OR REPLACE INTO main.measurements(key, problem, environment, code, "
                    "reason, measurement, measured_unix_seconds, summary, hits, checksum, worker, "
                    "import, is_checked, namespace) "
                    "VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"));
  const std::string measurement = EncodeMeasurement(row.measurement);
  insert.Bind(1, StoredKey(key, cache_namespace))
      .BindBytes(2, row.problem)
      .Bind(3, row.environment);
  insert.Bind(4, static_cast<int64_t>(row.status.code())).Bind(5, Message(row.status));
  insert.BindBytes(6, measurement).Bind(7, row.measured_unix_seconds).Bind(8, row.summary);
  insert.Bind(9, row.hits).Bind(10, Checksum(row, measurement, cache_namespace));
  insert.Bind(11, row.worker).Bind(12, row.import).Bind(13, int64_t{row.is_checked});
  return insert.Bind(14, cache_namespace).Run();
}

StatusOr<CacheRow> ReadCacheRow(const Statement& s) {
  CacheRow row;
  row.problem = s.Text(1);
  row.environment = s.Text(2);
  row.status = Status(static_cast<StatusCode>(s.Int(3)), s.Text(4));
  const std::string measurement = s.Text(5);
  row.measured_unix_seconds = s.Int(6);
  row.summary = s.Text(7);
  row.hits = s.Int(8);
  row.worker = s.Text(10);
  row.import = s.Int(11);
  row.is_checked = s.Int(12) != 0;
  if (s.Text(9) != Checksum(row, measurement, s.Text(13))) {
    return Err(StatusCode::kDataLoss, "measurement {}: the checksum is wrong", s.Int(0));
  }
  AG_LET(row.measurement, DecodeMeasurement(measurement));
  if (row.status.ok()) AG_TRY(CheckMeasurement(row.measurement));
  return row;
}

}  // namespace ag

#include "server/store/cache_rows.h"

#include "base/bytes.h"
#include "plan/group_problem.h"

namespace ag {

const std::vector<std::string>& CacheMigrations() {
  static const std::vector<std::string> migrations = {R"sql(
    CREATE TABLE measurements(
      row INTEGER PRIMARY KEY AUTOINCREMENT,
      key TEXT NOT NULL UNIQUE,
      problem BLOB NOT NULL,
      environment TEXT NOT NULL,
      code INTEGER NOT NULL,
      reason TEXT NOT NULL,
      median_ns REAL, low_ns REAL, high_ns REAL,
      samples INTEGER NOT NULL,
      discarded INTEGER NOT NULL,
      canary_ns REAL,
      kernel TEXT NOT NULL,
      alternatives BLOB NOT NULL,
      simulated INTEGER NOT NULL,
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
                                                      R"sql(
    ALTER TABLE measurements ADD COLUMN busy_cores INTEGER NOT NULL DEFAULT 0;
  )sql"};
  return migrations;
}

namespace {

std::string EncodeAlternatives(const Measurement& m) {
  ByteWriter writer;
  writer.U64(m.alternatives.size());
  for (const auto& [kernel, ns] : m.alternatives) {
    writer.String(kernel);
    writer.F64(ns);
  }
  return writer.Take();
}

Status DecodeAlternatives(std::string_view bytes, Measurement* m) {
  ByteReader reader(bytes);
  AG_LET(const uint64_t count, reader.Count(16));
  for (uint64_t i = 0; i < count; ++i) {
    AG_LET(std::string kernel, reader.String());
    AG_LET(const double ns, reader.F64());
    m->alternatives.emplace_back(std::move(kernel), ns);
  }
  return reader.End();
}

// Returns a digest over all columns of the row, so that a flipped bit in a number is found.
std::string Seal(const CacheRow& row) {
  const Measurement& m = row.measurement;
  ByteWriter writer;
  writer.String(row.problem);
  writer.String(row.environment);
  writer.I64(static_cast<int64_t>(row.status.code()));
  writer.String(Message(row.status));
  const double figures[] = {m.latency.median_ns, m.latency.low_ns, m.latency.high_ns, m.canary_ns};
  writer.Doubles(figures);
  const int64_t counts[] = {m.samples, m.discarded, m.simulated, row.measured_unix_seconds};
  writer.Ints(counts);
  writer.String(m.kernel);
  writer.String(EncodeAlternatives(m));
  writer.String(row.summary);
  // Left out when unknown, so that the seals of version 1 stay valid.
  if (m.busy_cores != 0) writer.I64(m.busy_cores);
  return Sha256(writer.bytes()).Hex();
}

}  // namespace

Status WriteRow(Database& db, const CacheRow& row) {
  AG_LET(Statement insert,
         db.Prepare(
             "INSERT OR REPLACE INTO main.measurements(key, problem, environment, code, reason, "
             "median_ns, low_ns, high_ns, samples, discarded, canary_ns, kernel, "
             "alternatives, simulated, measured_unix_seconds, summary, hits, seal, busy_cores) "
             "VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"));
  const Measurement& m = row.measurement;
  insert.Bind(1, GroupKey(row.problem, row.environment).Hex()).BindBytes(2, row.problem);
  insert.Bind(3, row.environment).Bind(4, static_cast<int64_t>(row.status.code()));
  insert.Bind(5, Message(row.status)).Bind(6, m.latency.median_ns).Bind(7, m.latency.low_ns);
  insert.Bind(8, m.latency.high_ns).Bind(9, int64_t{m.samples}).Bind(10, int64_t{m.discarded});
  insert.Bind(11, m.canary_ns).Bind(12, m.kernel).BindBytes(13, EncodeAlternatives(m));
  insert.Bind(14, int64_t{m.simulated}).Bind(15, row.measured_unix_seconds);
  insert.Bind(16, row.summary).Bind(17, row.hits).Bind(18, Seal(row));
  insert.Bind(19, int64_t{m.busy_cores});
  return insert.Run();
}

StatusOr<CacheRow> ReadCacheRow(const Statement& s) {
  CacheRow row;
  row.problem = s.Text(2);
  row.environment = s.Text(3);
  row.status = Status(static_cast<StatusCode>(s.Int(4)), s.Text(5));
  Measurement& m = row.measurement;
  m.latency = {s.Double(6), s.Double(7), s.Double(8)};
  m.samples = static_cast<int>(s.Int(9));
  m.discarded = static_cast<int>(s.Int(10));
  m.canary_ns = s.Double(11);
  m.kernel = s.Text(12);
  AG_TRY(DecodeAlternatives(s.Text(13), &m));
  m.simulated = s.Int(14) != 0;
  row.measured_unix_seconds = s.Int(15);
  row.summary = s.Text(16);
  row.hits = s.Int(17);
  m.busy_cores = static_cast<int>(s.Int(19));
  if (s.Text(1) != GroupKey(row.problem, row.environment).Hex() || s.Text(18) != Seal(row)) {
    return Err(StatusCode::kDataLoss, "measurement {}: the seal is broken", s.Int(0));
  }
  if (row.status.ok()) AG_TRY(CheckMeasurement(m));
  return row;
}

}  // namespace ag

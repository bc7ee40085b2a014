#include "server/store/cache_rows.h"

#include "base/bytes.h"
#include "plan/fusion/group_problem.h"
#include "wire/measurement_wire.h"

namespace ag {

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

// Returns a digest over what was found and what it is of.
std::string RegionChecksum(const RegionRow& row, const std::string& cache_namespace) {
  ByteWriter writer;
  writer.String(row.depends_on);
  writer.String(row.environment);
  writer.String(row.entry);
  writer.String(cache_namespace);
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

Status WriteRegion(Database& db, const RegionRow& row, int64_t now,
                   const std::string& cache_namespace) {
  AG_LET(Statement insert,
         db.Prepare("INSERT INTO main.regions(key, depends_on, environment, entry, copies, models, "
                    "made_unix_seconds, used_unix_seconds, checksum, namespace) "
                    "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7, ?8, ?9) ON CONFLICT(key) DO UPDATE SET "
                    "depends_on = ?2, environment = ?3, entry = ?4, copies = copies + ?5, models = "
                    "models + ?6, made_unix_seconds = ?7, used_unix_seconds = ?7, checksum = ?8, "
                    "row = (SELECT max(row) + 1 FROM main.regions)"));
  insert.Bind(1, StoredKey(Sha256(row.depends_on), cache_namespace))
      .BindBytes(2, row.depends_on)
      .Bind(3, row.environment)
      .BindBytes(4, row.entry);
  insert.Bind(5, row.copies).Bind(6, row.models).Bind(7, now);
  return insert.Bind(8, RegionChecksum(row, cache_namespace)).Bind(9, cache_namespace).Run();
}

StatusOr<RegionRow> ReadRegion(const Statement& s) {
  const RegionRow row = {.depends_on = s.Text(2),
                         .environment = s.Text(3),
                         .entry = s.Text(4),
                         .copies = s.Int(5),
                         .models = s.Int(6),
                         .made_unix_seconds = s.Int(7)};
  if (s.Text(8) == RegionChecksum(row, s.Text(9))) return row;
  return Err(StatusCode::kDataLoss, "region {}: the checksum is wrong", s.Text(1).substr(0, 12));
}

}  // namespace ag

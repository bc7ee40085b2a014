#include "server/store/schemas.h"

namespace ag {

const Schema& JobsSchema() {
  static const Schema schema = {.oldest = 3,
                                .create = R"sql(
    CREATE TABLE jobs(
      id INTEGER PRIMARY KEY AUTOINCREMENT,
      state TEXT NOT NULL,
      terminal INTEGER NOT NULL,
      device TEXT NOT NULL,
      request BLOB NOT NULL,
      result BLOB NOT NULL,
      error_code INTEGER NOT NULL,
      error_message TEXT NOT NULL,
      created_unix_seconds INTEGER NOT NULL,
      finished_unix_seconds INTEGER NOT NULL,
      version INTEGER NOT NULL,
      resumed INTEGER NOT NULL,
      cancel INTEGER NOT NULL,
      dedupe_key TEXT NOT NULL);
    CREATE INDEX jobs_state ON jobs(state, id);
    CREATE INDEX jobs_unfinished ON jobs(dedupe_key) WHERE terminal = 0;
    CREATE TABLE request_ids(
      request_id TEXT PRIMARY KEY,
      body_digest TEXT NOT NULL,
      job INTEGER NOT NULL REFERENCES jobs(id)) WITHOUT ROWID;
    CREATE TABLE epochs(
      epoch INTEGER PRIMARY KEY AUTOINCREMENT,
      opened_unix_seconds INTEGER NOT NULL);
  )sql",
                                .steps = {R"sql(
    ALTER TABLE jobs ADD COLUMN crashes INTEGER NOT NULL DEFAULT 0;
  )sql",
                                          R"sql(
    ALTER TABLE jobs ADD COLUMN client TEXT NOT NULL DEFAULT '';
    ALTER TABLE jobs ADD COLUMN waiters INTEGER NOT NULL DEFAULT 1;
    ALTER TABLE request_ids ADD COLUMN has_left INTEGER NOT NULL DEFAULT 0;
  )sql",
                                          R"sql(
    ALTER TABLE jobs ADD COLUMN tenant TEXT NOT NULL DEFAULT '';
    CREATE INDEX jobs_tenant ON jobs(tenant, id);
    CREATE TABLE blob_tenants(
      digest TEXT NOT NULL,
      tenant TEXT NOT NULL,
      PRIMARY KEY(digest, tenant)) WITHOUT ROWID;
  )sql",
                                          R"sql(
    ALTER TABLE jobs ADD COLUMN device_seconds REAL NOT NULL DEFAULT 0;
    CREATE TABLE device_use(
      tenant TEXT NOT NULL,
      hour INTEGER NOT NULL,
      seconds REAL NOT NULL,
      PRIMARY KEY(tenant, hour)) WITHOUT ROWID;
  )sql",
                                          R"sql(
    ALTER TABLE jobs ADD COLUMN error_reason TEXT NOT NULL DEFAULT '';
  )sql"}};
  return schema;
}

namespace {

constexpr char kRegionsStep[] = R"sql(
    CREATE TABLE regions(
      row INTEGER PRIMARY KEY AUTOINCREMENT,
      key TEXT NOT NULL UNIQUE,
      depends_on BLOB NOT NULL,
      environment TEXT NOT NULL,
      entry BLOB NOT NULL,
      copies INTEGER NOT NULL,
      models INTEGER NOT NULL,
      made_unix_seconds INTEGER NOT NULL,
      used_unix_seconds INTEGER NOT NULL,
      checksum TEXT NOT NULL,
      namespace TEXT NOT NULL);
    CREATE INDEX regions_environment ON regions(environment, row);
    CREATE INDEX regions_used ON regions(used_unix_seconds, row);
  )sql";

}  // namespace

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
  )sql",
                                          kRegionsStep}};
  return schema;
}

}  // namespace ag

#include "server/store/sqlite.h"

#include <algorithm>

namespace ag {
namespace {

constexpr char kCommit[] = "COMMIT";

// SQLite calls it after each statement, with its time. What ended a transaction wrote to the file.
int OnStatementEnd(unsigned, void* observer, void* statement, void* nanoseconds) {
  auto* const ended = static_cast<sqlite3_stmt*>(statement);
  const bool wrote =
      sqlite3_stmt_readonly(ended) == 0 || std::string_view(sqlite3_sql(ended)) == kCommit;
  if (!wrote || sqlite3_get_autocommit(sqlite3_db_handle(ended)) == 0) return 0;
  const Nanos took(*static_cast<const sqlite3_int64*>(nanoseconds));
  (*static_cast<const WriteObserver*>(observer))(std::max(took, Nanos{0}));
  return 0;
}

}  // namespace

void SqliteTraits::Free(Raw db) { sqlite3_close_v2(db); }
void SqliteStatementTraits::Free(Raw statement) { sqlite3_finalize(statement); }

Status FromSqlite(int code, sqlite3* db, std::string_view path) {
  const char* text = db != nullptr ? sqlite3_errmsg(db) : sqlite3_errstr(code);
  switch (code & 0xff) {
    case SQLITE_OK:
      return OkStatus();
    case SQLITE_FULL:
      return AsHostFault(Err(StatusCode::kResourceExhausted, "{}: {}", path, text));
    case SQLITE_IOERR:
      return AsHostFault(Err(StatusCode::kInternal, "{}: {}", path, text));
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return Err(StatusCode::kDataLoss, "{}: {}", path, text);
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_CANTOPEN:
      return Err(StatusCode::kFailedPrecondition, "{}: {}", path, text);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return Err(StatusCode::kUnavailable, "{}: {}", path, text);
    default:
      return Err(StatusCode::kInternal, "{}: {}", path, text);
  }
}

// A bind fails only for a wrong index or for lack of memory: both are bugs in this program.
Statement& Statement::Bind(int index, int64_t value) {
  AG_CHECK(sqlite3_bind_int64(raw_.get(), index, value) == SQLITE_OK);
  return *this;
}

Statement& Statement::Bind(int index, double value) {
  AG_CHECK(sqlite3_bind_double(raw_.get(), index, value) == SQLITE_OK);
  return *this;
}

Statement& Statement::Bind(int index, std::string_view text) {
  AG_CHECK(sqlite3_bind_text64(raw_.get(), index, text.data() == nullptr ? "" : text.data(),
                               text.size(), SQLITE_TRANSIENT, SQLITE_UTF8) == SQLITE_OK);
  return *this;
}

Statement& Statement::BindBytes(int index, std::string_view bytes) {
  AG_CHECK(sqlite3_bind_blob64(raw_.get(), index, bytes.data() == nullptr ? "" : bytes.data(),
                               bytes.size(), SQLITE_TRANSIENT) == SQLITE_OK);
  return *this;
}

StatusOr<bool> Statement::Step() {
  const int code = sqlite3_step(raw_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return FromSqlite(code, db_, path_);
}

Status Statement::Run() {
  const auto stepped = Step();
  Reset();
  return stepped.status();
}

void Statement::Reset() {
  sqlite3_reset(raw_.get());
  sqlite3_clear_bindings(raw_.get());
}

int64_t Statement::Int(int column) const { return sqlite3_column_int64(raw_.get(), column); }
double Statement::Double(int column) const { return sqlite3_column_double(raw_.get(), column); }

std::string Statement::Text(int column) const {
  const auto* data = static_cast<const char*>(sqlite3_column_blob(raw_.get(), column));
  const int size = sqlite3_column_bytes(raw_.get(), column);
  return data == nullptr ? std::string() : std::string(data, static_cast<size_t>(size));
}

std::string ImmutableUri(std::string_view path) {
  std::string uri = "file:";
  for (const char c : path) {
    if (c == '%' || c == '?' || c == '#') {
      uri += fmt::format("%{:02x}", c);
    } else {
      uri += c;
    }
  }
  return uri + "?mode=ro&immutable=1";
}

StatusOr<Database> Database::OpenRaw(const std::string& path, const char* name, int flags) {
  Database db;
  db.path_ = path;
  const int code = sqlite3_open_v2(name, db.raw_.out(), flags | SQLITE_OPEN_NOMUTEX, nullptr);
  if (code != SQLITE_OK) return FromSqlite(code, db.raw_.get(), path);
  return db;
}

StatusOr<Database> Database::OpenImmutable(const std::string& path) {
  return OpenRaw(path, ImmutableUri(path).c_str(), SQLITE_OPEN_READONLY | SQLITE_OPEN_URI);
}

StatusOr<Database> Database::Open(const std::string& path, const DatabaseOptions& options) {
  // With SQLITE_OPEN_URI a name that begins with "file:" is a URI; "./" before it keeps it a path.
  const std::string name = path.starts_with("file:") ? "./" + path : path;
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_URI;
  AG_LET(Database db, OpenRaw(path, name.c_str(), flags));
  if (sqlite3_db_readonly(db.raw_.get(), "main") == 1) {
    return Err(StatusCode::kFailedPrecondition, "{}: the file is read-only", path);
  }
  AG_TRY(db.Configure(options));
  AG_LET(const std::string check, db.ReadText("PRAGMA quick_check(1)"));
  if (check != "ok") return Err(StatusCode::kDataLoss, "{}: {}", path, check);
  return db;
}

// Locks the file exclusively before it sets WAL: WAL then keeps its index in this process's memory,
// and no second connection can meet the WAL-reset bug of SQLite before 3.51.3.
Status Database::Configure(const DatabaseOptions& options) {
  if (options.on_write) {
    on_write_ = std::make_unique<WriteObserver>(options.on_write);
    sqlite3_trace_v2(raw_.get(), SQLITE_TRACE_PROFILE, &OnStatementEnd, on_write_.get());
  }
  AG_TRY(Execute("PRAGMA locking_mode=EXCLUSIVE"));
  AG_TRY(Execute("PRAGMA journal_mode=WAL"));
  AG_TRY(
      Execute(options.synchronous_full ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL"));
  AG_TRY(Execute("PRAGMA foreign_keys=ON"));
  AG_TRY(Execute("PRAGMA trusted_schema=OFF"));
  return Execute("PRAGMA wal_autocheckpoint=1000");
}

StatusOr<Statement> Database::Prepare(std::string_view sql) {
  Statement statement;
  const int code = sqlite3_prepare_v3(raw_.get(), sql.data(), static_cast<int>(sql.size()),
                                      SQLITE_PREPARE_PERSISTENT, statement.raw_.out(), nullptr);
  if (code != SQLITE_OK) return FromSqlite(code, raw_.get(), path_);
  statement.db_ = raw_.get();
  statement.path_ = path_;
  return statement;
}

Status Database::Execute(const std::string& sql) {
  return FromSqlite(sqlite3_exec(raw_.get(), sql.c_str(), nullptr, nullptr, nullptr), raw_.get(),
                    path_);
}

StatusOr<int64_t> Database::ReadInt(std::string_view sql) {
  AG_LET(Statement statement, Prepare(sql));
  AG_LET(const bool row, statement.Step());
  if (!row) return Err(StatusCode::kInternal, "{}: no row for {}", path_, sql);
  return statement.Int(0);
}

StatusOr<std::string> Database::ReadText(std::string_view sql) {
  AG_LET(Statement statement, Prepare(sql));
  AG_LET(const bool row, statement.Step());
  if (!row) return Err(StatusCode::kInternal, "{}: no row for {}", path_, sql);
  return statement.Text(0);
}

StatusOr<Transaction> Transaction::Begin(Database& db) {
  AG_TRY(db.Execute("BEGIN IMMEDIATE"));
  return Transaction(&db);
}

Transaction::~Transaction() {
  // A failed rollback means that SQLite rolled back by itself; nothing is left to undo.
  if (db_ != nullptr) db_->Execute("ROLLBACK").IgnoreError();
}

Status Transaction::Commit() {
  AG_TRY(db_->Execute(kCommit));
  db_ = nullptr;
  return OkStatus();
}

Status Migrate(Database& db, const Schema& schema, int64_t unix_seconds) {
  AG_LET(const int64_t version, db.ReadInt("PRAGMA user_version"));
  if (version > schema.newest()) {
    return Err(StatusCode::kFailedPrecondition,
               "{}: schema version {} is newer than this program's {}; use the newer program",
               db.path(), version, schema.newest());
  }
  if (version > 0 && version < schema.oldest) {
    return Err(StatusCode::kUnimplemented,
               "{}: schema version {} is older than the oldest that this program reads, {}",
               db.path(), version, schema.oldest);
  }
  for (int64_t next = version == 0 ? schema.oldest : version + 1; next <= schema.newest(); ++next) {
    const std::string& step = next == schema.oldest
                                  ? schema.create
                                  : schema.steps[static_cast<size_t>(next - schema.oldest - 1)];
    AG_LET(Transaction transaction, Transaction::Begin(db));
    AG_TRY(
        db.Execute("CREATE TABLE IF NOT EXISTS migrations("
                   "version INTEGER PRIMARY KEY, applied_unix_seconds INTEGER NOT NULL)"));
    AG_TRY(db.Execute(step), "migration to version {}", next);
    AG_TRY(db.Execute(fmt::format("INSERT INTO migrations VALUES({}, {})", next, unix_seconds)));
    AG_TRY(db.Execute(fmt::format("PRAGMA user_version={}", next)));
    AG_TRY(transaction.Commit());
  }
  return OkStatus();
}

Status CopyInto(Database& db, const std::string& path) {
  AG_LET(Statement vacuum, db.Prepare("VACUUM INTO ?"));
  return vacuum.Bind(1, path).Run();
}

}  // namespace ag

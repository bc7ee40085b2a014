// A thin wrapper of SQLite: one Database per file, Statements prepared once, errors as statuses.
// Only this file and its .cc include sqlite3.h. One thread at a time: the two stores hold a mutex.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/handle.h"
#include "base/status.h"

namespace ag {

struct SqliteTraits {
  using Raw = sqlite3*;
  static constexpr Raw kNone = nullptr;
  static void Free(Raw db);
};
struct SqliteStatementTraits {
  using Raw = sqlite3_stmt*;
  static constexpr Raw kNone = nullptr;
  static void Free(Raw statement);
};

class Database;

// One prepared statement. Bind counts from 1; call Step, read columns from 0, then Reset.
class Statement {
 public:
  Statement& Bind(int index, int64_t value);
  Statement& Bind(int index, double value);
  Statement& Bind(int index, std::string_view text);
  Statement& BindBytes(int index, std::string_view bytes);

  // Returns true when there is a row, false at the end. Returns the errors of FromSqlite.
  StatusOr<bool> Step();
  // Runs a statement that returns no rows, and resets it.
  Status Run();
  void Reset();

  int64_t Int(int column) const;
  double Double(int column) const;
  std::string Text(int column) const;  // Of text and of bytes alike.

 private:
  friend class Database;
  UniqueHandle<SqliteStatementTraits> raw_;
  sqlite3* db_ = nullptr;
  std::string path_;
};

// Hears how long a write to a file took, to a millisecond, on the thread that wrote.
using WriteObserver = std::function<void(Nanos took)>;

struct DatabaseOptions {
  // False: a power cut may lose the last writes; a killed process never loses any.
  bool synchronous_full = true;
  WriteObserver on_write = nullptr;  // Of each transaction, also of one statement.
};

// Returns the name under which SQLite opens a file that nobody writes any more: the file is neither
// locked nor written, and no file is made beside it.
std::string ImmutableUri(std::string_view path);

class Database {
 public:
  // Opens or creates `path` in WAL mode, locked against every other process. kDataLoss: not a
  // database, or corrupt (every page is checked). kFailedPrecondition: read-only.
  // kResourceExhausted: disk full.
  static StatusOr<Database> Open(const std::string& path, const DatabaseOptions& options);

  // Opens a file that nobody writes any more (ImmutableUri), without checking its pages.
  static StatusOr<Database> OpenImmutable(const std::string& path);

  StatusOr<Statement> Prepare(std::string_view sql);
  Status Execute(const std::string& sql);  // One or more statements without results.
  StatusOr<int64_t> ReadInt(std::string_view sql);
  StatusOr<std::string> ReadText(std::string_view sql);
  int64_t last_insert_id() const { return sqlite3_last_insert_rowid(raw_.get()); }
  int64_t changes() const { return sqlite3_changes64(raw_.get()); }
  const std::string& path() const { return path_; }

 private:
  static StatusOr<Database> OpenRaw(const std::string& path, const char* name, int flags);
  Status Configure(const DatabaseOptions& options);
  std::unique_ptr<WriteObserver> on_write_;  // SQLite keeps its address; outlives raw_.
  UniqueHandle<SqliteTraits> raw_;
  std::string path_;
};

// A transaction that begins at construction and is rolled back at destruction unless Commit
// returned OK.
class Transaction {
 public:
  static StatusOr<Transaction> Begin(Database& db);
  Transaction(Transaction&& other) noexcept : db_(std::exchange(other.db_, nullptr)) {}
  ~Transaction();
  Status Commit();

 private:
  explicit Transaction(Database* db) : db_(db) {}
  Database* db_;
};

// What the versions of a file are: `create` makes version `oldest`, and the i-th of `steps` goes
// from version oldest + i to the next. A file's version is PRAGMA user_version; the table
// `migrations` says when each step ran.
struct Schema {
  int64_t oldest = 1;
  std::string create;
  std::vector<std::string> steps = {};
  int64_t newest() const { return oldest + static_cast<int64_t>(steps.size()); }
};

// Brings the file to the newest version. kFailedPrecondition: the file is newer than this program;
// kUnimplemented: it is older than the oldest version that this program reads.
Status Migrate(Database& db, const Schema& schema, int64_t unix_seconds);

// Writes all that the database holds to a new file. After an error the file may be there, unusable.
Status CopyInto(Database& db, const std::string& path);

// Returns the status of an SQLite result. kResourceExhausted: disk full; kDataLoss: corrupt;
// kFailedPrecondition: read-only; kUnavailable: locked; kInternal: the rest. The message names the
// file. A full disk and an error of the disk are faults of the host.
Status FromSqlite(int code, sqlite3* db, std::string_view path);

}  // namespace ag

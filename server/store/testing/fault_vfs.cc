#include "server/store/testing/fault_vfs.h"

#include <sqlite3.h>

#include <cerrno>
#include <cstdlib>
#include <map>

#include "base/mutex.h"

namespace ag {
namespace {

constexpr char kName[] = "ag-fault";
sqlite3_vfs* g_real = nullptr;

struct Unsynced {
  Mutex mutex;
  std::map<std::string, int> writes AG_GUARDED_BY(mutex);  // By path.
};
Unsynced& AllUnsynced() {
  static Unsynced unsynced;
  return unsynced;
}

// An open file: the methods, then the real file behind it.
struct FaultFile {
  sqlite3_file base;
  sqlite3_file* real;
  std::string* path;  // Null: of a temporary file.
};

sqlite3_file* Real(sqlite3_file* file) { return reinterpret_cast<FaultFile*>(file)->real; }

void CountWrite(sqlite3_file* file) {
  const std::string* path = reinterpret_cast<FaultFile*>(file)->path;
  if (path == nullptr) return;
  MutexLock lock(AllUnsynced().mutex);
  ++AllUnsynced().writes[*path];
}

// Returns the fault of the next call as an SQLite result: a full disk, or else `code`.
int NextFault(int code) {
  const int error = file_ops::InjectedFault();
  if (error == 0) return SQLITE_OK;
  return error == ENOSPC ? SQLITE_FULL : code;
}

int Close(sqlite3_file* f) {
  const int code = Real(f)->pMethods->xClose(Real(f));
  std::free(Real(f));
  delete reinterpret_cast<FaultFile*>(f)->path;
  return code;
}
int Read(sqlite3_file* f, void* to, int bytes, sqlite3_int64 at) {
  return Real(f)->pMethods->xRead(Real(f), to, bytes, at);
}
int Write(sqlite3_file* f, const void* from, int bytes, sqlite3_int64 at) {
  CountWrite(f);
  const int fault = NextFault(SQLITE_IOERR_WRITE);
  const int code =
      Real(f)->pMethods->xWrite(Real(f), from, fault == SQLITE_OK ? bytes : bytes / 2, at);
  return fault == SQLITE_OK ? code : fault;
}
int Truncate(sqlite3_file* f, sqlite3_int64 size) {
  if (const int fault = NextFault(SQLITE_IOERR_TRUNCATE); fault != SQLITE_OK) return fault;
  return Real(f)->pMethods->xTruncate(Real(f), size);
}
int Sync(sqlite3_file* f, int) {
  if (const int fault = NextFault(SQLITE_IOERR_FSYNC); fault != SQLITE_OK) return fault;
  if (const std::string* path = reinterpret_cast<FaultFile*>(f)->path; path != nullptr) {
    MutexLock lock(AllUnsynced().mutex);
    AllUnsynced().writes.erase(*path);
  }
  return SQLITE_OK;
}
int FileSize(sqlite3_file* f, sqlite3_int64* size) {
  return Real(f)->pMethods->xFileSize(Real(f), size);
}
int Lock(sqlite3_file* f, int level) { return Real(f)->pMethods->xLock(Real(f), level); }
int Unlock(sqlite3_file* f, int level) { return Real(f)->pMethods->xUnlock(Real(f), level); }
int CheckReservedLock(sqlite3_file* f, int* out) {
  return Real(f)->pMethods->xCheckReservedLock(Real(f), out);
}
int FileControl(sqlite3_file* f, int op, void* arg) {
  return Real(f)->pMethods->xFileControl(Real(f), op, arg);
}
int SectorSize(sqlite3_file* f) { return Real(f)->pMethods->xSectorSize(Real(f)); }
int DeviceCharacteristics(sqlite3_file* f) {
  return Real(f)->pMethods->xDeviceCharacteristics(Real(f));
}

// Version 1 has no shared memory; WAL under exclusive locking does not need it.
const sqlite3_io_methods kMethods = {1,
                                     Close,
                                     Read,
                                     Write,
                                     Truncate,
                                     Sync,
                                     FileSize,
                                     Lock,
                                     Unlock,
                                     CheckReservedLock,
                                     FileControl,
                                     SectorSize,
                                     DeviceCharacteristics};

int Open(sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* out_flags) {
  auto* ours = reinterpret_cast<FaultFile*>(file);
  ours->base.pMethods = nullptr;
  ours->real = static_cast<sqlite3_file*>(std::calloc(1, static_cast<size_t>(g_real->szOsFile)));
  const int code = g_real->xOpen(g_real, name, ours->real, flags, out_flags);
  if (code != SQLITE_OK) {
    std::free(ours->real);
    return code;
  }
  ours->path = name == nullptr ? nullptr : new std::string(name);
  ours->base.pMethods = &kMethods;
  return SQLITE_OK;
}

int Delete(sqlite3_vfs*, const char* name, int sync_folder) {
  if (const int fault = NextFault(SQLITE_IOERR_DELETE); fault != SQLITE_OK) return fault;
  return g_real->xDelete(g_real, name, sync_folder);
}

void MakeDefault() {
  static sqlite3_vfs vfs = [] {
    g_real = sqlite3_vfs_find(nullptr);
    sqlite3_vfs copy = *g_real;
    copy.zName = kName;
    copy.szOsFile = sizeof(FaultFile);
    copy.xOpen = &Open;
    copy.xDelete = &Delete;
    return copy;
  }();
  sqlite3_vfs_register(&vfs, 1);
}

}  // namespace

FaultVfs::FaultVfs() { MakeDefault(); }
FaultVfs::~FaultVfs() { sqlite3_vfs_register(g_real, 1); }

int FaultVfs::UnsyncedWrites(const std::string& path) {
  MutexLock lock(AllUnsynced().mutex);
  const auto found = AllUnsynced().writes.find(path);
  return found == AllUnsynced().writes.end() ? 0 : found->second;
}

}  // namespace ag

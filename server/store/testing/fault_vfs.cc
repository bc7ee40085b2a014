#include "server/store/testing/fault_vfs.h"

#include <sqlite3.h>

#include <cstdlib>

namespace ag {
namespace {

VfsFault g_fault;
int g_operations = 0;
sqlite3_vfs* g_real = nullptr;

// An open file: the methods, then the real file behind it.
struct FaultFile {
  sqlite3_file base;
  sqlite3_file* real;
};

sqlite3_file* Real(sqlite3_file* file) { return reinterpret_cast<FaultFile*>(file)->real; }

int Next() {
  if (g_fault.nth == 0) return SQLITE_OK;
  ++g_operations;
  const bool fails = g_fault.forever ? g_operations >= g_fault.nth : g_operations == g_fault.nth;
  return fails ? g_fault.code : SQLITE_OK;
}

int Close(sqlite3_file* f) {
  const int code = Real(f)->pMethods->xClose(Real(f));
  std::free(Real(f));
  return code;
}
int Read(sqlite3_file* f, void* to, int bytes, sqlite3_int64 at) {
  return Real(f)->pMethods->xRead(Real(f), to, bytes, at);
}
int Write(sqlite3_file* f, const void* from, int bytes, sqlite3_int64 at) {
  if (const int code = Next(); code != SQLITE_OK) return code;
  return Real(f)->pMethods->xWrite(Real(f), from, bytes, at);
}
int Truncate(sqlite3_file* f, sqlite3_int64 size) {
  return Real(f)->pMethods->xTruncate(Real(f), size);
}
int Sync(sqlite3_file* f, int flags) {
  if (const int code = Next(); code != SQLITE_OK) return code;
  return Real(f)->pMethods->xSync(Real(f), flags);
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
  ours->base.pMethods = &kMethods;
  return SQLITE_OK;
}

void Register() {
  static sqlite3_vfs vfs = [] {
    g_real = sqlite3_vfs_find(nullptr);
    sqlite3_vfs copy = *g_real;
    copy.zName = kFaultVfs;
    copy.szOsFile = sizeof(FaultFile);
    copy.xOpen = &Open;
    return copy;
  }();
  sqlite3_vfs_register(&vfs, 0);
}

}  // namespace

VfsFault FullDisk() { return {1, SQLITE_FULL}; }

void SetVfsFault(const VfsFault& fault) {
  Register();
  g_fault = fault;
  g_operations = 0;
}

}  // namespace ag

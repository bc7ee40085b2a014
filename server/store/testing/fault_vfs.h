// An SQLite file system for tests that fails its n-th write or sync, registered as kFaultVfs. One
// thread at a time.
#pragma once

namespace ag {

inline constexpr char kFaultVfs[] = "ag-fault";

// Makes the n-th write or sync from now on fail (1: the next; 0: none), and with `forever` every
// later one too. `code` is an SQLite result, e.g. SQLITE_FULL.
struct VfsFault {
  int nth = 0;
  int code = 0;
  bool forever = true;
};
void SetVfsFault(const VfsFault& fault);
VfsFault FullDisk();  // Every write from now on fails since the disk is full.

}  // namespace ag

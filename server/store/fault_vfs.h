// For tests: an SQLite file system that fails its n-th write or sync. Registers itself under
// kFaultVfs.
#pragma once

namespace ag {

inline constexpr char kFaultVfs[] = "ag-fault";

// From now on the n-th write or sync fails, and with `forever` every one after it (1: the next; 0:
// none). `code` is an SQLite result, e.g. SQLITE_FULL. Not thread-safe.
struct VfsFault {
  int nth = 0;
  int code = 0;
  bool forever = true;
};
void SetVfsFault(const VfsFault& fault);

}  // namespace ag

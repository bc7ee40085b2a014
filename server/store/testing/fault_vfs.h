// A file system of SQLite for tests. While one lives, databases are opened in it: each write, cut,
// sync and removal of a file of theirs counts as a call of base/file_ops.h, so that a FileFault
// hits databases and other files alike. A write that fails has written half of its bytes. Syncs of
// all files do not wait for the disk. At most one lives at a time; thread-safe otherwise.
#pragma once

#include <string>

#include "base/file_ops.h"

namespace ag {

class FaultVfs {
 public:
  FaultVfs();
  ~FaultVfs();  // Databases that are open keep this file system.
  FaultVfs(const FaultVfs&) = delete;
  FaultVfs& operator=(const FaultVfs&) = delete;

  // Returns how many writes to the file a power cut could undo: those since its last sync.
  static int UnsyncedWrites(const std::string& path);

 private:
  const file_ops::NoSyncs no_syncs_;
};

}  // namespace ag

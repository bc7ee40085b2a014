// A folder that is open to its owner only. Thread-safe.
#pragma once

#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <string>

#include "base/file.h"

namespace ag {

// Makes the folder with mode 0700, and its parents as usual. One that is there stays as it is.
// Errors as MakeDirs.
inline Status MakePrivateDir(const std::string& path) {
  std::filesystem::path folder(path);
  if (!folder.has_filename()) folder = folder.parent_path();  // "a/b/" is "a/b".
  if (folder.has_parent_path()) AG_TRY(MakeDirs(folder.parent_path().string()));
  if (::mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST) return MakeDirs(path);
  return FromErrno(errno, "make folder " + folder.string());
}

}  // namespace ag

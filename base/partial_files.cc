#include "base/partial_files.h"

#include <unistd.h>

#include <set>
#include <utility>

#include "base/mutex.h"

namespace ag {
namespace {

// Never destroyed: it is asked for until the program's last instant.
struct Partial {
  Mutex mutex;
  std::multiset<std::string> paths AG_GUARDED_BY(mutex);
};
Partial& ThePartial() {
  static auto* const kPartial = new Partial;
  return *kPartial;
}

}  // namespace

PartialFile::PartialFile(std::string path) : path_(std::move(path)) {
  MutexLock lock(ThePartial().mutex);
  ThePartial().paths.insert(path_);
}

PartialFile::~PartialFile() {
  MutexLock lock(ThePartial().mutex);
  ThePartial().paths.extract(path_);
}

// The lock is kept: what begins a file now waits for the end.
void RemovePartialFiles() AG_ANNOTATE(no_thread_safety_analysis) {
  ThePartial().mutex.Lock();
  for (const std::string& path : ThePartial().paths) ::unlink(path.c_str());
}

}  // namespace ag

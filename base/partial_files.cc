#include "base/partial_files.h"

#include <unistd.h>

#include <cstddef>
#include <new>
#include <set>
#include <utility>

#include "base/mutex.h"

namespace ag {
namespace {

// Never destroyed, because it is used until the program's last instant, and made without memory of
// its own, because that may be what is wanting then.
struct Partial {
  Mutex mutex;
  std::multiset<std::string> paths AG_GUARDED_BY(mutex);
};
Partial& ThePartial() {
  alignas(Partial) static std::byte place[sizeof(Partial)];
  static auto* const kPartial = new (place) Partial;
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

// Keeps the lock: a thread that begins a file now waits until the program has ended.
void RemovePartialFiles() AG_ANNOTATE(no_thread_safety_analysis) {
  ThePartial().mutex.Lock();
  for (const std::string& path : ThePartial().paths) ::unlink(path.c_str());
}

}  // namespace ag

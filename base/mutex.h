// std::mutex and std::condition_variable with clang's thread-safety annotations; scripts/check.sh
// runs that analysis. Not absl::Mutex: the distribution's abseil is not instrumented, and TSan then
// reports false races. Mutex and CondVar are thread-safe; a MutexLock belongs to one thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define AG_ANNOTATE(x) __attribute__((x))
#else
#define AG_ANNOTATE(x)
#endif
#define AG_GUARDED_BY(x) AG_ANNOTATE(guarded_by(x))
#define AG_REQUIRES(...) AG_ANNOTATE(requires_capability(__VA_ARGS__))
#define AG_EXCLUDES(...) AG_ANNOTATE(locks_excluded(__VA_ARGS__))

namespace ag {

class AG_ANNOTATE(capability("mutex")) Mutex {
 public:
  void Lock() AG_ANNOTATE(acquire_capability()) { mutex_.lock(); }
  void Unlock() AG_ANNOTATE(release_capability()) { mutex_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

class AG_ANNOTATE(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) AG_ANNOTATE(acquire_capability(mutex)) : mutex_(mutex) {
    mutex_.Lock();
  }
  ~MutexLock() AG_ANNOTATE(release_capability()) { mutex_.Unlock(); }
  MutexLock(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

class CondVar {
 public:
  void Wait(Mutex& mutex) AG_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    condition_.wait(lock);
    lock.release();
  }
  // Returns false on timeout.
  bool WaitFor(Mutex& mutex, std::chrono::nanoseconds timeout) AG_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    const bool notified = condition_.wait_for(lock, timeout) == std::cv_status::no_timeout;
    lock.release();
    return notified;
  }
  void NotifyOne() { condition_.notify_one(); }
  void NotifyAll() { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

}  // namespace ag

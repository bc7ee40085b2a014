// Threads that wait for loops to share. For loops of many short items, where starting threads
// would take longer than the loop. One thread at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "base/mutex.h"

namespace ag {

class ThreadPool {
 public:
  // `item` is called once for each number below the loop's count, by the thread with this number:
  // 0, the caller, or one of 1 to threads() - 1. Calls of different threads overlap.
  using Item = std::function<void(int item, int thread)>;

  // Has `threads` threads, the caller's among them; fewer where the host has none left.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(helpers_.size()) + 1; }

  // Calls `item` for 0 to count - 1 and returns when all calls have returned. Threads take the
  // numbers in ascending order. A thread that wakes too late for a number takes none.
  void Each(int count, const Item& item);

 private:
  void Help(int thread);
  void TakeItems(const Item& item, int count, int thread);

  std::vector<std::thread> helpers_;
  Mutex mutex_;
  CondVar begun_, left_;
  const Item* item_ AG_GUARDED_BY(mutex_) = nullptr;  // Null: no loop is open to helpers.
  int count_ AG_GUARDED_BY(mutex_) = 0;
  int64_t loop_ AG_GUARDED_BY(mutex_) = 0;  // The number of the last loop.
  int helping_ AG_GUARDED_BY(mutex_) = 0;   // Helpers inside the loop.
  bool ends_ AG_GUARDED_BY(mutex_) = false;
  std::atomic<int> next_{0};
};

}  // namespace ag

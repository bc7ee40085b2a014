// A few threads that work off a queue: what a caller need not wait for yet.
#pragma once

#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "base/mutex.h"

namespace ag::cuda {

// Thread-safe. What is still queued at the end is dropped, what runs is waited for.
class Workers {
 public:
  // `begin` runs first on each thread; threads start as tasks come, at most so many. 0: half as
  // many as there are cores, 8 at most.
  explicit Workers(size_t threads_max, std::function<void()> begin = {});
  ~Workers();

  void Add(std::function<void()> task);

 private:
  void Serve();

  size_t threads_max_;
  const std::function<void()> begin_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<std::function<void()>> queue_ AG_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;  // Grows under mutex_ while it is open.
  size_t idle_ AG_GUARDED_BY(mutex_) = 0;
  bool is_closing_ AG_GUARDED_BY(mutex_) = false;
};

}  // namespace ag::cuda

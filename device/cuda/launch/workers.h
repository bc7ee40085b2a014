// A few threads that run queued tasks for which a caller need not wait yet.
#pragma once

#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "base/mutex.h"

namespace ag::cuda {

// Thread-safe. The destructor drops queued tasks and waits for running ones.
class Workers {
 public:
  // `begin` runs first on each thread; threads start as tasks come, up to threads_max. 0: half as
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
  std::vector<std::thread> threads_;  // Grows under mutex_ before the end.
  size_t idle_ AG_GUARDED_BY(mutex_) = 0;
  bool is_closing_ AG_GUARDED_BY(mutex_) = false;
};

}  // namespace ag::cuda

#include "device/cuda/launch/workers.h"

#include <algorithm>

namespace ag::cuda {

Workers::Workers(size_t threads_max, std::function<void()> begin)
    : threads_max_(threads_max), begin_(std::move(begin)) {
  if (threads_max_ > 0) return;
  threads_max_ = std::clamp<size_t>(std::thread::hardware_concurrency() / 2, 1, 8);
}

Workers::~Workers() {
  {
    const MutexLock lock(mutex_);
    is_closing_ = true;
    queue_.clear();
  }
  changed_.NotifyAll();
  for (std::thread& thread : threads_) thread.join();
}

void Workers::Add(std::function<void()> task) {
  {
    const MutexLock lock(mutex_);
    if (is_closing_) return;
    queue_.push_back(std::move(task));
    if (threads_.size() < threads_max_ && idle_ < queue_.size()) {
      threads_.emplace_back([this] { Serve(); });
    }
  }
  changed_.NotifyOne();
}

void Workers::Serve() {
  if (begin_) begin_();
  for (;;) {
    std::function<void()> task;
    {
      const MutexLock lock(mutex_);
      ++idle_;
      while (queue_.empty() && !is_closing_) changed_.Wait(mutex_);
      --idle_;
      if (is_closing_) return;
      task = std::move(queue_.front());
      queue_.pop_front();
    }
    task();
  }
}

}  // namespace ag::cuda

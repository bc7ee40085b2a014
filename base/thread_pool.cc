#include "base/thread_pool.h"

#include "base/thread.h"

namespace ag {

ThreadPool::ThreadPool(int threads) {
  for (int thread = 1; thread < threads; ++thread) {
    StatusOr<std::thread> helper = StartThread([this, thread] { Help(thread); });
    if (!helper.ok()) break;
    helpers_.push_back(*std::move(helper));
  }
}

ThreadPool::~ThreadPool() {
  {
    const MutexLock lock(mutex_);
    ends_ = true;
    begun_.NotifyAll();
  }
  for (std::thread& helper : helpers_) helper.join();
}

void ThreadPool::Each(int count, const Item& item) {
  if (helpers_.empty() || count < 2) {
    for (int i = 0; i < count; ++i) item(i, 0);
    return;
  }
  next_ = 0;
  {
    const MutexLock lock(mutex_);
    item_ = &item;
    count_ = count;
    ++loop_;
    begun_.NotifyAll();
  }
  TakeItems(item, count, 0);
  const MutexLock lock(mutex_);
  item_ = nullptr;
  while (helping_ > 0) left_.Wait(mutex_);
}

void ThreadPool::TakeItems(const Item& item, int count, int thread) {
  for (int i = next_++; i < count; i = next_++) item(i, thread);
}

void ThreadPool::Help(int thread) {
  int64_t helped = 0;  // The last loop.
  while (true) {
    const Item* item = nullptr;
    int count = 0;
    {
      const MutexLock lock(mutex_);
      while (!ends_ && (item_ == nullptr || loop_ == helped)) begun_.Wait(mutex_);
      if (ends_) return;
      helped = loop_;
      item = item_;
      count = count_;
      ++helping_;
    }
    TakeItems(*item, count, thread);
    const MutexLock lock(mutex_);
    if (--helping_ == 0) left_.NotifyOne();
  }
}

}  // namespace ag

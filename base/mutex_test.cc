#include "base/mutex.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace ag {
namespace {

struct Counter {
  Mutex mutex;
  CondVar changed;
  int value AG_GUARDED_BY(mutex) = 0;
};

TEST(MutexTest, GuardsAndWakes) {
  constexpr int kThreads = 4;
  constexpr int kAdds = 500;
  Counter counter;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&counter] {
      for (int i = 0; i < kAdds; ++i) {
        const MutexLock lock(counter.mutex);
        ++counter.value;
        counter.changed.NotifyAll();
      }
    });
  }
  {
    const MutexLock lock(counter.mutex);
    while (counter.value < kThreads * kAdds) counter.changed.Wait(counter.mutex);
    EXPECT_EQ(counter.value, kThreads * kAdds);
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(MutexTest, WaitForEndsOnTimeout) {
  Counter counter;
  const MutexLock lock(counter.mutex);
  // A wake-up without a notification is allowed; an endless wait is not.
  while (counter.changed.WaitFor(counter.mutex, std::chrono::microseconds{1})) continue;
}

}  // namespace
}  // namespace ag

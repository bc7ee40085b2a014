#include "base/thread_pool.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <set>

namespace ag {
namespace {

TEST(ThreadPool, EachNumberComesOnceHoweverManyThreads) {
  for (const int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (int count = 0; count < 60; ++count) {
      std::vector<std::atomic<int>> calls(static_cast<size_t>(count));
      pool.Each(count, [&](int item, int thread) {
        EXPECT_GE(thread, 0);
        EXPECT_LT(thread, threads);
        ++calls[static_cast<size_t>(item)];
      });
      for (const std::atomic<int>& n : calls) EXPECT_EQ(n, 1);
    }
  }
}

// Both items wait for each other, so one thread alone would never end.
TEST(ThreadPool, ItemsOverlap) {
  ThreadPool pool(2);
  std::atomic<int> here{0};
  std::array<std::atomic<int>, 2> by{-1, -1};
  pool.Each(2, [&](int item, int thread) {
    by[static_cast<size_t>(item)] = thread;
    ++here;
    while (here < 2) std::this_thread::yield();
  });
  EXPECT_NE(by[0], by[1]);
}

TEST(ThreadPool, WhatItemsWroteIsSeenAfterTheLoop) {
  ThreadPool pool(4);
  std::vector<int> written(1000, 0);
  for (int turn = 1; turn <= 50; ++turn) {
    pool.Each(1000, [&](int item, int) { ++written[static_cast<size_t>(item)]; });
    EXPECT_EQ(std::set<int>(written.begin(), written.end()), std::set<int>{turn});
  }
}

// In a child, whose address space has no room for stacks.
TEST(ThreadPool, HasFewerThreadsWhereTheHostHasNone) {
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit none{1 << 20, 1 << 20};
    if (::setrlimit(RLIMIT_AS, &none) != 0) ::_exit(2);
    ThreadPool pool(200);  // The first may have the stacks of earlier threads.
    std::atomic<int> calls{0};
    pool.Each(100, [&](int, int) { ++calls; });
    ::_exit(pool.threads() < 200 && calls == 100 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers need address space themselves";
#endif
  EXPECT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(ThreadPool, AnUnusedOneEnds) { const ThreadPool pool(5); }

}  // namespace
}  // namespace ag

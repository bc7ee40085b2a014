#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <array>
#include <set>

#include "base/testing/no_threads.h"

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

TEST(ThreadPool, HasFewerThreadsWhereTheHostHasNone) {
  if (!kCanRunWithoutThreads) GTEST_SKIP() << "sanitizers need address space themselves";
  EXPECT_EQ(RunWithoutThreads([] {
              ThreadPool pool(200);
              std::atomic<int> calls{0};
              pool.Each(100, [&](int, int) { ++calls; });
              return pool.threads() < 200 && calls == 100 ? 0 : 1;
            }),
            0);
}

TEST(ThreadPool, AnUnusedOneEnds) { const ThreadPool pool(5); }

}  // namespace
}  // namespace ag

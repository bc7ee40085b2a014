#include "base/thread.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>

#include "base/testing/no_threads.h"

namespace ag {
namespace {

TEST(StartThread, Runs) {
  std::atomic<bool> ran{false};
  auto thread = StartThread([&] { ran = true; });
  ASSERT_TRUE(thread.ok());
  thread->join();
  EXPECT_TRUE(ran);
}

TEST(StartThread, SaysThatNoneIsLeft) {
  if (!kCanRunWithoutThreads) GTEST_SKIP() << "sanitizers need address space themselves";
  EXPECT_EQ(RunWithoutThreads([] {
              for (int i = 0; i < 100; ++i) {
                auto thread = StartThread([] { ::pause(); });
                if (thread.ok()) {
                  thread->detach();
                  continue;
                }
                const bool as_said = IsHostFault(thread.status()) &&
                                     thread.status().code() == StatusCode::kResourceExhausted;
                return as_said ? 0 : 1;
              }
              return 3;
            }),
            0);
}

}  // namespace
}  // namespace ag

#include "base/thread.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>

namespace ag {
namespace {

TEST(StartThread, Runs) {
  std::atomic<bool> ran{false};
  auto thread = StartThread([&] { ran = true; });
  ASSERT_TRUE(thread.ok());
  thread->join();
  EXPECT_TRUE(ran);
}

// In a child, whose address space has no room for a stack.
TEST(StartThread, SaysThatNoneIsLeft) {
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit none{1 << 20, 1 << 20};
    if (::setrlimit(RLIMIT_AS, &none) != 0) ::_exit(2);
    for (int i = 0; i < 100; ++i) {  // The first may have the stacks of earlier threads.
      auto thread = StartThread([] { ::pause(); });
      if (thread.ok()) {
        thread->detach();
        continue;
      }
      const bool as_said =
          IsHostFault(thread.status()) && thread.status().code() == StatusCode::kResourceExhausted;
      ::_exit(as_said ? 0 : 1);
    }
    ::_exit(3);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers need address space themselves";
#endif
  EXPECT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace ag

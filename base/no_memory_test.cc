#include "base/no_memory.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <new>
#include <stdexcept>
#include <system_error>
#include <thread>

namespace ag {
namespace {

// Runs in its own process: throws what nobody catches.
template <class Thrown>
void Throw(const Thrown& thrown) {
  EndWithoutMemoryAs("prog", 4);
  std::thread([&] { throw thrown; }).join();
}

TEST(NoMemoryDeathTest, IsSaidInALine) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  constexpr const char* kLine = "^prog: no memory is left, or no thread: .*\n$";
  EXPECT_EXIT(Throw(std::bad_alloc()), testing::ExitedWithCode(4), kLine);
  const std::system_error no_thread(EAGAIN, std::generic_category());
  EXPECT_EXIT(Throw(no_thread), testing::ExitedWithCode(4), kLine);
}

TEST(NoMemoryDeathTest, OtherExceptionsStayABugOfOurs) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(Throw(std::runtime_error("own")), testing::KilledBySignal(SIGABRT), "own");
  const std::system_error no_file(ENOENT, std::generic_category());
  EXPECT_EXIT(Throw(no_file), testing::KilledBySignal(SIGABRT), "No such file");
}

TEST(NoMemoryDeathTest, TheDocumentGoesToStandardOutput) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto end = [] {
    ::dup2(STDERR_FILENO, STDOUT_FILENO);
    EndWithoutMemoryAs("prog", 4);
    SetNoMemoryDocument("{}\n");
    EndWithoutMemory();
  };
  EXPECT_EXIT(end(), testing::ExitedWithCode(4), "runs here\n\\{\\}\n$");
}

}  // namespace
}  // namespace ag

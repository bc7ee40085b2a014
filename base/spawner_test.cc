#include "base/spawner.h"

#include <gtest/gtest.h>

#include <optional>
#include <thread>

#include "base/frames.h"
#include "base/process.h"

namespace ag {
namespace {

using namespace std::chrono_literals;

// A child asks for a signal at the end of its parent's thread; the thread that called Spawn has
// ended.
TEST(SpawnerTest, ChildrenOutliveTheThreadThatWantedThem) {
  std::optional<ChildProcess> child;
  std::thread([&child] {
    child = SpawnRole("echo").value();
    ASSERT_TRUE(SendFrame(child->socket(), 1, "a").ok());
    ASSERT_EQ(ReceiveFrame(child->socket(), {.timeout = 10s}).value().payload, "a");
  }).join();
  ASSERT_EQ(ToString(SendFrame(child->socket(), 2, "b")), "OK");
  EXPECT_EQ(ReceiveFrame(child->socket(), {.timeout = 10s}).value().payload, "b");
}

TEST(SpawnerTest, ThreadsMaySpawnAtOnce) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      ChildProcess child = SpawnRole("exit-three").value();
      EXPECT_EQ(ToString(child.Wait()),
                fmt::format("INTERNAL: child {}: exit code 3", child.pid()));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(SpawnerTest, FailureNamesTheProgram) {
  EXPECT_EQ(ToString(SpawnProgram({.program = "/no/such/program", .socket = 0}).status()),
            "NOT_FOUND: start /no/such/program: No such file or directory");
}

}  // namespace
}  // namespace ag

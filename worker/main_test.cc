// The test program; the executors that it starts are this same program.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "base/process.h"
#include "worker/executor_role.h"

int main(int argc, char** argv) {
  // Executors crash here on purpose, so no core files.
  const rlimit no_cores{0, 0};
  setrlimit(RLIMIT_CORE, &no_cores);
  ag::RegisterExecutorRole();
  if (const int code = ag::RunChildRole(argc, argv); code >= 0) return code;
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

// The test program; the processes that it starts to run files are this same program.
#include <gtest/gtest.h>

#include "base/process.h"
#include "runtime/timing/time_files.h"

int main(int argc, char** argv) {
  ag::RegisterTimeFileRole();
  if (const int code = ag::RunChildRole(argc, argv); code >= 0) return code;
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

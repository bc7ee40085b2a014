// The test program: its servers' children (sandbox, export) are this same program.
#include <gtest/gtest.h>

#include "base/process.h"
#include "server/server.h"

int main(int argc, char** argv) {
  ag::RegisterServerRoles();
  if (const int code = ag::RunChildRole(argc, argv); code >= 0) return code;
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

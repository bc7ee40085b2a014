// The test program: the children of its exports and imports are this same program.
#include <gtest/gtest.h>

#include "base/process.h"
#include "graph/onnx/sandbox/sandbox.h"
#include "server/pipeline/export_child.h"

int main(int argc, char** argv) {
  ag::RegisterExportRole();
  ag::RegisterSandboxRole();
  if (const int code = ag::RunChildRole(argc, argv); code >= 0) return code;
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

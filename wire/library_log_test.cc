#include "wire/library_log.h"

#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>
#include <gtest/gtest.h>

#include <regex>

#include "base/no_memory.h"

namespace ag {
namespace {

TEST(LibraryLog, LinesAreOurs) {
  RouteLibraryLogs();
  gpr_set_log_verbosity(GPR_LOG_SEVERITY_ERROR);  // Whatever GRPC_VERBOSITY says.
  ::testing::internal::CaptureStderr();
  gpr_log("a.cc", 7, GPR_LOG_SEVERITY_ERROR, "no descriptor for %s", "x\ny");
  GOOGLE_LOG(WARNING) << "a large message";
  const std::string lines = ::testing::internal::GetCapturedStderr();
  const std::string time = "\\d{4}-\\d\\d-\\d\\dT[0-9:.]+Z ";
  const std::regex expected(time +
                            "error autograph: gRPC: no descriptor for x\\\\ny \\(a.cc:7\\)\n" +
                            time + "warning autograph: protobuf: a large message \\(.*:\\d+\\)\n");
  EXPECT_TRUE(std::regex_match(lines, expected)) << lines;
}

void FailToStartAThread() {
  RouteLibraryLogs();
  gpr_set_log_verbosity(GPR_LOG_SEVERITY_ERROR);  // Whatever GRPC_VERBOSITY says.
  EndWithoutMemoryAs("prog", 4);
  gpr_log("thread_manager.cc", 145, GPR_LOG_SEVERITY_ERROR, "assertion failed: worker->created()");
}

TEST(LibraryLogDeathTest, NoThreadForGrpcIsWantOfMemory) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(FailToStartAThread(), testing::ExitedWithCode(4), "^prog: no memory is left");
}

}  // namespace
}  // namespace ag

#include "wire/library_log.h"

#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>
#include <gtest/gtest.h>

#include <algorithm>
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

TEST(LibraryLog, HasABoundedNumberOfLines) {
  RouteLibraryLogs();
  gpr_set_log_verbosity(GPR_LOG_SEVERITY_ERROR);
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 1000; ++i) gpr_log("a.cc", i, GPR_LOG_SEVERITY_ERROR, "Handshake failed");
  const std::string lines = ::testing::internal::GetCapturedStderr();
  EXPECT_LE(std::ranges::count(lines, '\n'), 101);
  EXPECT_NE(lines.find("more than 100 lines of gRPC and protobuf in a minute: others are left out"),
            std::string::npos)
      << lines;
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

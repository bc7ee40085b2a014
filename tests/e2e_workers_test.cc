// Several workers of one environment share the measurements of one job.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cluster.h"

namespace ag {
namespace {

using ::testing::ContainsRegex;

TEST(Workers, ShareAJobAndFindWhatOneFinds) {
  Cluster alone, two({.worker_flags = {"--id", "first"}});
  Background second({Program("autograph-worker"), "--server", two.address(), "--device",
                     "sim:small", "--id", "second"},
                    two.path("second.log"), two.variables());
  ASSERT_TRUE(Eventually([&] {
    return two.Cli({"workers", "list"}).out.find("second") != std::string::npos;
  })) << second.Log();
  const std::string model = alone.Zoo("tiny_inception");
  const std::vector<std::string> more = {"--rounds", "1"};
  Optimized(alone, model, alone.path("out.onnx"), more);
  Optimized(two, model, two.path("out.onnx"), more);
  EXPECT_EQ(DigestOfFile(two.path("out.onnx")), DigestOfFile(alone.path("out.onnx")));
  for (const char* worker : {"first", "second"}) {
    EXPECT_THAT(two.Cli({"cache", "forget", "--worker", worker}).out,
                ContainsRegex("^[1-9][0-9]+ measurements,"))
        << worker;
  }
}

}  // namespace
}  // namespace ag

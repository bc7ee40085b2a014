#include "device/cuda/codegen/testing/host_kernels.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

namespace ag::cuda {
namespace {

class HostKernels : public testing::Test {
 protected:
  void SetUp() override {
    const Status status = CompileForHost("").status();
    if (status.code() == StatusCode::kUnimplemented) GTEST_SKIP() << Message(status);
  }
};

// Runs kernel "k" of `body` over one array of `count` floats that begin as 0, 1, 2, ...
StatusOr<std::vector<float>> RunOn(const std::string& body, uint32_t blocks, uint32_t threads,
                                   size_t count) {
  AG_LET(const std::string object,
         CompileForHost("AG_KERNEL(64) k(float* x) {\n" + body + "\n}\nAG_ENTRY(k)\n"));
  AG_LET(HostModule module, HostModule::Load(object));
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i);
  const void* arguments[] = {values.data()};
  AG_TRY(module.Run("k", {blocks, 1, 1}, {threads, 1, 1}, 0, arguments));
  return values;
}

std::string Said(const StatusOr<std::vector<float>>& values) { return ToString(values.status()); }

TEST_F(HostKernels, RunEveryThreadOfEveryBlock) {
  const auto values = RunOn("x[ag_block_x() * 3 + ag_thread()] += 10;", 2, 3, 7);
  ASSERT_EQ(Said(values), "OK");
  EXPECT_EQ(*values, (std::vector<float>{10, 11, 12, 13, 14, 15, 6}));
}

TEST_F(HostKernels, WaitAtBarriers) {
  // Every thread reads what another has written before the barrier.
  const auto values = RunOn(
      "AG_SHARED float s[40];\n"
      "s[ag_thread()] = x[ag_thread()];\nag_barrier();\nx[ag_thread()] = s[39 - ag_thread()];",
      1, 40, 40);
  ASSERT_EQ(Said(values), "OK");
  for (size_t i = 0; i < 40; ++i) EXPECT_EQ((*values)[i], static_cast<float>(39 - i));
}

TEST_F(HostKernels, ExchangeWithinWarpsAndFold) {
  const auto folded = RunOn(
      "AG_SHARED float scratch[2];\n"
      "const float sum = ag_fold<ag_sum, 64>(x[ag_thread()], scratch);\n"
      "const float most = ag_fold<ag_most, 8>(x[ag_thread()], (float*)0);\n"
      "x[ag_thread()] = sum * 100 + most;",
      1, 64, 64);
  ASSERT_EQ(Said(folded), "OK");
  for (size_t i = 0; i < 64; ++i) {
    const size_t last_of_eight = i - i % 8 + 7;
    EXPECT_EQ((*folded)[i], 201600 + static_cast<float>(last_of_eight)) << i;
  }
}

TEST_F(HostKernels, SayWhichThreadsWereLeftWaiting) {
  EXPECT_EQ(
      Said(RunOn("if (ag_thread() > 1) return;\nag_barrier();", 1, 5, 5)),
      "INTERNAL: k: block 0,0,0: of 5 threads 2 wait at a barrier, 0 for their warp and 3 have "
      "ended");
  EXPECT_EQ(
      Said(RunOn("if (ag_thread() < 3) x[0] = ag_across(1.0f, 1); else ag_barrier();", 1, 5, 5)),
      "INTERNAL: k: block 0,0,0: of 5 threads 2 wait at a barrier, 3 for their warp and 0 have "
      "ended");
}

TEST_F(HostKernels, RefuseAccessesThatAreNotAligned) {
  const auto values = RunOn("x[0] = ag_load<4>(x + 1).at[0];", 1, 1, 8);
  EXPECT_TRUE(
      Said(values).starts_with("INTERNAL: k: block 0,0,0: thread 0: an access of 16 bytes at ..."))
      << Said(values);
}

TEST_F(HostKernels, SayWhatIsWrong) {
  const Status bad = CompileForHost("int f() { return y; }").status();
  EXPECT_EQ(bad.code(), StatusCode::kInternal);
  EXPECT_NE(Message(bad).find("exit code 1"), std::string::npos) << Message(bad);
  EXPECT_NE(Message(bad).find("return y"), std::string::npos) << Message(bad);  // The log.
  const StatusOr<HostModule> none = HostModule::Load("not an object");
  EXPECT_EQ(none.status().code(), StatusCode::kDataLoss);
  const StatusOr<std::string> object = CompileForHost("");
  ASSERT_TRUE(object.ok());
  StatusOr<HostModule> module = HostModule::Load(*object);
  ASSERT_EQ(ToString(module.status()), "OK");
  EXPECT_FALSE(module->Has("k"));
  EXPECT_EQ(ToString(module->Run("k", {1, 1, 1}, {1, 1, 1}, 0, {})), "NOT_FOUND: no kernel k");
}

TEST(HostKernelsWithoutCompiler, SayThatThereIsNone) {
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", "/nowhere", 1);
  const Status status = CompileForHost("").status();
  ::setenv("PATH", path.c_str(), 1);
  EXPECT_EQ(ToString(status),
            "UNIMPLEMENTED: kernels on the host: no C++ compiler (c++, g++, clang++) on PATH");
}

}  // namespace
}  // namespace ag::cuda

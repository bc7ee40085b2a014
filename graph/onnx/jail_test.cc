#include "graph/onnx/jail.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/file.h"
#include "base/frames.h"
#include "base/process.h"
#include "graph/onnx/jail_child.h"
#include "graph/onnx/onnx_testing.h"

namespace ag {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// Ways for a child to go wrong, chosen by the environment.
int RunMisbehaving(int socket) {
  const char* const how = std::getenv("AG_JAIL_TEST");
  const std::string_view way = how == nullptr ? "" : how;
  if (way == "hang") RealClock().SleepFor(std::chrono::hours(1));
  if (way == "crash") std::abort();
  if (way == "silent") return 0;
  if (way == "open") {
    if (!LockDown({.memory_bytes = int64_t{8} << 30, .cpu_seconds = 10}).ok()) return 1;
    return ::open("/dev/null", O_RDONLY) < 0 ? 1 : 0;
  }
  if (way == "lie") {
    (void)SendFrame(socket, kJailResultPart, "nonsense");
    (void)SendFrame(socket, kJailDone, "");
    return 0;
  }
  return RunJail(socket);
}

// The test program is its own jail: before main, because gtest brings the main.
const int kRole = [] {
  RegisterChildRole("jail", RunMisbehaving);
  const StatusOr<std::string> line = ReadFile("/proc/self/cmdline");
  std::vector<std::string> arguments;
  for (size_t at = 0; line.ok() && at < line->size(); at += arguments.back().size() + 1) {
    arguments.emplace_back(line->c_str() + at);
  }
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  const int code = RunChildRole(static_cast<int>(argv.size()), argv.data());
  if (code >= 0) ::_exit(code);
  return code;
}();

class JailTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(kRole, -1);
    auto folder = TempDir::Make("jail");
    ASSERT_TRUE(folder.ok());
    folder_.emplace(*std::move(folder));
    auto blobs = BlobDir::Open(folder_->path() + "/blobs");
    ASSERT_TRUE(blobs.ok());
    blobs_ = *std::move(blobs);
  }
  void TearDown() override { ::unsetenv("AG_JAIL_TEST"); }

  StatusOr<ImportedModel> Import(const std::string& bytes, const JailOptions& jail = {}) {
    const std::string path = folder_->path() + "/model.onnx";
    const Status written = WriteFileAtomically(path, bytes);
    if (!written.ok()) return written;
    return ImportInJail(path, {}, *blobs_, jail);
  }
  Status Misbehave(const char* way, const JailOptions& jail = {}) {
    ::setenv("AG_JAIL_TEST", way, 1);
    return Import("x", jail).status();
  }

  std::optional<TempDir> folder_;
  std::shared_ptr<BlobDir> blobs_;
};

TEST_F(JailTest, GivesWhatADirectImportGives) {
  const std::string bytes = testing::ConvModel();
  const auto jailed = Import(bytes);
  ASSERT_TRUE(jailed.ok()) << ToString(jailed.status());
  const auto direct = ImportOnnx(bytes, {}, *blobs_);
  ASSERT_TRUE(direct.ok());
  EXPECT_EQ(jailed->graph.digest(), direct->graph.digest());
  EXPECT_EQ(EncodeOrigin(jailed->origin), EncodeOrigin(direct->origin));
  EXPECT_EQ(jailed->weight_bytes, direct->weight_bytes);
}

TEST_F(JailTest, LargeWeightsComeInPieces) {
  const std::string bytes = testing::LargeWeightModel(kJailPieceBytes + 4);
  const auto jailed = Import(bytes);
  ASSERT_TRUE(jailed.ok()) << ToString(jailed.status());
  EXPECT_EQ(jailed->weight_bytes, static_cast<int64_t>(kJailPieceBytes + 4));
}

TEST_F(JailTest, ErrorsOfTheModelComeThrough) {
  const Status status = Import("").status();
  EXPECT_EQ(ToString(status), "INVALID_ARGUMENT: the model is empty");
}

TEST_F(JailTest, MissingFile) {
  EXPECT_EQ(ImportInJail("/nonexistent", {}, *blobs_).status().code(), StatusCode::kNotFound);
}

TEST_F(JailTest, CrashesAreTheModelsFault) {
  EXPECT_EQ(ToString(Misbehave("crash")),
            "INVALID_ARGUMENT: model import crashed: killed by SIGABRT");
  EXPECT_EQ(ToString(Misbehave("silent")),
            "INVALID_ARGUMENT: model import crashed: it gave no answer");
  EXPECT_THAT(ToString(Misbehave("lie")),
              StartsWith("INVALID_ARGUMENT: model import gave a broken answer: "));
}

TEST_F(JailTest, TheFilterKillsWhoOpensAFile) {
  EXPECT_EQ(ToString(Misbehave("open")),
            "INVALID_ARGUMENT: model import crashed: killed by SIGSYS");
}

TEST_F(JailTest, HangsEndAtTheDeadline) {
  EXPECT_EQ(ToString(Misbehave("hang", {.time_max = std::chrono::milliseconds(100)})),
            "DEADLINE_EXCEEDED: model import took more than 0.1 s");
}

TEST_F(JailTest, MemoryIsLimited) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers reserve more address space than any limit";
#endif
  const Status status = Import(testing::ExpandingModel(int64_t{60} << 10, 3000),
                               {.memory_base_bytes = int64_t{128} << 20})
                            .status();
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted) << ToString(status);
  EXPECT_THAT(Message(status), HasSubstr("model import needs more than its limit of 128 MiB"));
}

TEST_F(JailTest, SurvivesBrokenModels) {
  const std::string bytes = testing::ConvModel();
  for (const size_t size : {size_t{1}, bytes.size() / 3, bytes.size() - 1}) {
    const auto status = Import(bytes.substr(0, size)).status();
    EXPECT_FALSE(status.ok());
    EXPECT_EQ(Message(status).find("crashed"), std::string::npos) << ToString(status);
  }
}

}  // namespace
}  // namespace ag

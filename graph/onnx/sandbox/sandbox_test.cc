#include "graph/onnx/sandbox/sandbox.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cinttypes>
#include <cstdlib>
#include <filesystem>

#include "base/blobs.h"
#include "base/file.h"
#include "base/frames.h"
#include "base/process.h"
#include "base/testing/test_role.h"
#include "graph/onnx/import/import.h"
#include "graph/onnx/imported_model.h"
#include "graph/onnx/origin.h"
#include "graph/onnx/sandbox/sandbox_child.h"
#include "graph/onnx/sandbox/sandbox_frames.h"
#include "graph/onnx/testing/onnx_testing.h"
#include "graph/onnx/wire.h"

namespace ag {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string Bytes(const Digest& digest) {
  return {reinterpret_cast<const char*>(digest.bytes.data()), digest.bytes.size()};
}

// Runs a child that misbehaves in the way that the environment names.
int RunMisbehaving(int socket) {
  const char* const how = std::getenv("AG_SANDBOX_TEST");
  const std::string_view way = how == nullptr ? "" : how;
  if (way.empty()) return RunSandbox(socket);
  if (way == "hang") RealClock().SleepFor(std::chrono::hours(1));
  if (way == "crash") std::abort();
  if (way == "silent") return 0;
  if (way == "limited") {  // As under ulimit -t 30.
    const rlimit limit{30, 30};
    return ::setrlimit(RLIMIT_CPU, &limit) == 0 ? RunSandbox(socket) : 1;
  }
  if (way == "open") {
    if (!LockDown({.memory_bytes = int64_t{8} << 30, .cpu_seconds = 10}).ok()) return 1;
    return ::open("/dev/null", O_RDONLY) < 0 ? 1 : 0;
  }
  // Reads the request first, because the parent may still be sending it.
  (void)ReceiveFrame(socket);
  if (way == "lie") {
    (void)SendFrame(socket, kSandboxResultPart, "nonsense");
    (void)SendFrame(socket, kSandboxDone, "");
    return 0;
  }
  // The frames below are about weights of the model "x".
  if (way == "parts") {
    (void)SendFrame(socket, kSandboxWeightPart, "ab");
    (void)SendFrame(socket, kSandboxWeightPart, "c");
    (void)SendFrame(socket, kSandboxWeightEnd, Bytes(Sha256("abc")));
    return 0;
  }
  if (way == "frame") {
    (void)SendFrame(socket, kSandboxWeight, Bytes(Sha256("abc")) + "abc");
    return 0;
  }
  if (way.starts_with("place ")) {
    int64_t offset = 0, size = 0;
    char named = 0;
    (void)std::sscanf(how, "place %" SCNd64 " %" SCNd64 " %c", &offset, &size, &named);
    (void)SendFrame(
        socket, kSandboxWeightPlace,
        EncodeFields(WeightPlace{Sha256(std::string(1, named)), static_cast<uint64_t>(offset),
                                 static_cast<uint64_t>(size)}));
    return 0;
  }
  return 1;
}

// The test program is its own sandbox. The role runs before main, because gtest provides main.
const int kRole = RunRoleBeforeMain("sandbox", RunMisbehaving);

class SandboxTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(kRole, -1);
    auto folder = TempDir::Make("sandbox");
    ASSERT_TRUE(folder.ok());
    folder_.emplace(*std::move(folder));
    auto blobs = BlobDir::Open(folder_->path() + "/blobs");
    ASSERT_TRUE(blobs.ok());
    blobs_ = *std::move(blobs);
  }
  void TearDown() override { ::unsetenv("AG_SANDBOX_TEST"); }

  StatusOr<ImportedModel> Import(const std::string& bytes, const SandboxOptions& sandbox = {}) {
    const std::string path = folder_->path() + "/model.onnx";
    const Status written = WriteFileAtomically(path, bytes);
    if (!written.ok()) return written;
    return ImportInSandbox(path, {}, *blobs_, sandbox);
  }
  Status Misbehave(const char* way, const SandboxOptions& sandbox = {}) {
    ::setenv("AG_SANDBOX_TEST", way, 1);
    return Import("x", sandbox).status();
  }

  std::optional<TempDir> folder_;
  std::shared_ptr<BlobDir> blobs_;
};

TEST_F(SandboxTest, GivesWhatADirectImportGives) {
  const std::string bytes = testing::ConvModel();
  const auto sandboxed = Import(bytes);
  ASSERT_TRUE(sandboxed.ok()) << ToString(sandboxed.status());
  const auto direct = ImportOnnx(bytes, {}, *blobs_);
  ASSERT_TRUE(direct.ok());
  EXPECT_EQ(sandboxed->graph.digest(), direct->graph.digest());
  EXPECT_EQ(EncodeOrigin(sandboxed->origin), EncodeOrigin(direct->origin));
  EXPECT_EQ(sandboxed->weight_bytes, direct->weight_bytes);
}

TEST_F(SandboxTest, LargeWeightsComeInPieces) {
  const std::string bytes = testing::LargeWeightModel(kSandboxPieceBytes + 4);
  const auto sandboxed = Import(bytes);
  ASSERT_TRUE(sandboxed.ok()) << ToString(sandboxed.status());
  EXPECT_EQ(sandboxed->weight_bytes, static_cast<int64_t>(kSandboxPieceBytes + 4));
}

// The bytes of a weight may come in each of these ways. Then the child ends without an answer.
TEST_F(SandboxTest, WeightsComeInOnePieceInPiecesOrByTheirPlace) {
  for (const auto& [way, bytes] :
       {std::pair{"frame", "abc"}, {"parts", "abc"}, {"place 0 1 x", "x"}, {"place 0 1 x", "x"}}) {
    EXPECT_EQ(ToString(Misbehave(way)), "INVALID_ARGUMENT: model import crashed: it gave no answer")
        << way;
    EXPECT_EQ(ToString(blobs_->Verify(Sha256(bytes))), "OK") << way;
    if (way == std::string_view("frame")) {
      ASSERT_TRUE(blobs_->Remove(Sha256(bytes)).ok());
    }
  }
}

TEST_F(SandboxTest, APlaceIsNotBelieved) {
  const std::string broken = "INVALID_ARGUMENT: model import gave a broken answer: ";
  const std::pair<const char*, const char*> cases[] = {
      {"place 0 2 x", "a weight outside of the model"},
      {"place 2 0 x", "a weight outside of the model"},
      {"place 1 -1 x", "a weight outside of the model"},
      {"place -1 1 x", "a weight outside of the model"},
      {"place 0 1 y", "the digest of a weight"},
      {"place 0 0 x", "the digest of a weight"},
  };
  for (const auto& [way, what] : cases) EXPECT_EQ(ToString(Misbehave(way)), broken + what) << way;
  ASSERT_TRUE(blobs_->Put("y").ok());  // The place stays wrong, although the bytes exist.
  EXPECT_EQ(ToString(Misbehave("place 0 1 y")), broken + "the digest of a weight");
}

TEST_F(SandboxTest, AWeightThatWasCutIsReplaced) {
  const std::string bytes = testing::ConvModel();
  ASSERT_TRUE(Import(bytes).ok());
  const std::vector<Digest> digests = *blobs_->List();
  ASSERT_FALSE(digests.empty());
  ASSERT_TRUE(WriteFileAtomically(blobs_->PathOf(digests[0]), "").ok());
  ASSERT_TRUE(Import(bytes).ok());
  EXPECT_EQ(ToString(blobs_->Verify(digests[0])), "OK");
}

TEST_F(SandboxTest, ErrorsOfTheModelComeThrough) {
  const Status status = Import("").status();
  EXPECT_EQ(ToString(status), "INVALID_ARGUMENT: the model is empty");
}

TEST_F(SandboxTest, MissingFile) {
  EXPECT_EQ(ImportInSandbox("/nonexistent", {}, *blobs_).status().code(), StatusCode::kNotFound);
}

TEST_F(SandboxTest, CrashesAreTheModelsFault) {
  EXPECT_EQ(ToString(Misbehave("crash")),
            "INVALID_ARGUMENT: model import crashed: killed by SIGABRT");
  EXPECT_EQ(ToString(Misbehave("silent")),
            "INVALID_ARGUMENT: model import crashed: it gave no answer");
  EXPECT_THAT(ToString(Misbehave("lie")),
              StartsWith("INVALID_ARGUMENT: model import gave a broken answer: "));
}

TEST_F(SandboxTest, TheFilterKillsWhoOpensAFile) {
  EXPECT_EQ(ToString(Misbehave("open")),
            "INVALID_ARGUMENT: model import crashed: killed by SIGSYS");
}

// A process may lower its limits but not raise them.
TEST_F(SandboxTest, ALowerLimitStays) {
  ::setenv("AG_SANDBOX_TEST", "limited", 1);
  EXPECT_EQ(ToString(Import(testing::ConvModel()).status()), "OK");
}

TEST_F(SandboxTest, HangsEndAtTheDeadline) {
  EXPECT_EQ(ToString(Misbehave("hang", {.time_max = std::chrono::milliseconds(100)})),
            "DEADLINE_EXCEEDED: model import took more than 0.1 s");
}

TEST_F(SandboxTest, MemoryIsLimited) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers reserve more address space than any limit";
#endif
  const Status status = Import(testing::ExpandingModel(int64_t{60} << 10, 3000),
                               {.memory_base_bytes = int64_t{128} << 20})
                            .status();
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted) << ToString(status);
  EXPECT_THAT(Message(status), HasSubstr("model import needs more than its limit of 128 MiB"));
}

// A model whose one weight is these strings.
std::string StringsModel(const std::vector<std::string_view>& strings) {
  const std::string text = testing::ModelFromText(
      "g (int64 i) => (string y) <string[1] w = {\"a\"}> { y = Gather<axis = 0>(w, i) }");
  StatusOr<OnnxModel> model = ParseModel(text, 10);
  AG_CHECK(model.ok());
  const auto count = static_cast<int64_t>(strings.size());
  const Tensor tensor = Tensor::FromStrings({count}, strings);
  model->initializers[0] = FromTensor("w", tensor);
  return *SerializeModel(*model);
}

// Text takes a small multiple of its bytes, short strings take more: both end in words.
TEST_F(SandboxTest, StringsAreWithinTheLimits) {
  const std::string text(size_t{40} << 20, 'x');
  const auto imported = Import(StringsModel({text}));
  ASSERT_TRUE(imported.ok()) << ToString(imported.status());
  ASSERT_EQ(imported->origin.dynamic.weights.size(), 1u);
  const std::string weight = blobs_->PathOf(imported->origin.dynamic.weights[0].digest);
  EXPECT_GT(std::filesystem::file_size(weight), text.size());
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  const std::string letters = StringsModel(std::vector<std::string_view>(10'000'000, "x"));
  const SandboxOptions sandbox{.memory_base_bytes = int64_t{128} << 20};
  const auto limit = sandbox.memory_base_bytes + 4 * static_cast<int64_t>(letters.size());
  EXPECT_EQ(ToString(Import(letters, sandbox).status()),
            fmt::format("RESOURCE_EXHAUSTED: model import needs more than its limit of {} MiB",
                        limit >> 20));
#endif
}

TEST_F(SandboxTest, SurvivesBrokenModels) {
  const std::string bytes = testing::ConvModel();
  for (const size_t size : {size_t{1}, bytes.size() / 3, bytes.size() - 1}) {
    const auto status = Import(bytes.substr(0, size)).status();
    EXPECT_FALSE(status.ok());
    EXPECT_EQ(Message(status).find("crashed"), std::string::npos) << ToString(status);
  }
}

}  // namespace
}  // namespace ag

// How often a model's bytes are written and hashed between `autograph optimize` and its result, by
// all processes together.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "graph/onnx/export/export.h"
#include "graph/text_form.h"
#include "tests/cluster.h"

namespace ag {
namespace {

// Nearly all of the model is one weight of 24 MiB, larger than one frame of the import.
constexpr std::string_view kShared = R"(
    input x f32[8,2048]
    input z f32[8,2048]
    w = const f32[2048,3072] seed 1
    output y = add(matmul(x, w), matmul(z, w))
)";
constexpr std::string_view kSingle = R"(
    input x f32[8,2048]
    w = const f32[2048,3072] seed 2
    output y = relu(matmul(x, w))
)";

std::string ModelOf(std::string_view text) {
  MemoryWeights weights;
  const auto graph = ParseGraph(text, &weights);
  AG_CHECK(graph.ok());
  OnnxOrigin origin;
  origin.opsets = {{"", 17}};
  const auto bytes = ExportOnnx(*graph, origin, weights, {});
  AG_CHECK(bytes.ok());
  return *bytes;
}

// Bytes that this process and those of its children that have ended wrote with system calls.
double BytesWritten() {
  std::ifstream io("/proc/self/io");
  for (std::string word; io >> word;) {
    double bytes = 0;
    if (word == "wchar:" && io >> bytes) return bytes;
  }
  return -1;
}

class BytesOfAModel : public ::testing::Test {
 protected:
  void Write(std::string_view text) {
    const std::string model = ModelOf(text);
    bytes_ = static_cast<double>(model.size());
    place_.Write("m.onnx", model);
  }
  // How many times the model's size was written and hashed, in sessions that are timed or else.
  struct Passes {
    double writes = 0, hashes = 0, session_hashes = 0;
  };
  nlohmann::json Optimized(Passes* passes) {
    place_.Write("hashed", std::string(4096, '\0'));
    const double before = BytesWritten();
    const CommandResult run = place_.Cli(
        {"optimize", place_.path("m.onnx"), "-o", output_, "--device", "sim:small", "--json"});
    EXPECT_EQ(run.code, 0) << run.err;
    int64_t hashed[2];
    std::memcpy(hashed, ReadFile(place_.path("hashed")).value().data(), sizeof(hashed));
    *passes = {(BytesWritten() - before) / bytes_, static_cast<double>(hashed[0]) / bytes_,
               static_cast<double>(hashed[1]) / bytes_};
    return ResultIn(run.out);
  }
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "a sanitizer must be loaded before the counter";
#endif
    if (BytesWritten() < 0) GTEST_SKIP() << "there is no /proc/self/io here";
    place_.variables["LD_PRELOAD"] = AG_HASH_COUNTER;
    place_.variables["AUTOGRAPH_HASHED_BYTES"] = place_.path("hashed");
  }

  Alone place_;
  const std::string output_ = place_.path("out.onnx");
  double bytes_ = 0;
};

// The upload, the weights, the export: the result is a link.
TEST_F(BytesOfAModel, AreWrittenThreeTimesAndHashedOnceAtEachBorder) {
  const struct {
    std::string_view text;
    const char* output;
    int hashes;
  } kCases[] = {
      // The client; the upload; the import's child and its parent; the child that reads the export
      // back; the file; before it is linked.
      {kShared, "REWRITTEN", 7},
      {kSingle, "PLAN_ADDED", 6},  // Nothing is read back.
  };
  for (const auto& c : kCases) {
    Write(c.text);
    std::filesystem::remove(output_);  // It would be hashed.
    Passes passes;
    const nlohmann::json result = Optimized(&passes);
    EXPECT_EQ(result["output"], c.output);
    EXPECT_NEAR(passes.writes, 3, 0.1) << c.output;
    EXPECT_NEAR(passes.hashes, c.hashes, 0.1) << c.output;
    EXPECT_GT(passes.session_hashes, 0.9) << "each session of a user hashes its weights";
    EXPECT_EQ(result["output_digest"], DigestOfFile(output_)) << c.output;
    Optimized(&passes);
    EXPECT_LT(passes.writes, 0.1) << "a repeated request writes nothing: " << c.output;
    EXPECT_EQ(result["output_digest"], DigestOfFile(output_)) << c.output;
  }
}

// The result is the user's: what is written into it is no longer taken for the answer.
TEST_F(BytesOfAModel, AResultThatWasChangedIsMadeAgain) {
  Write(kSingle);
  Passes passes;
  const nlohmann::json first = Optimized(&passes);
  struct stat info {};
  ASSERT_EQ(::stat(output_.c_str(), &info), 0);
  EXPECT_EQ(info.st_nlink, 2u);
  EXPECT_EQ(info.st_mode & 0777, 0644u);
  std::fstream(output_, std::ios::in | std::ios::out | std::ios::binary).seekp(100).put('x');
  ASSERT_NE(DigestOfFile(output_), first["output_digest"]);
  const nlohmann::json again = Optimized(&passes);
  EXPECT_FALSE(again["cache"]["model_hit"]);
  EXPECT_EQ(again["output_digest"], first["output_digest"]);
  EXPECT_EQ(DigestOfFile(output_), first["output_digest"]);
}

}  // namespace
}  // namespace ag

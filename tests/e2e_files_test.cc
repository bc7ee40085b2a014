// Models with weights in data files beside them (ONNX: external data), by the real programs: every
// verb takes them, what comes out has its weights inside, and a wrong data file is said by name.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "graph/onnx/files/split.h"
#include "graph/onnx/testing/onnx_testing.h"
#include "tests/cluster.h"

namespace ag {
namespace {

using testing::ExternalDataModel;
using testing::HeldBy;

// A folder with one network twice: whole, and with nearly all weights beside it.
class ModelFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    whole_ = alone_.Zoo("tiny_inception");
    ASSERT_TRUE(MakeDirs(alone_.path("in")).ok());
    split_ = alone_.path("in/m.onnx");
    const Status split = SplitModel(whole_, split_, {.data_bytes_min = 64});
    ASSERT_TRUE(split.ok()) << ToString(split);
    ASSERT_GT(std::filesystem::file_size(split_ + ".data"), 10'000u);
  }
  CommandResult Cli(const std::vector<std::string>& words) const { return alone_.Cli(words); }

  // The file needs nothing beside it and gives what the input gives.
  void ExpectWholeAndEqual(const std::string& output) const {
    const std::string moved = alone_.path("moved.onnx");
    std::filesystem::copy_file(output, moved, std::filesystem::copy_options::overwrite_existing);
    const CommandResult verified = Cli({"verify", whole_, "--against", moved, "--device", "cpu:1"});
    EXPECT_EQ(verified.code, 0) << verified.out << verified.err;
    const char* const python = std::getenv("AUTOGRAPH_PYTHON");
    if (python == nullptr) return;
    const CommandResult agrees =
        RunCommand({python, AG_SOURCE_DIR "/tests/onnxruntime_agrees.py", split_, moved});
    EXPECT_EQ(agrees.code, 0) << agrees.out << agrees.err;
  }

  Alone alone_;
  std::string whole_, split_;
};

TEST_F(ModelFiles, AServiceGetsThemWhole) {
  Cluster cluster;
  const std::string out = cluster.path("out.onnx");
  const auto result = Optimized(cluster, split_, out);
  EXPECT_EQ(result["output"], "REWRITTEN") << result.dump(2);
  ExpectWholeAndEqual(out);
  // The same model again: nothing is sent, and the answer is known.
  const auto again = Optimized(cluster, split_, out);
  EXPECT_TRUE(again["cache"]["model_hit"]) << again.dump(2);
}

TEST_F(ModelFiles, EveryVerbTakesThem) {
  const std::string out = alone_.path("out.onnx");
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"optimize", split_, "-o", out, "--device", "sim:small", "--rounds", "1"},
           {"run", split_, "--device", "cpu:1"},
           {"verify", whole_, "--against", split_, "--device", "cpu:1"},
           {"verify", split_, "--against", whole_, "--device", "cpu:1"},
           {"plan", "show", split_, "--device", "cpu:1"},
           {"bench", split_, "--device", "sim:small", "--ort", "off"},
           {"bench", split_, "--compare", whole_, "--device", "sim:small", "--ort", "off"},
           {"bench", split_, "--clients", "2", "--device", "sim:small", "--runs", "2"}}) {
    const CommandResult result = Cli(words);
    EXPECT_EQ(result.code, 0) << words[0] << ": " << result.out << result.err;
  }
  ExpectWholeAndEqual(out);
}

TEST_F(ModelFiles, SparseWeightsAreWhatOnnxRuntimeReads) {
  const char* const python = std::getenv("AUTOGRAPH_PYTHON");
  if (python == nullptr) GTEST_SKIP() << "AUTOGRAPH_PYTHON names no Python with ONNX Runtime";
  constexpr char kMake[] =
      "import numpy, sys; numpy.save(sys.argv[1], numpy.ones((4, 3), numpy.float32));"
      "numpy.save(sys.argv[2], numpy.array(True))";
  constexpr char kCompare[] =
      "import numpy, onnxruntime, sys;"
      "session = onnxruntime.InferenceSession(sys.argv[1], providers=['CPUExecutionProvider']);"
      "y = session.run(None, {'x': numpy.ones((4, 3), numpy.float32), 'c': numpy.array(True)})[0];"
      "sys.exit(not (y == numpy.load(sys.argv[2])).all())";
  const std::string x = alone_.path("x.npy"), c = alone_.path("c.npy");
  const CommandResult inputs = RunCommand({python, "-c", kMake, x, c});
  ASSERT_EQ(inputs.code, 0) << inputs.err;
  const testing::SparseModelSpec specs[] = {
      {.dims = {4, 3}, .values = {1, -2, 3}, .indices = {1, 5, 11}, .index_dims = {3}},
      {.dims = {4, 3}, .values = {1, -2}, .indices = {0, 2, 3, 1}, .index_dims = {2, 2}},
      {.dims = {4, 3},
       .values = {1, -2},
       .indices = {2, 7},
       .index_dims = {2},
       .held_by = HeldBy::kConstant}};
  for (const auto& spec : specs) {
    const std::string in = alone_.Write("sparse.onnx", testing::SparseModel(spec));
    const CommandResult ran = Cli({"run", in, "--device", "cpu:1", "--input", "x=" + x, "--input",
                                   "c=" + c, "--output", alone_.path("ours")});
    ASSERT_EQ(ran.code, 0) << ran.err;
    const CommandResult same = RunCommand({python, "-c", kCompare, in, alone_.path("ours/y.npy")});
    EXPECT_EQ(same.code, 0) << same.err;
  }
}

TEST_F(ModelFiles, KeptBytesHaveTheirWeightsInside) {
  const std::string out = alone_.path("kept.onnx");
  const CommandResult kept =
      Cli({"optimize", split_, "-o", out, "--device", "sim:small", "--keep-bytes"});
  ASSERT_EQ(kept.code, 0) << kept.out << kept.err;
  EXPECT_GT(std::filesystem::file_size(out), std::filesystem::file_size(split_ + ".data"));
  ExpectWholeAndEqual(out);
}

TEST_F(ModelFiles, TheDataFileIsNotWrittenOver) {
  const std::string before = DigestOfFile(split_ + ".data");
  for (const char* flag : {"--output", "--report"}) {
    std::vector<std::string> words = {"optimize", split_, "--force", flag, split_ + ".data"};
    if (flag == std::string("--report")) words.insert(words.end(), {"-o", alone_.path("o.onnx")});
    const CommandResult result = Cli(words);
    EXPECT_EQ(result.code, 2);
    EXPECT_EQ(result.err, fmt::format("autograph: {} {}.data has weights of the model: choose "
                                      "another file\n",
                                      flag, split_));
  }
  // Nor may the output's own data file take its place.
  const std::string other = alone_.path("in/other.onnx");
  std::filesystem::copy_file(split_, other);
  const CommandResult beside = Cli({"optimize", other, "-o", split_, "--device", "sim:small"});
  EXPECT_EQ(beside.code, 2);
  EXPECT_EQ(beside.err, fmt::format("autograph: --output {}.data has weights of the model: choose "
                                    "another file\n",
                                    split_));
  EXPECT_EQ(DigestOfFile(split_ + ".data"), before);
}

TEST_F(ModelFiles, WrongDataFilesAreSaidByName) {
  Cluster cluster;
  alone_.Write("in/short.bin", "1234");
  const std::string model = alone_.path("in/bad.onnx"), out = alone_.path("out.onnx");
  const auto missing = fmt::format("read {}: No such file or directory", alone_.path("in/no.bin"));
  const std::pair<std::string, std::string> cases[] = {
      {"no.bin", "its data file \"no.bin\": " + missing},
      {"/etc/passwd", "its data file \"/etc/passwd\" must lie in the model's folder or below it"},
      {"../tiny_inception.onnx",
       "its data file \"../tiny_inception.onnx\" must lie in the model's folder or below it"},
      {"short.bin",
       "its data file \"short.bin\" is too short: 8 bytes from byte 0 on are needed, it has 4"},
  };
  for (const HeldBy held_by : {HeldBy::kInitializer, HeldBy::kConstant, HeldBy::kBranch}) {
    for (const auto& [location, message] : cases) {
      alone_.Write("in/bad.onnx", ExternalDataModel({.location = location, .held_by = held_by}));
      const std::string line = fmt::format("autograph: {}: tensor \"w\": {}\n", model, message);
      for (const CommandResult& result :
           {Cli({"run", model, "--device", "sim:small"}),
            Cli({"verify", whole_, "--against", model, "--device", "sim:small"}),
            Cli({"optimize", model, "-o", out, "--device", "sim:small"}),
            cluster.Cli({"optimize", model, "-o", out, "--device", "sim:small"})}) {
        EXPECT_EQ(result.code, 3);
        EXPECT_EQ(result.err, line);
      }
      EXPECT_FALSE(FileExists(out));
    }
  }
  EXPECT_EQ(cluster.Cli({"jobs", "show", "jobs/1"}).code, 3);  // The service never heard of it.
}

}  // namespace
}  // namespace ag

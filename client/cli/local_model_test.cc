#include "client/cli/local_model.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "graph/onnx/testing/onnx_testing.h"

namespace ag {
namespace {

constexpr std::string_view kModel =
    "g (float[2,3] x, int64[2] i) => (float[2,3] y) { a = Relu(x) y = Identity(a) }";
constexpr std::string_view kOpen = "g (float[N,3] x) => (float[N,3] y) { y = Relu(x) }";

// Returns a serialized TensorProto: dims, data type and raw bytes.
std::string TensorProto(const std::vector<int>& dims, int data_type, const std::string& raw) {
  std::string bytes;
  for (const int dim : dims) bytes += {'\x08', static_cast<char>(dim)};
  bytes += {'\x10', static_cast<char>(data_type)};
  return bytes + '\x4a' + static_cast<char>(raw.size()) + raw;
}

class LocalModelTest : public ::testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& bytes) {
    const std::string path = folder_.path() + "/" + name;
    AG_CHECK(WriteFileAtomically(path, bytes).ok());
    return path;
  }
  ModelFlags Flags(std::string_view text, const std::vector<std::string>& shapes = {}) {
    return {.model = Write("m.onnx", testing::ModelFromText(text)),
            .device = "sim:small",
            .shapes = shapes};
  }
  const TempDir folder_ = *TempDir::Make("local-model-test");
};

TEST_F(LocalModelTest, ReadsTensorsByTheNameOfTheFile) {
  const Tensor tensor = Tensor::FromFloats({2}, std::vector<float>{1, -2});
  const std::string npy = folder_.path() + "/t.npy";
  ASSERT_TRUE(WriteNpy(npy, tensor).ok());
  const std::string pb = Write("t.pb", TensorProto({2}, 1, std::string(tensor.bytes())));
  for (const std::string& path : {npy, pb}) {
    const auto read = ReadTensorFile(path);
    ASSERT_EQ(ToString(read.status()), "OK") << path;
    EXPECT_EQ(read->type(), tensor.type());
    EXPECT_EQ(read->bytes(), tensor.bytes());
  }
}

TEST_F(LocalModelTest, NamesTheTensorFileThatIsWrong) {
  const struct {
    const char *name, *file;
    std::string bytes, status;
  } kCases[] = {
      {"npy", "a.npy", "garbage", "INVALID_ARGUMENT: {}: not a npy file"},
      {"no protobuf", "a.pb", "\xff\xff\xff",
       "INVALID_ARGUMENT: {}: not ONNX, or cut short: no whole field at byte 0 of 3"},
      {"too few bytes", "b.pb", TensorProto({3}, 1, "12345678"),
       "INVALID_ARGUMENT: {}: tensor \"\": f32[3] needs 12 bytes, the model has 8"},
      {"strings", "c.pb", TensorProto({1}, 8, ""),
       "INVALID_ARGUMENT: {}: tensor \"\": string[1] and the number of strings in it differ"},
      {"unknown type", "d.pb", TensorProto({1}, 77, "1234"),
       "UNIMPLEMENTED: {}: tensor \"\": element type 77 of ONNX is not supported"},
  };
  for (const auto& c : kCases) {
    const std::string path = Write(c.file, c.bytes);
    EXPECT_EQ(ToString(ReadTensorFile(path).status()), fmt::format(fmt::runtime(c.status), path))
        << c.name;
  }
  const std::string none = folder_.path() + "/none.npy";
  EXPECT_EQ(ToString(ReadTensorFile(none).status()),
            "NOT_FOUND: read " + none + ": No such file or directory");
}

TEST_F(LocalModelTest, GathersInputsByName) {
  const auto session = LoadSession(Flags(kModel), PlanChoice::kCarried);
  ASSERT_EQ(ToString(session.status()), "OK");
  const Tensor x = Tensor::Zeros({DType::kFloat32, {2, 3}});
  const std::string path = folder_.path() + "/x.npy";
  ASSERT_TRUE(WriteNpy(path, x).ok());

  const auto random = *GatherInputs(**session, {}, 1), again = *GatherInputs(**session, {}, 1);
  const auto other = *GatherInputs(**session, {}, 2),
             given = *GatherInputs(**session, {"x=" + path}, 1);
  ASSERT_EQ(random.size(), 2u);
  EXPECT_EQ(random[0].tensor.bytes(), again[0].tensor.bytes());
  EXPECT_NE(random[0].tensor.bytes(), other[0].tensor.bytes());
  EXPECT_EQ(given[0].tensor.bytes(), x.bytes());
  EXPECT_EQ(given[1].tensor.bytes(), random[1].tensor.bytes())
      << "what is given leaves the others as they were";

  const struct {
    std::string input, status;
  } kCases[] = {
      {"x", "INVALID_ARGUMENT: --input x: expected NAME=FILE"},
      {"z=" + path, "INVALID_ARGUMENT: the model has no input \"z\""},
      {"x=/none.npy", "NOT_FOUND: read /none.npy: No such file or directory"},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(ToString(GatherInputs(**session, {c.input}, 1).status()), c.status) << c.input;
  }
}

TEST_F(LocalModelTest, LoadsWithShapes) {
  const auto session = LoadSession(Flags(kOpen, {"x=5x3"}), PlanChoice::kCarried);
  ASSERT_EQ(ToString(session.status()), "OK");
  EXPECT_EQ((*session)->inputs()[0].type.ToString(), "f32[5,3]");
  const auto chosen = LoadSession(Flags(kOpen, {}), PlanChoice::kCarried);
  ASSERT_EQ(ToString(chosen.status()), "OK");
  EXPECT_EQ((*chosen)->inputs()[0].type.ToString(), "f32[1,3]");
  const struct {
    const char* name;
    std::vector<std::string> shapes;
    std::string status;
  } kCases[] = {
      {"no input", {"z=5x3"}, "INVALID_ARGUMENT: MODEL: --shape names \"z\", the inputs are \"x\""},
      {"rank", {"x=5"}, "INVALID_ARGUMENT: MODEL: input \"x\" has rank 2, --shape gives [5]"},
      {"no shape", {"x"}, "INVALID_ARGUMENT: x: expected NAME=1x3x224x224"},
  };
  for (const auto& c : kCases) {
    const ModelFlags flags = Flags(kOpen, c.shapes);
    std::string status = ToString(LoadSession(flags, PlanChoice::kCarried).status());
    if (const size_t at = status.find(flags.model); at != std::string::npos) {
      status.replace(at, flags.model.size(), "MODEL");
    }
    EXPECT_EQ(status, c.status) << c.name;
  }
  EXPECT_EQ(ToString(LoadSession({.model = "/none.onnx"}, PlanChoice::kCarried).status()),
            "NOT_FOUND: read /none.onnx: No such file or directory");
}

TEST_F(LocalModelTest, TunedPlansGoWhereTheFlagSays) {
  ModelFlags flags = Flags(kModel);
  flags.tune = true;
  flags.tuned_plans = folder_.path() + "/plans";
  ASSERT_EQ(ToString(LoadSession(flags, PlanChoice::kInput).status()), "OK");
  EXPECT_EQ(ListDir(flags.tuned_plans)->size(), 1u);
  flags.tuned_plans = "none";
  ASSERT_EQ(ToString(LoadSession(flags, PlanChoice::kInput).status()), "OK");
  EXPECT_FALSE(FileExists("none"));
}

}  // namespace
}  // namespace ag

#include "client/cli/input_folder.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "client/cli/local_model.h"
#include "graph/onnx/testing/onnx_testing.h"
#include "graph/weights.h"

namespace ag {
namespace {

class InputFolderTest : public ::testing::Test {
 protected:
  InputFolderTest() {
    EXPECT_TRUE(WriteFileAtomically(
                    model_, testing::ModelFromText("g (float[2] x, int64[1] ids) => (float[2] y) "
                                                   "{ a = Cast<to = 1>(ids) y = Add(x, a) }"))
                    .ok());
    EXPECT_TRUE(MakeDirs(inputs_).ok());
  }

  void Save(const std::string& name, const Tensor& tensor) {
    EXPECT_EQ(ToString(WriteNpy(inputs_ + "/" + name, tensor)), "OK");
  }
  void SaveSet(const std::string& below) {
    EXPECT_TRUE(MakeDirs(inputs_ + "/" + below).ok());
    Save(below + "/x.npy", x_);
    Save(below + "/ids.npy", ids_);
  }
  std::string ErrorOf(const std::string& folder) {
    return ToString(ReadInputFolder(folder, model_).status());
  }

  const TempDir folder_ = *TempDir::Make("input-folder-test");
  const std::string model_ = folder_.path() + "/model.onnx", inputs_ = folder_.path() + "/data";
  const Tensor x_ = Tensor::FromFloats({2}, std::vector<float>{1, 2});
  const Tensor ids_ = Tensor::FromInts({1}, std::vector<int64_t>{3});
};

TEST_F(InputFolderTest, ReadsOneSet) {
  SaveSet("");
  EXPECT_TRUE(WriteFileAtomically(inputs_ + "/README.md", "not a tensor").ok());
  const auto sets = ReadInputFolder(inputs_ + "/", model_);
  ASSERT_EQ(ToString(sets.status()), "OK");
  ASSERT_EQ(sets->size(), 1u);
  EXPECT_EQ(sets->at(0).name, "data");
  EXPECT_EQ(sets->at(0).inputs.at("x").bytes(), x_.bytes());
  EXPECT_EQ(sets->at(0).inputs.at("ids").bytes(), ids_.bytes());
}

TEST_F(InputFolderTest, ReadsEachFolderBelow) {
  SaveSet("set_1");
  SaveSet("set_0");
  const auto sets = ReadInputFolder(inputs_, model_);
  ASSERT_EQ(ToString(sets.status()), "OK");
  ASSERT_EQ(sets->size(), 2u);
  EXPECT_EQ(sets->at(0).name, "set_0");
  EXPECT_EQ(sets->at(1).name, "set_1");
}

// As ONNX's own test data: places for names, and outputs beside.
TEST_F(InputFolderTest, NumbersArePlaces) {
  const std::string folder = inputs_ + "/test_data_set_0";
  ASSERT_TRUE(MakeDirs(folder).ok());
  Save("test_data_set_0/input_1.npy", ids_);
  // A TensorProto: dims 2, float, raw data.
  std::string proto = "\x08\x02\x10\x01\x4a\x08";
  proto += std::string(x_.bytes());
  ASSERT_TRUE(WriteFileAtomically(folder + "/input_0.pb", proto).ok());
  ASSERT_TRUE(WriteFileAtomically(folder + "/output_0.pb", "anything").ok());
  const auto sets = ReadInputFolder(inputs_, model_);
  ASSERT_EQ(ToString(sets.status()), "OK");
  EXPECT_EQ(sets->at(0).inputs.at("x").bytes(), x_.bytes());
  EXPECT_EQ(sets->at(0).inputs.at("ids").bytes(), ids_.bytes());
}

TEST_F(InputFolderTest, NamesThatAreNoFilesHaveUnderscores) {
  std::string model =
      testing::ModelFromText("g (float[2] aQbQ0) => (float[2] y) { y = Relu(aQbQ0) }");
  for (size_t at = 0; (at = model.find("aQbQ0")) != std::string::npos;) {
    model.replace(at, 5, "a/b:0");
  }
  ASSERT_TRUE(WriteFileAtomically(model_, model).ok());
  Save("a_b_0.npy", x_);
  const auto sets = ReadInputFolder(inputs_, model_);
  ASSERT_EQ(ToString(sets.status()), "OK");
  EXPECT_TRUE(sets->at(0).inputs.contains("a/b:0"));
}

TEST_F(InputFolderTest, SaysWhatIsWrong) {
  EXPECT_EQ(ErrorOf("/nowhere"), "NOT_FOUND: --inputs /nowhere: there is no such folder");
  EXPECT_EQ(ErrorOf(model_), fmt::format("INVALID_ARGUMENT: --inputs {}: a file; expected a folder "
                                         "of files",
                                         model_));
  EXPECT_EQ(ErrorOf(inputs_), fmt::format("INVALID_ARGUMENT: --inputs {}: no NAME.npy or NAME.pb "
                                          "in it or in a folder below it",
                                          inputs_));
  SaveSet("");
  const std::string path = inputs_ + "/x.npy", whole = *ReadFile(path);
  const auto error_of = [&](const std::string& bytes) {
    EXPECT_TRUE(WriteFileAtomically(path, bytes).ok());
    return ErrorOf(inputs_);
  };
  const std::string noun = "--inputs: " + path + ": ";
  EXPECT_EQ(error_of(whole.substr(0, whole.size() - 1)),
            "INVALID_ARGUMENT: " + noun + "npy file has 7 bytes of data, f32[2] needs 8");
  std::string changed = whole;
  changed.replace(changed.find("False"), 5, "True ");
  EXPECT_EQ(error_of(changed),
            "UNIMPLEMENTED: " + noun + "npy in Fortran order; save it with np.ascontiguousarray");
  changed = whole;
  changed.replace(changed.find("<f4"), 3, ">f4");
  EXPECT_EQ(
      error_of(changed),
      "UNIMPLEMENTED: " + noun + "npy element type >f4 (big-endian); save it with .astype('<f4')");
  changed = whole;
  changed.replace(changed.find("'<f4'"), 5, "'|O' ");
  EXPECT_EQ(
      error_of(changed),
      "UNIMPLEMENTED: " + noun + "npy element type |O (Python objects); save an array of numbers");
  EXPECT_EQ(error_of(whole), "OK");
  ASSERT_TRUE(WriteFileAtomically(inputs_ + "/x.pb", "\x08\x02\x10\x01\x4a\x08xxxxxxxx").ok());
  EXPECT_EQ(ErrorOf(inputs_),
            fmt::format("INVALID_ARGUMENT: --inputs: {}/x.pb: input x is there twice", inputs_));
  ASSERT_TRUE(WriteFileAtomically(inputs_ + "/x.pb", "no protobuf").ok());
  EXPECT_EQ(ReadInputFolder(inputs_, model_).status().code(), StatusCode::kInvalidArgument);
  ASSERT_TRUE(WriteFileAtomically(inputs_ + "/x.bin", "1").ok());
  EXPECT_EQ(ErrorOf(inputs_),
            fmt::format("INVALID_ARGUMENT: --inputs: {}/x.bin: expected x.npy or x.pb", inputs_));
  ASSERT_TRUE(WriteFileAtomically(inputs_ + "/a.npz", "PK").ok());
  EXPECT_EQ(ErrorOf(inputs_), fmt::format("INVALID_ARGUMENT: --inputs: {}/a.npz: an archive; save "
                                          "each input as NAME.npy in a folder",
                                          inputs_));
}

}  // namespace
}  // namespace ag

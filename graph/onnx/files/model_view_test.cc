#include "graph/onnx/files/model_view.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "graph/onnx/files/model_file.h"
#include "graph/onnx/testing/onnx_testing.h"
#include "graph/onnx/wire.h"

namespace ag {
namespace {

using testing::ExternalDataModel;
using testing::ExternalModelSpec;
using testing::HeldBy;

// Two floats, 1.5 and -2, behind eight bytes of something else.
std::string DataFile() {
  const float values[] = {1.5f, -2.0f};
  return "12345678" + std::string(reinterpret_cast<const char*>(values), sizeof(values));
}

class ModelViewTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto folder = TempDir::Make("files");
    ASSERT_TRUE(folder.ok());
    folder_.emplace(*std::move(folder));
    Write("w.bin", DataFile());
  }
  std::string Path(const std::string& name) const { return folder_->path() + "/" + name; }
  void Write(const std::string& name, const std::string& bytes) const {
    ASSERT_TRUE(WriteFileAtomically(Path(name), bytes).ok());
  }
  // Writes the model as m.onnx and opens it.
  StatusOr<std::shared_ptr<const ModelView>> Open(const std::string& model) const {
    Write("m.onnx", model);
    return ModelView::Open(Path("m.onnx"));
  }
  // Returns the error of opening, without the model's path before it.
  std::string ErrorOf(const ExternalModelSpec& spec) const {
    const std::string text = ToString(Open(ExternalDataModel(spec)).status());
    const std::string path = Path("m.onnx") + ": ";
    const size_t at = text.find(path);
    return at == std::string::npos ? "without the path: " + text
                                   : text.substr(0, at) + text.substr(at + path.size());
  }
  std::optional<TempDir> folder_;
};

// Returns the bytes of the model's first weight.
std::string FirstWeight(std::string_view model) {
  const StatusOr<OnnxModel> parsed = ParseModel(model, 1000);
  if (!parsed.ok()) return ToString(parsed.status());
  if (parsed->initializers.empty()) return "no weight";
  return std::string(parsed->initializers[0].bytes);
}

TEST_F(ModelViewTest, AModelWithItsWeightsInsideIsTheFile) {
  const std::string model = testing::ConvModel();
  const auto view = Open(model);
  ASSERT_TRUE(view.ok()) << ToString(view.status());
  EXPECT_EQ((*view)->bytes(), model);
  auto file = ModelFile::Open(Path("m.onnx"));
  ASSERT_TRUE(file.ok());
  EXPECT_FALSE(file->has_data_files());
  EXPECT_EQ(file->size(), model.size());
  const auto text = Open("no model");
  ASSERT_TRUE(text.ok());
  EXPECT_EQ((*text)->bytes(), "no model");
}

TEST_F(ModelViewTest, DataComesFromItsPlace) {
  const std::string first = DataFile().substr(0, 8), second = DataFile().substr(8);
  ASSERT_EQ(::mkdir(Path("sub").c_str(), 0755), 0);
  Write("sub/v.bin", second);
  ASSERT_EQ(::symlink("w.bin", Path("link.bin").c_str()), 0);
  const std::pair<ExternalModelSpec, std::string> cases[] = {
      {{.location = "w.bin"}, first},
      {{.location = "w.bin", .offset = "8"}, second},
      {{.location = "w.bin", .offset = "8", .length = "8"}, second},
      {{.location = "w.bin", .offset = "0", .length = "8"}, first},
      {{.location = "sub/v.bin"}, second},
      {{.location = "./sub/v.bin"}, second},
      {{.location = "link.bin", .offset = "8"}, second},
      {{.location = "w.bin", .dims = {0}}, ""},
  };
  for (const auto& [spec, expected] : cases) {
    const auto view = Open(ExternalDataModel(spec));
    ASSERT_TRUE(view.ok()) << ToString(view.status());
    EXPECT_EQ(FirstWeight((*view)->bytes()), expected) << spec.location;
    (*view)->DropPages();
    EXPECT_EQ(FirstWeight((*view)->bytes()), expected) << spec.location;
  }
}

// Returns the joined bytes, of which each piece was checked.
StatusOr<std::string> ReadAll(const std::string& path) {
  AG_LET(ModelFile file, ModelFile::Open(path));
  std::string bytes;
  AG_TRY(file.Read([&](std::string_view piece) {
    EXPECT_LE(piece.size(), size_t{1} << 20);
    bytes += piece;
    return OkStatus();
  }));
  EXPECT_EQ(bytes.size(), file.size());
  return bytes;
}

TEST_F(ModelViewTest, PiecesAreOneModel) {
  Write("m.onnx", ExternalDataModel({.location = "w.bin", .offset = "8"}));
  const auto bytes = ReadAll(Path("m.onnx"));
  ASSERT_TRUE(bytes.ok()) << ToString(bytes.status());
  EXPECT_EQ(FirstWeight(*bytes), DataFile().substr(8));
  EXPECT_EQ(*ReadAll(Path("m.onnx")), *bytes);
  Write("m.onnx", *bytes);  // A joined model has nothing outside.
  EXPECT_EQ(*ReadAll(Path("m.onnx")), *bytes);
}

TEST_F(ModelViewTest, ConstantsAndBranchesToo) {
  for (const HeldBy held_by : {HeldBy::kConstant, HeldBy::kBranch}) {
    const auto view =
        Open(ExternalDataModel({.location = "w.bin", .offset = "8", .held_by = held_by}));
    ASSERT_TRUE(view.ok()) << ToString(view.status());
    auto model = ParseModel((*view)->bytes(), 1000);
    ASSERT_TRUE(model.ok());
    if (held_by == HeldBy::kConstant) {
      EXPECT_EQ(model->nodes[0].attributes.back().tensor->bytes, DataFile().substr(8));
    } else {
      for (const char* branch : {"then_branch", "else_branch"}) {
        const auto body = ParseSubgraph(model->nodes[0], branch, 1000);
        ASSERT_TRUE(body.ok());
        EXPECT_EQ(body->initializers[0].bytes, DataFile().substr(8));
      }
    }
  }
}

// A weight of several pages, at any place in its file, is mapped, and what is around it is copied.
TEST_F(ModelViewTest, LargeWeightsAreMapped) {
  std::string data(3'000'000, '\0');
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<char>(i * 7 + i / 251);
  Write("w.bin", data);
  constexpr size_t kWeightBytes = 2'000'000;
  for (const size_t offset : {0, 4, 4096, 8191, 65536}) {
    const auto view = Open(ExternalDataModel(
        {.location = "w.bin", .offset = fmt::format("{}", offset), .dims = {kWeightBytes / 4}}));
    ASSERT_TRUE(view.ok()) << ToString(view.status());
    const std::string expected = data.substr(offset, kWeightBytes);
    const auto model = ParseModel((*view)->bytes(), 1000);
    ASSERT_TRUE(model.ok());
    ASSERT_EQ(model->initializers[0].bytes, expected) << offset;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(model->initializers[0].bytes.data()) % 4096,
              offset % 4096);
    (*view)->DropPages();
    EXPECT_EQ(model->initializers[0].bytes, expected) << offset;
    EXPECT_EQ(FirstWeight(*ReadAll(Path("m.onnx"))), expected) << offset;
  }
}

TEST_F(ModelViewTest, WrongPlacesAreRefusedByName) {
  ASSERT_EQ(::symlink("/etc/hostname", Path("out.bin").c_str()), 0);
  ASSERT_EQ(::symlink("/etc", Path("etc").c_str()), 0);
  ASSERT_EQ(::mkdir(Path("sub").c_str(), 0755), 0);
  ASSERT_EQ(::mkfifo(Path("pipe").c_str(), 0600), 0);
  const std::string begin = "INVALID_ARGUMENT: tensor \"w\": ";
  for (const char* location :
       {"", "/etc/passwd", "../w.bin", "sub/../w.bin", "out.bin", "etc/hostname"}) {
    EXPECT_EQ(ErrorOf({.location = location}),
              begin + fmt::format("its data file \"{}\" must lie in the model's folder or below it",
                                  location));
  }
  for (const char* location : {"sub", "pipe"}) {
    EXPECT_EQ(ErrorOf({.location = location}),
              begin + fmt::format("its data file \"{}\" is not a regular file", location));
  }
  const std::pair<ExternalModelSpec, const char*> cases[] = {
      {{.location = "w.bin", .offset = "12"},
       "its data file \"w.bin\" is too short: 8 bytes from byte 12 on are needed, it has 16"},
      {{.location = "w.bin", .offset = "9223372036854775807"},
       "its data file \"w.bin\" is too short: 8 bytes from byte 9223372036854775807 on are needed, "
       "it has 16"},
      {{.location = "w.bin", .dims = {5}},
       "its data file \"w.bin\" is too short: 20 bytes from byte 0 on are needed, it has 16"},
      {{.location = "w.bin", .length = "16"},
       "type and shape need 8 bytes, it has 16 in \"w.bin\""},
      {{.location = "w.bin", .offset = "-8"},
       "the offset of its data, \"-8\", is no number from 0 on"},
      {{.location = "w.bin", .length = "8 bytes"},
       "the length of its data, \"8 bytes\", is no number from 0 on"},
      {{.location = "w.bin", .dims = {-2}}, "negative size in f32[-2]"},
  };
  for (const auto& [spec, what] : cases) EXPECT_EQ(ErrorOf(spec), begin + what);
  EXPECT_EQ(
      ErrorOf({.location = "v.bin"}),
      fmt::format("NOT_FOUND: tensor \"w\": its data file \"v.bin\": read {}: No such file or "
                  "directory",
                  Path("v.bin")));
}

// Any bytes are opened, as they are or with an error.
TEST_F(ModelViewTest, MutationsNeverCrash) {
  const std::string model = ExternalDataModel(
      {.location = "w.bin", .offset = "8", .length = "8", .held_by = HeldBy::kBranch});
  for (size_t at = 0; at < model.size(); ++at) {
    for (const int flip : {1, 0x80, 0xff}) {
      std::string bytes = model;
      bytes[at] = static_cast<char>(bytes[at] ^ flip);
      const auto view = Open(bytes);
      if (view.ok()) (void)ParseModel((*view)->bytes(), 1000);
    }
  }
}

}  // namespace
}  // namespace ag

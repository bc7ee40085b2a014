#include "graph/onnx/files/split.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "graph/onnx/files/model_file.h"
#include "graph/onnx/files/model_view.h"
#include "graph/onnx/testing/onnx_testing.h"
#include "graph/onnx/wire.h"

namespace ag {
namespace {

class SplitTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto folder = TempDir::Make("split");
    ASSERT_TRUE(folder.ok());
    folder_.emplace(*std::move(folder));
  }
  std::string Path(const std::string& name) const { return folder_->path() + "/" + name; }
  Status Split(const std::string& model, const SplitOptions& options = {}) const {
    AG_TRY(WriteFileAtomically(Path("whole.onnx"), model));
    return SplitModel(Path("whole.onnx"), Path("m.onnx"), options);
  }
  std::optional<TempDir> folder_;
};

// Equal models, up to where their weights are.
void ExpectSameModel(std::string_view bytes, std::string_view expected) {
  const auto a = ParseModel(bytes, 1000), b = ParseModel(expected, 1000);
  ASSERT_TRUE(a.ok()) << ToString(a.status());
  ASSERT_TRUE(b.ok());
  ASSERT_EQ(a->initializers.size(), b->initializers.size());
  for (size_t i = 0; i < a->initializers.size(); ++i) {
    EXPECT_EQ(a->initializers[i].name, b->initializers[i].name);
    EXPECT_EQ(a->initializers[i].dims, b->initializers[i].dims);
    EXPECT_EQ(a->initializers[i].bytes, b->initializers[i].bytes);
    EXPECT_FALSE(a->initializers[i].external.has_value());
  }
  ASSERT_EQ(a->nodes.size(), b->nodes.size());
  for (size_t i = 0; i < a->nodes.size(); ++i) EXPECT_EQ(a->nodes[i].proto, b->nodes[i].proto);
}

TEST_F(SplitTest, WeightsGoBesideTheModelAndComeBack) {
  const std::string model = testing::ConvModel();
  ASSERT_TRUE(Split(model, {.data_bytes_min = 64}).ok());
  const auto split = ParseModel(*ReadFile(Path("m.onnx")), 1000);
  ASSERT_TRUE(split.ok());
  int outside = 0;
  for (const OnnxTensor& tensor : split->initializers) {
    if (!tensor.external.has_value()) continue;
    ++outside;
    EXPECT_EQ(tensor.external->location, "m.onnx.data");
    EXPECT_EQ(std::stoi(tensor.external->offset) % 64, 0);
  }
  EXPECT_EQ(outside, 3);
  const auto view = ModelView::Open(Path("m.onnx"));
  ASSERT_TRUE(view.ok()) << ToString(view.status());
  ExpectSameModel((*view)->bytes(), model);
}

TEST_F(SplitTest, LargeWeightsBeginAtAPage) {
  const std::string model = testing::LargeWeightModel(2 << 20);
  ASSERT_TRUE(Split(model).ok());
  EXPECT_LT(ReadFile(Path("m.onnx"))->size(), 1000u);
  EXPECT_EQ(ReadFile(Path("m.onnx.data"))->size(), size_t{2} << 20);
  const auto view = ModelView::Open(Path("m.onnx"));
  ASSERT_TRUE(view.ok()) << ToString(view.status());
  ExpectSameModel((*view)->bytes(), model);
}

TEST_F(SplitTest, ABranchsWeightsToo) {
  ASSERT_TRUE(WriteFileAtomically(Path("w.bin"), "12345678").ok());
  ASSERT_TRUE(WriteFileAtomically(Path("b.onnx"),
                                  testing::ExternalDataModel(
                                      {.location = "w.bin", .held_by = testing::HeldBy::kBranch}))
                  .ok());
  const auto whole = ModelView::Open(Path("b.onnx"));
  ASSERT_TRUE(whole.ok());
  ASSERT_TRUE(Split(std::string((*whole)->bytes()), {.data_bytes_min = 8}).ok());
  EXPECT_EQ(ReadFile(Path("m.onnx.data"))->size(), 72u);  // Both branches', 64 bytes apart.
  const auto view = ModelView::Open(Path("m.onnx"));
  ASSERT_TRUE(view.ok());
  const auto model = ParseModel((*view)->bytes(), 1000);
  ASSERT_TRUE(model.ok());
  const auto body = ParseSubgraph(model->nodes[0], "else_branch", 1000);
  ASSERT_TRUE(body.ok());
  EXPECT_EQ(body->initializers[0].bytes, "12345678");
}

TEST_F(SplitTest, TheModelMayTakeItsOwnPlace) {
  const std::string model = testing::LargeWeightModel(4096);
  ASSERT_TRUE(WriteFileAtomically(Path("m.onnx"), model).ok());
  ASSERT_TRUE(SplitModel(Path("m.onnx"), Path("m.onnx")).ok());
  const auto view = ModelView::Open(Path("m.onnx"));
  ASSERT_TRUE(view.ok()) << ToString(view.status());
  ExpectSameModel((*view)->bytes(), model);
}

TEST_F(SplitTest, WithoutLargeWeightsTheModelStays) {
  const std::string model = testing::ConvModel();
  ASSERT_TRUE(Split(model).ok());
  EXPECT_EQ(*ReadFile(Path("m.onnx")), model);
  EXPECT_EQ(*ReadFile(Path("m.onnx.data")), "");
}

}  // namespace
}  // namespace ag

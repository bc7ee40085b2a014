#include "graph/op_kind.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>

#include "base/file.h"

namespace ag {
namespace {

TEST(OpKindTest, TextNamesReadBack) {
  for (const OpInfo& info : AllOps()) EXPECT_EQ(OpKindFromText(info.text_name).value(), info.kind);
  EXPECT_EQ(Info(OpKind::kMatMul).text_name, "matmul");
  EXPECT_EQ(Info(OpKind::kLayerNorm).text_name, "layer_norm");
  EXPECT_EQ(ToString(OpKindFromText("maxpool").status()),
            "NOT_FOUND: no operator is called 'maxpool'; did you mean 'max_pool'?");
}

TEST(OpKindTest, TraitsAndDefaults) {
  EXPECT_TRUE(Has(OpKind::kAdd, kCommutative));
  EXPECT_FALSE(Has(OpKind::kSub, kCommutative));
  const OpInfo& clip = Info(OpKind::kClip);
  ASSERT_EQ(clip.attributes.size(), 2u);
  EXPECT_EQ(clip.attributes[0].name, "max");
  EXPECT_EQ(std::get<double>(*clip.attributes[0].default_value),
            std::numeric_limits<double>::infinity());
  EXPECT_FALSE(Info(OpKind::kSoftmax).attributes[0].default_value.has_value());
}

TEST(OpKindTest, TheDocsShowTheTable) {
  const std::string path = AG_SOURCE_DIR "/docs/operators.md";
  const std::string page = FormatOperatorTable();
  const StatusOr<std::string> stored = ReadFile(path);
  ASSERT_TRUE(stored.ok()) << ToString(stored.status());
  // Behind it: ONNX's operators (graph/onnx/import/operator_list_test.cc).
  const size_t end = std::min(stored->find("\n## ONNX's operators"), stored->size());
  if (std::getenv("AG_WRITE_DOCS") != nullptr) {
    ASSERT_TRUE(WriteFileAtomically(path, page + stored->substr(end)).ok());
    return;
  }
  EXPECT_EQ(stored->substr(0, end), page) << "run AG_WRITE_DOCS=1 graph_test";
}

}  // namespace
}  // namespace ag

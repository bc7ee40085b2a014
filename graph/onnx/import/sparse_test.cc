#include "graph/onnx/import/sparse.h"

#include <gtest/gtest.h>

#include "graph/onnx/import/import.h"
#include "graph/onnx/model_facts.h"
#include "graph/onnx/testing/onnx_testing.h"
#include "graph/text_form.h"

namespace ag {
namespace {

using testing::HeldBy;
using testing::SparseModel;
using testing::SparseModelSpec;

StatusOr<ImportedModel> ImportSparse(const SparseModelSpec& spec, const ImportLimits& limits = {}) {
  static const std::shared_ptr<BlobDir> blobs = testing::NewBlobs();
  return ImportOnnx(SparseModel(spec), {.limits = limits}, *blobs);
}

std::string SparseError(const SparseModelSpec& spec, const ImportLimits& limits = {}) {
  return ToString(ImportSparse(spec, limits).status());
}

TEST(SparseTest, BothFormsOfIndicesGiveTheWholeTensor) {
  const SparseModelSpec cases[] = {
      {.values = {1, 2, 3}, .indices = {1, 3, 5}, .index_dims = {3}},
      {.values = {1, 2, 3}, .indices = {0, 1, 1, 0, 1, 2}, .index_dims = {3, 2}},
      {.values = {1, 2, 3}, .indices = {1, 3, 5}, .index_dims = {3}, .held_by = HeldBy::kConstant}};
  const auto expected = ParseGraph(
      "input x f32[2,3]\n input c bool[]\n w = const f32[2,3] {0, 1, 0, 2, 0, 3}\n"
      "output \"y\" = add(x, w)");
  ASSERT_TRUE(expected.ok()) << ToString(expected.status());
  for (const SparseModelSpec& spec : cases) {
    const auto imported = ImportSparse(spec);
    ASSERT_TRUE(imported.ok()) << ToString(imported.status());
    EXPECT_EQ(FormatGraph(imported->graph), FormatGraph(*expected));
  }
}

TEST(SparseTest, ABranchMayHaveOne) {
  const auto imported = ImportSparse(
      {.values = {1, 2}, .indices = {1, 3}, .index_dims = {2}, .held_by = HeldBy::kBranch});
  ASSERT_TRUE(imported.ok()) << ToString(imported.status());
  EXPECT_EQ(imported->weight_bytes, 24);
}

TEST(SparseTest, NoValueAtAll) {
  const auto imported = ImportSparse({.index_dims = {0}});
  ASSERT_TRUE(imported.ok()) << ToString(imported.status());
  EXPECT_EQ(imported->weight_bytes, 24);
}

TEST(SparseTest, ItsZerosCountAsParameters) {
  const auto facts = CountModel(SparseModel({.values = {1}, .indices = {4}, .index_dims = {1}}));
  ASSERT_TRUE(facts.ok());
  EXPECT_EQ(facts->parameters, 6);
}

TEST(SparseTest, WrongIndicesAreRefusedByName) {
  const std::string begin = "INVALID_ARGUMENT: sparse tensor \"w\": ";
  const std::pair<SparseModelSpec, const char*> cases[] = {
      {{.values = {1}, .indices = {6}, .index_dims = {1}},
       "index 6 at position 0 is outside of f32[2,3]"},
      {{.values = {1}, .indices = {-1}, .index_dims = {1}},
       "index -1 at position 0 is outside of f32[2,3]"},
      {{.values = {1, 2}, .indices = {0, 0, 0, 3}, .index_dims = {2, 2}},
       "index 3 of axis 1 at position 1 is outside of f32[2,3]"},
      {{.values = {1, 2}, .indices = {4, 1}, .index_dims = {2}},
       "its indices do not ascend: element 4 at position 0, then element 1"},
      {{.values = {1, 2}, .indices = {1, 0, 0, 2}, .index_dims = {2, 2}},
       "its indices do not ascend: element 3 at position 0, then element 2"},
      {{.values = {1, 2}, .indices = {4, 4}, .index_dims = {2}},
       "element 4 is there twice, at positions 0 and 1"},
      {{.values = {1, 2}, .indices = {0, 1, 2, 0, 1, 2}, .index_dims = {2, 3}},
       "its indices are i64[2,3], expected [values] or [values, 2] for f32[2,3]"},
      {{.values = {1}, .indices = {0}, .index_dims = {1, 1, 1}},
       "its indices are i64[1,1,1], expected [values] or [values, 2] for f32[2,3]"},
      {{.values = {1, 2}, .indices = {1}, .index_dims = {1}}, "2 values have 1 indices"},
      {{.values = {1}, .indices = {1}, .index_dims = {2}},
       "its indices: tensor \"\": i64[2] needs 16 bytes, the model has 8"},
      {{.dims = {}, .values = {1}, .indices = {0}, .index_dims = {1}},
       "its sizes are missing, it needs at least one"},
  };
  for (const auto& [spec, what] : cases) EXPECT_EQ(SparseError(spec), begin + what);
  EXPECT_EQ(
      SparseError({.values = {1}, .indices = {6}, .index_dims = {1}, .held_by = HeldBy::kConstant}),
      "INVALID_ARGUMENT: node 0 (Constant): sparse tensor \"w\": index 6 at position 0 is outside "
      "of f32[2,3]");
}

TEST(SparseTest, SmallFilesDoNotMakeLargeTensors) {
  const SparseModelSpec spec{.dims = {1 << 20}, .values = {1}, .indices = {5}, .index_dims = {1}};
  EXPECT_EQ(SparseError(spec, {.tensor_bytes_max = 1 << 20}),
            "RESOURCE_EXHAUSTED: sparse tensor \"w\": f32[1048576] has 4194304 bytes, the limit is "
            "1048576 a tensor");
  EXPECT_EQ(SparseError(spec, {.total_bytes_max = 1 << 20}),
            "RESOURCE_EXHAUSTED: the sparse tensors together have more than 1048576 bytes");
}

}  // namespace
}  // namespace ag

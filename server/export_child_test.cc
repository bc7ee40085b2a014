#include "server/export_child.h"

#include <gtest/gtest.h>

#include "base/blobs.h"
#include "base/file.h"
#include "graph/onnx/export/export.h"
#include "graph/text_form.h"

namespace ag {
namespace {

class ExportChildTest : public testing::Test {
 protected:
  ExportChildTest() {
    MemoryWeights weights;
    request_.graph = *ParseGraph(
        "input x f32[4,256]\nw = const f32[256,256] seed 1\noutput y = matmul(x, w)", &weights);
    request_.origin.opsets = {{"", 17}};
    request_.options.plans = {{"key", "plan"}};
    for (const Node& node : request_.graph.nodes()) {
      if (node.op != OpKind::kConstant) continue;
      const Tensor value = *weights.Get(node.constant->digest, node.outputs[0]);
      EXPECT_EQ(*blobs_->Put(value.bytes()), node.constant->digest);
    }
    request_.blob_root = folder_.path() + "/blobs";
    request_.path = folder_.path() + "/out.onnx";
  }
  std::string Expected() {
    return *ExportOnnx(request_.graph, request_.origin, BlobWeights(blobs_), request_.options);
  }

  const TempDir folder_ = *TempDir::Make("export-child-test-");
  const std::shared_ptr<BlobDir> blobs_ = *BlobDir::Open(folder_.path() + "/blobs");
  ExportRequest request_;
};

TEST_F(ExportChildTest, WritesWhatExportOnnxReturns) {
  ASSERT_TRUE(WriteFileAtomically(request_.path, std::string(1 << 20, 'x')).ok());
  const auto before = *MappedFile::Open(request_.path);
  EXPECT_EQ(ToString(ExportInChild(request_, {})), "OK");
  EXPECT_EQ(Sha256(*ReadFile(request_.path)), Sha256(Expected()));
  EXPECT_EQ(before->bytes(), std::string(1 << 20, 'x')) << "a reader keeps the old file";
}

TEST_F(ExportChildTest, ErrorsNameTheFile) {
  request_.path = folder_.path() + "/nowhere/out.onnx";
  EXPECT_EQ(ToString(ExportInChild(request_, {})),
            "NOT_FOUND: export: write " + request_.path + ": No such file or directory");
  EXPECT_EQ(ExportInChild(request_, {.program = "/nowhere"}).code(), StatusCode::kNotFound);
}

TEST_F(ExportChildTest, AMissingWeightIsSaid) {
  const std::vector<Digest> digests = *blobs_->List();
  ASSERT_EQ(digests.size(), 1u);
  ASSERT_TRUE(blobs_->Remove(digests[0]).ok());
  EXPECT_EQ(ToString(ExportInChild(request_, {})), "NOT_FOUND: export: node 2 (matmul): blob " +
                                                       digests[0].Hex() + ": not in " +
                                                       request_.blob_root);
}

}  // namespace
}  // namespace ag

#include "server/pipeline/export_child.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include "base/blobs.h"
#include "base/file.h"
#include "graph/onnx/export/export.h"
#include "graph/text_form.h"

namespace ag {
namespace {

class ExportChildTest : public ::testing::Test {
 protected:
  ExportChildTest() {
    MemoryWeights weights;
    request_.graph = *ParseGraph(
        "input x f32[4,256]\nw = const f32[256,256] seed 1\noutput y = matmul(x, w)", &weights);
    request_.imported = request_.graph;
    request_.origin.opsets = {{"", 17}};
    for (const Node& node : request_.graph.nodes()) {
      if (node.op != OpKind::kConstant) continue;
      const Tensor value = *weights.Get(node.constant->digest, node.outputs[0]);
      EXPECT_EQ(*blobs_->Put(value.bytes()), node.constant->digest);
    }
    request_.blob_root = folder_.path() + "/blobs";
    request_.fd = writer_->fd();
  }

  const TempDir folder_ = *TempDir::Make("export-child-test-");
  const std::shared_ptr<BlobDir> blobs_ = *BlobDir::Open(folder_.path() + "/blobs");
  const std::unique_ptr<BlobDir::Writer> writer_ = *blobs_->NewWriter();
  ExportRequest request_;
};

TEST_F(ExportChildTest, AppendsWhatExportOnnxReturns) {
  ASSERT_TRUE(writer_->Append("before").ok());
  EXPECT_EQ(ToString(ExportInChild(request_, {})), "OK");
  EXPECT_EQ(ToString(writer_->TakeIn()), "OK");
  ASSERT_TRUE(writer_->Append("behind").ok());
  const std::string exported =
      *ExportOnnx(request_.graph, request_.origin, BlobWeights(blobs_), {});
  const std::string expected = "before" + exported + "behind";
  EXPECT_EQ(writer_->size(), expected.size());
  EXPECT_EQ(ToString(writer_->Commit(Sha256(expected))), "OK");
  EXPECT_EQ(ToString(blobs_->Verify(Sha256(expected))), "OK");
}

TEST_F(ExportChildTest, AFailedWriteIsSaid) {
  const Fd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  request_.fd = full.get();
  EXPECT_EQ(ToString(ExportInChild(request_, {})),
            "RESOURCE_EXHAUSTED: export: write: No space left on device");
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

// Fused operators of com.microsoft, imported as the operators they were fused of, compute what
// their kernels compute.
#include <gtest/gtest.h>

#include <cmath>

#include "base/blobs.h"
#include "graph/onnx/import/import.h"
#include "graph/onnx/imported_model.h"
#include "graph/onnx/operators/operators.h"
#include "graph/onnx/testing/onnx_testing.h"
#include "graph/onnx/wire.h"
#include "graph/reference/evaluate.h"

namespace ag {
namespace {

struct FusedCase {
  const char* name;
  const char* operands;  // Types and names, in the order of the node's.
  const char* results;   // Their names.
  const char* node;
  bool kept = false;  // The form stays as it is.
};

std::string ModelOf(const FusedCase& c) {
  // All results are f32, except the number of words that the mask of an embedding keeps.
  const bool counts = std::string_view(c.node).starts_with("Embed");
  std::string results;
  for (const char name : {'y', 'z', 's', 't'}) {
    if (std::string_view(c.results).find(name) == std::string_view::npos) continue;
    const std::string_view type = counts && name == 'z' ? "int32[]" : "float[]";
    results += fmt::format("{}{} {}", results.empty() ? "" : ", ", type, name);
  }
  return testing::ModelFromText(
      fmt::format("<ir_version: 8, opset_import: [\"\" : 17, \"com.microsoft\" : 1]>\n"
                  "g ({}) => ({}) {{ {} = com.microsoft.{} }}",
                  c.operands, results, c.results, c.node));
}

// Small numbers that differ; of integers 0 and 1 by turns, or 1 and 2 for numbers of keys.
Tensor OperandOf(const TensorType& type, size_t seed) {
  Tensor tensor = Tensor::Zeros(type);
  for (int64_t i = 0; i < type.NumElements(); ++i) {
    const double number = std::sin(static_cast<double>(i * 7 + 1) + static_cast<double>(seed) * 3);
    const bool is_count = type.shape.size() == 1;
    tensor.Put(i, IsFloat(type.dtype) ? number : static_cast<double>(i % 2 + (is_count ? 1 : 0)));
  }
  return tensor;
}

const FusedCase kFused[] = {
    {"gelu", "float[2,3] x", "y", "Gelu(x)"},
    {"bias gelu", "float[2,3] x, float[3] b", "y", "BiasGelu(x, b)"},
    {"fast gelu", "float[2,3] x, float[3] b", "y", "FastGelu(x, b)"},
    {"quick gelu", "float[2,3] x", "y", "QuickGelu<alpha = 0.7>(x)"},
    {"conv", "float[1,2,4,4] x, float[2,2,3,3] w, float[2] b, float[1,2,4,4] z", "y",
     "FusedConv<pads = [1, 1, 1, 1], activation = \"Relu\">(x, w, b, z)"},
    {"conv, leaky", "float[1,2,5] x, float[2,2,3] w", "y",
     "FusedConv<activation = \"LeakyRelu\", activation_params = [0.3]>(x, w)"},
    {"conv, clipped", "float[1,2,5] x, float[2,2,3] w", "y",
     "FusedConv<activation = \"Clip\", activation_params = [-0.2, 0.3]>(x, w)"},
    {"gemm", "float[3,2] a, float[4,3] b, float[4] c", "y",
     "FusedGemm<transA = 1, transB = 1, alpha = 0.5, activation = \"HardSigmoid\", "
     "activation_alpha = 0.3, activation_beta = 0.4>(a, b, c)"},
    {"gemm, an activation that the IR lacks", "float[2,3] a, float[3,4] b", "y",
     "FusedGemm<activation = \"Softplus\">(a, b)", true},
    {"matmul", "float[2,3,4] a, float[5,4] b", "y", "FusedMatMul<transB = 1, alpha = 2.0>(a, b)"},
    {"matmul, batch behind", "float[3,2,4] a, float[4,2,5] b", "y",
     "FusedMatMul<transBatchA = 1, transBatchB = 1>(a, b)"},
    {"matmul of a vector", "float[4] a, float[4,5] b", "y", "FusedMatMul<transA = 1>(a, b)", true},
    {"skip", "float[2,3,4] x, float[3,4] k, float[4] g, float[4] h, float[4] b", "y, , , s",
     "SkipLayerNormalization(x, k, g, h, b)"},
    {"skip without a shift", "float[2,3,4] x, float[2,3,4] k, float[4] g", "y",
     "SkipLayerNormalization<epsilon = 0.1>(x, k, g)"},
    {"skip with moments", "float[2,3,4] x, float[2,3,4] k, float[4] g", "y, z",
     "SkipLayerNormalization(x, k, g)", true},
    {"simplified skip", "float[2,3,4] x, float[2,3,4] k, float[4] g, float[4] b", "y, , , s",
     "SkipSimplifiedLayerNormalization(x, k, g, b)"},
    {"embedding",
     "int32[2,3] i, int32[2,3] j, float[5,4] w, float[6,4] p, float[2,4] k, float[4] g, float[4] "
     "h, "
     "int32[2,3] m",
     "y, z, s", "EmbedLayerNormalization(i, j, w, p, k, g, h, m)"},
    {"embedding, places",
     "int32[2,3] i, float[5,4] w, float[6,4] p, float[4] g, float[4] h, "
     "int32[1,3] q",
     "y", "EmbedLayerNormalization(i, , w, p, , g, h, , q)"},
    {"attention", "float[2,3,4] x, float[4,12] w, float[12] b", "y",
     "Attention<num_heads = 2>(x, w, b)"},
    {"attention, ends", "float[2,3,4] x, float[4,12] w, float[12] b, int32[2] m", "y",
     "Attention<num_heads = 2, unidirectional = 1>(x, w, b, m)"},
    {"attention, flags", "float[2,3,4] x, float[4,14] w, int32[2,3] m, float[1,2,3,3] a", "y",
     "Attention<num_heads = 2, qkv_hidden_sizes = [4, 4, 6], scale = 0.3>(x, w, , m, , a)"},
    {"attention, a cache", "float[2,3,4] x, float[4,12] w, float[2,2,2,1,2] p", "y, t",
     "Attention<num_heads = 2>(x, w, , , p)", true},
    {"heads", "float[2,3,4] q, float[2,5,4] k, float[2,5,6] v, float[14] b, int32[2,5] m", "y",
     "MultiHeadAttention<num_heads = 2, mask_filter_value = -5.0>(q, k, v, b, m)"},
    {"heads, a cache",
     "float[2,3,4] q, float[2,3,4] k, float[2,3,4] v, float[2,2,1,2] p, float[2,2,1,2] r",
     "y, z, s", "MultiHeadAttention<num_heads = 2, unidirectional = 1>(q, k, v, , , , p, r)"},
    {"heads of another sequence", "float[2,3,4] q, float[2,2,5,2] k, float[2,2,5,2] v", "y",
     "MultiHeadAttention<num_heads = 2>(q, k, v)"},
};

TEST(MicrosoftImporters, TheExpansionIsTheKernel) {
  for (const FusedCase& c : kFused) {
    const std::string bytes = ModelOf(c);
    const std::shared_ptr<BlobDir> blobs = testing::NewBlobs();
    const auto imported = ImportOnnx(bytes, {}, *blobs);
    ASSERT_TRUE(imported.ok()) << c.name << ": " << ToString(imported.status());
    const auto is_opaque = [](const Node& node) { return node.op == OpKind::kOpaque; };
    EXPECT_EQ(std::ranges::any_of(imported->graph.nodes(), is_opaque), c.kept) << c.name;
    std::vector<Tensor> operands;
    for (const NodeId input : imported->graph.inputs()) {
      operands.push_back(OperandOf(imported->graph.type({input, 0}), operands.size()));
    }
    const auto values = Evaluate(imported->graph, operands, BlobWeights(blobs));
    ASSERT_TRUE(values.ok()) << c.name << ": " << ToString(values.status());
    const auto model = ParseModel(bytes, 10);
    ASSERT_TRUE(model.ok());
    OperatorRun run = {.node = model->nodes[0], .opset = 1};
    size_t next = 0;
    for (const std::string& name : run.node.inputs) {
      run.inputs.push_back(name.empty() ? nullptr : &operands[next++]);
    }
    const auto expected = RunOperator(run);
    ASSERT_TRUE(expected.ok()) << c.name << ": " << ToString(expected.status());
    next = 0;
    for (size_t i = 0; i < expected->size(); ++i) {
      if (run.node.outputs[i].empty()) continue;
      const Tensor &found = (*values)[next++], &kernel = (*expected)[i];
      ASSERT_EQ(found.type(), kernel.type()) << c.name << " " << i;
      for (int64_t e = 0; e < found.type().NumElements(); ++e) {
        EXPECT_NEAR(found.At(e), kernel.At(e), 2e-6) << c.name << " " << i << " " << e;
      }
    }
  }
}

}  // namespace
}  // namespace ag

#include "server/pipeline/counter_example.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "graph/onnx/import/import.h"
#include "graph/onnx/tensor_proto.h"
#include "graph/reference/evaluate.h"
#include "graph/text_form.h"
#include "plan/equivalence.h"
#include "wire/measurement_wire.h"

namespace ag {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kBadRule[] = "bad [exact]: relu(matmul(x, w)) => matmul(x, w)\n";
constexpr char kBadPlace[] =
    "input x f32[4,16]\n"
    "a = matmul(tanh(x), const f32[16,16] seed 1)\n"
    "output y = exp(relu(a))\n";

class CounterExampleTest : public ::testing::Test {
 protected:
  CounterExampleTest() {
    MemoryWeights weights;
    guilty_.outcome = GuiltyRewrite::Outcome::kFound;
    guilty_.rule = "bad";
    guilty_.step = 1;
    guilty_.before = *ParseGraph(kBadPlace, &weights);
    guilty_.rewrite = FindRewrites(guilty_.before, rules_).at(0);
    guilty_.after = *Apply(guilty_.before, *guilty_.rewrite);
    for (const Node& node : guilty_.before.nodes()) {
      if (node.op != OpKind::kConstant) continue;
      const Tensor value = *weights.Get(node.constant->digest, node.outputs[0]);
      EXPECT_EQ(*blobs_->Put(value.bytes()), node.constant->digest);
    }
    request_.guilty = &guilty_;
    request_.rules = &rules_;
    request_.what = "rewrite bad at /layer/Relu";
    request_.imported = guilty_.before;
    request_.origin.opsets = {{"", 17}};
    request_.blob_root = folder_.path() + "/blobs";
    request_.show = [this](const GraphPair& pair, int64_t bytes_max) {
      return Show(pair, bytes_max);
    };
  }

  std::vector<Tensor> Run(const Graph& graph, const std::vector<Tensor>& inputs) {
    return *Evaluate(graph, inputs, BlobWeights(blobs_));
  }
  StatusOr<std::optional<v1::ShownValues>> Show(const GraphPair& pair, int64_t bytes_max) {
    if (++shows_ <= blind_) return std::nullopt;
    v1::ShownValues shown;
    std::vector<Tensor> inputs;
    for (const NodeId id : pair.before.inputs()) {
      inputs.push_back(RandomTensor(pair.before.type({id, 0}), 9));
      shown.add_inputs(std::string(inputs.back().bytes()));
    }
    const std::vector<Tensor> a = Run(pair.before, inputs), b = Run(pair.after, inputs);
    const OutputError error = CompareOutput(pair.before, 0, a[0], b[0]);
    if (IsEquivalent(error, 1e-3)) return std::nullopt;
    ToProto(error, shown.add_errors());
    shown.add_expected(std::string(a[0].bytes()));
    shown.add_actual(std::string(b[0].bytes()));
    shown.set_differs(true);
    shown.set_compared("usual");
    shown.set_seed(9);
    shown.set_value_bytes(3 * 4 * 16 * 4);
    EXPECT_LE(shown.value_bytes(), bytes_max);
    return shown;
  }
  v1::CounterExample Make() {
    const auto made = MakeCounterExample(request_, *blobs_);
    EXPECT_TRUE(made.ok()) << made.status();
    return made.value_or(v1::CounterExample());
  }
  std::string File(const v1::CounterExample& example, const std::string& name) {
    for (const v1::NamedBlob& file : example.files()) {
      if (file.name() != name) continue;
      const std::string bytes(blobs_->Get(*ParseDigest(file.digest())).value()->bytes());
      EXPECT_EQ(static_cast<int64_t>(bytes.size()), file.bytes());
      return bytes;
    }
    ADD_FAILURE() << "no " << name;
    return "";
  }
  Graph Model(const v1::CounterExample& example, const std::string& name) {
    const auto model = ImportOnnx(File(example, name), {}, *blobs_);
    EXPECT_TRUE(model.ok()) << model.status();
    return model->graph;
  }

  const TempDir folder_ = *TempDir::Make("counter-example-test-");
  const std::shared_ptr<BlobDir> blobs_ = *BlobDir::Open(folder_.path() + "/blobs");
  const RuleSet rules_ = *RuleSet::Parse(kBadRule, "test.rules");
  GuiltyRewrite guilty_;
  CounterExampleRequest request_;
  int shows_ = 0;
  int blind_ = 0;  // So many first pairs show nothing.
};

TEST_F(CounterExampleTest, TheMatchedNodesAreEnough) {
  const v1::CounterExample example = Make();
  EXPECT_EQ(example.left_out(), "");
  EXPECT_FALSE(example.whole_model());
  EXPECT_EQ(example.seed(), 9u);
  std::vector<std::string> names;
  for (const v1::NamedBlob& file : example.files()) names.push_back(file.name());
  EXPECT_THAT(names, ElementsAre("README.txt", "replay.py", "before.onnx", "after.onnx",
                                 "test_data_set_0/input_0.pb", "test_data_set_0/output_0.pb"));
  const Graph before = Model(example, "before.onnx"), after = Model(example, "after.onnx");
  EXPECT_EQ(before.size(), 4);  // x0, the weights, a product and its relu.
  const Tensor x = *ParseTensorProto(File(example, "test_data_set_0/input_0.pb"));
  const Tensor y = *ParseTensorProto(File(example, "test_data_set_0/output_0.pb"));
  EXPECT_TRUE(IsEquivalent(CompareTensors("y0", y, Run(before, {x})[0]), 1e-6));
  EXPECT_FALSE(IsEquivalent(CompareTensors("y0", y, Run(after, {x})[0]), 1e-3));
  EXPECT_THAT(File(example, "README.txt"),
              AllOf(HasSubstr("rewrite bad at /layer/Relu: gives other results."),
                    HasSubstr("test_data_set_0 has inputs (usual, seed 9)")));
  EXPECT_EQ(example.error().output(), "y0");
}

TEST_F(CounterExampleTest, WhereTheyDoNotShowItTheWholeGraphDoes) {
  blind_ = 1;
  const v1::CounterExample example = Make();
  EXPECT_TRUE(example.whole_model());
  EXPECT_EQ(Model(example, "before.onnx").digest(), guilty_.before.digest());
  EXPECT_EQ(Model(example, "after.onnx").digest(), guilty_.after.digest());
  EXPECT_EQ(example.error().output(), "y");
}

TEST_F(CounterExampleTest, WhatIsNotMadeIsSaid) {
  blind_ = 2;
  v1::CounterExample example = Make();
  EXPECT_EQ(example.left_out(), "the two graphs by themselves do not differ");
  EXPECT_EQ(example.files_size(), 0);
  blind_ = 0;
  request_.stop = [] { return true; };
  EXPECT_EQ(Make().left_out(), "the time was over");
  request_.stop = nullptr;
  request_.bytes_max = 2 * 16 * 16 * 4 - 1;
  EXPECT_EQ(Make().left_out(), "it has 0 MiB, at most 0 MiB are kept");
  request_.bytes_max = 1 << 20;
  request_.show = [](const GraphPair&, int64_t) -> StatusOr<std::optional<v1::ShownValues>> {
    return Err(StatusCode::kUnimplemented, "an old worker");
  };
  EXPECT_EQ(Make().left_out(), "it cannot be shown: an old worker");
}

// The values are larger than what is kept, and the worker did not send them.
TEST_F(CounterExampleTest, LargeValuesAreLeftOut) {
  request_.show = [](const GraphPair&, int64_t bytes_max) {
    v1::ShownValues shown;
    shown.set_differs(true);
    shown.set_value_bytes(bytes_max);
    return std::optional(shown);
  };
  EXPECT_EQ(Make().left_out(), "it has 64 MiB, at most 64 MiB are kept");
}

TEST_F(CounterExampleTest, WrongValuesOfAWorkerAreSaid) {
  request_.show = [](const GraphPair&, int64_t) {
    v1::ShownValues shown;
    shown.set_differs(true);
    shown.add_inputs("abc");
    return std::optional(shown);
  };
  EXPECT_EQ(Make().left_out(), "input x: 3 bytes do not fit f32[4,16]");
  EXPECT_EQ(Make().files_size(), 0);
}

TEST_F(CounterExampleTest, ErrorsFromOutsideAreReturned) {
  request_.show = [](const GraphPair&, int64_t) -> StatusOr<std::optional<v1::ShownValues>> {
    return Err(StatusCode::kUnavailable, "no worker");
  };
  EXPECT_EQ(ToString(MakeCounterExample(request_, *blobs_).status()), "UNAVAILABLE: no worker");
}

// --- Places

TEST_F(CounterExampleTest, APlaceIsNamedAsInTheModel) {
  EXPECT_EQ(PlaceText(guilty_.before, *guilty_.rewrite, request_.origin, guilty_.before), "a relu");
  OnnxOrigin named = request_.origin;
  for (NodeId id = 0; id < guilty_.before.size(); ++id) {
    named.names.push_back({fmt::format("/node/{}", id), {}});
  }
  EXPECT_EQ(PlaceText(guilty_.before, *guilty_.rewrite, named, guilty_.before),
            fmt::format("/node/{}", guilty_.rewrite->roots[0].node));
}

}  // namespace
}  // namespace ag

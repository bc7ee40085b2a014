#include "graph/passes/constants.h"

#include <gtest/gtest.h>

#include "graph/graph.h"

namespace ag {
namespace {

// One weight that counts how often it is read.
class CountedWeight : public WeightSource {
 public:
  explicit CountedWeight(Tensor value) : value_(std::move(value)) {}
  StatusOr<Tensor> Get(const Digest&, const TensorType&) const override {
    ++reads_;
    return value_;
  }
  int reads() const { return reads_; }

 private:
  Tensor value_;
  mutable int reads_ = 0;
};

TEST(ConstantOf, RefusesAnotherShape) {
  const CountedWeight weights(Tensor::Zeros({DType::kFloat32, {2, 3}}));
  EXPECT_TRUE(ConstantOf(weights, Digest(), {DType::kFloat32, {2, 3}}).ok());
  EXPECT_EQ(ConstantOf(weights, Digest(), {DType::kFloat32, {3, 2}}).status().code(),
            StatusCode::kInternal);
}

// A graph whose output is the negative of a weight.
struct Negative {
  explicit Negative(int64_t elements)
      : type{DType::kFloat32, {elements}}, weight(RandomTensor(type, 1)) {
    GraphBuilder builder;
    const Edge constant = builder.Constant(type, Sha256("weight"));
    builder.Output(builder.Add1(OpKind::kNeg, {constant}).value(), "y");
    graph = builder.Build().value();
  }
  Edge edge() const { return graph.outputs()[0].edge; }
  TensorType type;
  CountedWeight weight;
  Graph graph;
};

TEST(Constants, KeepsSmallValuesThatItComputed) {
  const Negative small(16);
  Constants constants(small.graph, small.weight);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(constants.Get(small.edge()).ok());
  EXPECT_EQ(small.weight.reads(), 1);
}

// A kept copy of a model's weights would stand beside the packed ones until the build ends.
TEST(Constants, SharesLargeValuesWhileTheyAreHeld) {
  const Negative large(1 << 20);
  Constants constants(large.graph, large.weight);
  std::optional<Tensor> held = *constants.Get(large.edge());
  const std::string value(held->bytes());
  EXPECT_EQ(constants.Get(large.edge())->bytes().data(), held->bytes().data());
  EXPECT_EQ(large.weight.reads(), 1);
  held.reset();
  EXPECT_EQ(constants.Get(large.edge())->bytes(), value);
  EXPECT_EQ(large.weight.reads(), 2);
}

}  // namespace
}  // namespace ag

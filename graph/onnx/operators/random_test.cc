// Values of ONNX Runtime 1.32, in the first run of a session.
#include <gtest/gtest.h>

#include "base/status.h"
#include "graph/onnx/operators/testing_node.h"

namespace ag {
namespace {

TEST(RandomNumbers, FollowFromTheSeed) {
  const Tensor x = F32({2, 3}, {0.3, 1.5, 2.7, 0.9, 0.6, 2.1});
  const struct {
    TestNode node;
    std::vector<Tensor> inputs;
    std::vector<double> expected;
  } kCases[] = {
      {{.op_type = "RandomNormal",
        .floats = {{"seed", 3}, {"mean", 1}, {"scale", 2}},
        .int_lists = {{"shape", {3}}}},
       {},
       {-0.5007672309875488, -1.8210887908935547, 4.378565788269043}},
      {{.op_type = "RandomNormal",
        .ints = {{"dtype", 11}},
        .floats = {{"seed", 3}},
        .int_lists = {{"shape", {2}}}},
       {},
       {-1.6147038264771587, -1.3717754683617702}},
      {{.op_type = "RandomUniformLike", .floats = {{"seed", 7}, {"low", -1}, {"high", 2}}},
       {x},
       {-0.9998356699943542, 1.7622935771942139, -0.13228821754455566, -0.3683472275733948,
        1.1881120204925537, 0.5981428623199463}},
      {{.op_type = "Multinomial", .ints = {{"sample_size", 8}}, .floats = {{"seed", 5}}},
       {x},
       {2, 2, 1, 2, 2, 2, 1, 2, 0, 1, 2, 2, 2, 1, 2, 2}},
      // With the numbers 0.00004 and 0.66.
      {{.op_type = "Bernoulli", .floats = {{"seed", 5}}}, {F32({2}, {0.1, 0.5})}, {1, 0}},
  };
  for (const auto& c : kCases) {
    const auto y = RunNode(c.node, c.inputs);
    ASSERT_TRUE(y.ok()) << c.node.op_type << ": " << ToString(y.status());
    EXPECT_EQ((*y)[0].ToDoubles(), c.expected) << c.node.op_type;
  }
}

TEST(RandomNumbers, NeedASeed) {
  const Tensor x = F32({2}, {0.1, 0.5});
  const auto run = [&](const TestNode& node) { return ToString(RunNode(node, {x}).status()); };
  EXPECT_EQ(run({.op_type = "RandomNormalLike"}),
            "UNIMPLEMENTED: operator \"RandomNormalLike\": nothing here can run it");
  EXPECT_EQ(run({.op_type = "RandomNormalLike", .floats = {{"seed", 1}, {"scale", 0}}}),
            "INVALID_ARGUMENT: operator \"RandomNormalLike\": scale is 0, not above 0");
  EXPECT_EQ(WhyLeftOut({.op_type = "RandomNormalLike"}),
            "random numbers without a seed: give the node the attribute seed");
}

}  // namespace
}  // namespace ag

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "graph/onnx/testing/onnx_testing.h"
#include "runtime/autograph.hpp"

namespace ag {
namespace {

using ::testing::ElementsAre;

const std::string& Model() {
  static const std::string model = testing::ModelFromText(
      "g (float[2,4] x, float[2,1] k) => (float[2,4] y, float[2,4] z)"
      " { y = Mul(x, k) z = Relu(y) }");
  return model;
}

autograph::Result<autograph::Session> Load(const std::string& model,
                                           const autograph::Options& options) {
  return autograph::Session::Load(std::as_bytes(std::span(model)), options);
}

TEST(CppApi, RunsAModel) {
  auto session = Load(Model(), {.device = "cpu:1"});
  ASSERT_TRUE(session.ok()) << session.status().message;
  ASSERT_EQ(session->inputs().size(), 2u);
  EXPECT_EQ(session->inputs()[1].name, "k");
  EXPECT_EQ(session->outputs()[0].dtype, AG_FLOAT32);
  EXPECT_THAT(session->outputs()[0].shape, ElementsAre(2, 4));
  EXPECT_EQ(session->outputs()[0].elements(), 8);
  EXPECT_EQ(session->outputs()[0].bytes, 32u);
  EXPECT_FALSE(session->uses_carried_plan());
  EXPECT_THAT(session->warnings(), ElementsAre());

  const std::vector<float> x = {1, -2, 3, -4, 5, -6, 7, -8};
  const float k[2] = {1, 10};
  std::vector<float> y(8);
  std::array<float, 8> z = {};
  std::chrono::nanoseconds spent{-1};
  autograph::Status status = session->Run({x, k}, {y, z}, &spent);
  ASSERT_TRUE(status.ok()) << status.message;
  EXPECT_GT(spent.count(), 0);
  EXPECT_THAT(y, ElementsAre(1, -2, 3, -4, 50, -60, 70, -80));
  EXPECT_THAT(z, ElementsAre(1, 0, 3, 0, 50, 0, 70, 0));

  // A moved session is the same one.
  autograph::Session moved = std::move(*session);
  z.fill(-1);
  const std::vector<autograph::Input> inputs = {x, {k, sizeof(k)}};
  const std::vector<autograph::Output> outputs = {y, {z.data(), sizeof(z)}};
  status = moved.Run(std::span(inputs), std::span(outputs));
  ASSERT_TRUE(status.ok()) << status.message;
  EXPECT_THAT(z, ElementsAre(1, 0, 3, 0, 50, 0, 70, 0));
}

TEST(CppApi, NamesTheBufferThatDoesNotFit) {
  auto session = Load(Model(), {.device = "sim:small"});
  ASSERT_TRUE(session.ok()) << session.status().message;
  std::vector<float> eight(8), two(2);
  std::vector<double> doubles(8);
  EXPECT_EQ(session->Run({eight}, {eight, eight}).message, "expected 2 inputs, got 1");
  EXPECT_EQ(session->Run({eight, two}, {}).message, "expected 2 outputs, got 0");
  EXPECT_EQ(session->Run({doubles, two}, {eight, eight}).message,
            "input \"x\": expected 32 bytes, got 64");
  EXPECT_EQ(session->Run({eight, two}, {eight, two}).message,
            "output \"z\": expected 32 bytes, got 8");
  EXPECT_EQ(session->Run({eight, two}, {eight, two}).code, AG_INVALID_ARGUMENT);
}

TEST(CppApi, PassesOptionsOn) {
  const std::string open =
      testing::ModelFromText("g (float[N,4] x) => (float[N,4] y) { y = Relu(x) }");
  auto session = Load(open, {.device = "sim:small", .shapes = {{"x", {3, 4}}}});
  ASSERT_TRUE(session.ok()) << session.status().message;
  EXPECT_THAT(session->outputs()[0].shape, ElementsAre(3, 4));
  EXPECT_THAT(Load(open, {.device = "sim:small"})->outputs()[0].shape, ElementsAre(1, 4));
  EXPECT_EQ(Load(Model(), {.device = "sim:tpu"}).status().code, AG_NOT_FOUND);
  EXPECT_EQ(Load(Model(), {.streams = -1}).status().message, "options.streams: -1 is negative");
}

TEST(CppApi, TunesAndRemembers) {
  const TempDir folder = *TempDir::Make("cpp-api-test");
  const auto load = [&](bool tune) {
    auto session =
        Load(Model(), {.device = "sim:small", .tune = tune, .tuned_plans = folder.path()});
    EXPECT_TRUE(session.ok()) << session.status().message;
    return ListDir(folder.path())->size();
  };
  EXPECT_EQ(load(false), 0u);
  EXPECT_EQ(load(true), 1u);
  EXPECT_EQ(load(true), 1u);
}

TEST(CppApi, OpensFiles) {
  const TempDir folder = *TempDir::Make("cpp-api-test");
  const std::string path = folder.path() + "/model.onnx";
  EXPECT_EQ(autograph::Session::Open(path).status().code, AG_NOT_FOUND);
  ASSERT_TRUE(WriteFileAtomically(path, Model()).ok());
  EXPECT_TRUE(autograph::Session::Open(path, {.device = "sim:small"}).ok());
}

TEST(CppApi, RunsTensorsOfAnySizes) {
  auto session = Load(testing::ModelFromText("g (float[N] x) => (float[N] y) { y = Neg(x) }"), {});
  ASSERT_TRUE(session.ok()) << session.status().message;
  const std::array<float, 3> x = {1, 2, 3};
  const std::array<int64_t, 1> shape = {3};
  const std::array<ag_tensor, 1> inputs = {{{AG_FLOAT32, 1, shape.data(), x.data()}}};
  auto results = session->RunAny(inputs);
  ASSERT_TRUE(results.ok()) << results.status().message;
  ASSERT_EQ(results->size(), 1u);
  EXPECT_EQ((*results)[0].shape[0], 3);
  EXPECT_EQ(static_cast<const float*>((*results)[0].data)[2], -3);
  EXPECT_EQ(session->RunAny({}).status().code, AG_INVALID_ARGUMENT);
}

// More buffers than fit on the stack.
TEST(CppApi, RunsModelsWithManyInputs) {
  std::string inputs, sum = "a0";
  std::string nodes;
  for (int i = 0; i < 20; ++i) inputs += fmt::format("{}float[1] a{}", i > 0 ? ", " : "", i);
  for (int i = 1; i < 20; ++i) {
    const std::string next = i == 19 ? "y" : fmt::format("s{}", i);
    nodes += fmt::format(" {} = Add({}, a{})", next, sum, i);
    sum = next;
  }
  auto session =
      Load(testing::ModelFromText("g (" + inputs + ") => (float[1] y) {" + nodes + " }"), {});
  ASSERT_TRUE(session.ok()) << session.status().message;
  std::vector<std::array<float, 1>> values;
  for (int i = 0; i < 20; ++i) values.push_back({static_cast<float>(i)});
  const std::vector<autograph::Input> given(values.begin(), values.end());
  std::array<float, 1> y = {};
  const std::vector<autograph::Output> wanted = {y};
  ASSERT_TRUE(session->Run(std::span(given), std::span(wanted)).ok());
  EXPECT_EQ(y[0], 190);
}

}  // namespace
}  // namespace ag

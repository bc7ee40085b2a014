// A job whose rules are wrong: a coordinator in this process has a planted rule among the built-in
// ones. The job must end with the right rewrites, name the wrong one, and leave a counter-example
// that shows it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/blobs.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/random.h"
#include "graph/onnx/export/export.h"
#include "graph/onnx/import/import.h"
#include "graph/onnx/tensor_proto.h"
#include "graph/onnx/testing/onnx_testing.h"
#include "graph/reference/evaluate.h"
#include "graph/text_form.h"
#include "plan/equivalence.h"
#include "server/server.h"
#include "tests/cluster.h"
#include "worker/agent.h"

namespace ag {
namespace {

using nlohmann::json;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::UnorderedElementsAre;

constexpr double kAllowed = 1e-3;

// The built-in rules fold two products of the second branch into one. A wrong rule here leaves out
// one of the first branch.
constexpr char kModel[] = R"(
    input x f32[64,64]
    input u f32[64,64]
    output y = matmul(tanh(matmul(x, const f32[64,64] seed 3)), const f32[64,64] seed 4)
    output z = matmul(matmul(u, const f32[64,64] seed 1), const f32[64,64] seed 2)
)";

constexpr char kWrongRewrite[] = "drop-product [exact]: tanh(matmul(x, w)) => tanh(x)\n";
constexpr char kWrongCleanUp[] =
    "drop-product [rounding, clean-up]: tanh(matmul(x, w)) => tanh(x)\n";

// A service in this process, with these rules besides the built-in ones; its children are those of
// the command line's program.
class WrongRuleTest : public ::testing::Test {
 protected:
  void Start(std::string_view wrong) {
    ::setenv("AUTOGRAPH_MEASURING_LOCK", here_.path("lock").c_str(), 1);
    ServerOptions options;
    options.data_dir = here_.path("server");
    options.listen = "127.0.0.1:0";
    options.program = Program("autograph");
    options.more_rules = wrong;
    auto started = Server::Start(options);
    ASSERT_TRUE(started.ok()) << started.status();
    server_ = *std::move(started);
    AgentOptions agent;
    agent.device = "sim:small";
    agent.executor_program = Program("autograph");
    agent.in_process = true;
    agent.blob_cache_dir = "/dev/null/blobs";
    agent_ = std::make_unique<Agent>(server_->InProcessChannel(), agent, RealClock());
    ASSERT_TRUE(Eventually([&] { return server_->OffersDevice(); })) << agent_->health();
  }
  ~WrongRuleTest() override {
    agent_.reset();
    server_.reset();
    ::unsetenv("AUTOGRAPH_MEASURING_LOCK");
  }

  std::string Model(std::string_view text) {
    MemoryWeights weights;
    const Graph graph = *ParseGraph(text, &weights);
    OnnxOrigin origin;
    origin.opsets = {{"", 17}};
    return here_.Write("m.onnx", *ExportOnnx(graph, origin, weights));
  }
  // Optimizes by the command line and returns the result.
  json Optimized(const std::string& model, std::vector<std::string> more = {}) {
    const std::string server = fmt::format("127.0.0.1:{}", server_->port());
    std::vector<std::string> words = {"optimize", model,      "-o",        Out(),   "--server",
                                      server,     "--device", "sim:small", "--json"};
    words.insert(words.end(), more.begin(), more.end());
    const CommandResult ran = here_.Cli(words);
    EXPECT_EQ(ran.code, 0) << ran.err << ran.out;
    return ResultIn(ran.out);
  }
  std::string Out() const { return here_.path("out.onnx"); }

  // The names of the rules in a list of the result.
  static std::vector<std::string> Rules(const json& list) {
    std::vector<std::string> rules;
    for (const json& entry : list) rules.push_back(entry["rule"]);
    return rules;
  }

  // A model file on the reference kernels.
  struct File {
    std::shared_ptr<BlobDir> blobs;
    Graph graph;
  };
  File Read(const std::string& path) {
    File file{*BlobDir::Open(here_.path("blobs")), {}};
    file.graph = ImportOnnx(*ReadFile(path), {}, *file.blobs)->graph;
    return file;
  }
  static std::vector<Tensor> Run(const File& file, const std::vector<Tensor>& inputs) {
    return *Evaluate(file.graph, inputs, BlobWeights(file.blobs));
  }
  static std::vector<Tensor> Tensors(const std::string& folder, const std::string& kind) {
    std::vector<Tensor> tensors;
    for (int i = 0;; ++i) {
      const std::string path = fmt::format("{}/test_data_set_0/{}_{}.pb", folder, kind, i);
      if (!FileExists(path)) return tensors;
      tensors.push_back(*ParseTensorProto(*ReadFile(path)));
    }
  }
  bool Agree(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
    EXPECT_EQ(a.size(), b.size());
    bool agree = !a.empty();
    for (size_t i = 0; i < a.size(); ++i) {
      agree &= IsEquivalent(CompareTensors("y", a[i], b[i]), kAllowed);
    }
    return agree;
  }

  // The output computes what the model does.
  void ExpectRight(const std::string& model) {
    const File before = Read(model), after = Read(Out());
    std::vector<Tensor> inputs;
    for (const NodeId id : before.graph.inputs()) {
      inputs.push_back(RandomTensor(before.graph.type({id, 0}), 77));
    }
    EXPECT_TRUE(Agree(Run(before, inputs), Run(after, inputs)));
  }
  // The files in the folder replay the difference.
  void ExpectShows(const std::string& folder, const std::string& rule) {
    const File before = Read(folder + "/before.onnx"), after = Read(folder + "/after.onnx");
    const std::vector<Tensor> inputs = Tensors(folder, "input");
    const std::vector<Tensor> expected = Tensors(folder, "output");
    ASSERT_FALSE(inputs.empty());
    EXPECT_TRUE(Agree(expected, Run(before, inputs)));
    EXPECT_FALSE(Agree(expected, Run(after, inputs)));
    EXPECT_THAT(*ReadFile(folder + "/README.txt"), HasSubstr(rule));
    EXPECT_THAT(*ReadFile(folder + "/replay.py"), HasSubstr("onnxruntime"));
    const CommandResult verified = here_.Cli({"verify", folder + "/before.onnx", "--against",
                                              folder + "/after.onnx", "--device", "sim:small"});
    EXPECT_EQ(verified.code, 1) << verified.out << verified.err;
  }

  const Alone here_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<Agent> agent_;
};

TEST_F(WrongRuleTest, TheRightRewritesStayAndTheWrongOneIsShown) {
  Start(kWrongRewrite);
  const std::string model = Model(kModel);
  const json result = Optimized(model);
  EXPECT_EQ(result["output"], "REWRITTEN") << result.dump(1);
  EXPECT_THAT(Rules(result["rewrites"]), ElementsAre("matmul-reassociate"));
  ASSERT_THAT(Rules(result["wrong_rewrites"]), ElementsAre("drop-product")) << result.dump(1);
  const json& wrong = result["wrong_rewrites"][0];
  EXPECT_EQ(wrong["clean_up"], false);
  EXPECT_EQ(wrong["error"]["output"], "y");
  EXPECT_GT(wrong["error"]["max_rel"], kAllowed);
  EXPECT_EQ(wrong["tolerance"], kAllowed);
  EXPECT_EQ(wrong["shapes"], "");
  const json& example = wrong["counter_example"];
  EXPECT_EQ(example["left_out"], "");
  EXPECT_EQ(example["whole_model"], false);
  EXPECT_EQ(example["on_device_only"], false);
  EXPECT_EQ(example["inputs"], "usual");
  EXPECT_EQ(example["seed"], "1");
  EXPECT_GT(example["error"]["max_rel"], kAllowed);
  ExpectRight(model);
  const std::string folder = Out() + ".counter-example";
  ExpectShows(folder, "rewrite drop-product at ");
  const File before = Read(folder + "/before.onnx"), after = Read(folder + "/after.onnx");
  EXPECT_EQ(FormatGraph(after.graph),
            FormatGraph(*ParseGraph("input x0 f32[64,64]\noutput y0 = tanh(x0)\n")));
  EXPECT_LT(before.graph.size(), 6);
  EXPECT_THAT(result["warnings"].get<std::vector<std::string>>(),
              Contains(MatchesRegex("rewrite drop-product at .* gives other results .output y: "
                                    "[0-9.]+, allowed 0.001.: left out")));
}

TEST_F(WrongRuleTest, AWrongRuleOfTheCleanUpIsLeftOut) {
  Start(kWrongCleanUp);
  const std::string model = Model(kModel);
  const json result = Optimized(model);
  EXPECT_EQ(result["output"], "REWRITTEN") << result.dump(1);
  EXPECT_THAT(Rules(result["rewrites"]), ElementsAre("matmul-reassociate"));
  EXPECT_THAT(Rules(result["clean_up"]), IsEmpty());
  ASSERT_THAT(Rules(result["wrong_rewrites"]), ElementsAre("drop-product")) << result.dump(1);
  EXPECT_EQ(result["wrong_rewrites"][0]["clean_up"], true);
  ExpectRight(model);
  ExpectShows(Out() + ".counter-example", "clean-up rule drop-product");
}

// The input's own bytes do not go through the job's clean-up.
TEST_F(WrongRuleTest, AWrongCleanUpLeavesTheInputAsItIs) {
  Start("tanh-away [rounding, clean-up]: tanh(x) => relu(x)\n");
  const std::string model = Model("input x f32[64,64]\noutput y = exp(tanh(x))\n");
  const json result = Optimized(model);
  EXPECT_EQ(result["output"], "PLAN_ADDED") << result.dump(1);
  EXPECT_THAT(result["wrong_rewrites"], IsEmpty());
  ExpectRight(model);
}

TEST_F(WrongRuleTest, TwoWrongRulesAreLeftOut) {
  Start(
      "drop-product [exact]: tanh(matmul(x, w)) => tanh(x)\n"
      "drop-other [exact]: exp(matmul(x, w)) => exp(x)\n");
  const std::string model = Model(std::string(kModel) + R"(
    input v f32[64,64]
    output w = matmul(exp(matmul(v, const f32[64,64] seed 5)), const f32[64,64] seed 6)
)");
  const json result = Optimized(model);
  EXPECT_EQ(result["output"], "REWRITTEN") << result.dump(1);
  EXPECT_THAT(Rules(result["rewrites"]), ElementsAre("matmul-reassociate"));
  ASSERT_THAT(Rules(result["wrong_rewrites"]), UnorderedElementsAre("drop-product", "drop-other"));
  ExpectRight(model);
  for (int i = 0; i < 2; ++i) {
    ExpectShows(Out() + (i == 0 ? ".counter-example" : ".counter-example-2"),
                result["wrong_rewrites"][i]["rule"]);
  }
}

// A product of as many open rows as there are, with the weights of `seed`.
std::string Weights(const std::string& name, uint64_t seed) {
  std::string text = "float[32,32] " + name + " = {";
  Random random(seed);
  for (int i = 0; i < 32 * 32; ++i) {
    text += fmt::format("{}{:.4f}", i > 0 ? ", " : "", 0.4 * random.Unit() - 0.2);
  }
  return text + "}";
}

std::string OpenModelOf(const std::string& first_branch) {
  return testing::ModelFromText(
      "net (float[rows,32] x, float[rows,32] u) => (float[rows,32] y, float[rows,32] z) <" +
          Weights("k1", 1) + ", " + Weights("k2", 2) + ", " + Weights("k3", 3) + ", " +
          Weights("k4", 4) + "> {" + first_branch + R"(
            c = MatMul (u, k1)
            z = MatMul (c, k2)
          })",
      13);
}

// With open sizes the right rewrites stay, and so do the sizes.
TEST_F(WrongRuleTest, AFileWithOpenSizesKeepsThem) {
  Start(kWrongRewrite);
  const std::string model = here_.Write("m.onnx", OpenModelOf(R"(
            a = MatMul (x, k3)
            b = Tanh (a)
            y = MatMul (b, k4))"));
  const json result = Optimized(model, {"--shape", "x=24x32", "--shape", "u=24x32"});
  EXPECT_EQ(result["output"], "REWRITTEN") << result.dump(1);
  EXPECT_THAT(result["kept_open"], ElementsAre("x:0 (rows)", "u:0 (rows)"));
  EXPECT_THAT(Rules(result["rewrites"]), ElementsAre("matmul-reassociate"));
  EXPECT_THAT(Rules(result["wrong_rewrites"]), ElementsAre("drop-product"));
  EXPECT_EQ(result["wrong_rewrites"][0]["shapes"], "");
  ExpectShows(Out() + ".counter-example", "drop-product");
}

// A rule that is right for one row only is found at the sizes where it is wrong.
TEST_F(WrongRuleTest, AMistakeAtOtherSizesIsFoundThere) {
  Start("no-weights [exact]: mul(softmax(x; axis=0), z) => z if shape(x) == shape(z)\n");
  const std::string model = here_.Write("m.onnx", OpenModelOf(R"(
            a = MatMul (x, k3)
            s = Softmax <axis = 0> (x)
            b = Mul (s, a)
            y = MatMul (b, k4))"));
  const json result = Optimized(model, {"--shape", "x=1x32", "--shape", "u=1x32"});
  EXPECT_EQ(result["output"], "REWRITTEN") << result.dump(1);
  EXPECT_THAT(result["kept_open"], ElementsAre("x:0 (rows)", "u:0 (rows)"));
  ASSERT_THAT(Rules(result["wrong_rewrites"]), ElementsAre("no-weights")) << result.dump(1);
  EXPECT_THAT(std::string(result["wrong_rewrites"][0]["shapes"]), HasSubstr("x="));
  ExpectShows(Out() + ".counter-example", "no-weights");
}

}  // namespace
}  // namespace ag

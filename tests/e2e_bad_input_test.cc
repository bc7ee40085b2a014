// Files and models that are wrong, by the real programs: every verb that reads a model says which
// file and what is wrong with it, and ends with the exit code of docs/cli.md.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "graph/onnx/testing/onnx_testing.h"
#include "graph/onnx/wire.h"
#include "tests/cluster.h"

namespace ag {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using testing::ModelFromText;
using testing::SequenceModelFromText;

struct BadModel {
  const char* name;
  std::string bytes;
  std::string message;  // All that is said of the model.
};

// Its one initializer claims these sizes and holds eight bytes.
std::string ModelWithWeight(std::vector<int64_t> dims) {
  OnnxModel model;
  model.origin.opsets = {{"", 17}};
  model.inputs = {{.name = "x", .data_type = 1, .has_shape = true, .dims = {{2}}}};
  model.outputs = {{.name = "y", .data_type = 1, .has_shape = true, .dims = {{2}}}};
  model.nodes = {{.op_type = "Add", .inputs = {"x", "w"}, .outputs = {"y"}}};
  model.initializers = {
      {.name = "w", .data_type = 1, .dims = std::move(dims), .bytes = {"12345678", 8}}};
  return *SerializeModel(model);
}

std::vector<BadModel> BadFiles() {
  const std::string good = testing::ConvModel();
  return {
      {"text", "this is no model", "not ONNX: this is text"},
      {"json", "{\"nodes\": []}", "not ONNX: this is JSON"},
      {"picture", "\xff\xd8\xff\xe0 JFIF", "not ONNX: this is a JPEG picture"},
      {"empty", "", "the model is empty"},
      {"cut", good.substr(0, good.size() - 100),
       fmt::format("not ONNX, or cut short: no whole field at byte 2 of {}", good.size() - 100)},
      {"sparse", testing::SparseModel({.values = {1}, .indices = {6}, .index_dims = {1}}),
       "sparse tensor \"w\": index 6 at position 0 is outside of f32[2,3]"},
      {"sizes-overflow", ModelWithWeight({int64_t{1} << 62, 4}),
       "tensor \"w\": f32[4611686018427387904,4] has more than 2^40 elements"},
      {"sizes-huge", ModelWithWeight({int64_t{1} << 40}),
       "tensor \"w\": f32[1099511627776] needs 4398046511104 bytes, the model has 8"},
      {"sizes-negative", ModelWithWeight({-2}), "tensor \"w\": negative size in f32[-2]"},
  };
}

std::vector<BadModel> BadGraphs() {
  return {
      {"sizes-that-do-not-fit",
       ModelFromText("g (float[batch,3] x, float[4] w) => (float[batch,3] y) { y = Add(x, w) }"),
       "node 0 (Add): add: [1,3] and [4] do not broadcast (the model leaves sizes open, these were "
       "chosen: --shape x=1x3; 7 other sets of sizes fit no better: give them)"},
      {"cycle", ModelFromText("g (float[2] x) => (float[2] y) { a = Add(x, y) y = Relu(a) }"),
       "node 0 (Add) waits for its own output: the model has a cycle"},
      {"types", ModelFromText("g (float[2] x, int64[2] i) => (float[2] y) { y = Add(x, i) }"),
       "node 0 (Add): add: element types differ: f32 and i64"},
      {"no-weight", ModelFromText("g (float[2] x) => (float[2] y) { y = Add(x, w) }"),
       "node 0 (Add): nothing defines its input \"w\""},
      {"two-makers", ModelFromText("g (float[2] x) => (float[2] y) { y = Exp(x) y = Relu(x) }"),
       "tensor \"y\" is an output of node 0 (Exp) and of node 1 (Relu)"},
      {"huge-input",
       ModelFromText("g (float[2000000,2000000] x) => (float[2000000,2000000] y) { y = Relu(x) }"),
       "input \"x\": f32[2000000,2000000] has more than 2^40 elements"},
      {"huge-constant",
       ModelFromText("g (float[2] x) => (float[2] y) <int64[1] s = {10000000000}>"
                     "{ a = ConstantOfShape(s) y = Add(x, a) }"),
       "node 0 (ConstantOfShape): f32[10000000000] has 40000000000 bytes, the limit is 4294967296 "
       "a tensor"},
      {"new", ModelFromText("g (float[2] x) => (float[2] y) { y = Relu(x) }", 29),
       "opset 29 is outside 1 to 28: export the model again for opset 28"},
      {"function-that-calls-itself",
       ModelFromText("<ir_version: 8, opset_import: [\"\" : 17, \"f\" : 1]>"
                     "g (float[2] x) => (float[2] y) { y = f.again(x) }"
                     "<domain: \"f\", opset_import: [\"\" : 17, \"f\" : 1]>"
                     "again (a) => (b) { b = f.again(a) }"),
       "node 0 (again): node 0 (again): the function calls itself, by others or directly"},
      {"branches",
       ModelFromText(
           "g (float[2] x, bool c) => (float[2] y) { y = If<"
           "then_branch = t () => (float[2] a) { a = Relu(x) }, "
           "else_branch = e () => (float[2] b, float[2] d) { b = Exp(x) d = Neg(x) }>(c) }"),
       "node 0 (If): the branches have 1 and 2 outputs"},
      {"sequence-of-sequences",
       ModelFromText("g (float[2] x) => (int64 y) { s = SequenceConstruct(x)"
                     "t = SequenceConstruct(s) y = SequenceLength(t) }"),
       "node 1 (SequenceConstruct): input 0 is a sequence, the operator takes tensors"},
      {"input-of-sequences",
       SequenceModelFromText("g (float[2] s) => (int64 y) { y = SequenceLength(s) }", {"s", "s"}),
       "input \"s\" is neither a tensor nor a sequence or an optional of tensors"},
      {"unknown-operator",
       ModelFromText("g (float[2] x) => (float[2] y) { a = Nonsense(x) y = Relu(a) }"),
       "node 0 (Nonsense): the operator is not known, and it cannot be kept: the model "
       "does not state the type of \"a\" (as value_info)"},
  };
}

class BadInput : public ::testing::Test {
 protected:
  // One command line without a coordinator.
  static CommandResult Cli(const std::vector<std::string>& words) { return alone().Cli(words); }
  static const Alone& alone() {
    static const Alone alone;
    return alone;
  }
};

// Exactly one line on standard error, and it is this one.
void ExpectSays(const CommandResult& result, int code, const std::string& line,
                const std::string& noun) {
  EXPECT_EQ(result.code, code) << noun << ": " << result.out << result.err;
  EXPECT_EQ(result.err, "autograph: " + line + "\n") << noun;
}

TEST_F(BadInput, RunAndVerifyNameTheFile) {
  std::vector<BadModel> cases = BadFiles();
  for (BadModel& c : BadGraphs()) cases.push_back(std::move(c));
  const std::string good =
      alone().Write("good.onnx", ModelFromText("g (float[2] x) => (float[2] y) { y = Relu(x) }"));
  for (const BadModel& c : cases) {
    const std::string file = alone().Write(fmt::format("{}.onnx", c.name), c.bytes);
    const std::string line = file + ": " + c.message;
    ExpectSays(Cli({"run", file, "--device", "sim:small"}), 3, line, c.name);
    ExpectSays(Cli({"verify", good, "--against", file, "--device", "sim:small"}), 3, line, c.name);
  }
}

TEST_F(BadInput, OptimizeNamesTheModelAndWritesNothing) {
  Cluster cluster;
  std::vector<BadModel> cases = BadFiles();
  for (BadModel& c : BadGraphs()) cases.push_back(std::move(c));
  int job = 0;
  for (const BadModel& c : cases) {
    const std::string file = alone().Write(fmt::format("{}.onnx", c.name), c.bytes);
    const std::string out = cluster.path("out.onnx");
    const CommandResult result =
        cluster.Cli({"optimize", file, "-o", out, "--device", "sim:small", "--json"});
    ++job;
    ExpectSays(result, 3, fmt::format("jobs/{}: {}", job, c.message), c.name);
    const json document = json::parse(result.out, nullptr, false);
    ASSERT_TRUE(document.is_object()) << c.name;
    EXPECT_EQ(document["state"], "FAILED") << c.name;
    EXPECT_EQ(document["error"]["message"], c.message) << c.name;
    EXPECT_FALSE(FileExists(out)) << c.name;
  }
  // The service is as well as before.
  EXPECT_TRUE(cluster.WorkerServes());
  EXPECT_EQ(cluster.Cli({"jobs", "show", "jobs/1"}).code, 1);
}

TEST_F(BadInput, EmbeddedOptimizeSaysTheSame) {
  const std::string file = alone().Write("embedded.onnx", "this is no model");
  const CommandResult result =
      Cli({"optimize", file, "-o", alone().path("o.onnx"), "--device", "sim:small", "--json"});
  ExpectSays(result, 3, "jobs/1: not ONNX: this is text", "text");
}

TEST_F(BadInput, ABoundDimensionWorks) {
  Cluster cluster;
  const std::string file = alone().Write(
      "batch.onnx", ModelFromText("g (float[batch,3] x) => (float[batch,3] y) { y = Relu(x) }"));
  const std::string out = cluster.path("out.onnx");
  const CommandResult ran = Cli({"run", file, "--device", "sim:small", "--shape", "x=2x3"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("y: f32[2,3]"));
  Optimized(cluster, file, out, {"--shape", "x=2x3"});
  EXPECT_TRUE(FileExists(out));
  ExpectSays(Cli({"run", file, "--device", "sim:small", "--shape", "z=2x3"}), 3,
             file + ": --shape names \"z\", the inputs are \"x\"", "no such input");
  ExpectSays(Cli({"run", file, "--device", "sim:small", "--shape", "x=2"}), 3,
             file + ": input \"x\" has rank 2, --shape gives [2]", "another rank");
  const std::string message = "input \"x\": dimension 1 is 3 in the model, --shape gives 4";
  ExpectSays(Cli({"run", file, "--device", "sim:small", "--shape", "x=2x4"}), 3,
             file + ": " + message, "another size");
  const CommandResult refused =
      cluster.Cli({"optimize", file, "-o", out, "--device", "sim:small", "--shape", "x=2x4"});
  EXPECT_EQ(refused.code, 3);
  EXPECT_THAT(refused.err, ::testing::EndsWith("autograph: jobs/2: " + message + "\n"));
}

TEST_F(BadInput, FilesThatCannotBeRead) {
  const std::string folder = alone().path("folder");
  ASSERT_TRUE(MakeDirs(folder).ok());
  const struct {
    std::string path, message;
  } cases[] = {
      {"/nowhere/x.onnx", "read /nowhere/x.onnx: No such file or directory"},
      {folder, "read " + folder + ": not a regular file"},
      {"/dev/null", "read /dev/null: not a regular file"},
  };
  for (const auto& c : cases) {
    ExpectSays(Cli({"run", c.path, "--device", "sim:small"}), 3, c.message, "run");
    ExpectSays(Cli({"optimize", c.path, "-o", alone().path("o.onnx"), "--device", "sim:small"}), 3,
               c.message, "optimize");
  }
  ExpectSays(Cli({"verify", folder, "--device", "sim:small"}), 3,
             "read " + folder + "/model.onnx: No such file or directory", "verify");
}

TEST_F(BadInput, AFileWithoutPermission) {
  Alone place;
  const std::string file = place.Write("secret.onnx", testing::ConvModel());
  ASSERT_EQ(chmod(place.folder.path().c_str(), 0755), 0);
  ASSERT_EQ(chmod(file.c_str(), 0), 0);
  const CommandResult result = RunCommand(
      WithoutRoot({Program("autograph"), "run", file, "--device", "sim:small"}), place.variables);
  if (result.code == 127) GTEST_SKIP() << "the programs cannot be run as another user here";
  ExpectSays(result, 3, "read " + file + ": Permission denied", "run");
}

// An operator of somebody else's between two places to win, by rewrites and, whatever was measured,
// by the clean-up.
constexpr char kCustom[] = R"(<ir_version: 8, opset_import: ["" : 17, "acme.ops" : 3]>
  g (float[4,4] pixels) => (float[4,4] scores)
    <float[4,4] v = {1,0,2,0, 0,1,0,3, 1,1,0,0, 0,2,0,1}, float[4,4] w = {0,1,0,2, 1,0,1,0,
     3,0,1,0, 0,1,0,1}, float[4,4] b> {
    o = Identity(pixels)
    p = MatMul(o, v)
    q = MatMul(p, w)
    a = Relu(q)
    b = acme.ops.Sparkle<level = 3, gain = 0.5, mode = "soft", steps = [1, 2, 3]>(a)
    r = MatMul(b, v)
    s = MatMul(r, w)
    t = Identity(s)
    scores = Relu(t)
  })";

TEST_F(BadInput, AnOperatorOfSomebodyElseIsKept) {
  const std::string file = alone().Write("custom.onnx", ModelFromText(kCustom));
  {
    Cluster cluster;  // Without ONNX Runtime nothing can run it: nothing is claimed.
    const std::string out = cluster.path("same.onnx");
    const json result = Optimized(cluster, file, out);
    EXPECT_EQ(result["verdict"], "NOT_MEASURED");
    EXPECT_EQ(result["speedup"], 0);
    EXPECT_FALSE(result.contains("input_latency"));
    EXPECT_THAT(result["warnings"].dump(), HasSubstr("not timed: ONNX Runtime: there is none"));
    EXPECT_EQ(result["output"], "INPUT");
    EXPECT_EQ(DigestOfFile(out), DigestOfFile(file));
  }
  ClusterOptions options{.device = "cpu:1"};
  FakeOnnxRuntime(options.worker_variables, alone().path("python"), file, "80", "scores");
  Cluster cluster(options);
  const std::string out = cluster.path("custom_out.onnx");
  const json result = Optimized(cluster, file, out, {}, "cpu:1");
  EXPECT_EQ(result["verdict"], "FASTER") << result.dump(2);
  EXPECT_EQ(result["output_runtime"], "ONNX Runtime 9.9");
  EXPECT_FALSE(result.contains("over_untuned"));
  EXPECT_THAT(result["warnings"].dump(),
              HasSubstr("acme.ops.Sparkle\\\": no kernel on cpu:1: kept as it is"));

  const std::string before = *ReadFile(file), after = *ReadFile(out);
  const auto given = ParseModel(before, 1000), made = ParseModel(after, 1000);
  ASSERT_TRUE(given.ok() && made.ok());
  EXPECT_LT(made->nodes.size(), given->nodes.size());
  EXPECT_EQ(made->inputs[0].name, "pixels");
  EXPECT_EQ(made->outputs[0].name, "scores");
  const auto custom = [](const OnnxModel& model) {
    std::vector<std::string> found;
    for (const OnnxNode& node : model.nodes) {
      if (node.domain == "acme.ops") found.push_back(*AnonymousNode(node));
    }
    return found;
  };
  ASSERT_EQ(custom(*given).size(), 1u);
  EXPECT_EQ(custom(*made), custom(*given));  // Operator and attributes, byte by byte.
  const auto& opsets = made->origin.opsets;
  EXPECT_THAT(opsets, ::testing::Contains(std::pair<std::string, int64_t>("acme.ops", 3)));

  if (const char* python = std::getenv("AUTOGRAPH_PYTHON")) {
    const CommandResult checked =
        RunCommand({python, "-c", "import onnx, sys; onnx.checker.check_model(sys.argv[1])", out});
    EXPECT_EQ(checked.code, 0) << checked.err;
  }
  // Nothing here can run it, and that is what is said. How many nodes are before it, so its name,
  // hangs on what was measured.
  const auto kept = std::ranges::find(made->nodes, "acme.ops", &OnnxNode::domain);
  const CommandResult ran = Cli({"run", out, "--device", "sim:small"});
  ExpectSays(
      ran, 3,
      fmt::format("{}: node \"{}\": operator acme.ops.Sparkle: optimize keeps it as it is, but "
                  "nothing here can run it",
                  out, kept->name),
      "run");
}

}  // namespace
}  // namespace ag

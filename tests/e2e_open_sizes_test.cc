// Sizes that a model leaves open stay open in a rewritten file, and it computes the same at others.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/random.h"
#include "graph/onnx/fields.h"
#include "graph/onnx/testing/onnx_testing.h"
#include "graph/onnx/wire.h"
#include "tests/cluster.h"

namespace ag {
namespace {

using nlohmann::json;

// Returns "float[8,4] w = {0.12, ...}".
std::string Weight(const std::string& name, const std::vector<int64_t>& shape, Random& random) {
  int64_t elements = 1;
  for (const int64_t size : shape) elements *= size;
  std::string text = fmt::format("float[{}] {} = {{", fmt::join(shape, ","), name);
  for (int64_t i = 0; i < elements; ++i) {
    text += fmt::format("{}{:.4f}", i > 0 ? ", " : "", 0.4 * random.Unit() - 0.2);
  }
  return text + "}";
}

// A convolution and three branches of one operand, as exporters write a network with open batch.
// `after_first` is its first activation.
std::string OpenCnn(const std::string& after_first = "r = Relu (s)") {
  Random random(1);
  const std::string weights =
      Weight("w", {16, 3, 3, 3}, random) + ", " + Weight("a", {16, 16, 1, 1}, random) + ", " +
      Weight("b", {16, 16, 1, 1}, random) + ", " + Weight("c", {16, 16, 1, 1}, random) + ", " +
      Weight("f", {10, 48}, random) + ", " + Weight("g", {10}, random);
  return testing::ModelFromText("net (float[batch,3,32,32] x) => (float[batch,10] y) <" + weights +
                                    R"(> {
        s = Conv <pads = [1, 1, 1, 1]> (x, w)
        )" + after_first + R"(
        p = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (r)
        pa = Conv (p, a)
        pb = Conv (p, b)
        pc = Conv (p, c)
        ra = Relu (pa)
        rb = Relu (pb)
        rc = Relu (pc)
        all = Concat <axis = 1> (ra, rb, rc)
        mean = GlobalAveragePool (all)
        flat = Flatten <axis = 1> (mean)
        y = Gemm <transB = 1> (flat, f, g)
      })",
                                13);
}

// One layer of a transformer whose batch and sequence are open: shapes are computed in the model.
std::string OpenEncoder() {
  Random random(2);
  std::string weights =
      "int64[1] zero = {0}, int64[1] one = {1}, int64[1] heads = {4}, int64[1] width = {8}, "
      "int64[1] rest = {-1}, float scale = {0.35355339}";
  for (const char* name : {"wq", "wk", "wv", "wo"}) {
    weights += ", " + Weight(name, {32, 32}, random);
  }
  for (const char* name : {"bq", "bk", "bv"}) weights += ", " + Weight(name, {32}, random);
  std::string body = R"(
        shape = Shape (x)
        batch = Gather <axis = 0> (shape, zero)
        sequence = Gather <axis = 0> (shape, one)
        split = Concat <axis = 0> (batch, sequence, heads, width)
        joined = Concat <axis = 0> (batch, sequence, rest))";
  for (const char* part : {"q", "k", "v"}) {
    body += fmt::format(R"(
        m{0} = MatMul (x, w{0})
        a{0} = Add (m{0}, b{0})
        r{0} = Reshape (a{0}, split)
        {0} = Transpose <perm = [0, 2, {1}]> (r{0}))",
                        part, std::string(part) == "k" ? "3, 1" : "1, 3");
  }
  body += R"(
        qk = MatMul (q, k)
        scaled = Mul (qk, scale)
        soft = Softmax <axis = 3> (scaled)
        heads_out = MatMul (soft, v)
        back = Transpose <perm = [0, 2, 1, 3]> (heads_out)
        flat = Reshape (back, joined)
        out = MatMul (flat, wo)
        y = Add (out, x))";
  return testing::ModelFromText(
      "net (float[batch,sequence,32] x) => (float[batch,sequence,32] y) <" + weights + "> {" +
          body + "\n}",
      13);
}

// Compares both files in ONNX Runtime too, where the tests have a Python with it.
void ExpectAgreesElsewhere(const std::string& a, const std::string& b, const std::string& shape) {
  const char* python = std::getenv("AUTOGRAPH_PYTHON");
  if (python == nullptr) return;
  const CommandResult agrees = RunCommand(
      {python, std::string(AG_SOURCE_DIR) + "/tests/onnxruntime_agrees.py", a, b, "1e-3", shape});
  EXPECT_EQ(agrees.code, 0) << shape << "\n" << agrees.out << agrees.err;
}

// A device on which some rewrite is faster, whatever the model: kernels' times scatter.
std::string WithAWinner(const Alone& place) { return place.SimSmallWith("scatter 0.5\n"); }

struct OpenModel {
  std::string bytes;
  const char* bound;
  std::vector<std::string> kept;
  std::vector<std::string> others;
};

void ExpectStaysOpen(const OpenModel& model) {
  Alone place;
  const std::string in = place.Write("in.onnx", model.bytes), out = place.path("out.onnx");
  const std::string device = WithAWinner(place);
  const CommandResult done =
      place.Cli({"optimize", in, "-o", out, "--device", device, "--shape", model.bound, "--json"});
  ASSERT_EQ(done.code, 0) << done.err;
  const json result = ResultIn(done.out);
  ASSERT_EQ(result["output"], "REWRITTEN") << result.dump(2);
  EXPECT_FALSE(result["rewrites"].empty());
  EXPECT_EQ(result["kept_open"], json(model.kept)) << result["warnings"].dump(2);
  EXPECT_EQ(result["measured_at"], model.bound);
  for (const std::string& shape : model.others) {
    const CommandResult same = place.Cli({"verify", in, "--against", out, "--shape", shape});
    EXPECT_EQ(same.code, 0) << shape << "\n" << same.out << same.err;
    ExpectAgreesElsewhere(in, out, shape);
  }
  // A session without a shape takes the sizes that the plan was made for.
  const CommandResult shown = place.Cli({"plan", "show", out, "--device", device});
  EXPECT_EQ(shown.code, 0) << shown.err;
  EXPECT_EQ(shown.err.find("ignored"), std::string::npos) << shown.err;
}

TEST(OpenSizes, ABatchStaysOpen) {
  ExpectStaysOpen({OpenCnn(),
                   "x=1x3x32x32",
                   {"x:0 (batch)"},
                   {"x=1x3x32x32", "x=2x3x32x32", "x=5x3x32x32", "x=16x3x32x32"}});
}

TEST(OpenSizes, SizesThatNobodyGaveAreSaidBeforeTheSearch) {
  Alone place;
  const std::string in = place.Write("in.onnx", OpenCnn());
  const CommandResult done =
      place.Cli({"optimize", in, "-o", place.path("out.onnx"), "--device", "sim:small"});
  ASSERT_EQ(done.code, 0) << done.err;
  const size_t said =
      done.err.find("the model leaves sizes open, these were chosen: --shape x=1x3x32x32\n");
  ASSERT_NE(said, std::string::npos) << done.err;
  EXPECT_LT(said, done.err.find("searching")) << done.err;
}

TEST(OpenSizes, BatchAndSequenceStayOpen) {
  ExpectStaysOpen({OpenEncoder(),
                   "x=1x64x32",
                   {"x:0 (batch)", "x:1 (sequence)"},
                   {"x=1x64x32", "x=1x1x32", "x=3x17x32", "x=4x100x32"}});
}

// The same layer with names, comments and types, as exporters write them.
std::string StatedEncoder() {
  const std::string bytes = OpenEncoder();
  OnnxModel model = *ParseModel(bytes, 1000);
  model.origin.ir_version = 10;
  model.origin.doc_string = "an encoder";
  for (OnnxNode& node : model.nodes) {
    const std::string comment = "made " + node.outputs[0];
    node.name = "/" + node.outputs[0];
    AppendLengthTag(kNodeNotes[0], comment.size(), node.notes);
    node.notes += comment;
  }
  const auto state = [&](const char* name, std::vector<OnnxDim> dims) {
    model.value_infos.push_back(
        {.name = name, .data_type = 1, .has_shape = true, .dims = std::move(dims)});
  };
  const OnnxDim batch{-1, "batch"}, sequence{-1, "sequence"};
  state("mq", {batch, sequence, {32}});
  state("soft", {batch, {4}, sequence, sequence});
  state("out", {batch, sequence, {32}});
  return *SerializeModel(model);
}

// Checks a file with ONNX's own checker, where the tests have a Python with it.
void ExpectStandard(const std::string& file) {
  const char* python = std::getenv("AUTOGRAPH_PYTHON");
  if (python == nullptr) return;
  const CommandResult checked = RunCommand(
      {python, "-c", "import onnx, sys; onnx.checker.check_model(sys.argv[1], full_check=True)",
       file});
  EXPECT_EQ(checked.code, 0) << checked.err;
}

TEST(OpenSizes, WhatTheModelStatesStays) {
  Alone place;
  const std::string in = place.Write("in.onnx", StatedEncoder()), out = place.path("out.onnx");
  const CommandResult done = place.Cli({"optimize", in, "-o", out, "--device", WithAWinner(place),
                                        "--shape", "x=1x64x32", "--json"});
  ASSERT_EQ(done.code, 0) << done.err;
  const json result = ResultIn(done.out);
  ASSERT_EQ(result["output"], "REWRITTEN") << result.dump(2);
  ASSERT_FALSE(result["kept_open"].empty()) << result["warnings"];
  const std::string bytes = *ReadFile(out);
  const OnnxModel model = *ParseModel(bytes, 1000);
  EXPECT_EQ(model.origin.doc_string, "an encoder");
  const auto soft = std::ranges::find(model.value_infos, "soft", &OnnxValueInfo::name);
  ASSERT_NE(soft, model.value_infos.end());
  std::string dims;
  for (const OnnxDim& dim : soft->dims) dims += fmt::format("{}{} ", dim.name, dim.size);
  EXPECT_EQ(dims, "batch-1 4 sequence-1 sequence-1 ");
  EXPECT_NE(bytes.find("made soft"), std::string::npos);
  std::string rules;
  for (const auto& [key, value] : model.origin.metadata) {
    if (key == "autograph.rules") rules = value;
  }
  // What a later rewrite replaced stands in no node.
  const bool names_a_rule = std::ranges::any_of(result["rewrites"], [&](const json& rewrite) {
    return rules.find("\t" + rewrite["rule"].get<std::string>() + "\n") != std::string::npos;
  });
  EXPECT_TRUE(names_a_rule) << rules;
  ExpectStandard(out);
  ExpectAgreesElsewhere(in, out, "x=3x17x32");
}

// Each set has a plan in the file, which a session takes at these sizes.
TEST(ShapeSets, GetAPlanEach) {
  Alone place;
  const std::string in = place.Write("in.onnx", OpenEncoder()), out = place.path("out.onnx");
  const std::string device = WithAWinner(place);
  const CommandResult done =
      place.Cli({"optimize", in, "-o", out, "--device", device, "--shape", "x=1x64x32",
                 "--shape-set", "x=4x100x32", "--shape-set", "x=2x16x32", "--json"});
  ASSERT_EQ(done.code, 0) << done.err;
  const json result = ResultIn(done.out);
  ASSERT_EQ(result["shape_sets"].size(), 2u) << result.dump(2);
  EXPECT_EQ(result["shape_sets"][0]["shapes"], "x=4x100x32");
  EXPECT_EQ(result["shape_sets"][1]["shapes"], "x=2x16x32");
  for (const json& set : result["shape_sets"]) {
    EXPECT_GT(set["groups"], 0);
    EXPECT_EQ(set["verdict"], "FASTER") << set;
    EXPECT_GT(set["speedup"]["low"], 1.01) << set;
  }
  for (const char* shape : {"x=1x64x32", "x=4x100x32", "x=2x16x32", "x=3x17x32"}) {
    const CommandResult shown =
        place.Cli({"plan", "show", out, "--device", device, "--shape", shape, "--json"});
    ASSERT_EQ(shown.code, 0) << shown.err;
    const bool carried = std::string(shape) != "x=3x17x32";
    EXPECT_EQ(json::parse(shown.out)["carried"], carried) << shape << shown.out;
    const CommandResult same = place.Cli({"verify", in, "--against", out, "--shape", shape});
    EXPECT_EQ(same.code, 0) << shape << "\n" << same.out << same.err;
  }
}

// The whole of what is said, and nothing is left behind.
TEST(ShapeSets, ThatDoNotFitAreOneMessage) {
  Alone place;
  const std::string in = place.Write("in.onnx", OpenEncoder());
  const std::string narrow =
      place.Write("narrow.onnx",
                  testing::ModelFromText("g (float[batch,n] x, float[4] w) => (float[batch,n] y) "
                                         "{ y = Add(x, w) }"));
  ASSERT_TRUE(MakeDirs(place.path("out")).ok());
  const struct {
    std::vector<std::string> sets;
    const char* message;
  } kWrong[] = {
      {{"x=1x64x32"}, "shape set 1 (x=1x64x32) and the bound sizes are the same: x=1x64x32"},
      {{"x=2x8x32", "x=2x8x32"},
       "shape set 2 (x=2x8x32) and shape set 1 (x=2x8x32) are the same: x=2x8x32"},
      {{"x=4x64x33"},
       "shape set 1 (x=4x64x33): input \"x\": dimension 2 is 32 in the model, --shape gives 33"},
      {{"x=4x64"}, "shape set 1 (x=4x64): input \"x\" has rank 3, --shape gives [4,64]"},
      {{"z=4x64x32"}, "shape set 1 (z=4x64x32): --shape names \"z\", the inputs are \"x\""},
      {{"x=4x64x32 x=4x8x32"}, "shape set 1: x is bound twice"},
      {{""}, "shape set 1: is empty"},
  };
  const auto expect_refused = [&](const std::string& model, const std::string& bound,
                                  const std::vector<std::string>& sets, const char* message) {
    std::vector<std::string> words = {"optimize", model,       "-o",      place.path("out/o.onnx"),
                                      "--device", "sim:small", "--shape", bound,
                                      "--json"};
    for (const std::string& set : sets) words.insert(words.end(), {"--shape-set", set});
    const CommandResult refused = place.Cli(words);
    EXPECT_NE(refused.code, 0) << message;
    EXPECT_TRUE(refused.err.starts_with("autograph: ")) << refused.err;
    EXPECT_TRUE(refused.err.ends_with(fmt::format(": {}\n", message))) << refused.err;
    EXPECT_EQ(std::ranges::count(refused.err, '\n'), 1) << refused.err;
    EXPECT_TRUE(ListDir(place.path("out"))->empty()) << message;
  };
  for (const auto& wrong : kWrong) expect_refused(in, "x=1x64x32", wrong.sets, wrong.message);
  // Sizes that the nodes cannot take.
  expect_refused(narrow, "x=1x4", {"x=2x4", "x=2x5"},
                 "shape set 2 (x=2x5): node 0 (Add): add: [2,5] and [4] do not broadcast");
}

// Where a batch of one computes something else, the rewrites of it do not hold for others.
TEST(OpenSizes, AreFixedWhereTheModelDiffersBetweenThem) {
  Alone place;
  const std::string model = OpenCnn(R"(shape = Shape (x)
        zero = Constant <value = int64[1] {0}> ()
        one = Constant <value = int64[1] {1}> ()
        batch = Gather <axis = 0> (shape, zero)
        is_one = Equal (batch, one)
        branch = Squeeze (is_one, zero)
        r = If (branch) <then_branch = t () => (float[batch,16,32,32] tz) { tz = Relu (s) },
                         else_branch = e () => (float[batch,16,32,32] ez) { ez = Sin (s) }>)");
  const std::string in = place.Write("in.onnx", model), out = place.path("out.onnx");
  const CommandResult done = place.Cli({"optimize", in, "-o", out, "--device", WithAWinner(place),
                                        "--shape", "x=1x3x32x32", "--json"});
  ASSERT_EQ(done.code, 0) << done.err;
  const json result = ResultIn(done.out);
  ASSERT_EQ(result["output"], "REWRITTEN") << result.dump(2);
  EXPECT_TRUE(result["kept_open"].empty());
  const std::string warnings = result["warnings"].dump();
  EXPECT_NE(warnings.find("are fixed in the output: x:0 (batch)"), std::string::npos) << warnings;
  EXPECT_NE(warnings.find("the winner with open sizes is not published: "), std::string::npos)
      << warnings;
}

}  // namespace
}  // namespace ag

// Tests of the verbs that run models in this process, by their output and exit codes.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "client/cli/local_model.h"
#include "client/cli/testing/testing.h"
#include "client/cli/verbs.h"
#include "graph/onnx/testing/onnx_testing.h"

namespace ag {
namespace {

constexpr std::string_view kRelu = "g (float[2] x) => (float[2] y) { y = Relu(x) }";
constexpr std::string_view kTwice = "g (float[2] x) => (float[2] y) { a = Relu(x) y = Add(a, a) }";
constexpr std::string_view kTwoOutputs =
    "g (float[2] x) => (float[2] y, float[2] z) { y = Relu(x) z = Abs(x) }";

// Returns a serialized TensorProto of floats.
std::string Proto(const std::vector<float>& values) {
  std::string bytes = {'\x08', static_cast<char>(values.size()),    '\x10', '\x01',
                       '\x4a', static_cast<char>(4 * values.size())};
  return bytes.append(reinterpret_cast<const char*>(values.data()), 4 * values.size());
}

template <class Verb, class Flags>
Ran Call(Verb verb, const Flags& flags, bool json = false) {
  Context context({.json = json});
  return Capture([&] { return context.CodeOf(verb(context, flags)); });
}

class RunTest : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const { return folder_.path() + "/" + name; }
  std::string Write(const std::string& name, const std::string& bytes) {
    const std::string path = Path(name);
    AG_CHECK(MakeDirs(path.substr(0, path.rfind('/'))).ok());
    AG_CHECK(WriteFileAtomically(path, bytes).ok());
    return path;
  }
  std::string Model(const std::string& name, std::string_view text) {
    return Write(name, testing::ModelFromText(text));
  }
  static VerifyFlags Verify(const std::string& model, const std::string& against = "") {
    return {.model = {.model = model, .device = "sim:small"}, .against = against};
  }
  const TempDir folder_ = *TempDir::Make("run-test");
};

// --- verify MODEL --against MODEL

TEST_F(RunTest, VerifyComparesTwoModels) {
  const std::string a = Model("a.onnx", kRelu), b = Model("b.onnx", kTwice);
  const Ran same = Call(RunVerify, Verify(a, a));
  EXPECT_EQ(same.code, kExitOk) << same.err;
  EXPECT_EQ(same.out,
            "same      y                        max abs 0  max rel 0\nequivalent within 0.001\n");
  const Ran differ = Call(RunVerify, Verify(a, b));
  EXPECT_EQ(differ.code, kExitFailed);
  EXPECT_TRUE(differ.out.starts_with("DIFFERENT y ")) << differ.out;
  EXPECT_TRUE(differ.out.ends_with("NOT equivalent within 0.001\n")) << differ.out;

  const Ran json = Call(RunVerify, Verify(a, b), /*json=*/true);
  EXPECT_EQ(json.code, kExitFailed);
  const auto answer = nlohmann::json::parse(json.out);
  EXPECT_EQ(answer["equivalent"], false);
  EXPECT_EQ(answer["errors"][0]["output"], "y");
  EXPECT_EQ(answer["errors"][0]["max_rel"], 1.0);
}

// Sequences are lists of files going in, and lines coming out.
TEST_F(RunTest, SequencesAndOptionals) {
  const auto model = [&](const char* name, const char* more) {
    const std::string text = fmt::format(
        "g (float[N] parts, float[2] more) => (float[M] all) {{ all = SequenceInsert(parts, {}) }}",
        more);
    return Write(name, testing::SequenceModelFromText(text, {"parts", "all"}));
  };
  const std::string a = model("a.onnx", "more");
  RunFlags flags{.model = {.model = a, .device = "sim:small"}};
  flags.inputs = {"parts=" + Write("0.pb", Proto({1, 2})), "parts=" + Write("1.pb", Proto({3})),
                  "more=" + Write("2.pb", Proto({4, 6}))};
  const Ran ran = Call(RunModel, flags);
  EXPECT_EQ(ran.code, kExitOk) << ran.err;
  EXPECT_EQ(ran.out,
            "all[0]: f32[2]  min 1  max 2  mean 1.5\nall[1]: f32[1]  min 3  max 3  mean 3\n"
            "all[2]: f32[2]  min 4  max 6  mean 5\n");
  flags.inputs.push_back(flags.inputs.back());
  EXPECT_EQ(Call(RunModel, flags).err,
            "warning: 1 of 1 nodes run one by one behind the plan; input \"parts\" is no tensor of "
            "numbers\nautograph: --input more: 2 files for f32[2]\n");
  EXPECT_EQ(Call(RunVerify, Verify(a, a)).code, kExitOk);
  const std::string longer = Write(
      "longer.onnx", testing::SequenceModelFromText(
                         "g (float[N] parts, float[2] more) => (float[M] all)"
                         "{ one = SequenceInsert(parts, more) all = SequenceInsert(one, more) }",
                         {"parts", "all"}));
  EXPECT_EQ(Call(RunVerify, Verify(a, longer)).code, kExitFailed);

  const std::string maybe =
      Write("maybe.onnx",
            testing::WithOptionals(testing::ModelFromText("g () => (float[2] none, bool has)"
                                                          "{ none = Optional()"
                                                          "  has = OptionalHasElement(none) }"),
                                   {"none"}));
  const Ran none = Call(RunModel, RunFlags{.model = {.model = maybe, .device = "sim:small"}});
  EXPECT_EQ(none.code, kExitOk) << none.err;
  EXPECT_EQ(none.out, "none: none\nhas: bool[]  min 0  max 0  mean 0\n");
}

// The graphs are equal: what differs runs behind them. The graph's outputs have another order.
TEST_F(RunTest, VerifyComparesWhatRunsBehindTheGraph) {
  const auto model = [&](const char* name, const char* last) {
    return Model(name, fmt::format("g (float[2,3] x) => (int64[2,n] at, float[n2] v, float[2,3] r)"
                                   "{{ r = Relu(x) at = NonZero(r) t = Transpose<perm=[1,0]>(at)"
                                   "w = GatherND(r, t) v = {}(w) }}",
                                   last));
  };
  const std::string a = model("neg.onnx", "Neg"), b = model("abs.onnx", "Abs");
  const Ran same = Call(RunVerify, Verify(a, a));
  EXPECT_EQ(same.code, kExitOk) << same.err;
  EXPECT_NE(same.out.find("same      v "), std::string::npos) << same.out;
  const Ran differ = Call(RunVerify, Verify(a, b));
  EXPECT_EQ(differ.code, kExitFailed);
  EXPECT_NE(differ.out.find("same      at "), std::string::npos) << differ.out;
  EXPECT_NE(differ.out.find("DIFFERENT v "), std::string::npos) << differ.out;

  const Ran ran = Call(RunModel, RunFlags{.model = {.model = a, .device = "cpu:1"}});
  EXPECT_EQ(ran.code, kExitOk) << ran.err;
  EXPECT_NE(ran.out.find("at: i64[2,"), std::string::npos) << ran.out;
}

TEST_F(RunTest, VerifySaysWhatCannotBeCompared) {
  const std::string a = Model("a.onnx", kRelu), c = Model("c.onnx", kTwoOutputs);
  const Ran outputs = Call(RunVerify, Verify(a, c));
  EXPECT_EQ(outputs.code, kExitInput);
  EXPECT_EQ(outputs.err,
            "autograph: " + a + " has 1 inputs and 1 outputs, " + c + " has 1 and 2\n");
  EXPECT_EQ(Call(RunVerify, Verify(a, Path("none.onnx"))).err,
            "autograph: read " + Path("none.onnx") + ": No such file or directory\n");
  VerifyFlags no_seeds = Verify(a, a);
  no_seeds.seeds = 0;
  EXPECT_EQ(Call(RunVerify, no_seeds).err, "autograph: --seeds 0: expected at least 1\n");
}

// --- verify FOLDER

TEST_F(RunTest, VerifyRunsOnnxTestData) {
  Model("t/model.onnx", kRelu);
  const auto set = [this](int number, const std::vector<float>& in, const std::vector<float>& out) {
    const std::string folder = fmt::format("t/test_data_set_{}/", number);
    Write(folder + "input_0.pb", Proto(in));
    Write(folder + "output_0.pb", Proto(out));
  };
  set(0, {-1, 2}, {0, 2});
  set(1, {3, -4}, {3, 0});
  const Ran right = Call(RunVerify, Verify(Path("t")));
  EXPECT_EQ(right.code, kExitOk) << right.err;
  EXPECT_EQ(right.out,
            "same      y                        max abs 0  max rel 0\nequivalent within 0.001\n");

  set(1, {3, -4}, {3, -4});
  const Ran wrong = Call(RunVerify, Verify(Path("t")));
  EXPECT_EQ(wrong.code, kExitFailed);
  EXPECT_EQ(wrong.out,
            "DIFFERENT y                        max abs 4  max rel 1\n"
            "NOT equivalent within 0.001\n");
}

// A sequence in the files is a SequenceProto, an optional an OptionalProto.
TEST_F(RunTest, VerifyReadsSequencesAndOptionals) {
  const auto sequence = [](const std::vector<std::vector<float>>& tensors) {
    std::string bytes = {'\x10', '\x01'};  // elem_type: TENSOR.
    for (const auto& tensor : tensors) {
      const std::string proto = Proto(tensor);
      bytes += '\x1a';  // tensor_values.
      bytes += static_cast<char>(proto.size());
      bytes += proto;
    }
    return bytes;
  };
  Write("t/model.onnx",
        testing::SequenceModelFromText(
            "g (float[N] parts, float[2] more) => (float[M] all) { all = SequenceInsert(parts, "
            "more) }",
            {"parts", "all"}));
  Write("t/test_data_set_0/input_0.pb", sequence({{1, 2}, {3, 4}}));
  Write("t/test_data_set_0/input_1.pb", Proto({5, 6}));
  Write("t/test_data_set_0/output_0.pb", sequence({{1, 2}, {3, 4}, {5, 6}}));
  const Ran right = Call(RunVerify, Verify(Path("t")));
  EXPECT_EQ(right.code, kExitOk) << right.err << right.out;
  Write("t/test_data_set_0/output_0.pb", sequence({{1, 2}, {3, 4}, {5, 7}}));
  EXPECT_EQ(Call(RunVerify, Verify(Path("t"))).code, kExitFailed);
  Write("t/test_data_set_0/output_0.pb", sequence({{1, 2}, {3, 4}}));
  const Ran fewer = Call(RunVerify, Verify(Path("t")));
  EXPECT_EQ(fewer.code, kExitFailed);
  EXPECT_NE(fewer.out.find("Inf, NaN or shape differ"), std::string::npos) << fewer.out;
  Write("t/test_data_set_0/input_0.pb", "\x10\x01\x2a\x02\x10\x01");  // One in another one.
  EXPECT_EQ(Call(RunVerify, Verify(Path("t"))).err,
            "autograph: " + Path("t/test_data_set_0/input_0.pb") + ": a sequence of sequences\n");
}

TEST_F(RunTest, VerifyNamesWhatTheFolderLacks) {
  const auto expect = [this](const std::string& message) {
    const Ran ran = Call(RunVerify, Verify(Path("t")));
    EXPECT_EQ(ran.code, kExitInput);
    EXPECT_EQ(ran.err, "autograph: " + message + "\n");
  };
  const std::string none = ": No such file or directory";
  expect("read " + Path("t/model.onnx") + none);
  Model("t/model.onnx", kTwoOutputs);
  expect(Path("t") + ": no test_data_set_N in it");
  ASSERT_TRUE(MakeDirs(Path("t/test_data_set_0")).ok());
  expect("read " + Path("t/test_data_set_0/input_0.pb") + none);
  Write("t/test_data_set_0/input_0.pb", Proto({1, 2, 3}));
  expect("input \"x\": expected f32[2], got f32[3]");
  Write("t/test_data_set_0/input_0.pb", Proto({1, 2}));
  expect("read " + Path("t/test_data_set_0/output_0.pb") + none);
  Write("t/test_data_set_0/output_0.pb", Proto({1, 2}));
  expect("read " + Path("t/test_data_set_0/output_1.pb") + none);
}

TEST_F(RunTest, AnExpectedOutputOfAnotherShapeIsDifferent) {
  Model("t/model.onnx", kRelu);
  Write("t/test_data_set_0/input_0.pb", Proto({1, 2}));
  Write("t/test_data_set_0/output_0.pb", Proto({1}));
  const Ran ran = Call(RunVerify, Verify(Path("t")));
  EXPECT_EQ(ran.code, kExitFailed);
  EXPECT_NE(ran.out.find("Inf, NaN or shape differ"), std::string::npos) << ran.out;
}

// --- run MODEL

TEST_F(RunTest, RunWritesTheOutputs) {
  const Tensor x = Tensor::FromFloats({2}, std::vector<float>{-1, 2});
  ASSERT_TRUE(WriteNpy(Path("x.npy"), x).ok());
  RunFlags flags{.model = {.model = Model("m.onnx", kRelu), .device = "sim:small"},
                 .inputs = {"x=" + Path("x.npy")},
                 .output_dir = Path("out")};
  const Ran ran = Call(RunModel, flags);
  EXPECT_EQ(ran.code, kExitOk);
  EXPECT_EQ(ran.out, "y: f32[2]  min 0  max 2  mean 1  -> " + Path("out/y.npy") + "\n");
  EXPECT_EQ(ran.err, "ran without a plan of its own\n");
  EXPECT_EQ(ReadTensorFile(Path("out/y.npy"))->ToDoubles(), (std::vector<double>{0, 2}));

  const auto json = nlohmann::json::parse(Call(RunModel, flags, /*json=*/true).out);
  EXPECT_EQ(json["plan"], "input");
  EXPECT_EQ(json["outputs"][0]["type"], "f32[2]");
}

TEST_F(RunTest, OutputsWhoseNamesMeetAsFilesGetTheirOwn) {
  const std::string model = Model("m.onnx",
                                  "g (float[2] x) => (float[2] aXb, float[2] a_b) "
                                  "{ aXb = Relu(x) a_b = Abs(x) }");
  std::string bytes = *ReadFile(model);  // The text form of models allows no slash in names.
  for (size_t at = bytes.find("aXb"); at != std::string::npos; at = bytes.find("aXb")) {
    bytes[at + 1] = '/';
  }
  ASSERT_TRUE(WriteFileAtomically(model, bytes).ok());
  const RunFlags flags{.model = {.model = model, .device = "sim:small"}, .output_dir = Path("out")};
  EXPECT_EQ(Call(RunModel, flags).err, "ran without a plan of its own\n");
  EXPECT_TRUE(FileExists(Path("out/a_b.npy")));
  EXPECT_TRUE(FileExists(Path("out/a_b_.npy")));
}

TEST_F(RunTest, RunSaysWhatIsWrong) {
  const std::string model = Model("m.onnx", kRelu);
  ASSERT_TRUE(WriteNpy(Path("x.npy"), Tensor::Zeros({DType::kFloat64, {2}})).ok());
  const struct {
    const char* name;
    RunFlags flags;
    int code;
    std::string err;
  } kCases[] = {
      {"model",
       {.model = {.model = Path("none")}},
       kExitInput,
       "read " + Path("none") + ": No such file or directory"},
      {"device",
       {.model = {.model = model, .device = "sim:tpu"}},
       kExitUnavailable,
       "sim:tpu: no such device spec; did you mean 'cpu'?; built-in are cpu, h200, "
       "rtx2080ti, small, stcp920"},
      {"dtype",
       {.model = {.model = model, .device = "sim:small"}, .inputs = {"x=" + Path("x.npy")}},
       kExitInput,
       "input \"x\": expected f32[2], got f64[2]"},
      {"output folder",
       {.model = {.model = model, .device = "sim:small"}, .output_dir = model + "/out"},
       kExitInput,
       "make folder " + model + ": File exists"},
  };
  for (const auto& c : kCases) {
    const Ran ran = Call(RunModel, c.flags);
    EXPECT_EQ(ran.code, c.code) << c.name;
    EXPECT_EQ(ran.err, "autograph: " + c.err + "\n") << c.name;
  }
}

}  // namespace
}  // namespace ag

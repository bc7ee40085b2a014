// The data on which a job compares and times: made by role, and the user's own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "base/random.h"
#include "graph/onnx/testing/onnx_testing.h"
#include "tests/cluster.h"

namespace ag {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;

// Returns a file as numpy writes it: `descr` is '<f4' or '<i8'.
template <class T>
std::string Npy(const std::string& descr, const std::string& shape, const std::vector<T>& values) {
  const std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}\n", descr, shape);
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(header.size() & 0xff);
  bytes += static_cast<char>(header.size() >> 8);
  bytes += header;
  bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  return bytes;
}

std::string Floats(const std::string& shape, const std::vector<float>& values) {
  return Npy("<f4", shape, values);
}

// Rows of 32 numbers, all of them `value`.
std::string Rows(int rows, float value) {
  return Floats(fmt::format("{}, 32", rows),
                std::vector<float>(static_cast<size_t>(rows) * 32, value));
}

std::string Table(const std::string& name, int rows, int columns, Random& random) {
  std::string text = fmt::format("float[{},{}] {} = {{", rows, columns, name);
  for (int i = 0; i < rows * columns; ++i) {
    text += fmt::format("{}{:.3f}", i > 0 ? ", " : "", random.Unit() - 0.5);
  }
  return text + "}";
}

// Positions follow from the mask, and their table is shorter than a sequence of the default size.
std::string OptLike() {
  Random random(1);
  return testing::ModelFromText(
      "net (int64[batch,sequence] input_ids, int64[batch,sequence] attention_mask) => "
      "(float[batch,sequence,8] y) <" +
          Table("words", 50, 8, random) + ", " + Table("places", 12, 8, random) + ", " +
          Table("w", 8, 8, random) +
          R"(, int64 axis = {1}, int64 one = {1}, int64 two = {2}> {
        e = Gather (words, input_ids)
        c = CumSum (attention_mask, axis)
        m = Mul (c, attention_mask)
        s = Sub (m, one)
        i = Add (s, two)
        p = Gather (places, i)
        h = Add (e, p)
        q = MatMul (h, w)
        y = Relu (q)
      })",
      13);
}

// Three tables, and a mask that hides what is behind the end.
std::string BertLike() {
  Random random(2);
  return testing::ModelFromText(
      "net (int64[batch,sequence] input_ids, int64[batch,sequence] token_type_ids, "
      "int64[batch,sequence] attention_mask) => (float[batch,sequence,8] y) <" +
          Table("words", 50, 8, random) + ", " + Table("types", 2, 8, random) + ", " +
          Table("w", 8, 8, random) + R"(, int64[1] last = {2}, int64[1] middle = {1},
              float one = {1}, float far = {-10000}> {
        e = Gather (words, input_ids)
        t = Gather (types, token_type_ids)
        h = Add (e, t)
        q = MatMul (h, w)
        k = Transpose <perm = [0, 2, 1]> (h)
        scores = MatMul (q, k)
        f = Cast <to = 1> (attention_mask)
        shown = Unsqueeze (f, middle)
        hidden = Sub (one, shown)
        bias = Mul (hidden, far)
        masked = Add (scores, bias)
        soft = Softmax <axis = 2> (masked)
        y = MatMul (soft, h)
      })",
      13);
}

// Returns what was compared, as "usual" or "set_0 at x=3x32".
Words Compared(const json& result) {
  Words compared;
  for (const json& inputs : result["compared_inputs"]) {
    EXPECT_EQ(inputs["differs"], false) << inputs.dump();
    const std::string shapes = inputs["shapes"], name = inputs["inputs"];
    if (inputs["left_out"] == "")
      compared.push_back(name + (shapes.empty() ? "" : " at " + shapes));
  }
  return compared;
}

// On the simulated device what is gained does not hang on the machine.
TEST(Inputs, AModelOfTokensIsComparedOnAllKinds) {
  const Alone place;
  const std::string model = place.Write("bert.onnx", BertLike()), out = place.path("out.onnx");
  const CommandResult ran = place.Cli({"optimize", model, "-o", out, "--json", "--device",
                                       "sim:h200", "--rounds", "1", "--ort", "off"});
  ASSERT_EQ(ran.code, 0) << ran.err << ran.out;
  const json result = ResultIn(ran.out);
  ASSERT_NE(result["output"], "INPUT") << result["warnings"].dump();
  const Words compared = Compared(result);
  for (const char* kind : {"usual", "full", "short", "zeros", "constant"}) {
    EXPECT_THAT(compared, ::testing::Contains(kind));
  }
  EXPECT_THAT(compared, ::testing::Not(::testing::Contains("large"))) << "it has no floats";
  EXPECT_EQ(place.Cli({"verify", model, "--against", out, "--seeds", "6"}).code, 0);
}

// Its plans are timed and its file compared on data that stay in the table of positions.
TEST(Inputs, AModelWhosePositionsFollowFromItsMaskIsOptimized) {
  const Alone place;
  const std::string model = place.Write("opt.onnx", OptLike()), out = place.path("out.onnx");
  const CommandResult ran = place.Cli({"optimize", model, "-o", out, "--device", "cpu:1",
                                       "--rounds", "1", "--ort", "off", "--budget", "20s"});
  ASSERT_EQ(ran.code, 0) << ran.err << ran.out;
  EXPECT_EQ(place.Cli({"verify", model, "--against", out, "--seeds", "6"}).code, 0);
}

// A model with an open size, of which a rewrite gains on the simulated device.
std::string ModelOfOpenRows() {
  Random random(3);
  return testing::ModelFromText("net (float[n,32] x) => (float[n,32] y) <" +
                                    Table("a", 32, 32, random) + ", " + Table("b", 32, 32, random) +
                                    "> { p = MatMul (x, a) q = MatMul (x, b) r = Relu (p) "
                                    "s = Relu (q) y = Add (r, s) }",
                                13);
}

class OwnInputs : public ::testing::Test {
 protected:
  OwnInputs() : model_(place_.Write("model.onnx", ModelOfOpenRows())), data_(place_.path("mine")) {}

  void Save(const std::string& name, const std::string& bytes) {
    const std::string path = data_ + "/" + name;
    ASSERT_TRUE(MakeDirs(path.substr(0, path.rfind('/'))).ok());
    ASSERT_TRUE(WriteFileAtomically(path, bytes).ok());
  }

  const Alone place_;
  const std::string model_, data_;
};

TEST_F(OwnInputs, AreComparedFirstAndGiveTheSizes) {
  Save("set_0/x.npy", Rows(2, 0.25));
  Save("set_1/x.npy", Rows(3, -1));
  const Words words = {"optimize", model_,     "-o",        place_.path("out.onnx"),
                       "--json",   "--device", "sim:small", "--rounds",
                       "1",        "--inputs", data_,       "--shape-set",
                       "x=3x32"};
  CommandResult ran = place_.Cli(words);
  ASSERT_EQ(ran.code, 0) << ran.err << ran.out;
  json result = ResultIn(ran.out);
  EXPECT_EQ(result["measured_at"], "x=2x32");
  ASSERT_NE(result["output"], "INPUT") << result["warnings"].dump();
  const Words compared = Compared(result);
  ASSERT_GT(compared.size(), 2u);
  EXPECT_EQ(compared[0], "set_0");
  EXPECT_EQ(compared[1], "usual");
  EXPECT_THAT(compared, ::testing::Contains("set_1 at x=3x32"));
  EXPECT_THAT(compared, ::testing::Contains("usual at x=3x32"));
  EXPECT_THAT(compared, ::testing::Not(::testing::Contains("set_1")));
  ran = place_.Cli(words);
  EXPECT_EQ(ResultIn(ran.out)["cache"]["model_hit"], true);
  Save("set_0/x.npy", Rows(2, 0.5));
  ran = place_.Cli(words);
  EXPECT_EQ(ResultIn(ran.out)["cache"]["model_hit"], false) << "other data, another answer";
}

TEST_F(OwnInputs, GoToAServerToo) {
  Cluster cluster;
  Save("x.npy", Rows(1, 3));
  const json result = Optimized(cluster, model_, place_.path("out.onnx"), {"--inputs", data_});
  ASSERT_FALSE(result["compared_inputs"].empty()) << result["warnings"].dump();
  EXPECT_EQ(Compared(result)[0], "mine");
}

TEST_F(OwnInputs, SayWhatIsWrongAndLeaveNothingBehind) {
  const std::string good = Rows(1, 3);
  const struct {
    const char* name;
    std::vector<std::pair<std::string, std::string>> files;
    std::string message;
  } kCases[] = {
      {"unknown",
       {{"x.npy", good}, {"xs.npy", good}},
       "inputs mine: the model has no input xs; did you mean 'x'?; its inputs are x"},
      {"missing", {{"yy.npy", good}}, "inputs mine: the model has no input yy; its inputs are x"},
      {"type",
       {{"x.npy", Npy<int64_t>("<i8", "1, 32", std::vector<int64_t>(32, 1))}},
       "inputs mine: input x: the model takes f32[1,32], given is i64[1,32]"},
      {"shape",
       {{"x.npy", Floats("1, 5", {1, 2, 3, 4, 5})}},
       "inputs mine: input x: the model takes f32[1,32], given is f32[1,5]\n"},
      {"another set of other sizes",
       {{"a/x.npy", good}, {"b/x.npy", Rows(2, 1)}},
       "inputs b: input x: the model takes f32[1,32], given is f32[2,32]; the job runs at x=1x32, "
       "further sizes are given with --shape-set"},
      {"not finite",
       {{"x.npy", Rows(1, std::numeric_limits<float>::quiet_NaN())}},
       "inputs mine: input x: 32 of 32 values are Inf or NaN, which would hide differences"},
      {"cut",
       {{"x.npy", good.substr(0, good.size() - 3)}},
       "x.npy: npy file has 125 bytes of data, f32[1,32] needs 128"},
      {"empty", {{"notes.txt", "nothing"}}, "no NAME.npy or NAME.pb in it or in a folder below it"},
      {"objects",
       {{"x.npy", Npy<int64_t>("|O", "1", {0})}},
       "npy element type |O (Python objects); save an array of numbers"},
  };
  for (const auto& c : kCases) {
    SCOPED_TRACE(c.name);
    const Alone place;
    const std::string model = place.Write("model.onnx", ModelOfOpenRows()),
                      data = place.path("mine");
    for (const auto& [name, bytes] : c.files) {
      const std::string path = data + "/" + name;
      ASSERT_TRUE(MakeDirs(path.substr(0, path.rfind('/'))).ok());
      ASSERT_TRUE(WriteFileAtomically(path, bytes).ok());
    }
    const CommandResult ran = place.Cli({"optimize", model, "-o", place.path("out.onnx"),
                                         "--device", "sim:small", "--inputs", data});
    EXPECT_EQ(ran.code, 3) << ran.err;
    EXPECT_THAT(ran.err, HasSubstr(c.message));
    EXPECT_FALSE(FileExists(place.path("out.onnx")));
  }
  const CommandResult nowhere = place_.Cli({"optimize", model_, "-o", place_.path("out.onnx"),
                                            "--device", "sim:small", "--inputs", "/nowhere"});
  EXPECT_EQ(nowhere.code, 3);
  EXPECT_THAT(nowhere.err, HasSubstr("--inputs /nowhere: there is no such folder"));
}

TEST_F(OwnInputs, VerifyFindsWhatMadeDataDoNot) {
  const auto clipped = [&](const char* name, const char* bound) {
    return place_.Write(
        name,
        testing::ModelFromText(fmt::format("g (float[4] x) => (float[4] y) <float low = {{-99}}, "
                                           "float high = {{{}}}> {{ y = Clip (x, low, high) }}",
                                           bound),
                               13));
  };
  const std::string a = clipped("a.onnx", "50"), b = clipped("b.onnx", "60");
  Save("x.npy", Floats("4", {55, 0, 0, 0}));
  EXPECT_EQ(place_.Cli({"verify", a, "--against", b}).code, 0);
  const CommandResult own = place_.Cli({"verify", a, "--against", b, "--inputs", data_});
  EXPECT_EQ(own.code, 1);
  EXPECT_THAT(own.out, HasSubstr("DIFFERENT y"));
  EXPECT_EQ(place_.Cli({"verify", a, "--inputs", data_}).code, 2) << "without --against";
  const CommandResult bench = place_.Cli(
      {"bench", a, "--inputs", data_, "--device", "sim:small", "--seconds", "0.01", "--json"});
  EXPECT_EQ(bench.code, 0) << bench.err;
  Save("x.npy", Floats("5", {55, 0, 0, 0, 0}));
  const CommandResult wrong = place_.Cli({"bench", a, "--inputs", data_, "--device", "sim:small"});
  EXPECT_EQ(wrong.code, 3);
  EXPECT_THAT(wrong.err, HasSubstr("mine: input x: the model takes f32[4], given is f32[5]"));
}

}  // namespace
}  // namespace ag

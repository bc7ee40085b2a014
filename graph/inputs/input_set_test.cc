#include "graph/inputs/input_set.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/file.h"
#include "graph/weights.h"

namespace ag {
namespace {

InputSet Sample() {
  return {{"x", Tensor::FromFloats({2, 1}, std::vector<float>{1, 2})},
          {"ids", Tensor::FromInts({}, std::vector<int64_t>{7})},
          {"names", Tensor::FromStrings({2}, std::vector<std::string>{"a", "bc"})},
          {"", Tensor::Zeros({DType::kBFloat16, {0, 3}})}};
}

StatusOr<InputSet> Decode(const std::string& bytes) {
  const auto owner = std::make_shared<std::string>(bytes);
  return DecodeInputSet(*owner, owner);
}

TEST(InputSet, ComesBack) {
  const InputSet set = Sample();
  const auto read = Decode(EncodeInputSet(set));
  ASSERT_EQ(ToString(read.status()), "OK");
  ASSERT_EQ(read->size(), set.size());
  for (const auto& [name, tensor] : set) {
    EXPECT_EQ(read->at(name).type(), tensor.type()) << name;
    EXPECT_EQ(read->at(name).bytes(), tensor.bytes()) << name;
  }
  EXPECT_EQ(EncodeInputSet(*read), EncodeInputSet(set));
}

// These bytes are a contract with other programs (docs/protocol.md).
TEST(InputSet, HasTheseBytes) {
  EXPECT_EQ(EncodeInputSet({{"ab", Tensor::FromInts({1, 1}, std::vector<int64_t>{65})}}),
            std::string("autograph-inputs 1\n2 i64 1x1 8\nabA\0\0\0\0\0\0\0", 41));
}

TEST(InputSet, EveryCutIsNoticed) {
  const std::string whole =
      EncodeInputSet({{"x", Tensor::FromFloats({2}, std::vector<float>{1, 2})}});
  for (size_t n = 0; n < whole.size(); ++n) {
    const auto read = Decode(whole.substr(0, n));
    if (read.ok()) {
      EXPECT_TRUE(read->empty()) << n;  // The first line alone.
    }
  }
}

TEST(InputSet, SaysWhatIsWrongWithBytes) {
  const std::string first = "autograph-inputs 1\n";
  const struct {
    const char* name;
    std::string bytes, message;
  } kCases[] = {
      {"empty", "", "not a set of inputs: it begins otherwise"},
      {"another", "\x93NUMPY", "not a set of inputs: it begins otherwise"},
      {"no end", first + "1 f32", "not a set of inputs: a line has no end"},
      {"words", first + "1 f32 2\n", "not a set of inputs: a line has not four words"},
      {"type", first + "1 f99 2 8\nx", "unknown element type 'f99'"},
      {"size", first + "1 f32 two 8\nx", "expected a whole number, got 'two'"},
      {"negative size", first + "1 f32 -2 8\nx", "negative size in f32[-2]"},
      {"negative bytes", first + "1 f32 2 -8\nx", "not a set of inputs: it is cut off"},
      {"huge", first + "1 f32 4294967296x4294967296 0\nx",
       "f32[4294967296,4294967296] has more than 2^40 elements"},
      {"other bytes", first + "1 f32 2 4\nx1234", "not a set of inputs: 4 bytes for f32[2]"},
      {"twice", first + "1 u8 1 1\nxa1 u8 1 1\nxb", "not a set of inputs: input x is there twice"},
      {"strings", first + "1 string 1 16\nx" + std::string(16, '\xff'),
       "not a set of inputs: 16 bytes for string[1]"},
  };
  for (const auto& c : kCases) {
    const auto read = Decode(c.bytes);
    EXPECT_EQ(read.status().code(), StatusCode::kInvalidArgument) << c.name;
    EXPECT_EQ(Message(read.status()), c.message) << c.name;
  }
}

TEST(InputSet, SaysWhatDoesNotFitAModel) {
  const std::vector<InputSpec> inputs = {{.name = "pixels", .type = {DType::kFloat32, {2}}},
                                         {.name = "ids", .type = {DType::kInt64, {1}}}};
  const Tensor pixels = Tensor::FromFloats({2}, std::vector<float>{1, 2});
  const Tensor ids = Tensor::FromInts({1}, std::vector<int64_t>{7});
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const struct {
    const char* name;
    InputSet set;
    std::string message;
  } kCases[] = {
      {"fits", {{"pixels", pixels}, {"ids", ids}}, ""},
      {"missing", {{"pixels", pixels}}, "input ids is missing; the model's inputs are pixels, ids"},
      {"misspelt",
       {{"pixel", pixels}, {"ids", ids}},
       "the model has no input pixel; did you mean 'pixels'?; its inputs are pixels, ids"},
      {"unknown",
       {{"pixels", pixels}, {"ids", ids}, {"something", ids}},
       "the model has no input something; its inputs are pixels, ids"},
      {"type",
       {{"pixels", pixels}, {"ids", pixels}},
       "input ids: the model takes i64[1], given is f32[2]"},
      {"shape",
       {{"pixels", Tensor::FromFloats({3}, std::vector<float>{1, 2, 3})}, {"ids", ids}},
       "input pixels: the model takes f32[2], given is f32[3]"},
      {"not finite",
       {{"pixels", Tensor::FromFloats({2}, std::vector<float>{1, kNan})}, {"ids", ids}},
       "input pixels: 1 of 2 values are Inf or NaN, which would hide differences"},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(Message(CheckInputSet(c.set, inputs)), c.message) << c.name;
  }
}

TEST(InputSet, GivesWhatItHas) {
  const std::vector<InputSpec> inputs = {{.name = "a", .type = {DType::kFloat32, {1}}},
                                         {.name = "b", .type = {DType::kFloat32, {1}}}};
  std::vector<Tensor> tensors(2, Tensor::Zeros({DType::kFloat32, {1}}));
  const InputSet set = {{"b", Tensor::FromFloats({1}, std::vector<float>{5})}};
  ASSERT_EQ(ToString(TakeFromSet(set, inputs, &tensors)), "OK");
  EXPECT_EQ(tensors[0].At(0), 0);
  EXPECT_EQ(tensors[1].At(0), 5);
  EXPECT_EQ(ToInputSet(inputs, tensors).at("b").At(0), 5);
  const InputSet wrong = {{"b", Tensor::FromFloats({2}, std::vector<float>{5, 6})}};
  EXPECT_EQ(ToString(TakeFromSet(wrong, inputs, &tensors)),
            "INVALID_ARGUMENT: input b: the model takes f32[1], given is f32[2]");
}

}  // namespace
}  // namespace ag

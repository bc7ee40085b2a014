#include "runtime/model_weights.h"

#include <gtest/gtest.h>

namespace ag {
namespace {

// Bytes "inside" a model are bytes of this array.
alignas(64) constexpr char kWeightBytes[] = "0123456789abcdef0123456789abcdef";
const TensorType kFour{DType::kUInt8, {4}};
const std::string_view kView(kWeightBytes, 32);

TEST(ModelWeights, KeepsBytesWhereTheyLie) {
  const auto owner = std::make_shared<int>(0);
  ModelWeights weights(kView, owner);
  const struct {
    const char* name;
    std::string_view bytes;
    TensorType type;
    bool in_place;
  } kCases[] = {
      {"aligned", kView.substr(0, 8), {DType::kFloat32, {2}}, true},
      {"aligned enough", kView.substr(4, 8), {DType::kFloat32, {2}}, true},
      {"odd", kView.substr(1, 8), {DType::kFloat32, {2}}, false},
      {"odd bytes", kView.substr(3, 4), {DType::kUInt8, {4}}, true},
      {"for eight", kView.substr(4, 8), {DType::kInt64, {1}}, false},
      {"the end", kView.substr(24, 8), {DType::kInt64, {1}}, true},
      {"nothing", kView.substr(0, 0), {DType::kInt64, {0}}, true},
  };
  for (const auto& c : kCases) {
    const Digest digest = *weights.Put(c.bytes);
    EXPECT_EQ(digest, Sha256(c.bytes)) << c.name;
    const Tensor tensor = *weights.Get(digest, c.type);
    EXPECT_EQ(tensor.bytes(), c.bytes) << c.name;
    EXPECT_EQ(tensor.bytes().data() == c.bytes.data(), c.in_place) << c.name;
  }
}

// A digest names content, so packed copies are shared by it.
TEST(ModelWeights, DigestsNameContent) {
  ModelWeights weights(kView, nullptr);
  EXPECT_TRUE(weights.names_content());
  EXPECT_EQ(*weights.Put(kView.substr(10, 6)), *weights.Put(kView.substr(26, 6)));
}

TEST(ModelWeights, CopiesWithoutOwner) {
  std::string model(kView);
  Tensor tensor;
  {
    ModelWeights weights(model, nullptr);
    tensor = *weights.Get(*weights.Put(std::string_view(model).substr(4, 4)), kFour);
  }
  model.assign(model.size(), '!');
  EXPECT_EQ(tensor.bytes(), "4567");
}

TEST(ModelWeights, CopiesWhatIsOutside) {
  ModelWeights weights(kView, std::make_shared<int>(0));
  std::string other = "abcd";
  const Digest digest = *weights.Put(other);
  EXPECT_EQ(*weights.Put(other), digest);
  other = "....";
  EXPECT_EQ(weights.Get(digest, kFour)->bytes(), "abcd");
}

// Large weights are hashed before their Put. A Put that was not expected, or of another part of the
// same memory, is hashed by itself.
TEST(ModelWeights, HashesWhatItExpects) {
  std::string model(3 << 20, 'x');
  for (size_t i = 0; i < model.size(); i += 997) model[i] = static_cast<char>(i / 997);
  const std::string_view view(model);
  ModelWeights weights(view, nullptr);
  const size_t mib = 1 << 20;
  for (const size_t at : {size_t{0}, mib, 2 * mib}) weights.Expect(view.substr(at, mib));
  const std::string_view kPuts[] = {view.substr(mib, mib), view.substr(0, mib),
                                    view.substr(0, mib / 2), view.substr(1, mib),
                                    view.substr(2 * mib, mib)};
  for (const std::string_view bytes : kPuts) EXPECT_EQ(*weights.Put(bytes), Sha256(bytes));
}

// Another load of the same memory believes what is known; bytes elsewhere are hashed.
TEST(ModelWeights, KnowsWhatAnotherLoadHashed) {
  ModelWeights first(kView, nullptr);
  const Digest digest = *first.Put(kView.substr(0, 4));
  ASSERT_EQ(first.hashes().size(), 1u);
  ModelWeights::Hashes hashes = first.hashes();
  const Digest other = Sha256("other");
  hashes.begin()->second = other;
  ModelWeights second(kView, nullptr);
  second.Know(hashes);
  EXPECT_EQ(*second.Put(kView.substr(0, 4)), other);
  EXPECT_EQ(*second.Put(std::string("0123")), digest);
}

// What is inside a copy of the model has the digest of its original.
TEST(ModelWeights, KnowsTheDigestsOfACopy) {
  ModelWeights first(kView, nullptr);
  const Digest digest = *first.Put(kView.substr(2, 4));
  const std::string copy(kView);
  const ModelWeights::Hashes hashes = first.HashesIn(copy);
  ASSERT_EQ(hashes.size(), 1u);
  EXPECT_EQ(hashes.begin()->first, std::pair(copy.data() + 2, size_t{4}));
  EXPECT_EQ(hashes.begin()->second, digest);
}

TEST(ModelWeights, SaysWhatItLacks) {
  ModelWeights weights(kView, nullptr);
  const Digest digest = *weights.Put(kView.substr(0, 8)), other = Sha256("x");
  EXPECT_EQ(ToString(weights.Get(other, kFour).status()),
            "NOT_FOUND: constant " + other.Short() + " is not in the model");
  EXPECT_EQ(ToString(weights.Get(digest, kFour).status()),
            "DATA_LOSS: constant " + digest.Short() + ": u8[4] needs 4 bytes, got 8");
}

}  // namespace
}  // namespace ag

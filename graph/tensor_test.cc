#include "graph/tensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/blobs.h"
#include "base/random.h"
#include "graph/half.h"
#include "graph/weights.h"

namespace ag {
namespace {

TEST(TypesTest, NamesReadBack) {
  for (int64_t i = 1; IsDType(i); ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_EQ(ParseDType(DTypeName(dtype)).value(), dtype);
  }
  EXPECT_EQ(ToString(ParseDType("float").status()),
            "INVALID_ARGUMENT: unknown element type 'float'");
  EXPECT_EQ((TensorType{DType::kFloat32, {1, 3}}).ToString(), "f32[1,3]");
}

TEST(TypesTest, CheckTypeBoundsEverything) {
  const auto message = [](Shape shape) {
    return Message(CheckType({DType::kFloat32, std::move(shape)}));
  };
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(message({2, 0, 3}), "");
  EXPECT_EQ(message({-1}), "negative size in f32[-1]");
  EXPECT_EQ(message({kMax, 2, 0}), fmt::format("f32[{},2,0] has more than 2^40 elements", kMax));
  EXPECT_EQ(message(Shape(33, 1)), "rank 33 is above 32");
  EXPECT_EQ(NumElements(Shape{kMax, kMax}), kElementsOverflow);
  EXPECT_EQ(NumElements(Shape{kMax, kMax, 0}), 0);
}

TEST(HalfTest, AllBitsReadBack) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const float value = HalfToFloat(half), brain = BFloat16ToFloat(half);
    if (!std::isnan(value)) {
      EXPECT_EQ(FloatToHalf(value), half);
    }
    if (!std::isnan(brain)) {
      EXPECT_EQ(FloatToBFloat16(brain), half);
    }
    EXPECT_EQ(std::isnan(value), std::isnan(HalfToFloat(FloatToHalf(value))));
    EXPECT_EQ(std::isnan(brain), std::isnan(BFloat16ToFloat(FloatToBFloat16(brain))));
  }
}

// Returns the nearest half, found by a search among all, with ties to even bits.
uint16_t NearestHalf(double value) {
  uint16_t best = 0;
  for (uint32_t bits = 0; bits <= 0x7bff; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const double error = std::fabs(HalfToFloat(half) - value);
    const double least = std::fabs(HalfToFloat(best) - value);
    if (error < least || (error == least && (half & 1) == 0)) best = half;
  }
  return best;
}

TEST(HalfTest, RoundsDoublesOnce) {
  Random random(11);
  for (int i = 0; i < 200; ++i) {
    const double value = std::ldexp(random.Unit(), static_cast<int>(random.Between(-26, 10)));
    EXPECT_EQ(DoubleToHalf(value), NearestHalf(value)) << value;
  }
  // Just above the middle of 1 and the next half: through float it would round to even, to 1.
  const double above_middle = 1 + std::ldexp(1.0, -11) + std::ldexp(1.0, -40);
  EXPECT_EQ(FloatToHalf(static_cast<float>(above_middle)), 0x3c00);
  EXPECT_EQ(DoubleToHalf(above_middle), 0x3c01);
  EXPECT_EQ(DoubleToHalf(65520), 0x7c00);
  EXPECT_EQ(DoubleToHalf(65519), 0x7bff);
  EXPECT_EQ(DoubleToBFloat16(1 + std::ldexp(1.0, -8) + std::ldexp(1.0, -40)), 0x3f81);
}

TEST(TensorTest, ElementsOfAllTypes) {
  for (int64_t i = 1; IsDType(i); ++i) {
    const auto dtype = static_cast<DType>(i);
    if (dtype == DType::kString) continue;
    Tensor tensor = Tensor::FromDoubles({dtype, {3}}, std::vector<double>{0, 1, 1});
    EXPECT_EQ(tensor.At(2), 1);
    tensor.Put(2, 0);
    EXPECT_EQ(tensor.ToDoubles(), (std::vector<double>{0, 1, 0}));
    EXPECT_EQ(tensor.bytes().size(), static_cast<size_t>(3 * SizeOf(dtype)));
  }
}

TEST(TensorTest, IntegersSaturate) {
  const std::vector<double> values = {1e30, -1e30, std::nan(""), -1.7};
  const auto stored = [&](DType dtype) {
    return Tensor::FromDoubles({dtype, {4}}, values).ToDoubles();
  };
  EXPECT_EQ(stored(DType::kInt8), (std::vector<double>{127, -128, 0, -1}));
  EXPECT_EQ(stored(DType::kUInt8), (std::vector<double>{255, 0, 0, 0}));
  EXPECT_EQ(Tensor::FromDoubles({DType::kInt64, {4}}, values).As<int64_t>()[0],
            std::numeric_limits<int64_t>::max());
}

TEST(WeightsTest, SyntheticDataIsPlain) {
  const Tensor tensor = SyntheticTensor({DType::kFloat16, {1000}}, 1);
  double squares = 0;
  for (const double value : tensor.ToDoubles()) {
    EXPECT_GE(std::fabs(value), 6.2e-5);
    squares += value * value;
  }
  EXPECT_NEAR(std::sqrt(squares / 1000), 0.1, 0.01);
  EXPECT_EQ(SyntheticTensor({DType::kFloat16, {1000}}, 1).Name(), tensor.Name());
}

TEST(WeightsTest, MemoryAndBlobs) {
  const TempDir dir = TempDir::Make("weights").value();
  const auto blobs = BlobDir::Open(dir.path()).value();
  const Tensor tensor = SyntheticTensor({DType::kFloat32, {5}}, 1);
  MemoryWeights memory;
  const BlobWeights from_blobs(blobs);
  EXPECT_EQ(memory.Put(tensor), blobs->Put(tensor.bytes()).value());
  for (const WeightSource* source :
       {static_cast<const WeightSource*>(&memory), static_cast<const WeightSource*>(&from_blobs)}) {
    EXPECT_EQ(source->Get(tensor.Name(), tensor.type()).value().bytes(), tensor.bytes());
    EXPECT_EQ(source->Get(tensor.Name(), {DType::kFloat32, {6}}).status().code(),
              StatusCode::kDataLoss);
    EXPECT_EQ(source->Get(Sha256("no"), tensor.type()).status().code(), StatusCode::kNotFound);
  }
}

}  // namespace
}  // namespace ag

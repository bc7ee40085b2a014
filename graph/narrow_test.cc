#include "graph/narrow.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "graph/tensor.h"

namespace ag {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

constexpr DType kNarrowFloats[] = {DType::kFloat8E4M3, DType::kFloat8E4M3Fnuz, DType::kFloat8E5M2,
                                   DType::kFloat8E5M2Fnuz, DType::kFloat4E2M1};

int Bits(DType dtype, double value, Overflow overflow = Overflow::kSaturates) {
  return DoubleToNarrow(dtype, value, overflow);
}

// The values of the tables in ONNX's text on 8-bit floats.
TEST(NarrowTest, KnownBits) {
  struct Case {
    DType dtype;
    int bits;
    double value;
  };
  for (const Case& c :
       {Case{DType::kFloat8E4M3, 0x7E, 448}, Case{DType::kFloat8E4M3, 0x01, std::ldexp(1, -9)},
        Case{DType::kFloat8E4M3, 0x80, -0.0}, Case{DType::kFloat8E4M3Fnuz, 0x7F, 240},
        Case{DType::kFloat8E4M3Fnuz, 0x01, std::ldexp(1, -10)},
        Case{DType::kFloat8E5M2, 0x7B, 57344}, Case{DType::kFloat8E5M2, 0xFC, -kInf},
        Case{DType::kFloat8E5M2, 0x01, std::ldexp(1, -16)},
        Case{DType::kFloat8E5M2Fnuz, 0x7F, 57344}, Case{DType::kFloat4E2M1, 0x7, 6},
        Case{DType::kFloat4E2M1, 0x9, -0.5}, Case{DType::kInt4, 0xF8, -8},
        Case{DType::kUInt4, 0xF, 15}}) {
    EXPECT_EQ(NarrowToDouble(c.dtype, static_cast<uint8_t>(c.bits)), c.value) << c.bits;
    EXPECT_EQ(Bits(c.dtype, c.value, Overflow::kOverflows), c.bits) << c.value;
  }
}

TEST(NarrowTest, EveryElementComesBack) {
  for (const DType dtype : kNarrowFloats) {
    const int count = dtype == DType::kFloat4E2M1 ? 16 : 256;
    for (int bits = 0; bits < count; ++bits) {
      const double value = NarrowToDouble(dtype, static_cast<uint8_t>(bits));
      if (std::isnan(value)) continue;
      EXPECT_EQ(Bits(dtype, value, Overflow::kOverflows), bits) << DTypeName(dtype);
    }
  }
}

TEST(NarrowTest, RoundsToEvenOnce) {
  EXPECT_EQ(Bits(DType::kFloat4E2M1, 2.5), 0x4);   // Between 2 and 3.
  EXPECT_EQ(Bits(DType::kFloat4E2M1, 0.25), 0x0);  // Between 0 and 0.5.
  EXPECT_EQ(Bits(DType::kFloat4E2M1, 0.26), 0x1);
  EXPECT_EQ(NarrowToDouble(DType::kFloat8E4M3,
                           DoubleToNarrow(DType::kFloat8E4M3, 464, Overflow::kOverflows)),
            448);
  EXPECT_EQ(Bits(DType::kFloat8E5M2, 1.125 + 1e-12), 0x3D);
}

TEST(NarrowTest, WhatIsTooLarge) {
  EXPECT_EQ(Bits(DType::kFloat8E4M3, 1e6), 0x7E);
  EXPECT_EQ(Bits(DType::kFloat8E4M3, -kInf), 0xFE);
  EXPECT_EQ(Bits(DType::kFloat8E4M3, -kInf, Overflow::kOverflows), 0xFF);
  EXPECT_EQ(Bits(DType::kFloat8E4M3Fnuz, 1e6, Overflow::kOverflows), 0x80);
  EXPECT_EQ(Bits(DType::kFloat8E5M2, -1e6, Overflow::kOverflows), 0xFC);
  EXPECT_EQ(Bits(DType::kFloat4E2M1, -1e6, Overflow::kOverflows), 0xF);
  EXPECT_EQ(Bits(DType::kFloat8E4M3Fnuz, -0.0), 0);
  EXPECT_TRUE(std::isnan(NarrowToDouble(
      DType::kFloat8E5M2, DoubleToNarrow(DType::kFloat8E5M2, std::nan(""), Overflow::kSaturates))));
  EXPECT_EQ(Bits(DType::kInt4, -100), 0xF8);
  EXPECT_EQ(Bits(DType::kUInt4, 3.9), 3);
}

TEST(TensorTest, StringsKeepTheirBytes) {
  const std::vector<std::string> words = {"a", "", std::string("x\0y", 3), "\xC3\xA9"};
  const Tensor tensor = Tensor::FromStrings({2, 2}, words);
  EXPECT_EQ(tensor.type().ToString(), "string[2,2]");
  const auto read = tensor.Strings();
  EXPECT_EQ(std::vector<std::string>(read.begin(), read.end()), words);
  EXPECT_EQ(Tensor::FromBytes(tensor.type(), tensor.bytes()).Strings(), read);
  EXPECT_EQ(Tensor::Zeros({DType::kString, {3}}).Strings(), std::vector<std::string_view>(3, ""));
  EXPECT_TRUE(BytesFit(tensor.type(), tensor.bytes()));
}

TEST(TensorTest, OffsetsThatLieAreFound) {
  const TensorType type{DType::kString, {2}};
  const std::string good(Tensor::FromStrings({2}, std::vector<std::string>{"ab", "c"}).bytes());
  EXPECT_FALSE(BytesFit(type, std::string_view(good).substr(0, good.size() - 1)));
  EXPECT_FALSE(BytesFit({DType::kString, {3}}, good));
  EXPECT_FALSE(BytesFit({DType::kString, {int64_t{1} << 40}}, good));
  EXPECT_FALSE(BytesFit(type, ""));
  for (const size_t at : {size_t{0}, sizeof(int64_t), 2 * sizeof(int64_t)}) {
    std::string bad = good;
    bad[at] = '\x7F';
    EXPECT_FALSE(BytesFit(type, bad)) << at;
  }
}

}  // namespace
}  // namespace ag

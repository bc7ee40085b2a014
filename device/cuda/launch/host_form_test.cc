#include "device/cuda/launch/host_form.h"

#include <gtest/gtest.h>

#include <cstring>

#include "graph/weights.h"

namespace ag::cuda {
namespace {

template <class T>
std::vector<T> As(const std::vector<std::byte>& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

TEST(PackTensor, OrdersAxes) {
  const std::vector<float> values = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  const Tensor tensor = Tensor::FromFloats({1, 2, 3, 2}, values);
  const struct {
    std::vector<int> order;
    std::vector<float> packed;
  } cases[] = {
      {{}, values},
      {{0, 1, 2, 3}, values},
      {{0, 2, 3, 1}, {0, 6, 1, 7, 2, 8, 3, 9, 4, 10, 5, 11}},  // Channels last.
      {{3, 2, 1, 0}, {0, 6, 2, 8, 4, 10, 1, 7, 3, 9, 5, 11}},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(As<float>(PackTensor(tensor, DType::kFloat32, c.order)), c.packed);
  }
}

TEST(PackTensor, RoundsToNearestEven) {
  // 1 + 2^-11 lies halfway between two f16 values, 1 + 2^-8 between two of bf16: to even is down.
  const std::vector<float> values = {1.0f, 1.00048828125f, 1.00146484375f, 1.00390625f, 70000.0f};
  const Tensor tensor = Tensor::FromFloats({5}, values);
  EXPECT_EQ(As<uint16_t>(PackTensor(tensor, DType::kFloat16, {})),
            (std::vector<uint16_t>{0x3c00, 0x3c00, 0x3c02, 0x3c04, 0x7c00}));
  EXPECT_EQ(As<uint16_t>(PackTensor(tensor, DType::kBFloat16, {})),
            (std::vector<uint16_t>{0x3f80, 0x3f80, 0x3f80, 0x3f80, 0x4789}));
}

TEST(DeviceForm, ComesBack) {
  const struct {
    TensorType type;
    Layout layout;
    Precision precision;
    double error;
  } cases[] = {
      {{DType::kFloat32, {2, 3, 4, 5}}, Layout::kChannelsLast, Precision::kFp32, 0},
      {{DType::kFloat32, {2, 3, 4, 5}}, Layout::kChannelsLast, Precision::kFp16, 2e-3},
      {{DType::kFloat32, {2, 3, 4, 5}}, Layout::kChannelsLast8, Precision::kFp32, 0},
      {{DType::kFloat32, {2, 11, 2, 2}}, Layout::kChannelsLast8, Precision::kFp16, 2e-3},
      {{DType::kFloat32, {7}}, Layout::kPlain, Precision::kBf16, 2e-2},
      {{DType::kInt64, {3, 2}}, Layout::kPlain, Precision::kFp16, 0},
      {{DType::kBool, {3, 2}}, Layout::kPlain, Precision::kTf32, 0},
      {{DType::kFloat32, {0, 4}}, Layout::kPlain, Precision::kFp16, 0},
  };
  for (const auto& c : cases) {
    const Tensor tensor = RandomTensor(c.type, 5);
    const std::vector<std::byte> bytes = ToDeviceForm(tensor, c.layout, c.precision);
    const DType stored = StoredDType(c.type.dtype, c.precision);
    EXPECT_EQ(static_cast<int64_t>(bytes.size()), LayoutBytes({stored, c.type.shape}, c.layout));
    EXPECT_TRUE(HasZeroPadding(bytes, {stored, c.type.shape}, c.layout));
    EXPECT_EQ(HasHostForm(c.type, c.layout, c.precision),
              stored == c.type.dtype && c.layout == Layout::kPlain);
    Tensor back = Tensor::Zeros(c.type);
    FromDeviceForm(bytes, c.layout, c.precision, &back);
    for (int64_t i = 0; i < c.type.NumElements(); ++i) {
      EXPECT_NEAR(back.At(i), tensor.At(i), c.error) << c.type.ToString();
    }
  }
}

TEST(PackTensor, PutsZerosBehindLongerAxes) {
  const Tensor tensor = Tensor::FromFloats({2, 1, 2}, std::vector<float>{1, 2, 3, 4});
  const struct {
    std::vector<int> order;
    std::vector<int64_t> padded;
    std::vector<float> packed;
  } cases[] = {
      {{}, {2, 1, 3}, {1, 2, 0, 3, 4, 0}},
      {{}, {3, 1, 2}, {1, 2, 3, 4, 0, 0}},
      {{2, 1, 0}, {3, 2, 2}, {1, 3, 0, 0, 0, 0, 2, 4, 0, 0, 0, 0}},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(As<float>(PackTensor(tensor, DType::kFloat32, c.order, c.padded)), c.packed);
  }
}

TEST(DeviceForm, PaddingIsSeen) {
  const TensorType type{DType::kFloat32, {1, 2, 1, 1}};
  const Tensor tensor = Tensor::FromFloats({1, 2, 1, 1}, std::vector<float>{1, 2});
  std::vector<std::byte> bytes = ToDeviceForm(tensor, Layout::kChannelsLast8, Precision::kFp32);
  EXPECT_EQ(As<float>(bytes), (std::vector<float>{1, 2, 0, 0, 0, 0, 0, 0}));
  EXPECT_TRUE(HasZeroPadding(bytes, type, Layout::kChannelsLast8));
  bytes.back() = std::byte{1};
  EXPECT_FALSE(HasZeroPadding(bytes, type, Layout::kChannelsLast8));
}

TEST(DeviceForm, ChannelsStandLast) {
  const Tensor tensor = Tensor::FromFloats({1, 2, 1, 3}, std::vector<float>{0, 1, 2, 3, 4, 5});
  EXPECT_EQ(As<float>(ToDeviceForm(tensor, Layout::kChannelsLast, Precision::kFp32)),
            (std::vector<float>{0, 3, 1, 4, 2, 5}));
}

}  // namespace
}  // namespace ag::cuda

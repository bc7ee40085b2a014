// Kernels of quantized operators in ONNX's own form against the operators' definitions.
#include <gtest/gtest.h>

#include "device/cpu/host.h"
#include "device/cpu/kept_testing.h"
#include "graph/weights.h"

namespace ag::cpu {
namespace {

// Returns integers of all values of the type.
Tensor Bytes(DType dtype, Shape shape, uint64_t seed) {
  std::vector<double> values(static_cast<size_t>(NumElements(shape)));
  const double low = dtype == DType::kInt8 ? -128 : 0;
  for (double& value : values) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    value = low + static_cast<double>(seed >> 56);
  }
  return Tensor::FromDoubles({dtype, std::move(shape)}, values);
}
Tensor Numbers(DType dtype, Shape shape, const std::vector<double>& values) {
  return Tensor::FromDoubles({dtype, std::move(shape)}, values);
}

constexpr DType kU8 = DType::kUInt8, kI8 = DType::kInt8, kI32 = DType::kInt32;
constexpr DType kF32 = DType::kFloat32;

TEST(KeptIntegers, MatMulInteger) {
  const OnnxNode node{.op_type = "MatMulInteger"};
  const bool fast = HasExactByteProducts();
  const Tensor u8 = Bytes(kU8, {3, 5, 70}, 1), i8 = Bytes(kI8, {3, 5, 70}, 2);
  const Tensor w = Bytes(kI8, {70, 33}, 3), wu = Bytes(kU8, {70, 33}, 4);
  const Tensor by_column = Bytes(kU8, {33}, 5), signed_by_column = Bytes(kI8, {33}, 6);
  const Tensor zero_u8 = Numbers(kU8, {}, {117}), zero_i8 = Numbers(kI8, {1}, {-7});
  CheckNode({"no zero points", node, {u8, w}, "y", fast});
  CheckNode({"a zero point", node, {u8, w, zero_u8}, "y", fast});
  CheckNode({"zero points", node, {u8, wu, zero_u8, Numbers(kU8, {}, {128})}, "y", fast});
  CheckNode({"an odd zero point", node, {u8, wu, zero_u8, Numbers(kU8, {}, {100})}, "y", fast});
  CheckNode({"by column", node, {u8, wu, zero_u8, by_column}, "y", fast});
  CheckNode({"signed, by column", node, {u8, w, zero_u8, signed_by_column}, "y", fast});
  CheckNode({"both signed", node, {i8, w, zero_i8, Numbers(kI8, {}, {3})}, "y", fast});
  CheckNode({"one row", node, {Bytes(kU8, {1, 70}, 1), w, zero_u8}, "y", fast});
  CheckNode({"by row", node, {Bytes(kU8, {5, 70}, 1), w, Bytes(kU8, {5}, 2)}, "y", false});
  CheckNode({"a zero point that is an input",
             node,
             {u8, w, zero_u8},
             "y",
             false,  // The weights are inputs, too.
             17,
             3});
}

TEST(KeptIntegers, QLinearMatMul) {
  const OnnxNode node{.op_type = "QLinearMatMul"};
  const bool fast = HasExactByteProducts();
  const Tensor a = Bytes(kU8, {2, 9, 64}, 1), w = Bytes(kI8, {64, 40}, 3);
  const Tensor sa = Numbers(kF32, {}, {0.031}), sw = Numbers(kF32, {}, {0.0021});
  const Tensor sy = Numbers(kF32, {}, {0.07}), za = Numbers(kU8, {}, {117});
  const Tensor zw = Numbers(kI8, {}, {0}), zy = Numbers(kU8, {}, {130});
  std::vector<double> scales(40);
  for (size_t i = 0; i < scales.size(); ++i) scales[i] = 0.001 * static_cast<double>(i + 1);
  CheckNode({"one scale", node, {a, sa, za, w, sw, zw, sy, zy}, "y", fast});
  CheckNode({"by column",
             node,
             {a, sa, za, w, Numbers(kF32, {40}, scales), Bytes(kI8, {40}, 6), sy, zy},
             "y",
             fast});
  CheckNode(
      {"signed",
       node,
       {Bytes(kI8, {9, 64}, 8), sa, Numbers(kI8, {}, {-3}), w, sw, zw, sy, Numbers(kI8, {}, {-11})},
       "y",
       fast});
}

OnnxNode ConvNode(const char* op, std::vector<int64_t> pads, std::vector<int64_t> strides,
                  int64_t group = 1, std::vector<int64_t> dilations = {1, 1}) {
  return {.op_type = op,
          .attributes = {IntsOf("pads", std::move(pads)), IntsOf("strides", std::move(strides)),
                         IntsOf("dilations", std::move(dilations)), IntOf("group", group)}};
}

TEST(KeptIntegers, ConvInteger) {
  const bool fast = HasExactByteProducts();
  const Tensor x = Bytes(kU8, {2, 6, 9, 11}, 1), zx = Numbers(kU8, {}, {117});
  const Tensor w = Bytes(kI8, {7, 6, 3, 3}, 2), wu = Bytes(kU8, {7, 6, 3, 3}, 3);
  const OnnxNode padded = ConvNode("ConvInteger", {1, 2, 1, 0}, {1, 2});
  CheckNode({"plain", ConvNode("ConvInteger", {0, 0, 0, 0}, {1, 1}), {x, w}, "y", fast});
  CheckNode({"padded", padded, {x, w, zx}, "y", fast});
  CheckNode({"zero points", padded, {x, wu, zx, Numbers(kU8, {}, {90})}, "y", fast});
  CheckNode({"by channel", padded, {x, wu, zx, Bytes(kU8, {7}, 4)}, "y", fast});
  CheckNode({"groups",
             ConvNode("ConvInteger", {1, 1, 1, 1}, {1, 1}, 2, {2, 1}),
             {x, Bytes(kU8, {8, 3, 3, 3}, 5), zx, Numbers(kU8, {}, {90})},
             "y",
             fast});
  CheckNode({"depthwise",
             ConvNode("ConvInteger", {1, 1, 1, 1}, {1, 1}, 6),
             {x, Bytes(kI8, {6, 1, 3, 3}, 5), zx},
             "y",
             fast});
  CheckNode({"one axis",
             ConvNode("ConvInteger", {2, 1}, {2}, 1, {1}),
             {Bytes(kU8, {1, 5, 40}, 6), Bytes(kI8, {9, 5, 4}, 7), zx},
             "y",
             fast});
}

TEST(KeptIntegers, QLinearConv) {
  const bool fast = HasExactByteProducts();
  const Tensor x = Bytes(kU8, {2, 16, 13, 11}, 1), w = Bytes(kI8, {20, 16, 3, 3}, 2);
  const Tensor sx = Numbers(kF32, {}, {0.031}), zx = Numbers(kU8, {}, {117});
  const Tensor sw = Numbers(kF32, {}, {0.0021}), zw = Numbers(kI8, {}, {0});
  const Tensor sy = Numbers(kF32, {}, {0.07}), zy = Numbers(kU8, {}, {130});
  const OnnxNode padded = ConvNode("QLinearConv", {1, 1, 1, 1}, {1, 1});
  std::vector<double> scales(20), biases(20);
  for (size_t i = 0; i < scales.size(); ++i) {
    scales[i] = 0.0003 * static_cast<double>(i + 1);
    biases[i] = 1000.0 * static_cast<double>(i) - 9000;
  }
  const Tensor bias = Numbers(kI32, {20}, biases);
  CheckNode({"plain", padded, {x, sx, zx, w, sw, zw, sy, zy}, "y", fast});
  CheckNode({"with a bias", padded, {x, sx, zx, w, sw, zw, sy, zy, bias}, "y", fast});
  CheckNode({"by channel",
             padded,
             {x, sx, zx, w, Numbers(kF32, {20}, scales), Bytes(kI8, {20}, 3), sy, zy, bias},
             "y",
             fast});
  CheckNode({"signed",
             ConvNode("QLinearConv", {0, 0, 0, 0}, {2, 2}),
             {Bytes(kI8, {1, 16, 8, 8}, 9), sx, Numbers(kI8, {}, {-3}),
              Bytes(kI8, {20, 16, 1, 1}, 4), sw, zw, sy, Numbers(kI8, {}, {5}), bias},
             "y",
             fast});
  CheckNode({"of unsigned weights",
             padded,
             {x, sx, zx, Bytes(kU8, {20, 16, 3, 3}, 2), sw, Numbers(kU8, {}, {77}), sy, zy, bias},
             "y",
             fast});
  CheckNode({"depthwise",
             ConvNode("QLinearConv", {1, 1, 1, 1}, {1, 1}, 16),
             {x, sx, zx, Bytes(kI8, {16, 1, 3, 3}, 2), sw, zw, sy, zy},
             "y",
             fast});
}

TEST(KeptIntegers, QuantizeAndDequantize) {
  const OnnxNode to{.op_type = "QuantizeLinear"}, back{.op_type = "DequantizeLinear"};
  const OnnxNode first{.op_type = "QuantizeLinear", .attributes = {IntOf("axis", 0)}};
  const OnnxNode back_last{.op_type = "DequantizeLinear", .attributes = {IntOf("axis", -1)}};
  const Tensor x = RandomTensor({kF32, {3, 5, 17}}, 4);
  std::vector<double> ties;
  for (int i = -600; i < 600; ++i) ties.push_back(0.5 * i);
  const Tensor halves = Numbers(kF32, {1200}, ties);
  const Tensor scale = Numbers(kF32, {}, {0.02}), one = Numbers(kF32, {}, {1});
  const Tensor by_row = Numbers(kF32, {3}, {0.01, 0.02, 0.03});
  const Tensor zero_by_row = Numbers(kI8, {3}, {-1, 2, 30});
  const Tensor zero_u8 = Numbers(kU8, {}, {130}), zero_i8 = Numbers(kI8, {}, {-3});
  CheckNode({"to u8", to, {x, scale, zero_u8}, "y"});
  CheckNode({"to i8", to, {x, scale, zero_i8}, "y"});
  CheckNode({"without a zero point", to, {x, scale}, "y"});
  CheckNode({"halves to even", to, {halves, one, zero_u8}, "y"});
  CheckNode({"halves to even, signed", to, {halves, one, zero_i8}, "y"});
  CheckNode({"by row", first, {x, by_row, zero_by_row}, "y"});
  CheckNode({"all inputs", first, {x, by_row, zero_by_row}, "y", true, 17, 3});
  const Tensor u8 = Bytes(kU8, {2, 7, 3}, 3), i8 = Bytes(kI8, {2, 7, 3}, 4);
  CheckNode({"of u8", back, {u8, scale, zero_u8}, "y"});
  CheckNode({"of i8", back, {i8, scale}, "y"});
  CheckNode({"of i32", back, {Numbers(kI32, {3}, {5, -7e8, 9}), scale}, "y"});
  CheckNode({"of i8 by column", back_last, {i8, by_row, zero_by_row}, "y"});
}

TEST(KeptIntegers, DynamicQuantizeLinear) {
  const OnnxNode node{.op_type = "DynamicQuantizeLinear"};
  CheckNode({"random", node, {RandomTensor({kF32, {30, 1001}}, 4)}, "yyy"});
  CheckNode({"positive", node, {Numbers(kF32, {4}, {1, 2, 5, 3})}, "yyy"});
  CheckNode({"negative", node, {Numbers(kF32, {4}, {-1, -2, -5, -3})}, "yyy"});
  CheckNode({"zeros", node, {Numbers(kF32, {3}, {0, 0, 0})}, "yyy"});
}

}  // namespace
}  // namespace ag::cpu

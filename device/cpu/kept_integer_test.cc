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

TEST(KeptIntegers, ProductsOfActivations) {
  const bool fast = HasExactByteProducts();
  const OnnxNode node{.op_type = "MatMulInteger"};
  const Tensor a = Bytes(kU8, {2, 3, 17, 70}, 1), b = Bytes(kU8, {2, 3, 70, 33}, 2);
  const Tensor sa = Bytes(kI8, {2, 3, 17, 70}, 3), sb = Bytes(kI8, {2, 3, 70, 33}, 4);
  const Tensor za = Numbers(kU8, {}, {117}), zb = Numbers(kU8, {}, {90});
  const Tensor ya = Numbers(kI8, {}, {-7}), yb = Numbers(kI8, {1}, {11});
  CheckNode({"no zero points", node, {a, b}, "y", fast, 17, 2});
  CheckNode({"unsigned", node, {a, b, za, zb}, "y", fast, 17, 2});
  CheckNode({"zero points that are inputs", node, {a, b, za, zb}, "y", fast, 17, 4});
  CheckNode({"signed", node, {sa, sb, ya, yb}, "y", fast, 17, 2});
  CheckNode({"mixed", node, {a, sb, za, yb}, "y", fast, 17, 2});
  CheckNode({"one matrix",
             node,
             {Bytes(kU8, {1, 70}, 5), Bytes(kU8, {70, 3}, 6), za, zb},
             "y",
             fast,
             17,
             2});
  CheckNode({"broadcast", node, {a, Bytes(kU8, {70, 33}, 2), za, zb}, "y", false, 17, 2});
}

TEST(KeptIntegers, QuantizedProductsOfActivations) {
  const bool fast = HasExactByteProducts();
  OnnxNode node{.op_type = "QLinearMatMul"};
  const Tensor a = Bytes(kU8, {2, 9, 64}, 1), b = Bytes(kU8, {2, 64, 40}, 3);
  const Tensor s1 = Numbers(kF32, {}, {0.031}), s2 = Numbers(kF32, {}, {0.0021});
  const Tensor sy = Numbers(kF32, {}, {0.07}), za = Numbers(kU8, {}, {117});
  const Tensor zb = Numbers(kU8, {}, {101}), zy = Numbers(kU8, {}, {130});
  NodeCase c{"unsigned", node, {a, s1, za, b, s2, zb, sy, zy}, "y", fast, 17, 1, 3};
  CheckNode(c);  // A is a constant, B an input.
  const Tensor sb = Bytes(kI8, {2, 64, 40}, 4), yb = Numbers(kI8, {}, {5});
  CheckNode({"signed B", node, {a, s1, za, sb, s2, yb, sy, zy}, "y", fast, 17, 1, 3});
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

// Operands of a DynamicQuantizeLSTM of 8 units over 4 numbers, in the places of ONNX Runtime's
// form.
std::vector<Tensor> QuantizedLstm(Shape x, int64_t directions, DType dtype, bool by_column) {
  const int64_t d = directions, rows = 32;
  const Shape scale = by_column ? Shape{d, rows} : Shape{d};
  const auto small = [](const Tensor& tensor) {
    std::vector<double> values = tensor.ToDoubles();
    for (double& value : values) value = (value + 1) / 1e5;
    return Tensor::FromDoubles({kF32, tensor.type().shape}, values);
  };
  const Tensor scales = small(Bytes(kU8, scale, 7));
  return {RandomTensor({kF32, std::move(x)}, 1),
          Bytes(dtype, {d, 4, rows}, 2),
          Bytes(dtype, {d, 8, rows}, 3),
          RandomTensor({kF32, {d, 2 * rows}}, 4),
          Tensor(),
          Tensor(),
          Tensor(),
          Tensor(),
          scales,
          Bytes(dtype, scale, 8),
          scales,
          Bytes(dtype, scale, 9)};
}

TEST(KeptIntegers, DynamicQuantizeLstm) {
  OnnxNode node{.op_type = "DynamicQuantizeLSTM", .domain = "com.microsoft"};
  node.attributes = {IntOf("hidden_size", 8)};
  CheckNode({"one scale", node, QuantizedLstm({5, 1, 4}, 1, kI8, false), "yyy", true, 1});
  CheckNode({"by column", node, QuantizedLstm({5, 1, 4}, 1, kU8, true), "y", true, 1});
  CheckNode({"of a batch", node, QuantizedLstm({4, 3, 4}, 1, kI8, false), "yy", true, 1});
  std::vector<Tensor> operands = QuantizedLstm({5, 2, 4}, 1, kI8, false);
  operands[4] = Numbers(kI32, {2}, {3, 5});
  operands[5] = RandomTensor({kF32, {1, 2, 8}}, 5);
  operands[6] = RandomTensor({kF32, {1, 2, 8}}, 6);
  CheckNode({"with states", node, operands, "yyy", true, 1});
  operands[7] = RandomTensor({kF32, {1, 24}}, 7);
  CheckNode({"with peepholes", node, operands, "yyy", false, 1});
  node.attributes.push_back(WordOf("direction", "bidirectional"));
  CheckNode({"both", node, QuantizedLstm({6, 2, 4}, 2, kI8, true), "yyy", true, 1});
}

TEST(KeptIntegers, QGemm) {
  const bool fast = HasExactByteProducts();
  OnnxNode node{.op_type = "QGemm", .domain = "com.microsoft"};
  const Tensor a = Bytes(kU8, {5, 64}, 1), w = Bytes(kI8, {64, 40}, 3), c = Numbers(kI32, {1}, {0});
  const Tensor sa = Numbers(kF32, {}, {0.031}), sw = Numbers(kF32, {}, {0.0021});
  const Tensor sy = Numbers(kF32, {}, {0.07}), za = Numbers(kU8, {}, {117});
  const Tensor zw = Numbers(kI8, {}, {0}), zy = Numbers(kU8, {}, {130});
  std::vector<double> bias(40), scales(40);
  for (size_t i = 0; i < bias.size(); ++i) {
    bias[i] = 700.0 * static_cast<double>(i) - 9000;
    scales[i] = 0.0001 * static_cast<double>(i + 1);
  }
  const Tensor more = Numbers(kI32, {40}, bias), by_column = Numbers(kF32, {40}, scales);
  CheckNode({"plain", node, {a, sa, za, w, sw, zw, Tensor(), sy, zy}, "y", fast, 1});
  CheckNode({"with a bias", node, {a, sa, za, w, sw, zw, more, sy, zy}, "y", fast, 1});
  CheckNode({"to floats", node, {a, sa, za, w, sw, zw, more}, "y", false, 1});
  node.attributes = {IntOf("transB", 1)};
  const Tensor turned = Bytes(kI8, {40, 64}, 3), zeros = Bytes(kI8, {40}, 6);
  CheckNode({"turned", node, {a, sa, za, turned, by_column, zeros, more, sy, zy}, "y", fast, 1});
}

OnnxNode QuantizedNode(const char* op) { return {.op_type = op, .domain = "com.microsoft"}; }

TEST(KeptIntegers, QuantizedSums) {
  const Tensor a = Bytes(kU8, {2, 3, 41, 41}, 1), b = Bytes(kU8, {2, 3, 41, 41}, 2);
  const Tensor s1 = Numbers(kF32, {}, {0.031}), s2 = Numbers(kF32, {1}, {0.017});
  const Tensor s3 = Numbers(kF32, {}, {0.05}), z1 = Numbers(kU8, {}, {117});
  const Tensor z2 = Numbers(kU8, {1}, {130}), si = Numbers(kI8, {}, {-7});
  const auto i8 = [](Shape shape) { return Bytes(kI8, std::move(shape), 5); };
  for (const char* op : {"QLinearAdd", "QLinearMul"}) {
    const OnnxNode node = QuantizedNode(op);
    CheckNode({"same sizes", node, {a, s1, z1, b, s2, z2, s3, z1}, "y", true, 1});
    CheckNode({"no zero points", node, {a, s1, Tensor(), b, s2, Tensor(), s3}, "y", true, 1});
    CheckNode({"signed", node, {i8({7, 9}), s1, si, i8({7, 9}), s2, si, s3, si}, "y", true, 1});
    CheckNode({"one number", node, {a, s1, z1, Bytes(kU8, {1}, 3), s2, z2, s3, z1}, "y", true, 1});
    CheckNode(
        {"a number first", node, {Bytes(kU8, {}, 3), s1, z1, b, s2, z2, s3, z1}, "y", true, 1});
    CheckNode(
        {"by channel", node, {a, s1, z1, Bytes(kU8, {3, 1, 1}, 4), s2, z2, s3, z1}, "y", true, 1});
    CheckNode({"rows",
               node,
               {Bytes(kU8, {4, 1}, 6), s1, z1, Bytes(kU8, {1, 5}, 7), s2, z2, s3, z1},
               "y",
               true,
               1});
  }
}

TEST(KeptIntegers, QuantizedFunctions) {
  const Tensor u8 = Bytes(kU8, {3, 200}, 1), i8 = Bytes(kI8, {3, 200}, 2);
  const Tensor s1 = Numbers(kF32, {}, {0.031}), s2 = Numbers(kF32, {}, {0.0039});
  const Tensor zu = Numbers(kU8, {}, {117}), zi = Numbers(kI8, {}, {-7});
  OnnxNode leaky = QuantizedNode("QLinearLeakyRelu");
  for (const OnnxNode& node : {QuantizedNode("QLinearSigmoid"), leaky}) {
    CheckNode({"u8", node, {u8, s1, zu, s2, zu}, "y", true, 1});
    CheckNode({"i8", node, {i8, s1, zi, s2, zi}, "y", true, 1});
    CheckNode({"no zero points", node, {u8, s1, Tensor(), s2}, "y", true, 1});
  }
  leaky.attributes = {{.name = "alpha", .type = OnnxAttributeType::kFloat, .f = 0.3F}};
  CheckNode({"alpha", leaky, {u8, s1, zu, s2, zu}, "y", true, 1});
}

TEST(KeptIntegers, QuantizedConcat) {
  OnnxNode node = QuantizedNode("QLinearConcat");
  node.attributes = {IntOf("axis", 1)};
  const Tensor s1 = Numbers(kF32, {}, {0.031}), s2 = Numbers(kF32, {}, {0.017});
  const Tensor zu = Numbers(kU8, {}, {117}), z2 = Numbers(kU8, {}, {9});
  const Tensor a = Bytes(kU8, {2, 3, 50}, 1), b = Bytes(kU8, {2, 5, 50}, 2);
  const std::vector<Tensor> two = {s1, zu, a, s2, z2, b, s1, zu};
  CheckNode({"two", node, two, "y", true, 1, 1, 2});
  CheckNode({"a constant first", node, two, "y", true, 1, 1, 5});
  CheckNode({"three", node, {s1, zu, a, s2, z2, b, s1, zu, a, s1, z2}, "y", true, 1, 1, 2});
  CheckNode({"a scale that is an input", node, two, "y", false, 1});
}

TEST(KeptIntegers, QuantizedGlobalAveragePool) {
  OnnxNode node = QuantizedNode("QLinearGlobalAveragePool");
  const Tensor s1 = Numbers(kF32, {}, {0.031}), s2 = Numbers(kF32, {}, {0.003});
  const Tensor zu = Numbers(kU8, {}, {117}), zi = Numbers(kI8, {}, {-7});
  CheckNode({"u8", node, {Bytes(kU8, {2, 9, 7, 7}, 1), s1, zu, s2, zu}, "y", true, 1});
  CheckNode({"i8", node, {Bytes(kI8, {2, 9, 7, 7}, 1), s1, zi, s2, zi}, "y", true, 1});
  node.attributes = {IntOf("channels_last", 1)};
  CheckNode({"channels last", node, {Bytes(kU8, {2, 7, 7, 9}, 1), s1, zu, s2, zu}, "y", true, 1});
}

}  // namespace
}  // namespace ag::cpu

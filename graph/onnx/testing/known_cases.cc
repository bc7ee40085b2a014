#include "graph/onnx/testing/known_cases.h"

#include <algorithm>

namespace ag::testing {

std::span<const KnownCase> RefusedCases() {
  static constexpr std::string_view kTraining = "training: domain ai.onnx.preview.training";
  static constexpr std::string_view kDropped = "training: which elements are dropped is random";
  static constexpr std::string_view kTrees = "domain ai.onnx.ml";
  static constexpr std::string_view kRandom = "random numbers without a defined generator";
  static constexpr std::string_view kType = "an element type that came with opset 24 to 28";
  static constexpr KnownCase kCases[] = {
      {"test_adagrad", kTraining},
      {"test_adam", kTraining},
      {"test_momentum", kTraining},
      {"test_nesterov_momentum", kTraining},
      {"test_gradient_of_", kTraining},
      {"test_training_dropout.", kDropped},
      {"test_training_dropout_mask.", kDropped},
      {"test_training_dropout_default.", kDropped},
      {"test_training_dropout_default_mask.", kDropped},
      {"test_bernoulli", kRandom},
      {"test_image_decoder_", "image decoding"},
      {"test_ai_onnx_ml_", kTrees},
      {"test_flexattention", "domain ai.onnx.preview"},
      {"test_cast_e8m0_", kType},
      {"test_cast_FLOAT16_to_INT2.", kType},
      {"test_cast_FLOAT16_to_UINT2.", kType},
      {"test_cast_FLOAT_to_INT2.", kType},
      {"test_cast_FLOAT_to_UINT2.", kType},
      {"test_cast_INT2_", kType},
      {"test_cast_UINT2_", kType},
      {"test_castlike_FLOAT16_to_INT2", kType},
      {"test_castlike_FLOAT16_to_UINT2", kType},
      {"test_castlike_FLOAT_to_INT2", kType},
      {"test_castlike_FLOAT_to_UINT2", kType},
      {"test_castlike_INT2_", kType},
      {"test_castlike_UINT2_", kType},
      {"test_dequantizelinear_int2.", kType},
      {"test_dequantizelinear_uint2.", kType},
      {"test_quantizelinear_int2.", kType},
      {"test_quantizelinear_uint2.", kType},
  };
  return kCases;
}

std::span<const KnownCase> DifferentCases() {
  static constexpr std::string_view kCorners =
      "with align_corners the data divide by the size before rounding down; ONNX Runtime and the "
      "IR divide by the size after it";
  static constexpr std::string_view kAttention =
      "the data of ONNX 1.18; those of 1.23 and ONNX Runtime say what we compute";
  static constexpr std::string_view kWraps =
      "the data of ONNX 1.16 and 1.18 wrap (-236 becomes 20) where the text says that the result "
      "saturates; "
      "those of 1.23 saturate";
  static constexpr std::string_view kBeyond =
      "numbers beyond 4 bits, which ONNX's text leaves open: they saturate in the data of 1.18 and "
      "here, and wrap in those of 1.23";
  static constexpr std::string_view kNoNan =
      "NaN, which the type lacks: 6 in the data of 1.18 and here, -0 in those of 1.23";
  static constexpr KnownCase kCases[] = {
      {"test_resize_downsample_scales_cubic_align_corners.", kCorners},
      {"test_resize_downsample_scales_linear_align_corners.", kCorners},
      {"test_maxunpool_export_with_output_shape.",
       "the data count MaxUnpool's indices in the shape that the window gives; ONNX Runtime, "
       "PyTorch and we count them in output_shape, as MaxPool counts its indices in its operand"},
      {"test_averagepool_3d_dilations_large_count_include_pad_is_",
       "the data of ONNX 1.16 have the older meaning of ceil_mode"},
      {"test_bernoulli_seed", "the data are of NumPy's generator; ONNX defines none"},
      {"test_attention_3d", kAttention},
      {"test_attention_4d", kAttention},
      {"test_qlinearmatmul_2D_int8_", kWraps},
      {"test_qlinearmatmul_3D_int8_", kWraps},
      {"test_cast_FLOAT16_to_INT4.", kBeyond},
      {"test_cast_FLOAT16_to_UINT4.", kBeyond},
      {"test_cast_FLOAT_to_INT4.", kBeyond},
      {"test_cast_FLOAT_to_UINT4.", kBeyond},
      {"test_castlike_FLOAT16_to_INT4", kBeyond},
      {"test_castlike_FLOAT16_to_UINT4", kBeyond},
      {"test_castlike_FLOAT_to_INT4", kBeyond},
      {"test_castlike_FLOAT_to_UINT4", kBeyond},
      {"test_cast_FLOAT16_to_FLOAT4E2M1.", kNoNan},
      {"test_cast_FLOAT_to_FLOAT4E2M1.", kNoNan},
      {"test_castlike_FLOAT16_to_FLOAT4E2M1", kNoNan},
      {"test_castlike_FLOAT_to_FLOAT4E2M1", kNoNan},
  };
  return kCases;
}

const KnownCase* FindCase(std::span<const KnownCase> cases, std::string_view test) {
  const auto found = std::ranges::find_if(cases, [&](const KnownCase& known) {
    const bool is_whole = known.prefix.ends_with('.');
    return is_whole ? known.prefix.substr(0, known.prefix.size() - 1) == test
                    : test.starts_with(known.prefix);
  });
  return found == cases.end() ? nullptr : &*found;
}

}  // namespace ag::testing

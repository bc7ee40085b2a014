#include "graph/input_role.h"

#include <gtest/gtest.h>

namespace ag {
namespace {

TEST(InputRole, FollowsFromNameAndType) {
  const struct {
    const char* name;
    TensorType type;
    InputRole role;
  } kCases[] = {
      {"input_ids", {DType::kInt64, {1, 128}}, InputRole::kIntegers},
      {"token_type_ids", {DType::kInt64, {1, 128}}, InputRole::kTokenTypes},
      {"Segment_IDs", {DType::kInt32, {1, 128}}, InputRole::kTokenTypes},
      {"position_ids", {DType::kInt64, {1, 128}}, InputRole::kPositions},
      {"attention_mask", {DType::kInt64, {1, 128}}, InputRole::kMask},
      {"attention_mask", {DType::kFloat32, {1, 128}}, InputRole::kMask},
      {"mask", {DType::kBool, {1, 128}}, InputRole::kMask},
      {"key_padding_mask", {DType::kBool, {1, 128}}, InputRole::kPadding},
      {"x_lengths", {DType::kInt64, {2}}, InputRole::kLengths},
      {"x_len", {DType::kInt32, {2}}, InputRole::kLengths},
      {"lengths_table", {DType::kInt32, {2, 3, 4}}, InputRole::kIntegers},
      {"use_cache", {DType::kBool, {1}}, InputRole::kFlags},
      {"pixels", {DType::kFloat32, {1, 3, 224, 224}}, InputRole::kPicture},
      {"pixels", {DType::kFloat32, {1, 224, 224, 3}}, InputRole::kPicture},
      {"features", {DType::kFloat32, {1, 64, 28, 28}}, InputRole::kNumbers},
      {"past_key.0", {DType::kFloat32, {1, 4, 16, 32}}, InputRole::kNumbers},
      {"waveform", {DType::kFloat32, {1, 16000}}, InputRole::kSound},
      {"x", {DType::kFloat32, {1, 16}}, InputRole::kNumbers},
      {"text", {DType::kString, {1}}, InputRole::kStrings},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(RoleByName(c.name, c.type), c.role) << c.name << " " << c.type.ToString();
  }
}

}  // namespace
}  // namespace ag

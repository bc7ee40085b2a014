#include "graph/onnx/tensor_proto.h"

#include <gtest/gtest.h>

#include "graph/weights.h"

namespace ag {
namespace {

TEST(TensorProto, WhatIsWrittenIsRead) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kInt64,
                            DType::kInt8, DType::kBool}) {
    for (const Shape& shape : {Shape{2, 3}, Shape{}, Shape{0, 4}}) {
      const Tensor tensor = RandomTensor({dtype, shape}, 1);
      const auto read = ParseTensorProto(FormatTensorProto("x", tensor));
      ASSERT_TRUE(read.ok()) << read.status();
      EXPECT_EQ(read->type().ToString(), tensor.type().ToString());
      EXPECT_EQ(read->bytes(), tensor.bytes());
    }
  }
}

TEST(TensorProto, GarbageIsAStatus) {
  EXPECT_EQ(ParseTensorProto("\xff\xff").status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace ag

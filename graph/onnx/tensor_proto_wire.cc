#include "graph/onnx/tensor_proto.h"
#include "graph/onnx/wire.h"
#include "onnx/onnx_pb.h"

namespace ag {

std::string FormatTensorProto(const std::string& name, const Tensor& tensor) {
  const OnnxTensor written = FromTensor(name, tensor);
  onnx::TensorProto proto;
  proto.set_name(name);
  proto.set_data_type(written.data_type);
  for (const int64_t dim : written.dims) proto.add_dims(dim);
  if (tensor.type().dtype == DType::kString) {
    for (const std::string_view value : tensor.Strings()) proto.add_string_data(std::string(value));
  } else {
    proto.set_raw_data(written.bytes.data(), written.bytes.size());
  }
  return proto.SerializeAsString();
}

}  // namespace ag

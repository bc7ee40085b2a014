#include "graph/onnx/tensor_proto.h"
#include "graph/onnx/wire.h"

namespace ag {

StatusOr<Tensor> ParseTensorProto(std::string_view bytes) {
  AG_LET(const OnnxTensor tensor, ParseTensor(bytes));
  AG_LET(const Tensor view, ToTensor(tensor));
  // A copy, because the view points into `bytes`.
  return Tensor::FromBytes(view.type(), view.bytes());
}

}  // namespace ag

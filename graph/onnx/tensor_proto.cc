#include "graph/onnx/onnx.h"
#include "graph/onnx/wire.h"

namespace ag {

StatusOr<Tensor> ParseTensorProto(std::string_view bytes) {
  AG_LET(const OnnxTensor tensor, ParseTensor(bytes));
  AG_LET(const Tensor view, ToTensor(tensor));
  return Tensor::FromBytes(view.type(), view.bytes());  // The view borrows from `bytes`.
}

}  // namespace ag

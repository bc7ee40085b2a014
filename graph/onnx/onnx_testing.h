// Models for tests, in ONNX's own text form (onnx/defs/parser.h):
//   g (float[2,3] x) => (float[2,3] y) <float[3] b = {1, 2, 3}> { y = Add(x, b) }
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "graph/onnx/onnx.h"
#include "graph/tensor.h"

namespace ag::testing {

// The bytes of a model. The header (`<ir_version: ...>`) is added when the text begins with a
// graph. A text that does not parse stops the test program.
std::string ModelFromText(std::string_view text, int opset = 17);

std::string ConvModel();  // Two convolutions, a pool, a classifier; a few KB.
std::string LargeWeightModel(size_t weight_bytes);                  // One product.
std::string ExpandingModel(int64_t constant_bytes, int constants);  // Small, but not once imported.
std::string ExternalDataModel(const std::string& location);  // Its weight "w" is said to be there.

// Opens a new blob folder that lives as long as the process.
std::shared_ptr<BlobDir> NewBlobs();

// The TensorProto in a file of ONNX's test data. kUnimplemented: no tensor.
StatusOr<Tensor> ReadTensorFile(const std::string& path);

// The model with its inputs (by place) turned into constants where `constant` says so: test data
// gives as inputs what in real models is constant (shapes, axes, pads).
StatusOr<std::string> WithConstantInputs(std::string_view model, const std::vector<Tensor>& inputs,
                                         const std::vector<bool>& constant);

}  // namespace ag::testing

// Models for tests. One thread at a time. Texts have ONNX's own form (onnx/defs/parser.h):
//   g (float[2,3] x) => (float[2,3] y) <float[3] b = {1, 2, 3}> { y = Add(x, b) }
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/blobs.h"
#include "graph/onnx/model_value.h"

namespace ag::testing {

// Returns the bytes of a model. Adds the header (`<ir_version: ...>`) when the text begins with a
// graph. A text that does not parse ends the test program.
std::string ModelFromText(std::string_view text, int opset = 17);

// The same, where the inputs and outputs of these names, also those of subgraphs, are sequences of
// what the text says; of a name that is there twice, sequences of sequences. ONNX's text has no
// sequences in subgraphs.
std::string SequenceModelFromText(std::string_view text, const std::multiset<std::string>& names,
                                  int opset = 17);

// Returns the model where inputs and outputs of these names are optionals of what they were.
std::string WithOptionals(std::string_view model, const std::set<std::string>& names);

std::string ConvModel();  // Two convolutions, a pool, a classifier; a few KB.
std::string LargeWeightModel(size_t weight_bytes);  // One product.
// A small file with large constants.
std::string ExpandingModel(int64_t constant_bytes, int constants);

// Where a model y = x + w has its weight "w". The two branches are the same.
enum class HeldBy { kInitializer, kConstant, kBranch };

// A weight f32[dims] in another file. What is empty is not said.
struct ExternalModelSpec {
  std::string location, offset, length;
  std::vector<int64_t> dims = {2};
  HeldBy held_by = HeldBy::kInitializer;
};
std::string ExternalDataModel(const ExternalModelSpec& spec);

struct SparseModelSpec {
  std::vector<int64_t> dims = {2, 3};
  std::vector<float> values;
  std::vector<int64_t> indices, index_dims;
  HeldBy held_by = HeldBy::kInitializer;
};
std::string SparseModel(const SparseModelSpec& spec);

// Opens a new blob folder that exists as long as the process.
std::shared_ptr<BlobDir> NewBlobs();

// Reads the TensorProto, SequenceProto or OptionalProto in a file of ONNX's test data.
StatusOr<ModelValue> ReadValueFile(const std::string& path, OnnxKind kind);

// Returns the model with input i as a constant where constant[i]. Test data has inputs that real
// models have as constants (shapes, axes, pads).
StatusOr<std::string> WithConstantInputs(std::string_view model, const std::vector<Tensor>& inputs,
                                         const std::vector<bool>& constant);

}  // namespace ag::testing

// What a model file consists of, for people: counted on the serialized model as ONNX's own tools
// count, without importing it.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/status.h"

namespace ag {

struct ModelFacts {
  int64_t file_bytes = 0;
  int64_t parameters = 0;                // Elements of all initializers.
  std::map<std::string, int> operators;  // Nodes of the main graph by op_type, Constant included.
};

// kInvalidArgument: not a protobuf.
StatusOr<ModelFacts> CountModel(std::string_view model);

}  // namespace ag

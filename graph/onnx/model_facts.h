// Facts about a model file, for people. They are counted on the serialized model, as ONNX's own
// tools do, without an import. Pure functions.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/status.h"

namespace ag {

struct ModelFacts {
  int64_t file_bytes = 0;
  int64_t parameters = 0;                // Elements of all initializers.
  std::map<std::string, int> operators;  // Nodes of the main graph by op_type, also Constant.
};

// Counts a serialized model. kInvalidArgument: not a protobuf.
StatusOr<ModelFacts> CountModel(std::string_view model);

}  // namespace ag

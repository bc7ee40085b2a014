// Plans in a model's metadata, written without touching the rest of the model: a protobuf message
// may be concatenated, so a new entry is appended behind the model's own bytes. Every node, name,
// weight and open dimension stays as it was.
#pragma once

#include <string>
#include <string_view>

#include "graph/onnx/onnx.h"

namespace ag {

// Metadata keys of plans are this prefix and the plan's key.
inline constexpr std::string_view kPlanPrefix = "autograph.plan.";

// Writes `model` (a serialized ModelProto) with `plan_bytes` as entry "autograph.plan.<key>" to
// `sink`, in pieces. An entry of that key which the model already holds is left out; plans under
// other keys stay. When the model has no such entry, what is written begins with exactly the
// model's bytes. An empty `plan_bytes` only removes. kInvalidArgument: not a protobuf. An error of
// `sink` ends it and is returned.
Status AppendPlan(std::string_view model, std::string_view key, std::string_view plan_bytes,
                  const ByteSink& sink);

}  // namespace ag

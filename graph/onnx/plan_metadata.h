// Plans in a model's metadata, added without a change to the rest of the model: protobuf messages
// may be concatenated, so a new entry follows the model's own bytes. Pure functions.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "graph/onnx/byte_sink.h"
#include "graph/types.h"

namespace ag {

// The metadata key of a plan is this prefix and the plan's key.
inline constexpr std::string_view kPlanPrefix = "autograph.plan.";

// The metadata key of the shapes of inputs that a file was planned for, where it leaves sizes open.
// An import takes them where nobody gives others.
inline constexpr std::string_view kSizesKey = "autograph.sizes";
std::string SizesText(const std::map<std::string, Shape>& shapes);  // "x=1x3x224x224", a line each.
std::map<std::string, Shape> SizesFromText(std::string_view text);  // Leaves out what is wrong.

// A plan's key, and its bytes.
using KeyedPlan = std::pair<std::string, std::string>;

// Writes `model` (a serialized ModelProto) with the plans as entries "autograph.plan.<key>" to
// `sink`, in pieces. They replace old entries of these keys; plans of other keys stay. Without an
// old entry the output begins with exactly the model's bytes. A plan without bytes only removes its
// entry. kInvalidArgument: not a protobuf. Else it returns the first error of `sink`.
Status AppendPlans(std::string_view model, std::span<const KeyedPlan> plans, const ByteSink& sink);

// Returns the bytes that add the plan to a model without an entry of that key when they follow it.
std::string PlanEntry(std::string_view key, std::string_view plan_bytes);

}  // namespace ag

// For tests of this room: devices with faults, work items as bytes, weights that are shared.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "graph/weights.h"
#include "worker/execute.h"

namespace ag::testing {

// Graphs of one group each.
inline constexpr std::string_view kLayer =
    "input x f32[4,16]; w = const f32[16,16] seed 1; output y = relu(matmul(x, w))";
inline constexpr std::string_view kRelu = "input x f32[8]; output y = relu(x)";
inline constexpr std::string_view kSoftmax = "input x f32[2,8]; output y = softmax(x) axis=1";
inline constexpr std::string_view kWideSoftmax = "input x f32[4,16]; output y = softmax(x) axis=1";

// The text of the shipped spec "small" with these lines added. Stops on errors, as all here do.
std::string SmallSpec(std::string_view lines);

// The same with a cache that holds whatever a test moves, and costs nothing.
std::string CachedSpec();

// Writes SmallSpec(lines) to a file in `folder`; the device's name.
std::string SimDevice(const std::string& folder, std::string_view lines);

// The graph of a text form in which ';' ends a line too; its constants go to `weights`.
Graph GraphOf(std::string_view text, MemoryWeights* weights = nullptr);

// The graph with a plan of one stream for the device.
CandidateBytes Candidate(std::string_view text, const DeviceSpec& spec,
                         MemoryWeights* weights = nullptr);

// The bytes of a group problem per text: each graph must be one group of the device.
std::string Problem(std::string_view text, const DeviceSpec& spec);

// The constants of `weights`, for who wants to own its source.
std::unique_ptr<WeightSource> Share(std::shared_ptr<const MemoryWeights> weights);

}  // namespace ag::testing

// Helpers for the tests of this room: devices with faults, work items as bytes, shared weights. All
// of them stop the program on an error. One thread at a time.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "graph/weights.h"
#include "worker/execute.h"

namespace ag::testing {

// Graphs of one group each.
inline constexpr std::string_view kLayer =
    "input x f32[4,16]; w = const f32[16,16] seed 1; output y = relu(matmul(x, w))";
inline constexpr std::string_view kRelu = "input x f32[8]; output y = relu(x)";
inline constexpr std::string_view kSoftmax = "input x f32[2,8]; output y = softmax(x) axis=1";
inline constexpr std::string_view kWideSoftmax = "input x f32[4,16]; output y = softmax(x) axis=1";

// Returns the text of the built-in spec "small" with these lines added.
std::string SmallSpec(std::string_view lines);

// Returns the same with a cache that holds everything a test moves and costs nothing.
std::string CachedSpec();

// Writes SmallSpec(lines) to a file in `folder` and returns the device's name.
std::string SimDevice(const std::string& folder, std::string_view lines);

// Returns the graph of a text form in which ';' also ends a line; its constants go to `weights`.
Graph GraphOf(std::string_view text, MemoryWeights* weights = nullptr);

// Returns the graph with a plan of one stream for the device.
Candidate Planned(std::string_view text, const DeviceSpec& spec, MemoryWeights* weights = nullptr);

// Returns the bytes of the group problem of a text. REQUIRES: the graph is one group of the device.
std::string Problem(std::string_view text, const DeviceSpec& spec);

// Returns a source of the constants of `weights`, for a callee that owns its source.
std::unique_ptr<WeightSource> Share(std::shared_ptr<const MemoryWeights> weights);

}  // namespace ag::testing

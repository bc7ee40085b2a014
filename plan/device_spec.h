// A device described as data (deploy/devices/*.spec, docs/device-spec.md): which groups it can run,
// in which layouts, and the rates that estimates use until a measurement exists. The planner and
// the search know devices only through this.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "plan/layout.h"
#include "plan/policy.h"

namespace ag {

// A group pattern: an anchor operator followed by optional steps along single-reader edges, e.g.
//   pattern conv  = Conv [Add] [Relu|Clip|Sigmoid|Swish]  layouts blocked16,plain
//   pattern chain = {elementwise}+  max 16                layouts any
//   pattern softmax = Softmax                             layouts plain
// A step in brackets may be missing; alternatives are operator names or {elementwise}, {movement},
// ... (the traits of graph/op_kind.h), or {depthwise}, {pointwise}. A binary step reads its other
// operand from outside the group. "one" patterns name a single operator of any listed kind.
enum class ConvolutionForm : uint8_t {
  kAny,
  kDepthwise,  // Two spatial axes, one filter for each channel; its weights are constants.
  kPointwise,  // Two spatial axes, a 1 x 1 window without strides, pads or groups; likewise.
};
struct PatternStep {
  std::vector<OpKind> ops;                       // Ascending, without repeats.
  ConvolutionForm form = ConvolutionForm::kAny;  // If not any, ops is Conv alone.
  bool optional = false;
  bool repeated = false;
  bool operator==(const PatternStep&) const = default;
};
struct GroupPattern {
  std::string name;
  std::vector<PatternStep> steps;
  int nodes_max = 0;            // 0: no limit beyond the steps.
  std::vector<Layout> layouts;  // Preferred first; empty: any, and all ports share it.
  bool operator==(const GroupPattern&) const = default;
};

struct DeviceSpec {
  std::string name;  // "cpu", "sim:h200", ...
  std::vector<GroupPattern>
      patterns;  // Every operator the device runs is the anchor of one of them.
  std::vector<DType> dtypes;
  int cores = 1;  // CPU cores or SMs: what streams share.
  int streams_max = 1;
  int stream_cores = 0;  // What each of several streams has; 0: an even share. See StreamCores.
  // Elements that one block of a kernel computes, on devices that deal blocks out to whatever core
  // is free (GPUs): a group then takes as many cores as it has blocks, and streams have no cores of
  // their own. 0: the device is not so.
  int64_t block_outputs = 0;
  // Bytes of a pixel's channels that the fast kernels of convolutions take at a time, on devices
  // whose libraries copy tensors with other channels into padded ones (cuDNN: 16). 0: none do.
  int64_t channel_bytes = 0;
  double flops_per_second = 0;  // Peak of one core or SM in fp32, multiply and add counted as two.
  // What it offers besides fp32, with the peak there; as in the file.
  std::vector<std::pair<std::string, double>> precisions;
  double bytes_per_second = 0;        // Memory, all cores together.
  double cache_bytes_per_second = 0;  // From the last-level cache.
  int64_t cache_bytes = 0;
  double launch_ns = 0;  // Fixed cost of a group.
  double event_ns = 0;   // Cost of waiting for another stream.
  int64_t memory_bytes = 0;
  int64_t alignment_bytes = 64;
  bool can_flush = true;  // Its caches can be flushed: it measures under a cold policy.
  // Noise and faults are read by device/sim only; other devices ignore them. Kept as text lines.
  std::vector<std::pair<std::string, std::string>> extra;

  const GroupPattern* FindPattern(std::string_view name) const;  // Null when there is none.
  bool Offers(std::string_view precision) const { return FlopsPerSecond(precision) > 0; }
  double FlopsPerSecond(std::string_view precision) const;  // 0 for one that it does not offer.
  bool operator==(const DeviceSpec&) const = default;
};

// kUnimplemented: the device does not offer the precision; the message lists what it offers.
Status CheckOffers(const DeviceSpec& spec, std::string_view precision);

// Also when the policy is cold and the device cannot flush its caches.
Status CheckMeasures(const DeviceSpec& spec, const Policy& policy);

// The cores of each of `streams` streams, 2 or more; 0, all of them, where blocks are dealt out.
int StreamCores(const DeviceSpec& spec, int streams);

// How many of `cores` cores a group takes whose largest output has so many elements.
int CoresTaken(const DeviceSpec& spec, int64_t outputs, int cores);

// Keys of lines that only device/sim reads; ParseDeviceSpec keeps them in `extra`, in order.
inline constexpr std::string_view kExtraKeys[] = {"fault", "noise",     "drift",
                                                  "seed",  "recording", "overlap"};
inline constexpr size_t kPatternStepsMax = 31;  // A match is a set of steps in 32 bits.

// kInvalidArgument "line N: ..." for unknown words, operators or missing fields.
StatusOr<DeviceSpec> ParseDeviceSpec(std::string_view text);

// Parses back to an equal spec.
std::string FormatDeviceSpec(const DeviceSpec& spec);

// Device, driver and library versions and the measuring policy's version: one line of
// "key=value;..." sorted by key. Part of every key; a commit hash never is (DESIGN section 3).
using Environment = std::string;

}  // namespace ag

// A device as data (deploy/devices/*.spec, docs/device-spec.md): the groups that it can run, their
// layouts, and the rates for estimates before a measurement exists. The planner and the search know
// devices only through this. Plain data and pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "plan/spec/kernel_family.h"
#include "plan/spec/layout.h"
#include "plan/spec/policy.h"

namespace ag {

// A group pattern: an anchor operator, then steps that each read the one before. Examples:
//   pattern conv  = Conv [Add] [{activation}]             layouts blocked16,plain
//   pattern chain = {elementwise}+  max 16                layouts any
//   pattern softmax = Softmax                             layouts plain
// A step in brackets is optional. Alternatives are operator names, traits of graph/op_kind.h
// ({elementwise}, {activation}, ...), {depthwise} or {pointwise}. A binary step reads its other
// operand from outside the group. After the operators, "&", "<" and ">" say what is allowed beyond
// that (docs/device-spec.md):
//   pattern attention = MatMul< [Add|Mul|Where&]+ Softmax MatMul&< [Transpose&] layouts plain
//   pattern norm = {elementwise}<>+ LayerNorm layouts plain
enum class ConvolutionForm : uint8_t {
  kAny,
  kDepthwise,  // Two spatial axes, one filter per channel; its weights are constants.
  // Two spatial axes, a 1 x 1 window without strides, pads or groups; its weights are constants.
  kPointwise,
};
struct PatternStep {
  std::vector<OpKind> ops;                       // Ascending, without repeats.
  ConvolutionForm form = ConvolutionForm::kAny;  // When not kAny, ops is only Conv.
  bool optional = false;
  bool repeated = false;
  bool any_operands = false;     // "&": any other operands, and the shape may change.
  bool takes_movements = false;  // "<": what moves its operands joins the group.
  bool is_tree = false;  // "<" of a repeated element-wise step: its operators may form a tree.
  bool shared = false;   // ">": what the step makes may have other readers as well.
  bool operator==(const PatternStep&) const = default;
};
struct GroupPattern {
  std::string name;
  std::vector<PatternStep> steps;
  int nodes_max = 0;            // 0: no limit beyond the steps.
  std::vector<Layout> layouts;  // Preferred first; empty: any layout, the same at all ports.
  bool operator==(const GroupPattern&) const = default;
};

struct DeviceSpec {
  std::string name;  // "cpu", "sim:h200", ...
  // Every operator that the device runs is the anchor of at least one pattern.
  std::vector<GroupPattern> patterns;
  // The kernels by which groups are estimated; groups of a pattern without any are estimated by the
  // roofline.
  std::vector<KernelFamily> kernels;
  std::vector<DType> dtypes;
  int cores = 1;  // CPU cores or SMs, shared by the streams.
  int streams_max = 1;
  int stream_cores = 0;  // Cores of each of several streams; 0: an even share. See StreamCores.
  // For devices that deal blocks out to any free core (GPUs): the elements that one block of a
  // kernel computes. A group then takes as many cores as it has blocks, and streams have no cores
  // of their own. 0: not such a device.
  int64_t block_outputs = 0;
  // For devices whose libraries copy tensors into padded ones (cuDNN: 16): the bytes of a pixel's
  // channels that the fast convolution kernels read at a time. 0: the libraries make no such
  // copies.
  int64_t channel_bytes = 0;
  double flops_per_second = 0;  // Peak of one core or SM in fp32, multiply and add counted as two.
  // Precisions besides fp32, with the peak of one core in each; in the order of the file.
  std::vector<std::pair<std::string, double>> precisions;
  double bytes_per_second = 0;        // Memory, all cores together.
  double cache_bytes_per_second = 0;  // From the last-level cache.
  int64_t cache_bytes = 0;
  // Constants of a group of so many bytes or more come from memory: a model that has such has more
  // than the cache keeps from one run to the next. Read by the estimates of kernel families. 0: no
  // constants do.
  int64_t far_weights_bytes = 0;
  // For devices that deal blocks out: the rate at which one core loads the operands of a
  // contraction's block, a square of at least block_outputs elements. 0: no limit, and the shape of
  // a contraction does not matter.
  double core_bytes_per_second = 0;
  double launch_ns = 0;       // Fixed time of a group.
  double contraction_ns = 0;  // Besides, of a group with a contraction: first loads, drain.
  // With core_bytes_per_second: the fixed time of adding up sums that several blocks share, which
  // a contraction of few blocks and long sums is worth. 0: no sum is shared.
  double split_ns = 0;
  double event_ns = 0;  // Time to wait for another stream.
  int64_t memory_bytes = 0;
  int64_t alignment_bytes = 64;
  // For accelerators with buffers that programs fill (plan/instances): clusters of cores / clusters
  // cores share one global buffer, each core has a local one, bytes_per_second is the memory
  // behind all clusters. 0: no such device.
  int clusters = 0;
  int units = 0;  // Compute units of a core; from 2 on vector work runs beside matrix work.
  int64_t local_bytes = 0;             // Of one core.
  double local_bytes_per_second = 0;   // Of one core.
  int64_t global_bytes = 0;            // Of one cluster.
  double global_bytes_per_second = 0;  // Of one cluster, all its cores together.
  double vector_flops_per_second = 0;  // Of one core, for all but contractions.
  bool can_evict = true;  // Its caches can be evicted, so it can measure under a cold policy.
  // Noise and faults, as lines of text. Only device/sim reads them.
  std::vector<std::pair<std::string, std::string>> extra;

  const GroupPattern* FindPattern(std::string_view name) const;  // Null: there is none.
  bool Offers(std::string_view precision) const { return FlopsPerSecond(precision) > 0; }
  double FlopsPerSecond(std::string_view precision) const;  // 0: not offered.
  bool operator==(const DeviceSpec&) const = default;
};

// Returns kUnimplemented when the device does not offer the precision; the message lists its
// precisions.
Status CheckOffers(const DeviceSpec& spec, std::string_view precision);

// As CheckOffers; kUnimplemented also for a cold policy when the caches cannot be evicted.
Status CheckMeasures(const DeviceSpec& spec, const Policy& policy);

// Returns the cores of each of `streams` (2 or more) streams. 0, all of them: blocks are dealt out.
int StreamCores(const DeviceSpec& spec, int streams);

// Returns how many of `cores` cores a group takes; `outputs`: the elements of its largest output.
int CoresTaken(const DeviceSpec& spec, int64_t outputs, int cores);

// Keys of the lines that only device/sim reads. ParseDeviceSpec keeps them in `extra`, in order.
inline constexpr std::string_view kExtraKeys[] = {"fault",     "noise",   "drift",  "seed",
                                                  "recording", "overlap", "scatter"};
inline constexpr size_t kPatternStepsMax = 31;  // A match is a set of steps in 32 bits.

// Returns the spec. kInvalidArgument "line N: ...": unknown words or operators, or missing fields.
StatusOr<DeviceSpec> ParseDeviceSpec(std::string_view text);
// Returns the spec of a file. Errors begin with its path.
StatusOr<DeviceSpec> ReadDeviceSpec(const std::string& path);

// Returns a text that parses to an equal spec.
std::string FormatDeviceSpec(const DeviceSpec& spec);

// Versions of device, driver, libraries and measuring policy, as one line "key=value;..." sorted by
// key. Part of every key. It never holds a commit hash (docs/design.md, Processes, weights and
// keys).
using Environment = std::string;

}  // namespace ag

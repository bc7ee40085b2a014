// A plan: how a device runs one graph. Groups say what one launch computes, streams in which order
// and beside what, places where every tensor lies. Plain data; a device turns it into something
// that runs.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/digest.h"
#include "graph/graph.h"
#include "plan/device_spec.h"
#include "plan/layout.h"
#include "plan/policy.h"

namespace ag {

inline constexpr int kCoresMax = 1'000'000;  // What decoders take for a number of cores or groups.

// A tensor as a group reads or writes it.
struct Port {
  Edge edge;
  Layout layout = Layout::kPlain;
  auto operator<=>(const Port&) const = default;
};

// Groups whose pattern is one of these contain no launch pattern of the spec.
//
// A reorder has no nodes and writes inputs[0] in another layout to outputs[0], the same edge. With
// equal layouts it is a *copy*: it writes a tensor to graph outputs that cannot be the tensor's own
// place, because it is a graph input as well, or another output already, or a constant. It
// writes every further place of its port (CopiesOf); there is one copy per edge. The copy of a
// constant has no inputs: constants are never ports, the device has their bytes.
//
// A view has one movement operator (or is a reorder that changes no byte). Placement alone does it;
// it is never launched, takes no time, and its outputs are there as soon as its inputs are.
inline constexpr std::string_view kReorderPattern = "reorder";
inline constexpr std::string_view kViewPattern = "view";

struct Group {
  std::string pattern;        // A name of DeviceSpec::patterns, or one of the two above.
  std::vector<NodeId> nodes;  // Ascending; operators that are not constant. Empty for a reorder.
  std::vector<Port> inputs;   // Read from outside, without constants, in order of first reading.
  std::vector<Port> outputs;  // Written, and read by something outside.
  std::string kernel;         // The device's name of the chosen kernel; "": the device's default.
  int cores = 0;              // What the group was built and measured for; 0: its stream's.
};

struct Launch {
  int group = 0;
  std::vector<int> waits;  // Groups on other streams that must have ended. Transitively reduced.
};

struct Stream {
  int cores = 0;  // 0: all of the device.
  std::vector<Launch> launches;
};

// Where a tensor in a layout lies. kInput and kOutput are the caller's buffers, which hold plain
// bytes: where the port has another layout (only SingleGroupPlan and PlanOfPair make such places)
// or the policy's precision another type (StoredType; offsets and sizes are the stored ones) the
// device keeps a buffer of its own of LayoutBytes and converts on the way in and out, which no
// timing includes.
struct Place {
  enum class Kind : uint8_t { kArena = 0, kInput = 1, kOutput = 2 };
  Port port;
  Kind kind = Kind::kArena;
  int32_t index = 0;         // kInput, kOutput: position among the graph's inputs or outputs.
  int64_t offset_bytes = 0;  // From the arena's start (kArena) or the user buffer's.
  auto operator<=>(const Place&) const = default;
};

struct Plan {
  Digest graph;             // Digest of the graph that the NodeIds speak of.
  Environment environment;  // Where it was measured; "" for one that was only estimated.
  Policy policy;
  std::vector<Group> groups;
  std::vector<Stream> streams;  // Every group but views stands in exactly one launch.
  // Sorted. One per distinct port that is read or written, its home; after it, all kOutput, those
  // that a copy group fills. A constant has no home.
  std::vector<Place> places;
  int64_t arena_bytes = 0;
};

// Where the port is written and read; null when it has no place. REQUIRES: sorted places, and the
// port is no constant.
const Place* FindPlace(const Plan& plan, const Port& port);

// The places that the copy group of `port` writes: all but its home; all when it is a constant.
std::span<const Place> CopiesOf(const Graph& graph, const Plan& plan, const Port& port);

inline bool IsCopy(const Group& group) {
  return group.pattern == kReorderPattern &&
         (group.inputs.empty() || group.inputs == group.outputs);
}

// Checks everything a device relies on: the digest, ids in range, every operator node in exactly
// one group, groups convex, each port placed, launches complete, waits enough (every read happens
// after its write and after all earlier readers of reused memory are done), placements in bounds
// and disjoint where lives overlap by happens-before. kInvalidArgument says what is wrong.
Status ValidatePlan(const Graph& graph, const Plan& plan, const DeviceSpec& spec);

// Versioned bytes (docs/plan.md); hostile input gives kDataLoss, never a crash.
inline constexpr uint32_t kPlanBytesVersion = 1;
std::string EncodePlan(const Plan& plan);
StatusOr<Plan> DecodePlan(std::string_view bytes);

// For people: one line a launch, with streams, waits, kernels.
std::string FormatPlan(const Graph& graph, const Plan& plan);

}  // namespace ag

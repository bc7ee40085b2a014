// A plan: how a device runs one graph. Groups say what one launch computes, streams give the order
// and the overlap of launches, places give the memory of every tensor. A device builds something
// that runs from it. Plain data and pure functions.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/digest.h"
#include "graph/graph.h"
#include "plan/spec/device_spec.h"
#include "plan/spec/layout.h"
#include "plan/spec/policy.h"

namespace ag {

// Greatest number of cores or groups that decoders accept.
inline constexpr int kCoresMax = 1'000'000;

// A tensor as a group reads or writes it.
struct Port {
  Edge edge;
  Layout layout = Layout::kPlain;
  auto operator<=>(const Port&) const = default;
};

// The two group patterns that no spec defines.
//
// A reorder has no nodes; it writes inputs[0] in another layout to outputs[0], the same edge. With
// equal layouts it is a *copy*: it fills the graph outputs that cannot be the home of their tensor,
// because the tensor is a graph input, a constant, or another output already. It writes all places
// of its port except the home (CopiesOf); there is one copy per edge. The copy of a constant has no
// inputs: constants are never ports, and the device has their bytes.
//
// A view has one movement operator, or is a reorder that changes no byte. Placement alone does its
// work: it is never launched, takes no time, and its outputs exist as soon as its inputs do.
inline constexpr std::string_view kReorderPattern = "reorder";
inline constexpr std::string_view kViewPattern = "view";

struct Group {
  std::string pattern;        // A name of DeviceSpec::patterns, or one of the two above.
  std::vector<NodeId> nodes;  // Ascending; operators that are not constant. Empty: a reorder.
  std::vector<Port> inputs;  // Read from outside, without constants, in the order of first reading.
  // Written, and read outside: of the last operator, then of others by the mark ">" of the pattern.
  std::vector<Port> outputs;
  std::string kernel;  // The device's name of the kernel; "": the device's default.
  int cores = 0;       // The cores for which the group was built and measured; 0: its stream's.
};

struct Launch {
  int group = 0;
  // Groups on other streams that must have ended. Transitively reduced.
  std::vector<int> waits;
  bool operator==(const Launch&) const = default;
};

struct Stream {
  int cores = 0;  // 0: all of the device's.
  std::vector<Launch> launches;
  bool operator==(const Stream&) const = default;
};

// The memory of a tensor in a layout. kInput and kOutput are the caller's buffers, which hold plain
// bytes. Where the port has another layout (only in SingleGroupPlan and PlanOfPair) or the policy's
// precision another type (StoredType; offsets and sizes are those of the stored type), the device
// keeps an own buffer of LayoutBytes and converts on the way in and out. No timing includes the
// conversion.
struct Place {
  enum class Kind : uint8_t { kArena = 0, kInput = 1, kOutput = 2 };
  Port port;
  Kind kind = Kind::kArena;
  int32_t index = 0;         // kInput, kOutput: position among the graph's inputs or outputs.
  int64_t offset_bytes = 0;  // From the arena's start (kArena) or the user buffer's.
  auto operator<=>(const Place&) const = default;
};

struct Segment;

struct Plan {
  Digest graph;             // Digest of the graph to which the NodeIds belong.
  Environment environment;  // Where it was measured; "": only estimated.
  Policy policy;
  std::vector<Group> groups;
  std::vector<Stream> streams;  // Every group except views is in exactly one launch.
  // Sorted. Each port that is read or written has one home; after the home come the places, all
  // kOutput, that a copy fills. A constant has no home.
  std::vector<Place> places;
  int64_t arena_bytes = 0;
  // Not empty: a plan in segments, without groups, streams and places of its own.
  std::vector<Segment> segments;
  // Of a plan in segments: so many runs of the last segment, each behind the runs that lead to it,
  // go on beside each other, on an even share of the cores each. At most the runs that it has.
  int32_t beside = 1;
};

// Operators that run together on parts of the batch (docs/plan.md, "Segments"). Each operator of
// the plan's graph is in one segment, and reads of its own and of those before it. Segment i + 1
// runs once for several runs of segment i, when the samples of all these are there.
struct Segment {
  std::vector<NodeId> nodes;  // Ascending; operators of the plan's graph that are not constant.
  int32_t instances = 1;      // Runs in one run of the plan; a multiple of the next segment's.
  // Of the nodes by themselves on one part of the batch (PiecesOf in plan/segments.h), without an
  // environment. A port in the caller's memory that is read and written by segments alone may have
  // another layout than plain, if it is as large as the plain one.
  Plan plan;
};

// Returns the plans that have groups: of the segments in their order, or `plan` itself.
std::vector<const Plan*> PlansIn(const Plan& plan);

// Sizes of a plan over all its segments: groups, the most streams and the largest arena of one; how
// often the first one runs, 1 for a plan without; how many runs go on beside each other.
struct PlanSizes {
  int instances = 1;
  int beside = 1;
  int groups = 0;
  int streams = 0;
  int64_t arena_bytes = 0;
};
PlanSizes SizesOf(const Plan& plan);

// Returns the home of the port; null: it has no place. REQUIRES: sorted places, and the port is not
// a constant.
const Place* FindPlace(const Plan& plan, const Port& port);

// Returns the places that the copy of `port` writes: all but its home; all for a constant.
std::span<const Place> CopiesOf(const Graph& graph, const Plan& plan, const Port& port);

inline bool IsCopy(const Group& group) {
  return group.pattern == kReorderPattern &&
         (group.inputs.empty() || group.inputs == group.outputs);
}

}  // namespace ag

// Plans in segments by group times: where a graph is cut and on how large a part of the batch each
// segment runs. GraphTurbo (Zhao et al., OSDI 2023, section 4.1) chooses sub-graphs and their
// factors by the size of a buffer; here measured times choose. Pure functions, apart from what the
// times measure.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "plan/plan.h"

namespace ag {

// A plan of a graph on one of `instances` equal parts of its batch, and its groups' times.
struct PartPlan {
  int32_t instances = 1;
  Plan plan;
  std::vector<double> ns;  // By group; one run.
};

// Scales the times so that all runs of the plan together take `whole_ns`, as they do when they are
// timed whole. Times taken alone do not see what one run leaves in the caches for the next, such as
// weights; what a size gains or loses by that is divided evenly among its groups.
void ScaleTo(double whole_ns, PartPlan* plan);

struct Segmentation {
  std::vector<Segment> segments;  // Without plans.
  double ns = 0;                  // Of one run of the whole, by the groups' times.
};

// Cuts that are looked at; of more, so many at equal distances.
inline constexpr size_t kSegmentCutsMax = 200;
// The most tensors between the operators before a cut and those behind it.
inline constexpr int kCutTensorsMax = 2;
inline constexpr size_t kSegmentsMax = 4;
// A further segment must promise at least this share of the time.
inline constexpr double kSegmentGain = 0.005;

// Returns segmentations of 2 to kSegmentsMax segments, the least time first: the best one of each
// number of segments that gains kSegmentGain over fewer, among them the best of `plans` alone.
// Parts grow along the graph, each size a multiple of the one before. A cut is where at most
// kCutTensorsMax tensors pass and no group of the two plans reaches over it. Dynamic programming
// over cuts and sizes. Empty: samples depend on each other, or nothing promises a gain.
std::vector<Segmentation> ChooseSegments(const Graph& graph, std::span<const PartPlan> plans);

// Makes the plan of a piece on one of `instances` parts of the batch.
using MakePiecePlan = std::function<StatusOr<Plan>(const Graph& piece, int32_t instances)>;

// Returns the validated plan of `graph` in these segments. A tensor between two of them stays in
// the layout of its writer where all its readers would reorder it into this layout at once and it
// takes no padding.
StatusOr<Plan> MakeSegmentsPlan(const Graph& graph, const DeviceSpec& spec,
                                std::vector<Segment> segments, const MakePiecePlan& make);

}  // namespace ag

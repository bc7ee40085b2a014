// Plans in segments (Segment in plan/plan.h): the graphs of the segments, and where the tensors
// between them lie. Pure functions.
#pragma once

#include "graph/batch/pieces.h"
#include "plan/plan.h"

namespace ag {

// Returns the piece of each segment, on one part of the batch: segment.plan is a plan of it.
// kInvalidArgument names what does not fit: an operator in no segment or in two, a segment that
// reads of a later one, counts that are no multiples of the next. The errors of PartOfBatch
// (graph/batch/part_of_batch.h); kUnimplemented: a tensor between segments whose first axis is not
// that of the samples.
StatusOr<std::vector<GraphPiece>> PiecesOf(const Graph& graph, const Plan& plan);

// Returns the graph of each of PlansIn(plan); none where PiecesOf fails.
std::vector<Graph> GraphsIn(const Graph& graph, const Plan& plan);

// Returns the plan that runs `instance`, a plan of `whole` on one of `instances` equal parts of the
// batch, for each part: one segment, `beside` runs beside each other.
Plan InstancesOf(Plan instance, const Graph& whole, int32_t instances, int32_t beside = 1);

// Returns the plan of `whole` in these segments. Moves policy and environment of their plans to it.
Plan PlanOfSegments(std::vector<Segment> segments, const Graph& whole);

// Returns the layout in which the plan of a piece has its input or output `index` in the caller's
// memory.
Layout LayoutAtEnd(const Plan& plan, Place::Kind kind, size_t index, Edge edge);

// A tensor that one segment writes and others read, and that is no output of the graph: it has a
// buffer of its own, which holds what one run of its last reader reads.
struct Between {
  Edge edge;  // Of the whole.
  size_t writer = 0;
  size_t last_reader = 0;
};
std::vector<Between> TensorsBetween(const Graph& graph, const std::vector<GraphPiece>& pieces);

}  // namespace ag

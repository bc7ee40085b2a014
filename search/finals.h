// The finals: the best measured plans once more, fresh and paired with the input, and the decision.
#pragma once

#include <vector>

#include "search/candidates.h"

namespace ag {

// A plan that was measured whole.
struct MeasuredPlan {
  PlanCandidate candidate;
  PlanTiming timing;
};

// How many plans meet in the finals beside the input, its eager plan, and a plan on one stream.
inline constexpr size_t kFinalistsMax = 3;

// Indices into `measured`, best first by measured speedup (ties: the earlier one). Only plans that
// looked faster than the input. When none of them runs on one stream, the one-stream plan of the
// first one's graph joins, whatever it measured before.
std::vector<size_t> ChooseFinalists(const std::vector<MeasuredPlan>& measured);

// The finalists that may replace the input, those with verdict FASTER, the one with the largest
// lower end of its speedup's interval first. Entry i of `timings` is finalist i's.
std::vector<size_t> ChooseWinners(const std::vector<PlanTiming>& timings);

// What the best rival of an input that was not beaten got: AMBIGUOUS before SAME before SLOWER.
Verdict BestVerdict(const std::vector<PlanTiming>& timings);

// An OK timing that holds a time of zero, below zero or not a number becomes kInternal.
PlanTiming CheckedTiming(PlanTiming timing);

// Measures input and candidates in one call. Returns one timing per candidate, `input` first, each
// checked. Errors: the Measurer's, also that of the input alone.
StatusOr<std::vector<PlanTiming>> MeasureAgainstInput(
    Measurer& measurer, const PlanCandidate& input,
    const std::vector<const PlanCandidate*>& candidates, Measurer::Effort effort);

// Puts the kernels that are faster inside the candidate's plan there and returns them. Errors: the
// Measurer's; the candidate stays as it is.
StatusOr<std::vector<KernelChoice>> RefineCandidate(Measurer& measurer, PlanCandidate* candidate);

}  // namespace ag

// The final comparison: the best measured plans are measured again, paired with the input, and the
// winner is chosen. Pure functions, except for the Measurer.
#pragma once

#include <vector>

#include "search/candidates.h"

namespace ag {

// A plan that was measured whole.
struct MeasuredPlan {
  PlanCandidate candidate;
  PlanTiming timing;
};

// The number of plans in the final comparison besides the input, its unfused plan, and a plan on
// one stream.
inline constexpr size_t kFinalistsMax = 3;

// Returns indices into `measured`, the best by measured speedup first (of equals the earlier one),
// of plans that were faster than the input. When none of them runs on one stream, it adds the
// one-stream plan of the first one's graph, whatever its timing.
std::vector<size_t> ChooseFinalists(const std::vector<MeasuredPlan>& measured);

// Returns the finalists that may replace the input, by the lower end of their speedup's interval,
// which is above 1, the largest first. AMBIGUOUS ones are among them: on a noisy machine, or of a
// slow model, too few blocks are quiet for FASTER, and what is published is timed again as a file.
// Entry i of `timings` belongs to finalist i.
std::vector<size_t> ChooseWinners(const std::vector<PlanTiming>& timings);

// Returns the best verdict of rivals of an unbeaten input: AMBIGUOUS before SAME before SLOWER.
Verdict BestVerdict(const std::vector<PlanTiming>& timings);

// Returns the timing. An OK timing with a time that is zero, negative or NaN becomes kInternal.
PlanTiming CheckedTiming(PlanTiming timing);

// Swaps the first two timings of one call and takes all speedups over the new first one. REQUIRES:
// both are OK.
void MakeSecondTheBase(std::vector<PlanTiming>* timings);

// Measures input and candidates in one call. Returns one checked timing each, `input` first.
// Errors: the Measurer's, and the error of the input's own timing.
StatusOr<std::vector<PlanTiming>> MeasureAgainstInput(
    Measurer& measurer, const PlanCandidate& input,
    const std::vector<const PlanCandidate*>& candidates, Measurer::Effort effort);

// Sets the kernels that are faster inside the candidate's plan and returns them. On an error of the
// Measurer the candidate stays unchanged.
StatusOr<std::vector<KernelChoice>> RefineCandidate(Measurer& measurer, PlanCandidate* candidate);

}  // namespace ag

#include "search/finalists.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace ag {
namespace {

bool IsTime(double value) { return std::isfinite(value) && value > 0; }

}  // namespace

std::vector<size_t> ChooseFinalists(const std::vector<MeasuredPlan>& measured) {
  std::vector<size_t> order(measured.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::erase_if(order, [&](size_t i) {
    return measured[i].timing.speedup <= 1 || measured[i].timing.verdict == Verdict::kSlower;
  });
  std::ranges::stable_sort(order, std::ranges::greater{},
                           [&](size_t i) { return measured[i].timing.speedup; });
  if (order.size() > kFinalistsMax) order.resize(kFinalistsMax);
  const auto is_one_stream = [&](size_t i) { return UsedStreams(measured[i].candidate.plan) <= 1; };
  if (order.empty() || std::ranges::any_of(order, is_one_stream)) return order;
  const Digest& first = measured[order[0]].candidate.plan.graph;
  for (size_t i = 0; i < measured.size(); ++i) {
    if (!is_one_stream(i) || measured[i].candidate.plan.graph != first) continue;
    order.push_back(i);
    break;
  }
  return order;
}

std::vector<size_t> ChooseWinners(const std::vector<PlanTiming>& timings) {
  std::vector<size_t> winners;
  for (size_t i = 0; i < timings.size(); ++i) {
    const PlanTiming& timing = timings[i];
    const bool is_faster =
        timing.verdict == Verdict::kFaster || timing.verdict == Verdict::kAmbiguous;
    if (timing.status.ok() && is_faster && timing.speedup_low > 1) winners.push_back(i);
  }
  std::ranges::stable_sort(winners, std::ranges::greater{},
                           [&](size_t i) { return timings[i].speedup_low; });
  return winners;
}

Verdict BestVerdict(const std::vector<PlanTiming>& timings) {
  const auto any = [&](Verdict verdict) {
    return std::ranges::any_of(timings, [verdict](const PlanTiming& timing) {
      return timing.status.ok() && timing.verdict == verdict;
    });
  };
  if (any(Verdict::kAmbiguous)) return Verdict::kAmbiguous;
  if (any(Verdict::kSlower) && !any(Verdict::kSame)) return Verdict::kSlower;
  return Verdict::kSame;
}

PlanTiming CheckedTiming(PlanTiming timing) {
  if (!timing.status.ok()) return timing;
  if (IsTime(timing.latency.median_ns) && IsTime(timing.speedup)) return timing;
  timing.status = Err(StatusCode::kInternal, "plan timing: expected times above 0, got {} ns, {}x",
                      timing.latency.median_ns, timing.speedup);
  return timing;
}

void MakeSecondTheBase(std::vector<PlanTiming>* timings) {
  PlanTiming& first = (*timings)[0];
  const PlanTiming base = (*timings)[1];
  for (size_t i = 2; i < timings->size(); ++i) {
    PlanTiming& other = (*timings)[i];
    for (double* over : {&other.speedup, &other.speedup_low, &other.speedup_high}) {
      *over /= base.speedup;
    }
  }
  std::swap(first, (*timings)[1]);
  PlanTiming& old = (*timings)[1];
  old.speedup = 1 / base.speedup;
  old.speedup_low = 1 / base.speedup_high;
  old.speedup_high = 1 / base.speedup_low;
  old.verdict = base.verdict == Verdict::kFaster ? Verdict::kSlower : base.verdict;
  first.speedup = first.speedup_low = first.speedup_high = 1;
  first.verdict = Verdict::kSame;
}

StatusOr<std::vector<PlanTiming>> MeasureAgainstInput(
    Measurer& measurer, const PlanCandidate& input,
    const std::vector<const PlanCandidate*>& candidates, Measurer::Effort effort) {
  std::vector<Candidate> all{input};
  for (const PlanCandidate* candidate : candidates) all.push_back(*candidate);
  AG_LET(std::vector<PlanTiming> timings, measurer.MeasurePlans(all, effort));
  AG_CHECK(timings.size() == all.size());
  for (PlanTiming& timing : timings) timing = CheckedTiming(std::move(timing));
  AG_TRY(timings[0].status, "input");
  return timings;
}

StatusOr<std::vector<KernelChoice>> RefineCandidate(Measurer& measurer, PlanCandidate* candidate) {
  AG_LET(std::vector<KernelChoice> kernels, measurer.RefinePlan(*candidate));
  candidate->plan = WithKernels(std::move(candidate->plan), kernels);
  return kernels;
}

}  // namespace ag

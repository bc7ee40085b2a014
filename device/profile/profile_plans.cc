// The final comparison: candidates against the input in interleaved A B B A blocks.
#include <algorithm>

#include "device/api/lost_device.h"
#include "device/profile/profile.h"
#include "device/profile/session.h"
#include "plan/interval.h"

namespace ag {
namespace {

// Time of a place in a block. Short plans run several times per place: 2 ms, so that one
// interruption (about 0.1 ms) is a small part of it.
constexpr double kPlaceNs = 2e6;
constexpr int kPlanRunsMax = 64;

// A place of cold runs is the median of a few runs, because their evictions take longer than they
// do. The time of a place is limited, so that candidates get their blocks within comparison_time.
constexpr int kColdRunsMax = 5;
constexpr double kColdPlaceNs = 50e6;

// A verdict is drawn after 9, 18, ... blocks while it is AMBIGUOUS: up to five times for one
// question. At 99.8 % each time, a comparison of a plan with itself is called FASTER or SLOWER in
// less than 1 % of cases with any noise (profile_test.cc counts).
constexpr double kRatioConfidence = 0.998;

// The discarded blocks of a candidate are at most this factor times blocks_max.
constexpr int kDiscardFactor = 2;

struct Entry {
  PlanToTime plan;
  Status status;
  int runs = 1;
  std::vector<double> ns;      // Per place.
  std::vector<double> ratios;  // Per block, input over candidate.
  // The same of discarded blocks: shown when there is nothing better, never used for a verdict.
  std::vector<double> noisy_ns, noisy_ratios;
  int discarded = 0;
  int disturbed = 0;  // Of `ratios`.
  bool done = false;
};

// Invariants:
//   - A block times input, candidate, candidate, input (A B B A) between two looks at the canary.
//     Its ratio is the sum of the two A over the sum of the two B, so steady drift within a block
//     cancels.
//   - Verdicts come from blocks that were not discarded: from the interval of the median of their
//     ratios, and from at least blocks_min of them.
//   - A candidate is done when its verdict is not AMBIGUOUS, after blocks_max blocks, or after
//     kDiscardFactor * blocks_max discarded ones; so the final comparison ends. comparison_time and
//     `until` end them earlier, but never before each candidate has had one block.
class FinalComparison {
 public:
  FinalComparison(Device& device, std::vector<PlanToTime> plans, const ProfileOptions& options,
                  Clock& clock)
      : options_(options), clock_(clock), canary_(device, options) {
    for (PlanToTime& plan : plans) entries_.push_back({.plan = std::move(plan)});
  }

  StatusOr<std::vector<PlanTiming>> Run() {
    for (Entry& entry : entries_) AG_TRY(Prepare(entry));
    if (entries_.size() == 1) AG_TRY(TimeAlone());
    bool open = false;
    do {  // At least one block each, because without any there is no result.
      open = false;
      for (size_t i = 1; i < entries_.size(); ++i) {
        if (entries_[i].done) continue;
        AG_TRY(Block(entries_[i]));
        open |= !entries_[i].done;
      }
    } while (open && spent_ns_ < static_cast<double>(options_.comparison_time.count()) &&
             clock_.Now() < options_.until);
    std::vector<PlanTiming> timings;
    for (const Entry& entry : entries_) timings.push_back(TimingOf(entry));
    return timings;
  }

 private:
  // Runs a few times untimed and sets the number of runs that fill a place. A candidate that fails
  // is out; an input that fails, or a device that is lost, ends the final comparison.
  Status Prepare(Entry& entry) {
    double run_ns = 0;
    for (int i = 0; i < std::max(1, options_.launches_before) && entry.status.ok(); ++i) {
      AG_TRY(Sample(entry, 1, &run_ns));
    }
    if (!entry.status.ok()) return OkStatus();
    entry.runs = RunsPerSample(run_ns, kPlaceNs, options_.cold_cache ? kColdRunsMax : kPlanRunsMax);
    if (options_.cold_cache) {
      const int affordable = static_cast<int>(kColdPlaceNs / sample_ns_);
      entry.runs = std::clamp(affordable, 1, entry.runs);
    }
    return OkStatus();
  }

  StatusOr<double> Take(PlanToTime& plan, int runs) const {
    if (!options_.cold_cache) return plan.executable->Time({plan.inputs, plan.outputs, runs});
    std::vector<double> cold;
    for (int i = 0; i < runs; ++i) {
      AG_LET(const double ns,
             plan.executable->Time({plan.inputs, plan.outputs, 1, Caches::kEvicted}));
      cold.push_back(ns);
    }
    return Median(cold);
  }

  Status Sample(Entry& entry, int runs, double* ns) {
    const Nanos begin = clock_.Now();
    const StatusOr<double> sample = Take(entry.plan, runs);
    if (sample.ok()) {
      *ns = *sample;
      sample_ns_ = *sample * runs;
      const auto elapsed = static_cast<double>((clock_.Now() - begin).count());
      if (options_.cold_cache) sample_ns_ = std::max(sample_ns_, elapsed);  // Its evictions count.
      spent_ns_ += sample_ns_;
      return OkStatus();
    }
    entry.status = sample.status();
    entry.done = true;
    const bool is_input = &entry == &entries_[0];
    return is_input || IsLostDevice(entry.status) ? entry.status : OkStatus();
  }

  Status TimeAlone() {
    for (int i = 0; i < 2 * options_.blocks_min; ++i) {
      if (i > 1 && clock_.Now() >= options_.until) break;
      double ns = 0;
      AG_TRY(Sample(entries_[0], entries_[0].runs, &ns));
      entries_[0].ns.push_back(ns);
    }
    return OkStatus();
  }

  Status Block(Entry& candidate) {
    Entry& input = entries_[0];
    AG_TRY(canary_.Begin());
    double a[2], b[2];
    AG_TRY(Sample(input, input.runs, &a[0]));
    for (double& ns : b) {
      AG_TRY(Sample(candidate, candidate.runs, &ns));
      if (!candidate.status.ok()) return OkStatus();
    }
    AG_TRY(Sample(input, input.runs, &a[1]));
    AG_LET(const bool quiet, canary_.IsQuiet());
    const double ratio = (a[0] + a[1]) / (b[0] + b[1]);
    const bool is_foreign = canary_.others_busy();
    const int patience = std::min(options_.blocks_min, options_.blocks_max);
    if (!quiet || (is_foreign && candidate.discarded < patience)) {
      input.noisy_ns.insert(input.noisy_ns.end(), a, a + 2);
      candidate.noisy_ns.insert(candidate.noisy_ns.end(), b, b + 2);
      candidate.noisy_ratios.push_back(ratio);
      ++candidate.discarded;
      candidate.done = candidate.discarded >= kDiscardFactor * options_.blocks_max;
      return OkStatus();
    }
    input.ns.insert(input.ns.end(), a, a + 2);
    candidate.ns.insert(candidate.ns.end(), b, b + 2);
    candidate.ratios.push_back(ratio);
    candidate.disturbed += is_foreign ? 1 : 0;
    const int blocks = static_cast<int>(candidate.ratios.size());
    if (blocks % options_.blocks_min == 0 || blocks >= options_.blocks_max) {
      candidate.done = blocks >= options_.blocks_max || VerdictOf(candidate) != Verdict::kAmbiguous;
    }
    return OkStatus();
  }

  Verdict VerdictOf(const Entry& entry) const {
    if (static_cast<int>(entry.ratios.size()) < options_.blocks_min) return Verdict::kAmbiguous;
    const Latency ratio = MedianInterval(entry.ratios, kRatioConfidence);
    return Judge(ratio.low_ns, ratio.high_ns, options_.effect_min);
  }

  PlanTiming TimingOf(const Entry& entry) const {
    PlanTiming timing{.status = entry.status, .discarded = entry.discarded};
    timing.disturbed = entry.disturbed;
    timing.blocks = static_cast<int>(entry.ratios.size());
    if (!entry.status.ok()) return timing;
    const std::vector<double>& ns = entry.ns.empty() ? entry.noisy_ns : entry.ns;
    if (ns.empty()) {
      timing.status =
          Err(StatusCode::kDeadlineExceeded, "final comparison: no block was completed");
      return timing;
    }
    timing.latency = Summarize(ns);
    if (&entry == &entries_[0]) {
      timing.blocks = static_cast<int>(entry.ns.size()) / 2;
      return timing;
    }
    const auto& ratios = entry.ratios.empty() ? entry.noisy_ratios : entry.ratios;
    const Latency ratio = MedianInterval(ratios, kRatioConfidence);
    timing.speedup = ratio.median_ns;
    timing.speedup_low = ratio.low_ns;
    timing.speedup_high = ratio.high_ns;
    timing.verdict = VerdictOf(entry);
    return timing;
  }

  const ProfileOptions& options_;
  Clock& clock_;
  CanaryWatch canary_;
  std::vector<Entry> entries_;
  double sample_ns_ = 0;  // The last sample's share of comparison_time.
  double spent_ns_ = 0;   // All samples together.
};

}  // namespace

StatusOr<std::vector<PlanTiming>> ProfilePlans(Device& device, std::vector<PlanToTime> plans,
                                               const ProfileOptions& options, Clock& clock) {
  if (plans.empty()) return Err(StatusCode::kInvalidArgument, "final comparison: no plans");
  AG_TRY(WarmUp(device, options, clock));
  FinalComparison comparison(device, std::move(plans), options, clock);
  AG_LET(std::vector<PlanTiming> timings, comparison.Run());
  MarkBusy(device, clock);
  return timings;
}

}  // namespace ag

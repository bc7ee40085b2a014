#include "server/work.h"

namespace ag {

int EntryCount(const WorkItem& work) {
  if (const auto* groups = std::get_if<GroupBatchWork>(&work.body)) {
    return static_cast<int>(groups->problems.size());
  }
  if (const auto* plans = std::get_if<PlanSetWork>(&work.body)) {
    return static_cast<int>(plans->candidates.size());
  }
  return 1;
}

namespace {

template <class T>
std::vector<T> Pick(const std::vector<T>& all, const std::vector<int>& entries) {
  std::vector<T> picked;
  picked.reserve(entries.size());
  for (const int entry : entries) picked.push_back(all.at(static_cast<size_t>(entry)));
  return picked;
}

}  // namespace

WorkItem Subset(const WorkItem& work, const std::vector<int>& entries) {
  if (const auto* groups = std::get_if<GroupBatchWork>(&work.body)) {
    return {GroupBatchWork{Pick(groups->problems, entries), groups->policy}, work.time_max_seconds,
            work.end_within_seconds};
  }
  if (const auto* plans = std::get_if<PlanSetWork>(&work.body)) {
    return {PlanSetWork{Pick(plans->candidates, entries), plans->policy, plans->seed,
                        plans->blocks_max},
            work.time_max_seconds, work.end_within_seconds};
  }
  return work;
}

std::string_view WorkerHealthName(WorkerHealth health) {
  switch (health) {
    case WorkerHealth::kStarting:
      return "STARTING";
    case WorkerHealth::kServing:
      return "SERVING";
    case WorkerHealth::kNotServing:
      return "NOT_SERVING";
    case WorkerHealth::kDraining:
      return "DRAINING";
  }
  return "?";
}

}  // namespace ag

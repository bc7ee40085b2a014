#include "server/workers/work.h"

namespace ag {

int EntryCount(const v1::WorkItem& work) {
  if (work.has_groups()) return work.groups().problems_size();
  if (work.has_plans()) return work.plans().candidates_size();
  if (work.has_kernel_check()) return work.kernel_check().groups_size();
  return 1;
}

v1::WorkItem Subset(const v1::WorkItem& work, const std::vector<int>& entries) {
  v1::WorkItem subset = work;
  if (work.has_groups()) subset.mutable_groups()->clear_problems();
  if (work.has_plans()) subset.mutable_plans()->clear_candidates();
  if (work.has_kernel_check()) subset.mutable_kernel_check()->clear_groups();
  for (const int entry : entries) {
    if (work.has_groups()) subset.mutable_groups()->add_problems(work.groups().problems(entry));
    if (work.has_plans())
      *subset.mutable_plans()->add_candidates() = work.plans().candidates(entry);
    if (work.has_kernel_check())
      *subset.mutable_kernel_check()->add_groups() = work.kernel_check().groups(entry);
  }
  return subset;
}

Nanos QuietTime(const v1::WorkItem& work) {
  return work.has_groups() ? Nanos{0}
                           : Nanos(static_cast<int64_t>(1e9 * work.end_within_seconds()));
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

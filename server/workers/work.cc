#include "server/workers/work.h"

#include <algorithm>

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

std::vector<std::vector<int>> PartsOf(const v1::WorkItem& work, int parts_max) {
  const int count = EntryCount(work);
  const bool is_ranked = work.has_plans() && work.plans().blocks_max() > 0;
  const bool is_shared = is_ranked || !work.has_plans();
  const int in_all = is_ranked ? 1 : 0;  // The first entries, which each part has.
  const int count_max = is_shared ? std::clamp(count - in_all, 1, parts_max) : 1;
  std::vector<std::vector<int>> parts(static_cast<size_t>(count_max));
  for (int entry = 0; entry < in_all; ++entry) {
    for (std::vector<int>& part : parts) part.push_back(entry);
  }
  for (int entry = in_all; entry < count; ++entry) {
    parts[static_cast<size_t>((entry - in_all) % count_max)].push_back(entry);
  }
  return parts;
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

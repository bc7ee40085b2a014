#include "plan/schedule/interleaved_launches.h"

#include <algorithm>
#include <set>
#include <utility>

#include "plan/fusion/group_problem.h"

namespace ag {
namespace {

// Algorithm 1: the stream of each group.
std::vector<int> AllocateStreams(const ScheduleProblem& problem) {
  std::vector<int> stream_of(problem.groups.size(), -1);
  std::vector<bool> followed(problem.groups.size());
  std::vector<double> work_ns(problem.streams);
  int used = 0;
  for (const int g : problem.order) {
    const auto free = std::ranges::find_if(problem.before[g], [&](int b) { return !followed[b]; });
    if (free != problem.before[g].end()) {
      followed[*free] = true;
      stream_of[g] = stream_of[*free];
    } else if (used < problem.streams) {
      stream_of[g] = used++;
    } else {
      stream_of[g] = static_cast<int>(std::ranges::min_element(work_ns) - work_ns.begin());
    }
    work_ns[stream_of[g]] += problem.ns[g];
  }
  return stream_of;
}

// Algorithm 2: the order of launches.
std::vector<int> InterleavedOrder(const ScheduleProblem& problem) {
  std::set<std::pair<int, int>> ready[2];  // (share, group), by whether memory bounds them.
  std::vector<size_t> missing;
  for (const std::vector<int>& before : problem.before) missing.push_back(before.size());
  const auto add = [&](int g) {
    const bool is_known = !problem.memory_bound.empty();
    const bool is_bound = is_known ? problem.memory_bound[g] : IsMemoryBound(problem, g);
    ready[is_bound ? 1 : 0].emplace(problem.shares[g], g);
  };
  for (const int g : problem.order) {
    if (missing[g] == 0) add(g);
  }
  std::vector<int> order;
  int turn = 1;
  while (!ready[0].empty() || !ready[1].empty()) {
    if (ready[turn].empty()) turn = 1 - turn;
    const int g = ready[turn].begin()->second;
    ready[turn].erase(ready[turn].begin());
    turn = 1 - turn;
    order.push_back(g);
    for (const int f : problem.after[g]) {
      if (--missing[f] == 0) add(f);
    }
  }
  return order;
}

}  // namespace

bool IsMemoryBound(const ScheduleProblem& problem, int group) {
  const DeviceSpec& spec = problem.spec;
  const Work work = WorkOf(ExtractGroup(problem.graph, problem.groups[group], problem.policy));
  const double flops_per_second =
      spec.FlopsPerSecond(problem.policy.precision) * problem.shares[group];
  return work.bytes / spec.bytes_per_second > work.flops / flops_per_second;
}

std::vector<Stream> InterleavedLaunches(const ScheduleProblem& problem) {
  const std::vector<int> stream_of = AllocateStreams(problem);
  StreamsBuilder builder(problem.groups.size(), problem.streams);
  for (const int g : InterleavedOrder(problem)) {
    builder.Launch(g, stream_of[g], problem.before[g]);
  }
  return builder.Take(StreamCores(problem.spec, problem.streams));
}

}  // namespace ag

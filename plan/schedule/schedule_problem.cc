#include "plan/schedule/schedule_problem.h"

#include <algorithm>
#include <queue>
#include <utility>

#include "plan/fusion/group_dependencies.h"

namespace ag {

ScheduleProblem MakeScheduleProblem(const Graph& graph, const std::vector<Group>& groups,
                                    std::vector<double> group_ns, const DeviceSpec& spec,
                                    const Policy& policy, int streams,
                                    const Contention& contention) {
  AG_CHECK(streams >= 1 && group_ns.size() == groups.size());
  ScheduleProblem problem{.graph = graph,
                          .groups = groups,
                          .spec = spec,
                          .policy = policy,
                          .streams = streams,
                          .ns = std::move(group_ns),
                          .shares = {},
                          .overlap = contention.overlap};
  problem.before = GroupDependencies(graph, groups);
  problem.after.resize(groups.size());
  const int stream_cores = StreamCores(spec, streams);
  for (size_t g = 0; g < groups.size(); ++g) {
    problem.shares.push_back(
        ShareOf(graph, groups[g], stream_cores, contention.ActiveCores(static_cast<int>(g)), spec));
    if (groups[g].pattern == kViewPattern) continue;
    for (const int b : problem.before[g]) problem.after[b].push_back(static_cast<int>(g));
  }
  for (const ListStep& step : ListOrder(problem, std::vector<double>(groups.size()))) {
    problem.order.push_back(step.group);
  }
  return problem;
}

std::vector<double> NsOf(const std::vector<GroupTime>& times) {
  std::vector<double> ns;
  for (const GroupTime& time : times) ns.push_back(time.ns);
  return ns;
}

Contention ContentionOf(const std::vector<GroupTime>& times, double overlap) {
  Contention contention{.overlap = overlap};
  for (const GroupTime& time : times) contention.active_cores.push_back(time.active_cores);
  return contention;
}

std::vector<double> RemainingNs(const ScheduleProblem& problem, const std::vector<double>& ns) {
  std::vector<double> remaining(problem.groups.size());
  for (size_t i = problem.order.size(); i-- > 0;) {
    const int g = problem.order[i];
    for (const int f : problem.after[g]) remaining[g] = std::max(remaining[g], remaining[f]);
    remaining[g] += ns[g];
  }
  return remaining;
}

std::vector<ListStep> ListOrder(const ScheduleProblem& problem,
                                const std::vector<double>& priority) {
  std::vector<size_t> missing;
  std::priority_queue<std::pair<double, int>> ready;
  for (size_t g = 0; g < problem.groups.size(); ++g) {
    missing.push_back(problem.before[g].size());
    const bool is_launched = problem.groups[g].pattern != kViewPattern;
    if (is_launched && missing[g] == 0) ready.emplace(priority[g], -static_cast<int>(g));
  }
  std::vector<ListStep> order;
  while (!ready.empty()) {
    const int g = -ready.top().second;
    ready.pop();
    order.push_back({g, ready.empty()});
    for (const int f : problem.after[g]) {
      if (--missing[f] == 0) ready.emplace(priority[f], -f);
    }
  }
  return order;
}

std::vector<IndexSet> AncestorsOf(const ScheduleProblem& problem) {
  const size_t count = problem.groups.size();
  std::vector<IndexSet> ancestors(count, IndexSet(count));
  for (const int g : problem.order) {
    for (const int b : problem.before[g]) {
      ancestors[g].Unite(ancestors[b]);
      ancestors[g].Add(b);
    }
  }
  return ancestors;
}

// A group is comparable to all others when as many groups are before or after it as there are.
std::vector<ScheduleBlock> BlocksOf(const ScheduleProblem& problem) {
  const size_t count = problem.groups.size();
  const std::vector<IndexSet> before = AncestorsOf(problem);
  std::vector<IndexSet> after(count, IndexSet(count));
  for (size_t i = problem.order.size(); i-- > 0;) {
    const int g = problem.order[i];
    for (const int f : problem.after[g]) {
      after[g].Unite(after[f]);
      after[g].Add(f);
    }
  }
  std::vector<std::pair<int, int>> ranked;  // (groups before, group): a launch order.
  for (const int g : problem.order) ranked.emplace_back(before[g].Count(), g);
  std::ranges::sort(ranked);
  const int others = static_cast<int>(problem.order.size()) - 1;
  std::vector<ScheduleBlock> blocks;
  for (const auto& [groups_before, g] : ranked) {
    const bool is_cut = groups_before + after[g].Count() == others;
    if (is_cut || blocks.empty() || blocks.back().is_cut) blocks.push_back({.is_cut = is_cut});
    blocks.back().groups.push_back(g);
  }
  return blocks;
}

StreamsBuilder::StreamsBuilder(size_t groups, int streams)
    : streams_(streams),
      stream_of_(groups, -1),
      position_(groups),
      ended_words_((groups + 63) / 64),
      ended_(groups * ended_words_) {}

// Visits the latest predecessors first, because a group need not wait for those for which these
// waited.
void StreamsBuilder::Launch(int group, int stream, std::vector<int> predecessors) {
  uint64_t* ended = EndedBefore(group);
  const auto include = [&](int before) {
    const uint64_t* ended_before = EndedBefore(before);
    for (size_t word = 0; word < ended_words_; ++word) ended[word] |= ended_before[word];
    ended[before / 64] |= uint64_t{1} << before % 64;
  };
  std::vector<struct Launch>& launches = streams_[stream].launches;
  if (!launches.empty()) include(launches.back().group);
  std::ranges::sort(predecessors, std::ranges::greater(), [&](int b) { return position_[b]; });
  std::vector<int> waits;
  for (const int b : predecessors) {
    if ((ended[b / 64] >> b % 64 & 1) != 0) continue;
    include(b);
    waits.push_back(b);
  }
  std::ranges::sort(waits);
  launches.push_back({group, std::move(waits)});
  stream_of_[group] = stream;
  position_[group] = launched_++;
}

std::vector<Stream> StreamsBuilder::Take(int cores) {
  std::erase_if(streams_, [](const Stream& stream) { return stream.launches.empty(); });
  for (Stream& stream : streams_) stream.cores = streams_.size() < 2 ? 0 : cores;
  if (streams_.empty()) streams_.emplace_back();
  return std::move(streams_);
}

}  // namespace ag

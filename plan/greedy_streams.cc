#include <algorithm>

#include "plan/happens_before.h"
#include "plan/schedule.h"

namespace ag {
namespace {

class ListScheduler {
 public:
  ListScheduler(const Graph& graph, const std::vector<Group>& groups,
                const std::vector<double>& group_ns, const DeviceSpec& spec, int streams)
      : groups_(groups),
        group_ns_(group_ns),
        event_ns_(spec.event_ns),
        before_(GroupDependencies(graph, groups)),
        after_(groups.size()),
        free_(streams),
        streams_(streams),
        stream_of_(groups.size(), -1),
        end_(groups.size()),
        ended_(groups.size(), GroupSet(groups.size())),
        position_(groups.size()) {
    for (size_t g = 0; g < groups.size(); ++g) {
      if (!IsLaunched(g)) continue;
      for (const int b : before_[g]) after_[b].push_back(static_cast<int>(g));
    }
  }

  std::vector<Stream> Run() {
    RankByRemainingPath();
    std::vector<int> missing, ready;
    for (size_t g = 0; g < groups_.size(); ++g) {
      missing.push_back(static_cast<int>(before_[g].size()));
      if (IsLaunched(g) && missing[g] == 0) ready.push_back(static_cast<int>(g));
    }
    while (!ready.empty()) {
      const auto best = std::ranges::min_element(
          ready, {}, [&](int g) { return std::pair(-remaining_ns_[g], g); });
      const int g = *best;
      ready.erase(best);
      Place(g);
      for (const int follower : after_[g]) {
        if (--missing[follower] == 0) ready.push_back(follower);
      }
    }
    std::erase_if(streams_, [](const Stream& stream) { return stream.launches.empty(); });
    return std::move(streams_);
  }

 private:
  bool IsLaunched(size_t g) const { return groups_[g].pattern != kViewPattern; }

  // The longest path from the begin of each group to the end of all.
  void RankByRemainingPath() {
    std::vector<int> left, done;
    remaining_ns_.assign(groups_.size(), 0);
    for (size_t g = 0; g < groups_.size(); ++g) {
      left.push_back(static_cast<int>(after_[g].size()));
      if (IsLaunched(g) && left[g] == 0) done.push_back(static_cast<int>(g));
    }
    while (!done.empty()) {
      const int g = done.back();
      done.pop_back();
      for (const int f : after_[g]) remaining_ns_[g] = std::max(remaining_ns_[g], remaining_ns_[f]);
      remaining_ns_[g] += group_ns_[g];
      for (const int b : before_[g]) {
        if (--left[b] == 0) done.push_back(b);
      }
    }
  }

  double BeginOn(int g, int stream) const {
    double begin = free_[stream];
    for (const int b : before_[g]) {
      begin = std::max(begin, end_[b] + (stream_of_[b] == stream ? 0 : event_ns_));
    }
    return begin;
  }

  // Puts g onto the stream where it begins first; of equals where it needs the fewest waits.
  void Place(int g) {
    int chosen = 0;
    std::pair<double, int> best;
    for (int s = 0; s < static_cast<int>(streams_.size()); ++s) {
      int waits = 0;
      for (const int b : before_[g]) waits += stream_of_[b] != s ? 1 : 0;
      const std::pair rank(BeginOn(g, s), waits);
      if (s > 0 && rank >= best) continue;
      best = rank;
      chosen = s;
    }
    Stream& stream = streams_[chosen];
    stream_of_[g] = chosen;
    end_[g] = best.first + group_ns_[g];
    free_[chosen] = end_[g];
    stream.launches.push_back({g, WaitsOf(g, stream)});
    position_[g] = placed_++;
  }

  // The groups on other streams that nothing else makes g wait for. The latest placed ones are
  // looked at first: what they waited for need not be waited for again.
  std::vector<int> WaitsOf(int g, const Stream& stream) {
    GroupSet& ended = ended_[g];
    const auto include = [&](int b) {
      ended.Unite(ended_[b]);
      ended.Add(b);
    };
    if (!stream.launches.empty()) include(stream.launches.back().group);
    std::vector<int> candidates = before_[g];
    std::ranges::sort(candidates, std::ranges::greater(), [&](int b) { return position_[b]; });
    std::vector<int> waits;
    for (const int b : candidates) {
      if (ended.Has(b)) continue;
      include(b);
      waits.push_back(b);
    }
    std::ranges::sort(waits);
    return waits;
  }

  const std::vector<Group>& groups_;
  const std::vector<double>& group_ns_;
  double event_ns_;
  std::vector<std::vector<int>> before_;
  std::vector<std::vector<int>> after_;
  std::vector<double> remaining_ns_;
  std::vector<double> free_;  // When each stream ends.
  std::vector<Stream> streams_;
  std::vector<int> stream_of_;
  std::vector<double> end_;
  std::vector<GroupSet> ended_;  // What has ended when a group begins.
  std::vector<int> position_;    // In the order of placing.
  int placed_ = 0;
};

}  // namespace

std::vector<Stream> GreedyStreams(const Graph& graph, const std::vector<Group>& groups,
                                  const std::vector<double>& group_ns, const DeviceSpec& spec,
                                  int streams) {
  AG_CHECK(streams >= 1 && group_ns.size() == groups.size());
  std::vector<Stream> result = ListScheduler(graph, groups, group_ns, spec, streams).Run();
  // One stream has the device to itself; several share it evenly, at least a core each.
  const int cores = result.size() < 2 ? 0 : std::max(1, spec.cores / streams);
  for (Stream& stream : result) stream.cores = cores;
  if (result.empty()) result.emplace_back();
  return result;
}

}  // namespace ag

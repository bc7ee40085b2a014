#include "plan/schedule/greedy_streams.h"

#include <algorithm>
#include <limits>

#include "plan/fusion/group_dependencies.h"
#include "plan/fusion/grouping.h"
#include "plan/happens_before.h"
#include "plan/schedule/contention_model.h"

namespace ag {
namespace {

// Ratios narrow / wide from which a group takes all cores although something could run beside it.
// With the last one no group does.
constexpr double kWideRatios[] = {1.0, 1.2, 1.4, 1.6, 1.8, 1e300};

// The times and shares by which the scheduler decides.
struct Costs {
  std::vector<double> narrow_ns;  // On one stream's cores.
  std::vector<double> wide_ns;    // On all cores, alone. Empty: no group is wide.
  double wide_ratio = 0;          // One of kWideRatios.
  std::vector<int> shares = {};   // Cores of each group; empty: no slowdown.
  double overlap = 1;
};

// List scheduling. Each step places the ready group with the longest remaining path, and its
// followers become ready when all their predecessors are placed; so each group is placed once,
// after its predecessors, and the streams cannot wait in a cycle. ended_[g] holds all groups that
// have ended when g begins, by stream order and waits; a wait for one of these is left out. Each
// step costs one pass over the ready groups, and one over the group's predecessors for each stream.
class ListScheduler {
 public:
  ListScheduler(const std::vector<Group>& groups, const std::vector<std::vector<int>>& before,
                const Costs& costs, const DeviceSpec& spec, int streams)
      : groups_(groups),
        before_(before),
        costs_(costs),
        event_ns_(spec.event_ns),
        cores_(spec.cores),
        after_(groups.size()),
        free_(streams),
        streams_(streams),
        stream_of_(groups.size(), -1),
        is_wide_(groups.size()),
        begin_(groups.size()),
        end_(groups.size()),
        ended_(groups.size(), IndexSet(groups.size())),
        position_(groups.size()) {
    for (size_t g = 0; g < groups.size(); ++g) {
      if (!IsLaunched(g)) continue;
      for (const int b : before_[g]) after_[b].push_back(static_cast<int>(g));
    }
  }

  void Run() {
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
      Place(g, /*alone=*/ready.empty());
      for (const int follower : after_[g]) {
        if (--missing[follower] == 0) ready.push_back(follower);
      }
    }
  }

  double EndNs() const { return *std::ranges::max_element(free_); }
  bool IsWide(size_t g) const { return is_wide_[g]; }
  std::vector<Stream> TakeStreams() {
    std::erase_if(streams_, [](const Stream& stream) { return stream.launches.empty(); });
    return std::move(streams_);
  }

 private:
  bool IsLaunched(size_t g) const { return groups_[g].pattern != kViewPattern; }
  bool MayBeWide() const { return !costs_.wide_ns.empty(); }
  double FastestNs(int g) const {
    return MayBeWide() ? std::min(costs_.narrow_ns[g], costs_.wide_ns[g]) : costs_.narrow_ns[g];
  }

  // Computes the longest path from the begin of each group to the end of all.
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
      remaining_ns_[g] += FastestNs(g);
      for (const int b : before_[g]) {
        if (--left[b] == 0) done.push_back(b);
      }
    }
  }

  // Returns the groups for which g must wait: its operands, and the last wide group.
  std::vector<int> Predecessors(int g) const {
    std::vector<int> all = before_[g];
    if (last_wide_ >= 0) all.push_back(last_wide_);
    return all;
  }

  double BeginOn(int g, int stream) const {
    double begin = free_[stream];
    for (const int b : Predecessors(g)) {
      begin = std::max(begin, end_[b] + (stream_of_[b] == stream ? 0 : event_ns_));
    }
    return begin;
  }

  // Places g. `alone`: nothing else could begin now.
  void Place(int g, bool alone) {
    const auto [begin, stream] = FirstStream(g);
    if (MayBeWide()) {
      const double wide_begin = EndNs() + (streams_.size() > 1 ? event_ns_ : 0);
      const bool pays = costs_.narrow_ns[g] >= costs_.wide_ratio * costs_.wide_ns[g];
      const bool ends_first = wide_begin + costs_.wide_ns[g] < begin + costs_.narrow_ns[g];
      if (pays || (alone && ends_first)) return PlaceWide(g);
    }
    Launch(g, stream, {begin, begin + costs_.narrow_ns[g] / SpeedAt(g, begin)}, Predecessors(g));
  }

  // Returns the speed of g when it begins at `begin`. Groups placed before keep their end, as
  // blocks on a GPU that were dealt out first.
  double SpeedAt(int g, double begin) const {
    if (costs_.shares.empty()) return 1;
    int running = 1;
    double wanted = costs_.shares[g];
    for (const Stream& stream : streams_) {
      for (size_t i = stream.launches.size(); i-- > 0;) {
        const int other = stream.launches[i].group;
        if (end_[other] <= begin) break;
        if (begin_[other] > begin) continue;
        ++running;
        wanted += costs_.shares[other];
      }
    }
    return SpeedUnderContention(running, wanted, cores_, costs_.overlap);
  }

  // Returns the time and stream at which g begins first; of equal ones the stream with the fewest
  // waits.
  std::pair<double, int> FirstStream(int g) const {
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
    return {best.first, chosen};
  }

  // Places g on the stream that ends last; it waits for the others anyway.
  void PlaceWide(int g) {
    const int stream = static_cast<int>(std::ranges::max_element(free_) - free_.begin());
    std::vector<int> all = Predecessors(g);
    double begin = free_[stream];
    for (size_t s = 0; s < streams_.size(); ++s) {
      if (streams_[s].launches.empty() || static_cast<int>(s) == stream) continue;
      all.push_back(streams_[s].launches.back().group);
      if (free_[s] > 0) begin = std::max(begin, free_[s] + event_ns_);
    }
    Launch(g, stream, {begin, begin + costs_.wide_ns[g]}, std::move(all));
    is_wide_[g] = true;
    last_wide_ = g;
  }

  struct Span {
    double begin = 0;
    double end = 0;
  };
  void Launch(int g, int stream, const Span& span, std::vector<int> predecessors) {
    stream_of_[g] = stream;
    begin_[g] = span.begin;
    end_[g] = span.end;
    free_[stream] = span.end;
    position_[g] = placed_++;
    streams_[stream].launches.push_back({g, WaitsOf(g, stream, std::move(predecessors))});
  }

  // Returns the predecessors on other streams for which g must wait itself. It visits the latest
  // placed ones first, because g need not wait for the groups for which these waited.
  std::vector<int> WaitsOf(int g, int stream, std::vector<int> predecessors) {
    IndexSet& ended = ended_[g];
    const auto include = [&](int b) {
      ended.Unite(ended_[b]);
      ended.Add(b);
    };
    const auto& launches = streams_[stream].launches;
    if (!launches.empty()) include(launches.back().group);
    std::ranges::sort(predecessors, std::ranges::greater(), [&](int b) { return position_[b]; });
    std::vector<int> waits;
    for (const int b : predecessors) {
      if (ended.Has(b)) continue;
      include(b);
      waits.push_back(b);
    }
    std::ranges::sort(waits);
    return waits;
  }

  const std::vector<Group>& groups_;
  const std::vector<std::vector<int>>& before_;
  const Costs& costs_;
  const double event_ns_;
  const int cores_;
  std::vector<std::vector<int>> after_;
  std::vector<double> remaining_ns_;
  std::vector<double> free_;  // The end of each stream.
  std::vector<Stream> streams_;
  std::vector<int> stream_of_;
  std::vector<bool> is_wide_;
  int last_wide_ = -1;
  std::vector<double> begin_, end_;
  std::vector<IndexSet> ended_;  // The groups that have ended when a group begins.
  std::vector<int> position_;    // In the order of placement.
  int placed_ = 0;
};

std::vector<double> TimesNs(const TimedGroups& timed) {
  std::vector<double> ns;
  for (const GroupTime& time : timed.times) ns.push_back(time.ns);
  return ns;
}

}  // namespace

std::vector<Stream> GreedyStreams(const Graph& graph, const std::vector<Group>& groups,
                                  const std::vector<double>& group_ns, const DeviceSpec& spec,
                                  int streams, const Contention& contention) {
  AG_CHECK(streams >= 1 && group_ns.size() == groups.size());
  const auto before = GroupDependencies(graph, groups);
  Costs costs{.narrow_ns = group_ns, .wide_ns = {}, .overlap = contention.overlap};
  for (size_t g = 0; g < groups.size(); ++g) {
    costs.shares.push_back(ShareOf(graph, groups[g], StreamCores(spec, streams),
                                   contention.ActiveCores(static_cast<int>(g)), spec));
  }
  ListScheduler scheduler(groups, before, costs, spec, streams);
  scheduler.Run();
  std::vector<Stream> result = scheduler.TakeStreams();
  // A single stream has all cores.
  const int cores = result.size() < 2 ? 0 : StreamCores(spec, streams);
  for (Stream& stream : result) stream.cores = cores;
  if (result.empty()) result.emplace_back();
  return result;
}

Schedule GreedyWideStreams(const Graph& graph, const TimedGroups& narrow, const TimedGroups& wide,
                           const DeviceSpec& spec, int streams) {
  AG_CHECK(streams >= 1 && narrow.groups.size() == wide.groups.size());
  const auto before = GroupDependencies(graph, wide.groups);
  Costs costs{.narrow_ns = TimesNs(narrow), .wide_ns = TimesNs(wide)};
  Schedule best{.timed = wide};
  double best_ns = std::numeric_limits<double>::infinity();
  for (const double ratio : kWideRatios) {
    costs.wide_ratio = ratio;
    ListScheduler scheduler(wide.groups, before, costs, spec, streams);
    scheduler.Run();
    if (scheduler.EndNs() >= best_ns) continue;
    best_ns = scheduler.EndNs();
    for (size_t g = 0; g < wide.groups.size(); ++g) {
      const TimedGroups& chosen = scheduler.IsWide(g) ? wide : narrow;
      best.timed.groups[g] = chosen.groups[g];
      best.timed.times[g] = chosen.times[g];
    }
    best.streams = scheduler.TakeStreams();
  }
  if (best.streams.empty()) best.streams.emplace_back();
  return best;
}

}  // namespace ag

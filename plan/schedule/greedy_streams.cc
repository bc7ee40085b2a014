#include "plan/schedule/greedy_streams.h"

#include <algorithm>
#include <limits>
#include <span>

#include "plan/fusion/group_dependencies.h"
#include "plan/fusion/grouping.h"
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
// step costs one pass over the group's predecessors for each stream; the ready groups are a heap.
class ListScheduler {
 public:
  ListScheduler(const std::vector<Group>& groups, const std::vector<std::vector<int>>& before,
                const Costs& costs, const DeviceSpec& spec, int streams)
      : groups_(groups),
        before_(before),
        costs_(costs),
        event_ns_(spec.event_ns),
        cores_(spec.cores),
        free_(streams),
        streams_(streams),
        stream_of_(groups.size(), -1),
        is_wide_(groups.size()),
        begin_(groups.size()),
        end_(groups.size()),
        ended_words_((groups.size() + 63) / 64),
        ended_(groups.size() * ended_words_),
        position_(groups.size()) {
    ListFollowers();
  }

  void Run() {
    RankByRemainingPath();
    std::vector<int> missing, ready;
    missing.reserve(groups_.size());
    for (size_t g = 0; g < groups_.size(); ++g) {
      missing.push_back(static_cast<int>(before_[g].size()));
      if (IsLaunched(g) && missing[g] == 0) ready.push_back(static_cast<int>(g));
    }
    const auto is_later = [&](int a, int b) {
      return std::pair(-remaining_ns_[a], a) > std::pair(-remaining_ns_[b], b);
    };
    std::ranges::make_heap(ready, is_later);
    while (!ready.empty()) {
      std::ranges::pop_heap(ready, is_later);
      const int g = ready.back();
      ready.pop_back();
      Place(g, /*alone=*/ready.empty());
      for (const int follower : After(g)) {
        if (--missing[follower] != 0) continue;
        ready.push_back(follower);
        std::ranges::push_heap(ready, is_later);
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
    left.reserve(groups_.size());
    remaining_ns_.assign(groups_.size(), 0);
    for (size_t g = 0; g < groups_.size(); ++g) {
      left.push_back(static_cast<int>(After(static_cast<int>(g)).size()));
      if (IsLaunched(g) && left[g] == 0) done.push_back(static_cast<int>(g));
    }
    while (!done.empty()) {
      const int g = done.back();
      done.pop_back();
      for (const int f : After(g)) remaining_ns_[g] = std::max(remaining_ns_[g], remaining_ns_[f]);
      remaining_ns_[g] += FastestNs(g);
      for (const int b : before_[g]) {
        if (--left[b] == 0) done.push_back(b);
      }
    }
  }

  // Sets predecessors_ to the groups for which g must wait: its operands, and the last wide group.
  void FindPredecessors(int g) {
    predecessors_ = before_[g];
    if (last_wide_ >= 0) predecessors_.push_back(last_wide_);
  }

  double BeginOn(int g, int stream) const {
    double begin = free_[stream];
    const auto wait = [&](int b) {
      begin = std::max(begin, end_[b] + (stream_of_[b] == stream ? 0 : event_ns_));
    };
    for (const int b : before_[g]) wait(b);
    if (last_wide_ >= 0) wait(last_wide_);
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
    FindPredecessors(g);
    Launch(g, stream, {begin, begin + costs_.narrow_ns[g] / SpeedAt(g, begin)});
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
      if (s == 0 || rank < best) {
        best = rank;
        chosen = s;
      }
      if (streams_[s].launches.empty()) break;  // All behind it are empty, too, and alike.
    }
    return {best.first, chosen};
  }

  // Places g on the stream that ends last; it waits for the others anyway.
  void PlaceWide(int g) {
    const int stream = static_cast<int>(std::ranges::max_element(free_) - free_.begin());
    FindPredecessors(g);
    double begin = free_[stream];
    for (size_t s = 0; s < streams_.size(); ++s) {
      if (streams_[s].launches.empty() || static_cast<int>(s) == stream) continue;
      predecessors_.push_back(streams_[s].launches.back().group);
      if (free_[s] > 0) begin = std::max(begin, free_[s] + event_ns_);
    }
    Launch(g, stream, {begin, begin + costs_.wide_ns[g]});
    is_wide_[g] = true;
    last_wide_ = g;
  }

  struct Span {
    double begin = 0;
    double end = 0;
  };
  // Launches g, which waits for predecessors_.
  void Launch(int g, int stream, const Span& span) {
    stream_of_[g] = stream;
    begin_[g] = span.begin;
    end_[g] = span.end;
    free_[stream] = span.end;
    position_[g] = placed_++;
    streams_[stream].launches.push_back({g, WaitsOf(g, stream)});
  }

  // Returns those of predecessors_ on other streams for which g must wait itself. It visits the
  // latest placed ones first, because g need not wait for the groups for which these waited.
  std::vector<int> WaitsOf(int g, int stream) {
    uint64_t* ended = EndedBefore(g);
    const auto include = [&](int b) {
      const uint64_t* of_b = EndedBefore(b);
      for (size_t w = 0; w < ended_words_; ++w) ended[w] |= of_b[w];
      ended[b / 64] |= uint64_t{1} << b % 64;
    };
    const auto& launches = streams_[stream].launches;
    if (!launches.empty()) include(launches.back().group);
    std::ranges::sort(predecessors_, std::ranges::greater(), [&](int b) { return position_[b]; });
    std::vector<int> waits;
    for (const int b : predecessors_) {
      if ((ended[b / 64] >> b % 64 & 1) != 0) continue;
      include(b);
      waits.push_back(b);
    }
    std::ranges::sort(waits);
    return waits;
  }

  uint64_t* EndedBefore(int g) { return &ended_[static_cast<size_t>(g) * ended_words_]; }

  // The groups that read what g writes.
  std::span<const int> After(int g) const {
    return std::span(after_).subspan(after_begin_[g], after_begin_[g + 1] - after_begin_[g]);
  }

  void ListFollowers() {
    after_begin_.assign(groups_.size() + 1, 0);
    const auto each = [&](const auto& visit) {
      for (size_t g = 0; g < groups_.size(); ++g) {
        if (!IsLaunched(g)) continue;
        for (const int b : before_[g]) visit(b, static_cast<int>(g));
      }
    };
    each([&](int b, int) { ++after_begin_[b + 1]; });
    for (size_t g = 0; g < groups_.size(); ++g) after_begin_[g + 1] += after_begin_[g];
    after_.resize(after_begin_.back());
    std::vector<size_t> next(after_begin_.begin(), after_begin_.end() - 1);
    each([&](int b, int g) { after_[next[b]++] = g; });
  }

  const std::vector<Group>& groups_;
  const std::vector<std::vector<int>>& before_;
  const Costs& costs_;
  const double event_ns_;
  const int cores_;
  std::vector<size_t> after_begin_;  // By group, in after_.
  std::vector<int> after_;
  std::vector<double> remaining_ns_;
  std::vector<double> free_;  // The end of each stream.
  std::vector<Stream> streams_;
  std::vector<int> stream_of_;
  std::vector<bool> is_wide_;
  int last_wide_ = -1;
  std::vector<double> begin_, end_;
  // The groups that have ended when a group begins: for each group ended_words_ words of one bit
  // for each other one.
  const size_t ended_words_;
  std::vector<uint64_t> ended_;
  std::vector<int> predecessors_;  // Of the group that is being placed.
  std::vector<int> position_;      // In the order of placement.
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

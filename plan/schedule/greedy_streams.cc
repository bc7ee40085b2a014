#include "plan/schedule/greedy_streams.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "plan/schedule/contention_model.h"

namespace ag {
namespace {

// Ratios narrow / wide from which a group takes all cores although something could run beside it.
// With the last one no group does.
constexpr double kWideRatios[] = {1.0, 1.2, 1.4, 1.6, 1.8, 1e300};

// What a wide group may gain, where the spec lets a group take all cores.
struct WideTimes {
  std::vector<double> ns;  // On all cores, alone.
  double ratio = 0;        // One of kWideRatios.
};

// List scheduling. Each step places the ready group with the longest remaining path (ListOrder), so
// each group is placed once, after its predecessors, and the streams cannot wait in a cycle. Each
// step costs one pass over the group's predecessors for each stream, and one over the launches that
// end after it begins.
class ListScheduler {
 public:
  // `remaining_ns`: the longest path from the begin of each group. Null `wide`: no group is wide.
  ListScheduler(const ScheduleProblem& problem, std::vector<double> remaining_ns,
                const WideTimes* wide)
      : problem_(problem),
        wide_(wide),
        event_ns_(problem.spec.event_ns),
        remaining_ns_(std::move(remaining_ns)),
        free_(problem.streams),
        builder_(problem.groups.size(), problem.streams),
        is_wide_(problem.groups.size()),
        begin_(problem.groups.size()),
        end_(problem.groups.size()) {}

  void Run() {
    for (const auto& [g, is_alone] : ListOrder(problem_, remaining_ns_)) Place(g, is_alone);
  }

  double EndNs() const { return *std::ranges::max_element(free_); }
  bool IsWide(size_t g) const { return is_wide_[g]; }
  std::vector<Stream> TakeStreams(int cores) { return builder_.Take(cores); }

 private:
  // Returns the groups for which g must wait: its operands, and the last wide group.
  std::vector<int> Predecessors(int g) const {
    std::vector<int> all = problem_.before[g];
    if (last_wide_ >= 0) all.push_back(last_wide_);
    return all;
  }

  double BeginOn(int g, int stream) const {
    double begin = free_[stream];
    const auto wait = [&](int b) {
      begin = std::max(begin, end_[b] + (builder_.StreamOf(b) == stream ? 0 : event_ns_));
    };
    for (const int b : problem_.before[g]) wait(b);
    if (last_wide_ >= 0) wait(last_wide_);
    return begin;
  }

  // Places g. `alone`: nothing else could begin now.
  void Place(int g, bool alone) {
    const auto [begin, stream] = FirstStream(g);
    const double ns = problem_.ns[g];
    if (wide_ != nullptr) {
      const double wide_ns = wide_->ns[g];
      const double wide_begin = EndNs() + (free_.size() > 1 ? event_ns_ : 0);
      const bool ends_first = wide_begin + wide_ns < begin + ns;
      if (ns >= wide_->ratio * wide_ns || (alone && ends_first)) return PlaceWide(g);
    }
    Launch(g, stream, {begin, begin + ns / SpeedAt(g, begin)}, Predecessors(g));
  }

  // Returns the speed of g when it begins at `begin`. Groups placed before keep their end, as
  // blocks on a GPU that were dealt out first.
  double SpeedAt(int g, double begin) const {
    if (wide_ != nullptr) return 1;
    int running = 1;
    double wanted = problem_.shares[g];
    for (const Stream& stream : builder_.streams()) {
      for (size_t i = stream.launches.size(); i-- > 0;) {
        const int other = stream.launches[i].group;
        if (end_[other] <= begin) break;
        if (begin_[other] > begin) continue;
        ++running;
        wanted += problem_.shares[other];
      }
    }
    return SpeedUnderContention(running, wanted, problem_.spec.cores, problem_.overlap);
  }

  // Returns the time and stream at which g begins first; of equal ones the stream with the fewest
  // waits.
  std::pair<double, int> FirstStream(int g) const {
    int chosen = 0;
    std::pair<double, int> best;
    for (int s = 0; s < problem_.streams; ++s) {
      int waits = 0;
      for (const int b : problem_.before[g]) waits += builder_.StreamOf(b) != s ? 1 : 0;
      const std::pair rank(BeginOn(g, s), waits);
      if (s == 0 || rank < best) {
        best = rank;
        chosen = s;
      }
      if (builder_.streams()[s].launches.empty())
        break;  // All behind it are empty, too, and alike.
    }
    return {best.first, chosen};
  }

  // Places g on the stream that ends last; it waits for the others anyway.
  void PlaceWide(int g) {
    const int stream = static_cast<int>(std::ranges::max_element(free_) - free_.begin());
    std::vector<int> all = Predecessors(g);
    double begin = free_[stream];
    for (size_t s = 0; s < free_.size(); ++s) {
      const std::vector<struct Launch>& launches = builder_.streams()[s].launches;
      if (launches.empty() || static_cast<int>(s) == stream) continue;
      all.push_back(launches.back().group);
      if (free_[s] > 0) begin = std::max(begin, free_[s] + event_ns_);
    }
    Launch(g, stream, {begin, begin + wide_->ns[g]}, std::move(all));
    is_wide_[g] = true;
    last_wide_ = g;
  }

  struct Span {
    double begin = 0;
    double end = 0;
  };
  void Launch(int g, int stream, const Span& span, std::vector<int> predecessors) {
    begin_[g] = span.begin;
    end_[g] = span.end;
    free_[stream] = span.end;
    builder_.Launch(g, stream, std::move(predecessors));
  }

  const ScheduleProblem& problem_;
  const WideTimes* const wide_;
  const double event_ns_;
  const std::vector<double> remaining_ns_;
  std::vector<double> free_;  // The end of each stream.
  StreamsBuilder builder_;
  std::vector<bool> is_wide_;
  int last_wide_ = -1;
  std::vector<double> begin_, end_;
};

}  // namespace

std::vector<Stream> GreedyStreams(const ScheduleProblem& problem) {
  ListScheduler scheduler(problem, RemainingNs(problem), nullptr);
  scheduler.Run();
  return scheduler.TakeStreams(StreamCores(problem.spec, problem.streams));
}

Schedule GreedyWideStreams(const Graph& graph, const TimedGroups& narrow, const TimedGroups& wide,
                           const DeviceSpec& spec, int streams) {
  AG_CHECK(narrow.groups.size() == wide.groups.size());
  WideTimes wide_times{.ns = NsOf(wide.times)};
  // List scheduling asks for times alone, which the policy's precision has decided.
  const ScheduleProblem problem = MakeScheduleProblem(graph, wide.groups, NsOf(narrow.times), spec,
                                                      /*policy=*/{}, streams);
  std::vector<double> least_ns = problem.ns;
  for (size_t g = 0; g < least_ns.size(); ++g) {
    least_ns[g] = std::min(least_ns[g], wide_times.ns[g]);
  }
  const std::vector<double> remaining_ns = RemainingNs(problem, least_ns);
  Schedule best{.timed = wide};
  double best_ns = std::numeric_limits<double>::infinity();
  for (const double ratio : kWideRatios) {
    wide_times.ratio = ratio;
    ListScheduler scheduler(problem, remaining_ns, &wide_times);
    scheduler.Run();
    if (scheduler.EndNs() >= best_ns) continue;
    best_ns = scheduler.EndNs();
    for (size_t g = 0; g < wide.groups.size(); ++g) {
      const TimedGroups& chosen = scheduler.IsWide(g) ? wide : narrow;
      best.timed.groups[g] = chosen.groups[g];
      best.timed.times[g] = chosen.times[g];
    }
    best.streams = scheduler.TakeStreams(/*cores=*/0);
  }
  return best;
}

}  // namespace ag

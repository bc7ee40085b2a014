#include "plan/schedule/makespan.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "plan/schedule/contention_model.h"

namespace ag {
namespace {

// The state of one stream in the simulation.
struct Lane {
  size_t next = 0;  // The launch that runs or will begin next.
  bool running = false;
  double left_ns = 0;   // Remaining time of the running group at full speed.
  double ready_ns = 0;  // The end of the stream's previous launch.
};

// Event-driven simulation. Between two events the set of running groups, and so their common speed,
// does not change. Each step goes to the next end of a group or of a wait. It ends because each
// launch begins and ends once; when nothing runs and no wait can end, streams wait in a cycle.
class Simulation {
 public:
  // `shares`: the cores that each launched group takes. All references must outlive it.
  Simulation(const std::vector<Stream>& streams, const std::vector<double>& group_ns,
             const std::vector<int>& shares, const DeviceSpec& spec, double overlap)
      : streams_(streams),
        group_ns_(group_ns),
        shares_(shares),
        spec_(spec),
        overlap_(overlap),
        lanes_(streams.size()),
        begin_(group_ns.size(), 0),
        end_(group_ns.size(), -1) {}

  double Run() {
    size_t left = 0;
    for (const Stream& stream : streams_) left += stream.launches.size();
    while (left > 0) {
      BeginReady();
      const double speed = Speed();
      const double step = NextStep(speed);
      if (step == std::numeric_limits<double>::infinity()) return step;  // Streams wait in a cycle.
      left -= Advance(step, speed);
    }
    return now_;
  }

  std::vector<OverlappingPair> Pairs() const {
    std::vector<OverlappingPair> pairs;
    for (size_t s = 0; s < streams_.size(); ++s) {
      for (size_t t = s + 1; t < streams_.size(); ++t) AddPairs(s, t, &pairs);
    }
    std::ranges::sort(
        pairs, {}, [](const OverlappingPair& p) { return std::tuple(-p.ns, p.first, p.second); });
    return pairs;
  }

 private:
  void AddPairs(size_t s, size_t t, std::vector<OverlappingPair>* pairs) const {
    for (const Launch& a : streams_[s].launches) {
      for (const Launch& b : streams_[t].launches) {
        const double ns =
            std::min(end_[a.group], end_[b.group]) - std::max(begin_[a.group], begin_[b.group]);
        if (ns <= 0) continue;
        pairs->push_back({std::min(a.group, b.group), std::max(a.group, b.group), ns});
      }
    }
  }

  const Launch& Current(size_t s) const { return streams_[s].launches[lanes_[s].next]; }
  bool HasMore(size_t s) const { return lanes_[s].next < streams_[s].launches.size(); }

  // Returns when the waits of the next launch end; infinity while a group that it waits for has not
  // ended.
  double ReadyAt(size_t s) const {
    double ready = lanes_[s].ready_ns;
    for (const int wait : Current(s).waits) {
      if (end_[wait] < 0) return std::numeric_limits<double>::infinity();
      ready = std::max(ready, end_[wait] + spec_.event_ns);
    }
    return ready;
  }

  void BeginReady() {
    for (size_t s = 0; s < lanes_.size(); ++s) {
      if (lanes_[s].running || !HasMore(s) || ReadyAt(s) > now_) continue;
      lanes_[s].running = true;
      lanes_[s].left_ns = group_ns_[Current(s).group];
      begin_[Current(s).group] = now_;
    }
  }

  double Speed() const {
    int running = 0;
    double wanted = 0;
    for (size_t s = 0; s < lanes_.size(); ++s) {
      if (!lanes_[s].running) continue;
      ++running;
      wanted += shares_[Current(s).group];
    }
    return SpeedUnderContention(running, wanted, spec_.cores, overlap_);
  }

  // Returns the time to the next end of a group or of a wait.
  double NextStep(double speed) const {
    double step = std::numeric_limits<double>::infinity();
    for (size_t s = 0; s < lanes_.size(); ++s) {
      if (!HasMore(s)) continue;
      step = std::min(step, lanes_[s].running ? lanes_[s].left_ns / speed : ReadyAt(s) - now_);
    }
    return step;
  }

  // Advances the time by `step`; returns how many groups ended.
  size_t Advance(double step, double speed) {
    now_ += step;
    size_t ended = 0;
    for (size_t s = 0; s < lanes_.size(); ++s) {
      if (!lanes_[s].running) continue;
      const bool ends = lanes_[s].left_ns / speed <= step;
      lanes_[s].left_ns = ends ? 0 : lanes_[s].left_ns - step * speed;
      if (!ends) continue;
      end_[Current(s).group] = now_;
      lanes_[s].ready_ns = now_;
      lanes_[s].running = false;
      ++lanes_[s].next;
      ++ended;
    }
    return ended;
  }

  const std::vector<Stream>& streams_;
  const std::vector<double>& group_ns_;
  const std::vector<int>& shares_;
  const DeviceSpec& spec_;
  const double overlap_;
  std::vector<Lane> lanes_;
  std::vector<double> begin_;
  std::vector<double> end_;  // Negative: not ended.
  double now_ = 0;
};

std::vector<int> SharesOf(const Graph& graph, const Plan& plan, const DeviceSpec& spec,
                          const Contention& contention) {
  std::vector<int> shares(plan.groups.size());
  for (const Stream& stream : plan.streams) {
    for (const Launch& launch : stream.launches) {
      shares[launch.group] = ShareOf(graph, plan.groups[launch.group], stream.cores,
                                     contention.ActiveCores(launch.group), spec);
    }
  }
  return shares;
}

}  // namespace

double MakespanNs(const Graph& graph, const Plan& plan, const std::vector<double>& group_ns,
                  const DeviceSpec& spec, const Contention& contention) {
  AG_CHECK(group_ns.size() == plan.groups.size());
  return Simulation(plan.streams, group_ns, SharesOf(graph, plan, spec, contention), spec,
                    contention.overlap)
      .Run();
}

double MakespanNs(const ScheduleProblem& problem, const std::vector<Stream>& streams) {
  return Simulation(streams, problem.ns, problem.shares, problem.spec, problem.overlap).Run();
}

std::vector<OverlappingPair> OverlappingPairs(const Graph& graph, const Plan& plan,
                                              const std::vector<double>& group_ns,
                                              const DeviceSpec& spec,
                                              const Contention& contention) {
  AG_CHECK(group_ns.size() == plan.groups.size());
  const std::vector<int> shares = SharesOf(graph, plan, spec, contention);
  Simulation simulation(plan.streams, group_ns, shares, spec, contention.overlap);
  if (simulation.Run() == std::numeric_limits<double>::infinity()) return {};
  return simulation.Pairs();
}

}  // namespace ag

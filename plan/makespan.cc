#include <algorithm>
#include <limits>

#include "plan/schedule.h"

namespace ag {
namespace {

// One stream's state in the simulation.
struct Lane {
  size_t next = 0;  // Launch that runs or is to begin.
  bool running = false;
  double left_ns = 0;   // Work of the running group, at its full share of cores.
  double ready_ns = 0;  // When the next launch may begin, its waits being over.
};

class Simulation {
 public:
  Simulation(const Graph& graph, const Plan& plan, const std::vector<double>& group_ns,
             const DeviceSpec& spec)
      : graph_(graph),
        plan_(plan),
        group_ns_(group_ns),
        spec_(spec),
        lanes_(plan.streams.size()),
        end_(plan.groups.size(), -1) {}

  double Run() {
    size_t left = 0;
    for (const Stream& stream : plan_.streams) left += stream.launches.size();
    while (left > 0) {
      BeginReady();
      const double step = NextStep();
      if (step == std::numeric_limits<double>::infinity()) return step;  // Waits in a circle.
      left -= Advance(step);
    }
    return now_;
  }

 private:
  const Launch& Current(size_t s) const { return plan_.streams[s].launches[lanes_[s].next]; }
  bool HasMore(size_t s) const { return lanes_[s].next < plan_.streams[s].launches.size(); }

  double CoresOf(size_t s) const {
    const int group = plan_.groups[Current(s).group].cores;
    const int cores = group > 0 ? group : plan_.streams[s].cores;
    return CoresTaken(spec_, OutputsOf(Current(s).group),
                      cores > 0 ? std::min(cores, spec_.cores) : spec_.cores);
  }

  int64_t OutputsOf(int group) const {
    int64_t outputs = 1;
    for (const Port& port : plan_.groups[group].outputs) {
      outputs = std::max(outputs, graph_.type(port.edge).NumElements());
    }
    return outputs;
  }

  // When the waits of the next launch are over; infinity while one still runs.
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
    }
  }

  // Running groups that together want more cores than there are slow down alike.
  double Speed() const {
    double wanted = 0;
    for (size_t s = 0; s < lanes_.size(); ++s) wanted += lanes_[s].running ? CoresOf(s) : 0;
    return std::min(1.0, spec_.cores / std::max(1.0, wanted));
  }

  double NextStep() const {
    double step = std::numeric_limits<double>::infinity();
    const double speed = Speed();
    for (size_t s = 0; s < lanes_.size(); ++s) {
      if (!HasMore(s)) continue;
      step = std::min(step, lanes_[s].running ? lanes_[s].left_ns / speed : ReadyAt(s) - now_);
    }
    return step;
  }

  // Lets `step` pass; returns how many groups ended.
  size_t Advance(double step) {
    const double speed = Speed();
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

  const Graph& graph_;
  const Plan& plan_;
  const std::vector<double>& group_ns_;
  const DeviceSpec& spec_;
  std::vector<Lane> lanes_;
  std::vector<double> end_;  // Negative: not ended.
  double now_ = 0;
};

}  // namespace

double MakespanNs(const Graph& graph, const Plan& plan, const std::vector<double>& group_ns,
                  const DeviceSpec& spec) {
  AG_CHECK(group_ns.size() == plan.groups.size());
  return Simulation(graph, plan, group_ns, spec).Run();
}

}  // namespace ag

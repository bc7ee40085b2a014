#include "device/cuda/launch/launch_order.h"

#include <algorithm>

#include "plan/happens_before.h"

namespace ag::cuda {
namespace {

class Orderer {
 public:
  Orderer(const Plan& plan, const HappensBefore& before, const std::vector<double>& group_ns)
      : plan_(plan), before_(before), group_ns_(group_ns), nodes_(plan.groups.size()) {}

  std::vector<OrderedLaunch> Run() {
    ReadPlan();
    MeasurePaths();
    for (auto& node : nodes_) {
      std::ranges::stable_sort(node.launch.parents, {},
                               [&](int parent) { return -nodes_[parent].ends_ns; });
    }
    std::vector<int> ends;  // Launches without successors, the longest path first.
    for (const int group : before_.order()) {
      if (!nodes_[group].has_children) ends.push_back(group);
    }
    std::ranges::stable_sort(ends, {}, [&](int group) { return -nodes_[group].ends_ns; });
    for (const int group : ends) Record(group);
    return std::move(ordered_);
  }

 private:
  struct Node {
    OrderedLaunch launch;
    double ends_ns = 0;   // The longest path from the beginning through this launch.
    double after_ns = 0;  // The longest path from here to the end, without this launch.
    bool has_children = false;
    bool is_recorded = false;
  };

  // Sets each launch's parents: the launch before it in its stream and its waits, without those
  // that another parent implies.
  void ReadPlan() {
    for (size_t s = 0; s < plan_.streams.size(); ++s) {
      int previous = -1;
      for (const Launch& launch : plan_.streams[s].launches) {
        std::vector<int> all = launch.waits;
        if (previous >= 0) all.push_back(previous);
        Node& node = nodes_[launch.group];
        node.launch.group = launch.group;
        node.launch.stream = static_cast<int>(s);
        for (const int parent : all) {
          const bool is_implied =
              std::ranges::any_of(all, [&](int other) { return before_.IsBefore(parent, other); });
          if (!is_implied) node.launch.parents.push_back(parent);
        }
        previous = launch.group;
      }
    }
  }

  void MeasurePaths() {
    double longest = 0;
    for (const int group : before_.order()) {
      Node& node = nodes_[group];
      for (const int parent : node.launch.parents) {
        node.ends_ns = std::max(node.ends_ns, nodes_[parent].ends_ns);
        nodes_[parent].has_children = true;
      }
      node.ends_ns += group_ns_[group];
      longest = std::max(longest, node.ends_ns);
    }
    for (size_t i = before_.order().size(); i-- > 0;) {
      const Node& node = nodes_[before_.order()[i]];
      for (const int parent : node.launch.parents) {
        double& after = nodes_[parent].after_ns;
        after = std::max(after, node.after_ns + group_ns_[node.launch.group]);
      }
    }
    for (Node& node : nodes_) {  // Sums of the same terms in another order differ in the last bits.
      const bool is_critical = node.ends_ns + node.after_ns >= longest * (1 - 1e-9);
      node.launch.priority = is_critical ? 1 : 0;
    }
  }

  // Records all ancestors of `last`, depth first, then `last`. Uses its own stack, because graphs
  // can be deeper than a thread's stack.
  void Record(int last) {
    std::vector<std::pair<int, size_t>> stack{{last, 0}};
    while (!stack.empty()) {
      const auto [group, next] = stack.back();
      Node& node = nodes_[group];
      if (node.is_recorded) {
        stack.pop_back();
      } else if (next < node.launch.parents.size()) {
        ++stack.back().second;
        stack.emplace_back(node.launch.parents[next], 0);
      } else {
        node.is_recorded = true;
        ordered_.push_back(node.launch);
        stack.pop_back();
      }
    }
  }

  const Plan& plan_;
  const HappensBefore& before_;
  const std::vector<double>& group_ns_;
  std::vector<Node> nodes_;  // By group; empty for views.
  std::vector<OrderedLaunch> ordered_;
};

}  // namespace

StatusOr<std::vector<OrderedLaunch>> OrderLaunches(const Plan& plan,
                                                   const std::vector<double>& group_ns) {
  AG_CHECK(group_ns.size() == plan.groups.size());
  AG_LET(const HappensBefore before, HappensBefore::Make(plan.groups.size(), plan.streams));
  return Orderer(plan, before, group_ns).Run();
}

}  // namespace ag::cuda

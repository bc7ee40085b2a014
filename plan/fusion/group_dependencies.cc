#include "plan/fusion/group_dependencies.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace ag {
namespace {

using Writer = std::pair<Edge, Layout>;

// The group that writes each port; never iterated.
using Writers = absl::flat_hash_map<Writer, int>;

// A copy writes no home.
Writers WritersOf(const std::vector<Group>& groups) {
  Writers writers;
  writers.reserve(groups.size());
  for (size_t g = 0; g < groups.size(); ++g) {
    if (IsCopy(groups[g])) continue;
    for (const Port& port : groups[g].outputs) {
      writers.emplace(Writer(port.edge, port.layout), static_cast<int>(g));
    }
  }
  return writers;
}

// Computes the dependencies of a group after those of the views that it reads.
class Resolver {
 public:
  explicit Resolver(const std::vector<Group>& groups)
      : groups_(groups), writers_(WritersOf(groups)), done_(groups.size()), lists_(groups.size()) {}

  std::vector<std::vector<int>> Resolve() {
    for (size_t g = 0; g < groups_.size(); ++g) Visit(static_cast<int>(g));
    return std::move(lists_);
  }

 private:
  // Recurses only into views, so the depth is at most the length of a chain of movement operators.
  // A cycle, which only a hostile plan has, ends because a group is marked first.
  void Visit(int g) {
    if (done_[g]) return;
    done_[g] = true;
    std::vector<int> list;
    list.reserve(groups_[g].inputs.size());
    for (const Port& port : groups_[g].inputs) {
      const auto it = writers_.find(Writer(port.edge, port.layout));
      if (it == writers_.end()) continue;
      if (groups_[it->second].pattern != kViewPattern) {
        list.push_back(it->second);
        continue;
      }
      Visit(it->second);
      list.insert(list.end(), lists_[it->second].begin(), lists_[it->second].end());
    }
    std::ranges::sort(list);
    list.erase(std::unique(list.begin(), list.end()), list.end());
    lists_[g] = std::move(list);
  }

  const std::vector<Group>& groups_;
  const Writers writers_;
  std::vector<bool> done_;
  std::vector<std::vector<int>> lists_;
};

}  // namespace

std::vector<std::vector<int>> GroupDependencies(const Graph&, const std::vector<Group>& groups) {
  return Resolver(groups).Resolve();
}

double CriticalPathNs(const Graph& graph, const std::vector<Group>& groups,
                      const std::vector<double>& group_ns) {
  const std::vector<std::vector<int>> before = GroupDependencies(graph, groups);
  double critical = 0;
  std::vector<double> end(groups.size(), -1);
  // Groups may be in any order: a group is visited after those that it needs.
  const auto visit = [&](const auto& self, int g) -> double {
    if (end[g] >= 0) return end[g];
    end[g] = 0;
    double begin = 0;
    for (const int b : before[g]) begin = std::max(begin, self(self, b));
    return end[g] = begin + group_ns[g];
  };
  for (size_t g = 0; g < groups.size(); ++g) {
    critical = std::max(critical, visit(visit, static_cast<int>(g)));
  }
  return critical;
}

double MixedEstimateNs(const Graph& graph, const std::vector<Group>& groups,
                       const std::vector<double>& group_ns, double alpha) {
  const double sum = std::accumulate(group_ns.begin(), group_ns.end(), 0.0);
  return sum + alpha * CriticalPathNs(graph, groups, group_ns);
}

}  // namespace ag

#include "plan/schedule/schedule.h"

#include <algorithm>

#include "plan/format/plan_validate.h"
#include "plan/fusion/group_dependencies.h"
#include "plan/schedule/placement.h"

namespace ag {
namespace {

int64_t OutputBytes(const Graph& graph, const Group& group) {
  int64_t bytes = 0;
  for (const Port& port : group.outputs) bytes += LayoutBytes(graph.type(port.edge), port.layout);
  return bytes;
}

// Orders launches for one stream and counts the live bytes. The outputs of a group count as one
// piece that lives until its last follower, with views looked through.
class MemoryOrder {
 public:
  MemoryOrder(const Graph& graph, const std::vector<Group>& groups)
      : before_(GroupDependencies(graph, groups)), after_(groups.size()) {
    for (size_t g = 0; g < groups.size(); ++g) {
      bytes_.push_back(OutputBytes(graph, groups[g]));
      if (groups[g].pattern == kViewPattern) continue;
      launched_.push_back(static_cast<int>(g));
      for (const int b : before_[g]) after_[b].push_back(static_cast<int>(g));
    }
  }

  enum class Rule { kAsGiven, kLeastGrowth };

  struct Result {
    std::vector<int> order;
    int64_t bytes_peak = 0;
  };
  Result Order(Rule rule) const {
    Result result;
    std::vector<int> missing, readers_left, ready;
    for (size_t g = 0; g < bytes_.size(); ++g) {
      missing.push_back(static_cast<int>(before_[g].size()));
      readers_left.push_back(static_cast<int>(after_[g].size()));
    }
    for (const int g : launched_) {
      if (missing[g] == 0) ready.push_back(g);
    }
    const auto rank = [&](int g) {
      int64_t growth = rule == Rule::kAsGiven ? 0 : bytes_[g];
      for (const int b : before_[g]) {
        if (rule == Rule::kLeastGrowth && readers_left[b] == 1) growth -= bytes_[b];
      }
      return std::pair(growth, g);
    };
    int64_t alive = 0;
    while (!ready.empty()) {
      const auto best = std::ranges::min_element(ready, {}, rank);
      const int g = *best;
      ready.erase(best);
      result.order.push_back(g);
      alive += bytes_[g];
      result.bytes_peak = std::max(result.bytes_peak, alive);
      for (const int b : before_[g]) alive -= --readers_left[b] == 0 ? bytes_[b] : 0;
      for (const int follower : after_[g]) {
        if (--missing[follower] == 0) ready.push_back(follower);
      }
    }
    return result;
  }

 private:
  std::vector<std::vector<int>> before_;
  std::vector<std::vector<int>> after_;
  std::vector<int64_t> bytes_;
  std::vector<int> launched_;
};

}  // namespace

std::vector<Stream> OneStream(const Graph& graph, const std::vector<Group>& groups) {
  const MemoryOrder memory(graph, groups);
  MemoryOrder::Result best = memory.Order(MemoryOrder::Rule::kAsGiven);
  MemoryOrder::Result greedy = memory.Order(MemoryOrder::Rule::kLeastGrowth);
  if (greedy.bytes_peak < best.bytes_peak) best = std::move(greedy);
  Stream stream;
  for (const int g : best.order) stream.launches.push_back({g, {}});
  return {std::move(stream)};
}

StatusOr<Plan> CompletePlan(const Graph& graph, std::vector<Group> groups,
                            std::vector<Stream> streams, const DeviceSpec& spec,
                            const Policy& policy) {
  Plan plan;
  plan.graph = graph.digest();
  plan.policy = policy;
  plan.groups = std::move(groups);
  plan.streams = std::move(streams);
  AG_TRY(PlaceTensors(graph, spec, &plan));
  AG_TRY(ValidatePlan(graph, plan, spec));
  return plan;
}

}  // namespace ag

#include "search/vertex_cut.h"

#include <algorithm>
#include <limits>

#include "base/status.h"

namespace ag {
namespace {

constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max() / 4;

// A flow network. Arcs 2k and 2k+1 are each other's reverse; `left` is the remaining capacity.
class FlowNetwork {
 public:
  explicit FlowNetwork(int vertices) : arcs_of_(vertices), came_by_(vertices) {}

  void AddArc(int from, int to, int64_t capacity) {
    arcs_of_[from].push_back(static_cast<int>(arcs_.size()));
    arcs_.push_back({to, capacity});
    arcs_of_[to].push_back(static_cast<int>(arcs_.size()));
    arcs_.push_back({from, 0});
  }

  // Edmonds-Karp: augments along shortest paths and returns the flow's value. Each augmentation is
  // linear in the arcs; their number is bounded by vertices x arcs and, with whole capacities, by
  // the flow's value.
  int64_t Maximize(int source, int sink) {
    int64_t value = 0;
    while (Reach(source, sink)) {
      int64_t push = kUnlimited;
      for (int v = sink; v != source; v = arcs_[came_by_[v] ^ 1].to) {
        push = std::min(push, arcs_[came_by_[v]].left);
      }
      for (int v = sink; v != source; v = arcs_[came_by_[v] ^ 1].to) {
        arcs_[came_by_[v]].left -= push;
        arcs_[came_by_[v] ^ 1].left += push;
      }
      value += push;
    }
    return value;
  }

  // After Maximize: whether v is on the source's side, that is, more could flow to it.
  bool IsReached(int v) const { return came_by_[v] != kNotReached; }

 private:
  static constexpr int kNotReached = -1;
  static constexpr int kSource = -2;
  struct Arc {
    int to;
    int64_t left;
  };

  bool Reach(int source, int sink) {
    std::ranges::fill(came_by_, kNotReached);
    came_by_[source] = kSource;
    std::vector<int> queue = {source};
    for (size_t i = 0; i < queue.size() && !IsReached(sink); ++i) {
      for (const int arc : arcs_of_[queue[i]]) {
        if (arcs_[arc].left == 0 || IsReached(arcs_[arc].to)) continue;
        came_by_[arcs_[arc].to] = arc;
        queue.push_back(arcs_[arc].to);
      }
    }
    return IsReached(sink);
  }

  std::vector<Arc> arcs_;
  std::vector<std::vector<int>> arcs_of_;
  std::vector<int> came_by_;  // The arc to each vertex in the last search.
};

}  // namespace

VertexCut MinVertexCut(const CutProblem& problem) {
  const int n = static_cast<int>(problem.successors.size());
  AG_CHECK(problem.head >= 1 && problem.tail >= 1 && problem.head + problem.tail <= n);
  // Vertex v is an arc entry -> exit with its capacity. v is before the cut when its entry is on
  // the source's side, and it counts in the value when its exit is not. The maximum flow equals the
  // value of the least cut. The source's side of that flow is the smallest one, so the cut is the
  // one nearest to the head.
  const auto entry = [](int v) { return 2 * v; };
  const auto exit = [](int v) { return 2 * v + 1; };
  const int source = 2 * n;
  const int sink = 2 * n + 1;
  FlowNetwork network(2 * n + 2);
  for (int v = 0; v < n; ++v) {
    network.AddArc(entry(v), exit(v), problem.capacity[v]);
    for (const int w : problem.successors[v]) {
      network.AddArc(exit(v), entry(w), kUnlimited);
      network.AddArc(entry(w), entry(v), kUnlimited);  // Predecessors of w are also before the cut.
    }
    if (v < problem.head) network.AddArc(source, entry(v), kUnlimited);
    if (v >= n - problem.tail) network.AddArc(entry(v), sink, kUnlimited);
  }
  VertexCut cut{.value = network.Maximize(source, sink)};
  for (int v = 0; v < n; ++v) cut.before.push_back(network.IsReached(entry(v)));
  return cut;
}

VertexCut BalancedVertexCut(CutProblem problem) {
  const int n = static_cast<int>(problem.successors.size());
  problem.head = problem.tail = 1;
  VertexCut least = MinVertexCut(problem);
  for (int half_width = 1 + n / 64; half_width < n / 2; half_width *= 2) {
    problem.head = n / 2 - half_width;
    problem.tail = n - n / 2 - half_width;
    if (problem.head < 1 || problem.tail < 1) break;
    VertexCut cut = MinVertexCut(problem);
    if (cut.value == least.value) return cut;
  }
  return least;
}

}  // namespace ag

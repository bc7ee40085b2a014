#include "plan/fusion/layout_runs.h"

#include <algorithm>

#include "plan/fusion/kernel_estimate.h"

namespace ag {
namespace {

// Dynamic programming over the topological order. After node id, best[c] is the least cost of all
// nodes so far when node id uses cover c; live_ holds the tensors that cross the cut after it. Time
// O(nodes x covers^2 x live tensors).
class Runs {
 public:
  Runs(const Graph& graph, const DeviceSpec& spec, const std::vector<LayoutCover>& covers)
      : graph_(graph), spec_(spec), covers_(covers), count_(covers.size()) {
    FindLastReaders();
  }

  std::vector<Layout> Choose() {
    std::vector<Cost> best(count_);
    // By node and cover: the cover of the node before.
    std::vector<size_t> before(graph_.size() * count_);
    for (NodeId id = 0; id < graph_.size(); ++id) {
      best = Step(id, best, &before[static_cast<size_t>(id) * count_]);
      Enter(id);
    }
    size_t cover = std::ranges::min_element(best) - best.begin();
    std::vector<Layout> preferred(graph_.size());
    for (NodeId id = graph_.size(); id-- > 0;) {
      preferred[id] = covers_[cover].preferred;
      cover = before[static_cast<size_t>(id) * count_ + cover];
    }
    return preferred;
  }

 private:
  void FindLastReaders() {
    last_reader_.resize(graph_.size());
    for (NodeId id = 0; id < graph_.size(); ++id) {
      for (size_t i = 0; i < graph_.node(id).outputs.size(); ++i) {
        NodeId last = -1;
        for (const auto& use : graph_.uses({id, static_cast<int32_t>(i)})) {
          last = std::max(last, use.node);
        }
        last_reader_[id].push_back(last);
      }
    }
  }

  // Returns the cost of all nodes up to `id`, by the cover of `id`.
  std::vector<Cost> Step(NodeId id, const std::vector<Cost>& best, size_t* before) {
    std::erase_if(live_, [&](Edge e) { return last_reader_[e.node][e.output] < id; });
    std::vector<Cost> next(count_, kInfiniteCost);
    for (size_t to = 0; to < count_; ++to) {
      for (size_t from = 0; from < count_; ++from) {
        Cost cost = best[from] + covers_[to].node_cost[id];
        if (from != to) cost.ns += ChangeNs(from, to);
        if (cost >= next[to]) continue;
        next[to] = cost;
        before[to] = from;
      }
    }
    return next;
  }

  // Adds the tensors of `id` that have readers: they cross every cut until their last reader.
  void Enter(NodeId id) {
    if (graph_.is_constant(id)) return;
    for (size_t i = 0; i < graph_.node(id).outputs.size(); ++i) {
      if (last_reader_[id][i] >= 0) live_.push_back({id, static_cast<int32_t>(i)});
    }
  }

  double ChangeNs(size_t from, size_t to) const {
    const bool has_cache = spec_.cache_bytes_per_second > 0;  // A spec may leave it out.
    const double bytes_per_second =
        has_cache ? spec_.cache_bytes_per_second : spec_.bytes_per_second;
    double ns = 0;
    for (const Edge edge : live_) {
      const Layout a = covers_[from].layouts.Written(graph_, edge);
      const Layout b = covers_[to].layouts.Written(graph_, edge);
      if (a == b) continue;
      const TensorType& type = graph_.type(edge);
      const auto bytes = static_cast<double>(LayoutBytes(type, a) + LayoutBytes(type, b));
      KernelTask task{kReorderPattern, graph_};
      task.work.bytes = bytes;
      task.flops_per_second = spec_.flops_per_second;
      task.bytes_per_second = bytes_per_second;
      const std::optional<double> by_kernel = LeastKernelNs(task, spec_.kernels);
      ns += by_kernel.value_or(spec_.launch_ns + bytes / bytes_per_second * 1e9);
    }
    return ns;
  }

  const Graph& graph_;
  const DeviceSpec& spec_;
  const std::vector<LayoutCover>& covers_;
  const size_t count_;
  std::vector<std::vector<NodeId>> last_reader_;  // By node and output; -1: no reader.
  std::vector<Edge> live_;
};

}  // namespace

std::vector<Layout> ChooseRuns(const Graph& graph, const DeviceSpec& spec,
                               const std::vector<LayoutCover>& covers) {
  return Runs(graph, spec, covers).Choose();
}

}  // namespace ag

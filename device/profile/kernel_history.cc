#include "device/profile/kernel_history.h"

#include <algorithm>
#include <cmath>

namespace ag {
namespace {

// The distance of groups that count as equal, so that weights stay finite.
constexpr double kNear = 0.1;

// Returns what groups of one kind share.
std::string KindOf(const GroupProblem& problem) {
  const Graph& graph = problem.graph;
  std::string kind = fmt::format("{} {} {} {}", problem.pattern, problem.cores, problem.precision,
                                 problem.cold_cache ? "cold" : "warm");
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    if (node.op == OpKind::kInput || graph.is_constant(id)) continue;
    kind += fmt::format("; {}", Info(node.op).name);
    if (node.op != OpKind::kConv) continue;
    const Shape& w = graph.type(node.inputs[1]).shape;
    for (size_t i = 2; i < w.size(); ++i) kind += fmt::format(" {}", w[i]);
    for (const int64_t stride : node.IntList("strides")) kind += fmt::format(" s{}", stride);
    for (const int64_t d : node.IntList("dilations")) kind += fmt::format(" d{}", d);
    kind += node.Int("group") == 1 ? " full" : w[1] == 1 ? " depthwise" : " grouped";
  }
  for (const Layout layout : problem.input_layouts) kind += fmt::format(" {}", LayoutName(layout));
  kind += " >";
  for (const Layout layout : problem.output_layouts) kind += fmt::format(" {}", LayoutName(layout));
  return kind;
}

// Returns the logarithms of the sizes of all inputs, constants and outputs.
std::vector<double> SizesOf(const GroupProblem& problem) {
  const Graph& graph = problem.graph;
  std::vector<double> sizes;
  const auto add = [&](const TensorType& type) {
    for (const int64_t size : type.shape) {
      sizes.push_back(std::log2(static_cast<double>(std::max<int64_t>(size, 1))));
    }
  };
  for (NodeId id = 0; id < graph.size(); ++id) {
    if (graph.node(id).op == OpKind::kInput || graph.is_constant(id)) add(graph.type({id, 0}));
  }
  for (const GraphOutput& output : graph.outputs()) add(graph.type(output.edge));
  return sizes;
}

double DistanceOf(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(sum);
}

}  // namespace

void KernelHistory::Add(const GroupProblem& problem, const Measurement& measurement) {
  if (measurement.alternatives.empty()) return;
  Known known{.sizes = SizesOf(problem)};
  double best_ns = measurement.latency.median_ns;
  for (const auto& [name, ns] : measurement.alternatives) best_ns = std::min(best_ns, ns);
  known.over_best[measurement.kernel] = std::log(measurement.latency.median_ns / best_ns);
  for (const auto& [name, ns] : measurement.alternatives) {
    known.over_best[name] = std::log(ns / best_ns);
  }
  known_[KindOf(problem)].push_back(std::move(known));
}

KernelHistory::Near KernelHistory::NearestTo(const GroupProblem& problem) const {
  Near near;
  const auto found = known_.find(KindOf(problem));
  if (found == known_.end()) return near;
  const std::vector<double> sizes = SizesOf(problem);
  for (const Known& known : found->second) {
    if (known.sizes.size() != sizes.size()) continue;
    const double distance = DistanceOf(known.sizes, sizes);
    if (distance <= kFar) near.emplace_back(distance, &known);
  }
  std::ranges::stable_sort(near, {}, [](const auto& one) { return one.first; });
  if (near.size() > kNearestMax) near.resize(kNearestMax);
  return near;
}

std::vector<std::optional<double>> KernelHistory::Expect(
    const GroupProblem& problem, const std::vector<std::string>& kernels) const {
  std::vector<std::optional<double>> expected(kernels.size());
  const Near near = NearestTo(problem);
  for (size_t k = 0; k < kernels.size(); ++k) {
    double sum = 0, weights = 0;
    for (const auto& [distance, known] : near) {
      const auto over = known->over_best.find(kernels[k]);
      if (over == known->over_best.end()) continue;
      const double weight = 1 / (kNear + distance);
      sum += weight * over->second;
      weights += weight;
    }
    if (weights > 0) expected[k] = std::exp(sum / weights);
  }
  return expected;
}

bool KernelHistory::Loses(const Near& near, const std::string& kernel) {
  int witnesses = 0;
  for (const auto& [distance, known] : near) {
    const auto over = known->over_best.find(kernel);
    if (over == known->over_best.end()) continue;
    if (over->second <= std::log(kLoses)) return false;
    ++witnesses;
  }
  return witnesses >= kWitnesses;
}

std::vector<std::string> KernelHistory::Promising(const GroupProblem& problem,
                                                  const std::vector<std::string>& kernels) const {
  const Near near = NearestTo(problem);
  const auto expected = Expect(problem, kernels);
  std::vector<size_t> order;
  for (size_t k = 0; k < kernels.size(); ++k) {
    if (k == 0 || !Loses(near, kernels[k])) order.push_back(k);
  }
  std::ranges::stable_sort(order, {}, [&](size_t k) { return expected[k].value_or(kLoses); });
  std::vector<std::string> promising;
  for (const size_t k : order) promising.push_back(kernels[k]);
  return promising;
}

}  // namespace ag

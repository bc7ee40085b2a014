#include "plan/fusion/kernel_rivals.h"

#include <algorithm>
#include <utility>

namespace ag {
namespace {

// Returns the fastest kernel other than `own`, if it is close to the fastest of all.
std::optional<std::string> CloseRival(const Measurement& measured, const std::string& own) {
  std::vector<std::pair<std::string, double>> kernels = measured.alternatives;
  kernels.emplace_back(measured.kernel, measured.latency.median_ns);
  const auto ns = [](const auto& kernel) { return kernel.second; };
  const double best_ns = ns(*std::ranges::min_element(kernels, {}, ns));
  std::erase_if(kernels, [&](const auto& kernel) { return kernel.first == own; });
  const auto rival = std::ranges::min_element(kernels, {}, ns);
  if (rival == kernels.end() || ns(*rival) > kRivalRatio * best_ns) return std::nullopt;
  return rival->first;
}

}  // namespace

std::vector<KernelChoice> CloseRivals(const Graph& graph, const Plan& plan,
                                      const MeasuredGroups& measured) {
  std::vector<KernelChoice> rivals;
  if (plan.policy.cold_cache) return rivals;
  for (size_t g = 0; g < plan.groups.size(); ++g) {
    const Group& group = plan.groups[g];
    if (group.pattern == kViewPattern) continue;
    const auto known = measured(ExtractGroup(graph, group, plan.policy));
    if (!known || known->simulated) continue;
    if (auto rival = CloseRival(*known, group.kernel)) {
      rivals.push_back({static_cast<int>(g), *std::move(rival)});
    }
  }
  return rivals;
}

Plan WithKernels(Plan plan, const std::vector<KernelChoice>& kernels) {
  for (const KernelChoice& choice : kernels) {
    plan.groups.at(static_cast<size_t>(choice.group)).kernel = choice.kernel;
  }
  return plan;
}

}  // namespace ag
